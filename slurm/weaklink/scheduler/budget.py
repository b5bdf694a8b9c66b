"""How many nodes may be out of service, and may this one follow? Pure.

The limits hold per partition (all checks, and one check) and per leaf group. Nodes that others drained, and nodes that
are down, use the budget up as ours do: the jobs that need nodes do not ask who took them. A limit counts what is out
now, however long it has been out: that is stricter than any window, and needs no memory that could be lost.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Callable, NamedTuple, Optional, Protocol

from weaklink.scheduler.types import NodeInfo


class HasCheck(Protocol):
    """Something that says for which check a node was drained."""

    @property
    def check(self) -> str:
        """The check's name."""


class Decision(NamedTuple):
    """May the node be drained, or stay so? ``out`` of at most ``limit`` are out in the group that ``reason`` names."""

    allowed: bool
    reason: str
    out: int
    limit: int


Ours = Callable[[str, str], Optional[HasCheck]]


def limit_of(total: Optional[int], fraction: float, count: int) -> int:
    """Return the limit of a group of ``count`` nodes: ``total`` when given, else the fraction of it, but at least 1."""
    # A product such as 0.07 * 100 is a hair over 7; what the site wrote is meant.
    return max(0, int(total)) if total is not None else max(1, math.floor(fraction * count + 1e-9))


def decide(
    nodes: Mapping[str, NodeInfo],
    node: str,
    check: str,
    expected_like: Mapping[str, Any],
    ours: Ours,
    *,
    hard: bool = False,
) -> Decision:
    """Decide whether ``node`` may be out for ``check``.

    ``expected_like`` has "partitions" and "leaves" (name → list of node names) and "policy" with "budget"; ``ours(name,
    reason)`` returns our reason's parts or None. Before the drain the node itself counts as one more; after it (the
    node is out with our reason) the answer says whether it stays: when several drained at once, the earliest by (time,
    name) stay. ``hard``, for a fault that an independent sign confirms, opens the reserve.
    """
    budget = expected_like["policy"]["budget"]
    mine = {name: found for name, info in nodes.items() if info.taken for found in [ours(name, info.reason)] if found}
    total = budget.get("total_nodes")
    tight: Optional[Decision] = None
    for label, members, limit, counted in _groups(budget, total, check, node, expected_like, mine, hard):
        out = _out_before(nodes, node, members, mine, counted)
        if out + 1 > limit:
            return Decision(False, f"{label}: {out} of at most {limit} nodes are out already", out, limit)
        if tight is None or limit - out < tight.limit - tight.out:
            tight = Decision(True, f"{label}: {out} of at most {limit} nodes are out", out, limit)
    if tight is None:
        return Decision(False, f"{node} is in no partition that is known here, so no budget holds for it", 0, 0)
    return tight


_Group = tuple[str, list[str], int, Optional[frozenset[str]]]


def _groups(  # noqa: PLR0917 - what decide was given, all of it
    budget: Mapping[str, Any],
    total: Optional[int],
    check: str,
    node: str,
    expected_like: Mapping[str, Any],
    mine: Mapping[str, HasCheck],
    hard: bool,
) -> Iterable[_Group]:
    """Yield (label, members, limit, names that count or None for all that are out) of each limit on ``node``."""
    same_check = frozenset(name for name, reason in mine.items() if reason.check == check)
    for name, members in expected_like["partitions"].items():
        if node not in members:
            continue
        count = len(members)
        limit = limit_of(total, float(budget.get("total_fraction", 0.10)), count)
        if hard and total is None:
            limit += max(1, math.floor(float(budget.get("reserve_fraction", 0.10)) * count + 1e-9))
        yield f"partition {name}", list(members), limit, None
        check_nodes = budget.get("check_nodes")
        one = total if check_nodes is None and total is not None else check_nodes
        yield (
            f"check {check} in partition {name}",
            list(members),
            limit_of(one, float(budget.get("check_fraction", 0.05)), count),
            same_check,
        )
    if total is None:
        for name, members in expected_like.get("leaves", {}).items():
            if node in members:
                yield (
                    f"leaf {name}",
                    list(members),
                    limit_of(None, float(budget.get("leaf_fraction", 0.25)), len(members)),
                    None,
                )


def _out_before(
    nodes: Mapping[str, NodeInfo],
    node: str,
    members: list[str],
    mine: Mapping[str, HasCheck],
    counted: Optional[frozenset[str]],
) -> int:
    """Return how many of the group are out ahead of ``node``: all that are out, less ours that drained after it."""
    standing = nodes.get(node)
    stays = standing if node in mine else None
    out = 0
    for name in members:
        info = nodes.get(name)
        if name == node or info is None or not info.out or (counted is not None and name not in counted):
            continue
        if stays is not None and name in mine and (info.reason_time, name) > (stays.reason_time, node):
            continue
        out += 1
    return out
