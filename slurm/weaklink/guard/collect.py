"""Fetch what the nodes left in Slurm, the digest of the latest verdict in each node's Extra, into the store."""

import calendar
import time
from collections.abc import Mapping
from typing import Any

from weaklink.guard.context import Guard, printable
from weaklink.history.store import EvidenceRecord
from weaklink.scheduler.digest import read
from weaklink.scheduler.types import NodeInfo

OVER_BUDGET = "over-budget"


def collect(guard: Guard, nodes: Mapping[str, NodeInfo]) -> list[EvidenceRecord]:
    """Store new digests, open or extend incidents for drains that the budget refused, close those that are over."""
    fresh = []
    for name, info in nodes.items():
        record = from_digest(name, read(info.extra))
        if record is None or not guard.store.add_evidence(record):
            continue
        fresh.append(record)
        if record.action == OVER_BUDGET:
            number = guard.store.note_incident(record.check, record.cause, name, record.message)
            guard.log(context="guard", node=name, action="incident", check=record.check, incident=number)
        elif record.verdict == "ok":
            guard.store.close_incidents(name, f"{name} was found well again")
    return fresh


def from_digest(node: str, digest: "Mapping[str, Any] | None") -> "EvidenceRecord | None":
    """Return the evidence that a digest holds, or None when it is none. Its text is hostile: cut and made printable."""
    if not digest or not isinstance(digest.get("id"), str) or not digest["id"]:
        return None

    def word(name: str, limit: int = 80) -> str:
        value = digest.get(name)
        return printable(value, limit) if isinstance(value, str) else ""

    return EvidenceRecord(
        printable(f"{node}:{digest['id']}", 80),
        node,
        seconds_of(digest.get("time")),
        "digest",
        word("verdict", 20),
        word("action", 40),
        word("check"),
        word("cause"),
        word("message", 200),
        word("token", 20),
        {key: value for key, value in digest.items() if isinstance(value, (str, int, float, type(None)))},
    )


def seconds_of(value: Any) -> float:
    """Return a digest's time in seconds since the epoch; 0 when it is neither a number nor an ISO time in UTC."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return float(calendar.timegm(time.strptime(value[:19], "%Y-%m-%dT%H:%M:%S")))
        except ValueError:
            return 0.0
    return 0.0
