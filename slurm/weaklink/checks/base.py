"""What a check is, and what it says."""

from typing import Any, Callable, NamedTuple, Union

from weaklink.model.expected import Expected
from weaklink.model.finding import Finding
from weaklink.observe.records import Observation

DRAIN = "drain"
NOTE = "note"

PROLOG = "prolog"
EPILOG = "epilog"
HEALTH = "health"
CLI = "check"
EVERYWHERE = frozenset({PROLOG, EPILOG, HEALTH, CLI})
UNHURRIED = frozenset({EPILOG, HEALTH, CLI})


class NotApplicable(NamedTuple):
    """A check that has nothing to judge on a subject, and why."""

    check: str
    subject: str
    why: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON's object."""
        return {"check": self.check, "subject": self.subject, "why": self.why}


Said = Union[Finding, NotApplicable]


class Check(NamedTuple):
    """One check: pure, from an observation and an expectation to what it says of each subject.

    ``needs`` are the concerns to observe, ``contexts`` where it runs, ``action`` what a bad status may lead to (drain
    or note), ``cause`` the word for what is wrong, ``remedy`` what to do next.
    """

    name: str
    cause: str
    action: str
    contexts: frozenset[str]
    needs: frozenset[str]
    remedy: str
    decides: Callable[[Observation, Expected], list[Said]]


def say(check: str, cause: str, subject: str, status: str, message: str, **evidence: Any) -> Finding:
    """Return a finding; an ok one has no cause."""
    return Finding(check, subject, status, cause if status != "ok" else "", message, evidence)
