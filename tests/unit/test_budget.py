"""The drain budget: a table, and what must hold for any cluster."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.scheduler.budget import decide, limit_of
from weaklink.scheduler.ownership import Reason
from weaklink.scheduler.types import NodeInfo

BUDGET = {
    "total_nodes": None,
    "total_fraction": 0.10,
    "check_nodes": None,
    "check_fraction": 0.05,
    "leaf_fraction": 0.25,
    "reserve_fraction": 0.10,
    "window_seconds": 3600,
}


def cluster(count: int, leaf: int = 1000, **budget: Any) -> dict[str, Any]:
    names = [f"n{index}" for index in range(count)]
    leaves = {f"leaf{at}": names[at : at + leaf] for at in range(0, count, leaf)}
    return {"partitions": {"main": names}, "leaves": leaves, "policy": {"budget": {**BUDGET, **budget}}}


def info(name: str, *states: str, reason: str = "", time: str = "2026-01-01T00:00:00") -> NodeInfo:
    return NodeInfo(
        name, frozenset(states or ("IDLE",)), reason, "root" if reason else "", time if reason else "", "", ("main",), 1
    )


def nodes_of(view: dict[str, Any], out: dict[str, NodeInfo]) -> dict[str, NodeInfo]:
    return {name: out.get(name, info(name)) for names in view["partitions"].values() for name in names}


def ours(_name: str, text: str) -> Reason | None:
    """In these tests a reason "ours:<check>" is ours."""
    return Reason(text[5:], "", "") if text.startswith("ours:") else None


def drained(name: str, reason: str, time: str = "2026-01-01T00:00:00") -> NodeInfo:
    return info(name, "IDLE", "DRAIN", reason=reason, time=time)


@pytest.mark.parametrize(
    ("total", "fraction", "count", "wanted"),
    [
        (None, 0.1, 3, 1),
        (None, 0.1, 9, 1),
        (None, 0.1, 19, 1),
        (None, 0.1, 20, 2),
        (None, 0.07, 100, 7),
        (None, 0.05, 2000, 100),
        (2, 0.1, 3, 2),
        (0, 0.1, 30, 0),
    ],
)
def test_limits(total: int | None, fraction: float, count: int, wanted: int) -> None:
    assert limit_of(total, fraction, count) == wanted


MANY = {f"n{index}": drained(f"n{index}", "ours:other") for index in range(1, 10)}


@pytest.mark.parametrize(
    ("count", "budget", "out", "allowed", "words"),
    [
        (3, {}, {}, True, ""),
        (3, {}, {"n1": drained("n1", "ours:x")}, False, "partition main: 1 of at most 1"),
        (3, {}, {"n1": drained("n1", "alice: RMA")}, False, "partition main"),
        (3, {}, {"n1": info("n1", "DOWN")}, False, "partition main"),
        (3, {}, {"n1": info("n1", "IDLE", "NOT_RESPONDING")}, True, ""),  # a moment after an undrain
        (3, {}, {"n1": info("n1", "DOWN", "NOT_RESPONDING")}, False, "partition main"),
        (3, {}, {"n1": info("n1", "IDLE", "RESERVED")}, True, ""),
        (3, {}, {"n1": info("n1", "IDLE", "POWERED_DOWN")}, True, ""),
        (3, {"total_nodes": 2}, {"n1": drained("n1", "alice: RMA")}, True, ""),
        (3, {"total_nodes": 2}, {"n1": drained("n1", "ours:x")}, True, ""),
        (3, {"total_nodes": 2}, {"n1": drained("n1", "a"), "n2": info("n2", "DOWN")}, False, "2 of at most 2"),
        (3, {"total_nodes": 0}, {}, False, "0 of at most 0"),
        (3, {"total_nodes": 2, "check_nodes": 1}, {"n1": drained("n1", "ours:x")}, False, "check x in partition main"),
        (3, {"total_nodes": 2, "check_nodes": 1}, {"n1": drained("n1", "ours:y")}, True, ""),
        (100, {}, MANY, True, ""),  # the tenth of 100
        (100, {}, {**MANY, "n10": info("n10", "DOWN")}, False, "10 of at most 10"),
        (
            100,
            {},
            {f"n{i}": drained(f"n{i}", "ours:x") for i in range(1, 6)},
            False,
            "check x in partition main: 5 of at most 5",
        ),
        (100, {}, {f"n{i}": drained(f"n{i}", "bob") for i in range(1, 6)}, True, ""),  # not this check's
    ],
)
def test_before_a_drain(
    count: int, budget: dict[str, Any], out: dict[str, NodeInfo], allowed: bool, words: str
) -> None:
    view = cluster(count, **budget)
    decision = decide(nodes_of(view, out), "n0", "x", view, ours)
    assert decision.allowed is allowed, decision
    assert words in decision.reason


def test_a_leaf_is_not_emptied() -> None:
    view = cluster(200, leaf=8)
    out = {name: drained(name, "ours:y") for name in ("n1", "n2")}
    assert decide(nodes_of(view, out), "n0", "x", view, ours).reason.startswith("leaf leaf0: 2 of at most 2")
    assert decide(nodes_of(view, out), "n8", "x", view, ours).allowed
    view["policy"]["budget"]["total_nodes"] = 5  # a site that names its number means it
    assert decide(nodes_of(view, out), "n0", "x", view, ours).allowed


def test_the_reserve_is_for_hard_faults() -> None:
    view = cluster(100)
    out = {f"n{index}": info(f"n{index}", "DOWN") for index in range(1, 11)}
    assert not decide(nodes_of(view, out), "n0", "x", view, ours).allowed
    assert decide(nodes_of(view, out), "n0", "x", view, ours, hard=True).allowed
    more = {f"n{index}": info(f"n{index}", "DOWN") for index in range(1, 21)}
    assert not decide(nodes_of(view, more), "n0", "x", view, ours, hard=True).allowed


def test_each_partition_of_the_node_counts_and_others_do_not() -> None:
    view = cluster(40)
    view["partitions"]["small"] = ["n0", "n1"]
    view["partitions"]["apart"] = ["n30", "n31"]
    assert not decide(nodes_of(view, {"n1": info("n1", "DOWN")}), "n0", "x", view, ours).allowed
    assert decide(nodes_of(view, {"n31": info("n31", "DOWN")}), "n0", "x", view, ours).allowed


def test_a_node_of_no_partition_is_not_drained() -> None:
    view = cluster(3)
    assert not decide(nodes_of(view, {}), "elsewhere", "x", view, ours).allowed


def test_when_several_overshoot_the_earliest_stay_then_by_name() -> None:
    view = cluster(10, total_nodes=2)
    early, late = "2026-01-01T00:00:01", "2026-01-01T00:00:02"
    out = {
        "n5": drained("n5", "ours:x", late),
        "n7": drained("n7", "ours:x", early),
        "n3": drained("n3", "ours:x", late),
        "n9": drained("n9", "ours:y", late),
    }
    stay = [name for name in out if decide(nodes_of(view, out), name, out[name].reason[5:], view, ours).allowed]
    assert sorted(stay) == ["n3", "n7"]


@given(
    count=st.integers(1, 60),
    total=st.one_of(st.none(), st.integers(0, 10)),
    leaf=st.integers(1, 16),
    states=st.lists(st.sampled_from(["IDLE", "DOWN", "alice", "ours:x", "ours:y"]), min_size=60, max_size=60),
    times=st.lists(st.integers(0, 3), min_size=60, max_size=60),
)
@settings(max_examples=150, deadline=None)
def test_whoever_stays_the_limit_holds(
    count: int, total: int | None, leaf: int, states: list[str], times: list[int]
) -> None:
    """Of ours that are out at once, those told to stay never make more than the limit together with all others."""
    view = cluster(count, leaf=leaf, total_nodes=total)
    nodes = {}
    for index in range(count):
        name, state = f"n{index}", states[index]
        stamp = f"2026-01-01T00:00:0{times[index]}"
        nodes[name] = info(name, state) if state in ("IDLE", "DOWN") else drained(name, state, stamp)
    stay = {
        n
        for n, i in nodes.items()
        if i.reason.startswith("ours:") and decide(nodes, n, i.reason[5:], view, ours).allowed
    }
    others = {n for n, i in nodes.items() if i.out and not i.reason.startswith("ours:")}
    limit = limit_of(total, 0.10, count)
    assert not stay or len(stay) + len(others) <= max(limit, len(others))
    for members in view["leaves"].values() if total is None else ():
        both = [n for n in members if n in stay or n in others]
        assert not stay & set(members) or len(both) <= max(
            limit_of(None, 0.25, len(members)), len([n for n in both if n in others])
        )
    # Asked one after the other, as fresh drains, they never pass the limit either.
    idle = [n for n, i in nodes.items() if not i.out]
    for name in idle:
        if decide(nodes, name, "x", view, ours).allowed:
            nodes[name] = drained(name, "ours:x", "2026-01-01T00:00:09")
            assert sum(i.out for i in nodes.values()) <= limit
