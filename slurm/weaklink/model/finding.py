"""Findings: the one vocabulary in which every part of weaklink says what it saw.

Statuses are ordered by how they are summed up: ``fail`` > ``degraded`` > ``unknown`` > ``ok``.
``unknown`` means "could not judge"; on its own it never drains a node and never returns one.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

OK = "ok"
UNKNOWN = "unknown"
DEGRADED = "degraded"
FAIL = "fail"

_RANK = {OK: 0, UNKNOWN: 1, DEGRADED: 2, FAIL: 3}

# Exit codes of every command but the hooks (which always exit as Slurm wants).
EXIT_OK = 0
EXIT_FOUND = 1
EXIT_USAGE = 2
EXIT_UNKNOWN = 3

_EXIT = {OK: EXIT_OK, UNKNOWN: EXIT_UNKNOWN, DEGRADED: EXIT_FOUND, FAIL: EXIT_FOUND}


class Finding(NamedTuple):
    """One judged fact.

    ``check`` is the dotted name of the check (``rdma.active_mtu``), ``subject`` what it is about
    (``c1``, ``rxe_compute/1``, ``/home``), ``cause`` one word of the list of causes (``mtu-too-small``),
    ``message`` one line: what, where, found, wanted, what to do next. ``evidence`` holds the raw values.
    """

    check: str
    subject: str
    status: str
    cause: str
    message: str
    evidence: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it in place, and a NamedTuple has no factories

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as the object that FORMATS names."""
        return {
            "check": self.check,
            "status": self.status,
            "cause": self.cause,
            "subject": self.subject,
            "message": self.message,
            "evidence": self.evidence,
        }


def worst(statuses: Iterable[str]) -> str:
    """Return the status that sums up ``statuses``; ``ok`` when there are none."""
    return max(statuses, key=_RANK.__getitem__, default=OK)


def bad_first(status: str) -> int:
    """Return a key that sorts statuses as people want to read them: fail, degraded, unknown, ok."""
    return -_RANK[status]


def exit_code(status: str) -> int:
    """Return the documented exit code of a command whose verdict is ``status``."""
    return _EXIT[status]
