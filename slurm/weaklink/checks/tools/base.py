"""What a rule over a tool's output is, and what it says. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Optional, Union

from weaklink.checks.base import DRAIN, EVERYWHERE, NOTE
from weaklink.model.finding import OK, UNKNOWN, Finding, worst
from weaklink.observe.tools.text import Trouble

__all__ = ["DRAIN", "EVERYWHERE", "NOTE", "Context", "Judged", "Rule", "close", "demand", "say"]

Context = Mapping[str, Any]
HEALTHY = "healthy"
TRUNCATED = "output-truncated"
DID_NOT_RUN = "test-did-not-run"


class Rule(NamedTuple):
    """One check over a tool's output.

    ``name`` dotted (``ib.port_state``), ``causes`` the words it may give, ``severity`` the worst status it gives,
    ``action`` what a bad status may lead to (drain or note), ``decides`` one sentence: how, and by which source,
    ``remedy`` what to do next.
    """

    name: str
    causes: tuple[str, ...]
    severity: str
    action: str
    decides: str
    remedy: str


class Judged(NamedTuple):
    """What an output says: facts by key, findings with the root cause before what follows from it."""

    facts: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """The status that sums the findings up."""
        return worst(finding.status for finding in self.findings)

    @property
    def cause(self) -> str:
        """The cause of the first of the worst findings; ``healthy`` when nothing is wrong."""
        verdict = self.verdict
        first = next((finding for finding in self.findings if finding.status == verdict), None)
        return (first.cause if first else "") or HEALTHY


def say(rule: Rule, subject: str, status: str, message: str, cause: str = "", **evidence: Any) -> Finding:
    """Return a finding of ``rule``; its cause is the rule's first one unless given. An ok one may carry a cause too."""
    word = cause or (rule.causes[0] if status != OK and rule.causes else "")
    return Finding(rule.name, subject, status, word, message, evidence)


def close(
    tool: str, facts: dict[str, Any], findings: Iterable[Finding], troubles: Iterable[Trouble], good: str = ""
) -> Judged:
    """Return the judgement: what could not be read comes after the findings; where nothing is said, ``good`` is ok."""
    said = list(findings)
    said += [
        Finding(f"{tool}.readable", tool, UNKNOWN, TRUNCATED, f"line {trouble.line}: {trouble.what}"[:400])
        for trouble in list(troubles)[:20]
    ]
    if not said:
        said.append(Finding(f"{tool}.readable", tool, OK, "", good or f"{tool}: nothing is wrong in what was read"))
    return Judged(facts, tuple(said))


_KINDS: dict[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


def demand(context: Context, key: str, kind: Any, default: Optional[Any] = None) -> Any:
    """Return what ``context`` demands at ``key``, or ``default`` where it demands nothing.

    ``kind`` is str, bool, int, float (whole numbers count), list or dict, or a tuple of them; another kind of value is
    a ValueError.
    """
    value = context.get(key)
    if value is None:
        return default
    kinds: tuple[Any, ...] = kind if isinstance(kind, tuple) else (kind,)
    allowed: Union[tuple[Any, ...], Any] = (*kinds, int) if float in kinds else kinds
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(_KINDS.get(item, str(item)) for item in kinds)
        raise ValueError(f"context: key {key!r}: found {value!r:.60}, wanted {wanted}")
    return value
