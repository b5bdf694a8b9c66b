"""The rounds of a sweep keep their promises at every size."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.sweep.schedule import LARGE_ROUNDS, SMALL_FLEET, Flow, Rounds, follow_up, node_of, pack, schedule


def fleet(nodes: int, hcas: int = 1, prefix: str = "n") -> dict[str, int]:
    return {f"{prefix}{i}/mlx5_{h}": h for i in range(nodes) for h in range(hcas)}


def assert_fair(rounds: Rounds, rails: dict[str, int]) -> None:
    for one in rounds:
        senders = [flow.src for flow in one]
        receivers = [flow.dst for flow in one]
        assert len(senders) == len(set(senders))
        assert len(receivers) == len(set(receivers))
        for flow in one:
            assert node_of(flow.src) != node_of(flow.dst)
            assert rails[flow.src] == rails[flow.dst]


@given(st.integers(2, 300), st.integers(1, 3), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_an_hca_sends_once_and_receives_once_a_round(nodes: int, hcas: int, seed: int) -> None:
    rails = fleet(nodes, hcas)
    rounds = schedule(rails, seed=seed)
    assert_fair(rounds, rails)
    assert rounds == schedule(rails, seed=seed)


@given(st.integers(2, SMALL_FLEET), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_small_fleets_measure_every_ordered_pair_once_and_undisturbed(nodes: int, seed: int) -> None:
    rails = fleet(nodes)
    rounds = schedule(rails, seed=seed)
    flows = [flow for one in rounds for flow in one]
    assert sorted(flows) == sorted(Flow(a, b) for a in rails for b in rails if a != b)
    assert len(rounds) == 2 * (nodes - 1 + nodes % 2)
    for one in rounds:
        taking_part = [node_of(end) for flow in one for end in flow]
        assert len(taking_part) == len(set(taking_part))


@given(st.integers(SMALL_FLEET + 1, 300), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_large_fleets_use_every_hca_in_every_round_and_repeat_no_pair(nodes: int, seed: int) -> None:
    rails = fleet(nodes)
    rounds = schedule(rails, seed=seed)
    assert len(rounds) == LARGE_ROUNDS
    assert all(len(one) == nodes for one in rounds)
    flows = [flow for one in rounds for flow in one]
    assert len(flows) == len(set(flows))


def test_rounds_limit_the_number_of_rounds() -> None:
    assert len(schedule(fleet(40), seed=1, rounds=5)) == 5
    assert len(schedule(fleet(4), seed=1, rounds=2)) == 2


@pytest.mark.parametrize("nodes", [0, 1])
def test_no_pair_no_round(nodes: int) -> None:
    assert schedule(fleet(nodes), seed=1) == []


def test_two_hcas_of_one_node_on_a_rail_are_refused() -> None:
    with pytest.raises(ValueError, match="own rail"):
        schedule({"n1/a": 0, "n1/b": 0}, seed=1)


def test_time_grows_with_the_number_of_flows() -> None:
    def seconds(nodes: int) -> float:
        rails = fleet(nodes)
        best = 9.0
        for _ in range(3):
            start = time.process_time()
            schedule(rails, seed=3)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(4096) < max(12 * seconds(512), 0.5)
    assert seconds(4096) < 2.0


@given(st.integers(3, 120), st.integers(1, 3), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_follow_up_meets_new_healthy_partners_in_both_directions(nodes: int, bad: int, seed: int) -> None:
    rails = fleet(nodes)
    hcas = sorted(rails)
    suspects = hcas[: min(bad, nodes - 2)]
    tried = [Flow(suspects[0], hcas[-1])]
    rounds = follow_up(suspects, rails, tried=tried, seed=seed, partners=1)
    assert_fair(rounds, rails)
    flows = {flow for one in rounds for flow in one}
    assert all(Flow(flow.dst, flow.src) in flows for flow in flows)
    for suspect in suspects:
        partners = {flow.dst for flow in flows if flow.src == suspect}
        assert partners
        assert not partners & set(suspects)
    first = {flow.dst for flow in flows if flow.src == suspects[0]}
    if nodes - len(suspects) > 1:
        assert hcas[-1] not in first
    controls = [flow for flow in flows if not set(flow) & set(suspects)]
    assert len(controls) == (2 if nodes - len(suspects) > 1 else 0)


def test_follow_up_of_nobody_is_empty() -> None:
    assert follow_up([], fleet(4), tried=[], seed=1) == []


def test_pack_keeps_nodes_apart() -> None:
    flows = [Flow("a/x", "b/x"), Flow("b/x", "a/x"), Flow("c/x", "d/x")]
    assert pack(flows) == [[flows[0], flows[2]], [flows[1]]]
