"""The list of nodes as an engineer wants it: state, who took it out and why, what weaklink last saw."""

from collections.abc import Mapping, Sequence
from typing import Any

from weaklink.guard.context import Guard, owner_of, printable, stamp
from weaklink.guard.returns import reservation_of
from weaklink.scheduler.types import NodeInfo


def rows(guard: Guard, nodes: Mapping[str, NodeInfo]) -> list[dict[str, Any]]:
    """Return one object a node, sorted by name: node, state, by, check, reason, since, last, note."""
    quarantined = {
        record.node
        for record in guard.store.returns(unfinished=True)
        if record.reservation == reservation_of(record.node)
    }
    found = []
    for name, info in sorted(nodes.items()):
        owner = owner_of(guard.key, info)
        latest = guard.store.evidence(name, limit=1)
        note = owner.note
        if name in quarantined:
            note = f"a return has not ended: weaklink return {name} cleans up"
        found.append(
            {
                "node": name,
                "state": "+".join(sorted(info.states)),
                "by": owner.who,
                "check": owner.check,
                "reason": info.reason,
                "user": info.reason_user,
                "since": info.reason_time,
                "weight": info.weight,
                "last": f"{latest[0].action} {latest[0].check} {stamp(latest[0].time)}".strip() if latest else "",
                "note": note,
            }
        )
    return found


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a plain table: columns as wide as their longest cell, the last one free."""
    cells = [list(heads), *([printable(cell, 160) for cell in line] for line in lines)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells)
