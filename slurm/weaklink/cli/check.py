"""``weaklink check``: judge this node against what is expected of it, as a table or as JSON. Changes nothing."""

import argparse
import json
import sys
import time
from typing import Any

from weaklink.checks.base import CLI
from weaklink.checks.registry import CHECKS, Judgement, in_context, judge, needs
from weaklink.cli import UsageError
from weaklink.hooks.files import Places, now_text
from weaklink.hooks.strikes import earlier_counters
from weaklink.model import expected as expected_file
from weaklink.model.finding import bad_first, exit_code
from weaklink.model.words import safe
from weaklink.observe.host import Host
from weaklink.observe.node import observe


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="weaklink check", description=__doc__)
    parser.add_argument("--expected", metavar="FILE", default=expected_file.PATH, help="what is expected (%(default)s)")
    parser.add_argument(
        "--root", metavar="DIR", default="/", help="read files under DIR instead of / (a captured tree)"
    )
    parser.add_argument("--only", metavar="CHECK", action="append", help="run this check alone; may be repeated")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def run(argv: list[str]) -> int:
    """Run the command; return its exit code."""
    args = _parser().parse_args(argv)
    start = time.monotonic()
    try:
        wanted = expected_file.read(args.expected)
    except expected_file.ExpectedError as error:
        raise UsageError(str(error)) from error
    checks = in_context(CLI)
    if args.only:
        known = {check.name for check in CHECKS}
        unknown = [name for name in args.only if name not in known]
        if unknown:
            raise UsageError(f"no check {', '.join(unknown)}; one of: {', '.join(sorted(known))}")
        checks = tuple(check for check in checks if check.name in args.only)
    earlier = earlier_counters(Places(), args.root)
    seen = observe(Host(args.root), wanted, needs(checks), timeout=wanted.deadline("check"), earlier=earlier)
    judgement = judge(checks, seen, wanted)
    if args.json:
        print(json.dumps(as_json(judgement, wanted.node, time.monotonic() - start)))
    else:
        print_table(judgement, wanted.node)
    return exit_code(judgement.verdict)


def as_json(judgement: Judgement, node: str, seconds: float) -> dict[str, Any]:
    """Return the object that FORMATS names, with what does not apply beside it."""
    return {
        "node": node,
        "time": now_text(),
        "verdict": judgement.verdict,
        "findings": [finding.as_dict() for finding in judgement.findings],
        "not_applicable": [item.as_dict() for item in judgement.not_applicable],
        "seconds": round(seconds, 3),
    }


def print_table(judgement: Judgement, node: str) -> None:
    """Print one line a finding, the bad ones first, and the verdict last."""
    for finding in sorted(judgement.findings, key=lambda item: bad_first(item.status)):
        print(f"{finding.status:<9} {finding.check:<16} {safe(finding.message)}")
    for item in judgement.not_applicable:
        print(f"{'n/a':<9} {item.check:<16} {safe(item.subject)}: {safe(item.why)}")
    print(f"{node}: {judgement.verdict}")
    sys.stdout.flush()
