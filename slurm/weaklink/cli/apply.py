"""``weaklink apply AREA``: bring one area of this node to its desired state, or say what would change."""

from __future__ import annotations

import json
import sys
from typing import Any

from weaklink.cli import UsageError


def _options(argv: list[str]) -> Any:
    import argparse

    from weaklink.apply.run import AREAS

    parser = argparse.ArgumentParser(prog="weaklink apply", description=__doc__)
    parser.add_argument("area", metavar="AREA", choices=sorted(AREAS), help=", ".join(sorted(AREAS)))
    parser.add_argument(
        "--desired", metavar="FILE", required=True, help="JSON of the desired state; - is standard input"
    )
    parser.add_argument("--check", action="store_true", help="change nothing, say what would change")
    parser.add_argument("--allow-disruptive", action="store_true", help="also what jobs on this node can feel")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args(argv)


def _desired(name: str) -> dict[str, Any]:
    where = "standard input" if name == "-" else name
    try:
        if name == "-":
            text = sys.stdin.read()
        else:
            with open(name, encoding="utf-8") as stream:  # noqa: PTH123 - pathlib costs start-up time on nodes
                text = stream.read()
        desired = json.loads(text)
    except OSError as error:
        raise UsageError(f"--desired {name}: {error.strerror}; name a readable file") from error
    except ValueError as error:
        raise UsageError(f"{where}: no JSON ({error}); wanted the area's desired state as one object") from error
    if not isinstance(desired, dict):
        raise UsageError(f"{where}: found {type(desired).__name__}, wanted the area's desired state as one object")
    return desired


def run(argv: list[str]) -> int:
    """Run the command; exit code 0 when all is (in check mode: can be) as wanted, 1 when something failed or waits."""
    options = _options(argv)
    desired = _desired(options.desired)
    from weaklink.apply.host import Host
    from weaklink.apply.run import run_area
    from weaklink.observe.command import run as run_command

    try:
        result = run_area(
            Host(run_command), options.area, desired, check=options.check, allow_disruptive=options.allow_disruptive
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"the desired state of area {options.area} is malformed: {type(error).__name__}: {error}"
        ) from error
    if options.json:
        print(json.dumps(result, ensure_ascii=True))
    else:
        _tell(result)
    return 1 if result["failed"] or result["pending"] else 0


def _tell(result: dict[str, Any]) -> None:
    for change in result["changes"]:
        word = "changed" if change["applied"] else "would change"
        print(f"{word}: {change['what']}: {change['from']} -> {change['to']}")
        if change.get("diff"):
            print(change["diff"], end="")
    for step in result["pending"]:
        print(f"waits: {step['what']}: {step['message']}")
    for problem in result["failed"]:
        print(f"failed: {problem['message']}")
    if not any(result[key] for key in ("changes", "pending", "failed")):
        print("as wanted")
