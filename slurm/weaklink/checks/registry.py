"""All checks, a cause before what follows from it: the first one that is bad gives a drain its name."""

from collections.abc import Iterable
from typing import NamedTuple

from weaklink.checks import daemons, mounts, nics
from weaklink.checks.base import DRAIN, Check, NotApplicable
from weaklink.model.expected import Expected
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding, worst
from weaklink.observe.records import Observation

CHECKS: tuple[Check, ...] = (*nics.CHECKS, *mounts.CHECKS, *daemons.CHECKS)
BY_NAME = {check.name: check for check in CHECKS}
BAD = frozenset({FAIL, DEGRADED})


class Judgement(NamedTuple):
    """What all checks of a context said."""

    findings: tuple[Finding, ...]
    not_applicable: tuple[NotApplicable, ...]

    @property
    def verdict(self) -> str:
        """The status that sums them up."""
        return worst(finding.status for finding in self.findings)

    @property
    def draining(self) -> tuple[Finding, ...]:
        """The findings that may take a node out of service, the root cause first."""
        return tuple(f for f in self.findings if f.status in BAD and BY_NAME[f.check].action == DRAIN)


def in_context(context: str) -> tuple[Check, ...]:
    """Return the checks that run in ``context``."""
    return tuple(check for check in CHECKS if context in check.contexts)


def needs(checks: Iterable[Check]) -> frozenset[str]:
    """Return the concerns that ``checks`` need to have observed."""
    return frozenset(need for check in checks for need in check.needs)


def judge(checks: Iterable[Check], observation: Observation, expected: Expected) -> Judgement:
    """Run ``checks``. One that breaks says unknown of itself; the others still speak."""
    findings: list[Finding] = []
    skipped: list[NotApplicable] = []
    for check in checks:
        try:
            said = check.decides(observation, expected)
        except Exception as error:  # noqa: BLE001 - a defect of ours must not take a node away
            text = f"{check.name} broke on this node ({type(error).__name__}: {error}); report it"
            findings.append(Finding(check.name, expected.node, UNKNOWN, check.cause, text[:200]))
            continue
        for word in said:
            if isinstance(word, NotApplicable):
                skipped.append(word)
            else:
                findings.append(word)
    return Judgement(tuple(findings), tuple(skipped))
