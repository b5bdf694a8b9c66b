"""What is said of texts, as JSON's object and as words for a terminal."""

import json
import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional

from weaklink.checks.tools.base import HEALTHY, Rule
from weaklink.explain import tools
from weaklink.explain.reports import Report
from weaklink.model.finding import OK, UNKNOWN, Finding, bad_first, worst
from weaklink.model.words import safe

WIDTH = 80
MAX_FACTS = 24
MAX_OK = 5
_INDENT = " " * 10
_READABLE = "Get the whole output (no head, no tail, no full disk) and explain it again."


def summed(reports: Iterable[Report]) -> tuple[str, str]:
    """Return verdict and cause over several reports: those of the first of the worst; what was passed over is left."""
    counted = [report for report in reports if not report.passed_over]
    if not counted:
        return UNKNOWN, "test-did-not-run"
    verdict = worst(report.verdict for report in counted)
    return verdict, next(report.judged.cause for report in counted if report.verdict == verdict)


def remedy(report: Report, finding: Finding) -> str:
    """Return what to do about a finding: its rule's remedy."""
    if finding.status == OK:
        return ""
    rules: Sequence[Rule] = tools.judge(report.tool).RULES if report.tool is not None else ()
    rule = next((one for one in rules if one.name == finding.check), None)
    return rule.remedy if rule is not None else _READABLE


def plain(value: Any) -> Any:
    """Return a value as JSON has it: no NaN, no infinity, tuples and sets as lists."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=str)
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _findings(report: Report, prefix: str) -> Iterator[dict[str, Any]]:
    for finding in report.judged.findings:
        yield {
            "check": finding.check,
            "status": finding.status,
            "cause": finding.cause or HEALTHY,
            "subject": f"{prefix}{finding.subject}",
            "message": finding.message,
            "remedy": remedy(report, finding),
        }


def _object(report: Report) -> dict[str, Any]:
    return {
        "source": report.source,
        "part": report.part,
        "tool": report.tool,
        "version": report.version,
        "verdict": report.verdict,
        "cause": report.judged.cause,
        "facts": plain(report.judged.facts),
        "findings": list(_findings(report, "")),
        "lines": [report.first, report.last],
        "notes": list(report.notes),
    }


def as_json(reports: Sequence[Report]) -> dict[str, Any]:
    """Return the object for one text. With several outputs in it: the worst one's, all findings, and all ``parts``."""
    counted = [report for report in reports if not report.passed_over]
    verdict, _ = summed(reports)
    top = _object(next(report for report in counted if report.verdict == verdict))
    if len(counted) > 1:
        top["findings"] = [
            item for report in counted for item in _findings(report, f"{report.part}: " if report.part else "")
        ]
        top["parts"] = [_object(report) for report in counted]
    top["skipped"] = _skipped(reports)
    return top


def all_as_json(reports: Sequence[Report]) -> dict[str, Any]:
    """Return the object for several texts, or a capture."""
    verdict, cause = summed(reports)
    counted = [_object(report) for report in reports if not report.passed_over]
    return {"verdict": verdict, "cause": cause, "reports": counted, "skipped": _skipped(reports)}


def _skipped(reports: Iterable[Report]) -> list[dict[str, str]]:
    return [
        {"source": report.source, "why": finding.message}
        for report in reports
        if report.passed_over
        for finding in report.judged.findings[:1]
    ]


def words(reports: Sequence[Report]) -> Iterator[str]:
    """Yield the lines of a report for a terminal, at most WIDTH wide where the words allow it."""
    counted = [report for report in reports if not report.passed_over]
    for report in counted:
        yield from _one(report)
        yield ""
    skipped = _skipped(reports)
    if skipped:
        yield f"not judged: {len(skipped)}"
        for item in skipped[:20]:
            yield from _wrapped(f"{item['source']}: {item['why']}", "  ")
        if len(skipped) > 20:  # noqa: PLR2004 - as above
            yield f"  and {len(skipped) - 20} more (--json lists all)"
        yield ""
    verdict, cause = summed(reports)
    if len(counted) != 1 or skipped:
        many = f"{len(counted)} output{'s' if len(counted) != 1 else ''}"
        yield f"all in all: {verdict}, {cause} ({many} judged)"


def _one(report: Report) -> Iterator[str]:
    where = f"{report.source}, {report.part}" if report.part else report.source
    what = report.tool or "unknown tool"
    version = f" ({report.version})" if report.version else ""
    yield from _wrapped(f"{where}: {what}{version}, lines {report.first} to {report.last}", "", "  ")
    for note in report.notes:
        yield from _wrapped(f"note: {note}", "  ", "        ")
    yield f"  verdict: {report.verdict}, {report.judged.cause}"
    yield from _facts(report.judged.facts)
    said = sorted(report.judged.findings, key=lambda item: bad_first(item.status))
    done = ""
    good = [finding for finding in said if finding.status == OK]
    for finding in said:
        if finding.status == OK:
            continue
        yield from _wrapped(f"{finding.status:<9} {finding.message}", "  ", "  " + _INDENT)
        what_to_do = remedy(report, finding)
        if what_to_do and what_to_do != done:
            yield from _wrapped(f"do: {what_to_do}", "  " + _INDENT)
        done = what_to_do
    for finding in good[:MAX_OK]:
        yield from _wrapped(f"{'ok':<9} {finding.message}", "  ", "  " + _INDENT)
    if len(good) > MAX_OK:
        yield f"  {'ok':<9} and {len(good) - MAX_OK} more"


def _facts(facts: dict[str, Any]) -> Iterator[str]:
    known = {key: value for key, value in facts.items() if value is not None and value not in ([], {}, (), "")}
    if known:
        yield "  read:"
    for key in list(known)[:MAX_FACTS]:
        text = safe(f"    {key}: {_short(known[key])}")
        yield text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
    if len(known) > MAX_FACTS:
        yield f"    and {len(known) - MAX_FACTS} more (--json has all)"


def _short(value: Any) -> str:
    if isinstance(value, str):
        return value
    text = json.dumps(plain(value), ensure_ascii=False)
    return text.replace('"', "") if isinstance(value, (list, tuple, dict)) else text


def _wrapped(text: str, first: str, then: Optional[str] = None) -> list[str]:
    later = first + "  " if then is None else then
    found = textwrap.wrap(
        safe(text), WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    )  # fmt: skip
    return found or [first.rstrip()]
