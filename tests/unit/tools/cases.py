"""Cases: what a tool printed, and the conclusion that is right. One folder each under tests/cases."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

CASES = Path(__file__).resolve().parents[2] / "cases"
NAMES = sorted(path.name for path in CASES.iterdir() if path.is_dir())


def text_of(name: str) -> str:
    """Return what the tool printed in a case, named by its folder or the folder's beginning."""
    folder = _folder(name)
    [path] = folder.glob("input.*")
    return path.read_text(encoding="utf-8")


def case_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_folder(name) / "case.json").read_text(encoding="utf-8"))
    return found


def _folder(name: str) -> Path:
    [folder] = [CASES / known for known in NAMES if known.startswith(name)]
    return folder


def differences(wanted: Any, found: Any, where: str = "facts") -> list[str]:  # noqa: PLR0911 - one return a kind
    """Return where ``found`` lacks what is wanted: a recursive subset, floats to 0.01, lists of scalars as sets."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return [f"{where}: {found!r} is no object"]
        by_text = {str(key): value for key, value in found.items()}
        missing = [f"{where}.{key}: missing" for key in wanted if str(key) not in by_text]
        return missing + [
            line
            for key, value in wanted.items()
            if str(key) in by_text
            for line in differences(value, by_text[str(key)], f"{where}.{key}")
        ]
    if isinstance(wanted, list):
        if not isinstance(found, (list, tuple)) or len(wanted) != len(found):
            return [f"{where}: {found!r}, wanted {wanted!r}"]
        if not any(isinstance(item, (dict, list)) for item in wanted):
            return [] if {str(i) for i in wanted} == {str(i) for i in found} else [f"{where}: {found!r} != {wanted!r}"]
        left = list(found)
        lines = []
        for item in wanted:
            match = next((other for other in left if not differences(item, other)), None)
            if match is None:
                lines.append(f"{where}: nothing like {item!r} in {left!r}")
            else:
                left.remove(match)
        return lines
    if isinstance(wanted, bool) or isinstance(found, bool) or wanted is None or isinstance(wanted, str):
        return [] if wanted == found and type(wanted) is type(found) else [f"{where}: {found!r}, wanted {wanted!r}"]
    if not isinstance(found, (int, float)) or not math.isclose(wanted, found, abs_tol=0.01):
        return [f"{where}: {found!r}, wanted {wanted!r}"]
    return []


def check_case(name: str, judged: Any) -> None:
    """Assert that a judgement (``weaklink.checks.tools.base.Judged``) is the one that the case states."""
    case = case_of(name)
    assert (judged.verdict, judged.cause) == (case["verdict"], case["cause"]), judged.findings
    assert differences(case["facts"], json.loads(json.dumps(judged.facts))) == []
