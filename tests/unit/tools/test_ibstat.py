"""Reading and judging ibstat."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools.cases import case_of, text_of
from tests.unit.tools.ib_reading import (
    a_cut_never_heals,
    a_cut_never_invents,
    data,
    holds_case,
    judged,
    reader,
    said,
    survives,
)

POLLING = text_of("020")
CONTEXT = case_of("020")["context"]
ONE_PORT = text_of("022")


def device(name: str, state: str = "Active", phys: str = "LinkUp", rate: str = "400", layer: str = "InfiniBand") -> str:
    return (
        f"CA '{name}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.43.2026\n\tHardware version: 0\n"
        f"\tNode GUID: 0x946dae03003e9b40\n\tSystem image GUID: 0x946dae03003e9b40\n\tPort 1:\n\t\tState: {state}\n"
        f"\t\tPhysical state: {phys}\n\t\tRate: {rate}\n\t\tBase lid: 201\n\t\tLMC: 0\n\t\tSM lid: 17\n"
        f"\t\tCapability mask: 0xa751e848\n\t\tPort GUID: 0x946dae03003e9b40\n\t\tLink layer: {layer}\n"
    )


@pytest.mark.parametrize("name", ["020", "021", "022"])
def test_the_case_is_judged_right(name: str) -> None:
    holds_case(name)


def test_a_real_run_is_read() -> None:
    found = judged("ibstat", data("ibstat"), {"compute_hcas": ["ibsim0"], "expected_rate_gbps": 10})
    assert found.verdict == "ok"
    assert found.facts["rate_gbps"] == {"ibsim0/1": 10.0}


@pytest.mark.parametrize(
    ("block", "verdict"),
    [
        (device("ibp1", rate="200"), ("degraded", "rate-below-expected")),
        (device("ibp1", rate="800"), ("ok", "healthy")),
        (device("ibp1", rate="2.5"), ("degraded", "rate-below-expected")),
        (device("ibp1", rate="40 (FDR10)"), ("degraded", "rate-below-expected")),
        (device("ibp1", state="Armed"), ("fail", "no-subnet-manager")),
        (device("ibp1", state="Down", phys="Disabled"), ("fail", "link-down")),
        (device("ibp1", phys="LinkErrorRecovery"), ("degraded", "link-flapping")),
        (device("ibp1", layer="Ethernet"), ("fail", "link-down")),
        (device("ibp1", state="???"), ("unknown", "output-truncated")),
        (device("ibp1", rate="fast"), ("unknown", "output-truncated")),
        (device("other"), ("fail", "nic-probe-failed")),
    ],
)
def test_each_state_and_rate_has_its_verdict(block: str, verdict: tuple[str, str]) -> None:
    context = {"compute_hcas": ["ibp1"], "expected_rate_gbps": 400, "link_layer": "InfiniBand"}
    assert said("ibstat", block, context) == verdict


def test_an_ethernet_port_does_not_wait_for_a_subnet_manager() -> None:
    text = device("roce1", state="Initializing", layer="Ethernet")
    assert said("ibstat", text, {"compute_hcas": ["roce1"], "link_layer": "Ethernet"}) == ("fail", "link-down")


def test_a_down_port_is_no_fault_where_it_is_called_unused_and_unknown_where_nobody_says() -> None:
    text = device("a") + device("b", state="Down", phys="Polling")
    assert said("ibstat", text, {"unused_ports": ["b/1"], "expected_rate_gbps": 400}) == ("ok", "healthy")
    assert said("ibstat", text, {"expected_rate_gbps": 400}) == ("fail", "link-down")
    assert said("ibstat", text) == ("unknown", "link-down")


def test_a_port_fewer_than_announced_means_a_cut() -> None:
    text = device("a").replace("ports: 1", "ports: 2")
    assert said("ibstat", text, {"compute_hcas": ["a"]}) == ("unknown", "output-truncated")


def test_a_rate_that_was_cut_is_no_number_and_no_slow_link() -> None:
    text = POLLING.partition("CA 'mlx5_2'")[0].rpartition("00\n        Base lid")[0]
    assert text.endswith("Rate: 4")
    found = judged("ibstat", text, CONTEXT)
    assert (found.verdict, found.cause) == ("unknown", "output-truncated")
    assert found.facts["rate_gbps"] == {"mlx5_0/1": 400.0, "mlx5_1/1": None}


def test_the_tools_own_failure_is_no_verdict_on_the_cards() -> None:
    context = {"compute_hcas": ["mlx5_0"]}
    assert said("ibstat", "ibpanic: [3] main: can't list IB device names: Success\n", context)[0] == "unknown"
    assert said("ibstat", "bash: ibstat: command not found\n", context) == ("unknown", "test-did-not-run")
    assert said("ibstat", "ibstat: Permission denied\n", context) == ("unknown", "not-root")
    assert said("ibstat", "", context) == ("unknown", "output-truncated")
    warned = "libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d': No such file or directory\n"
    assert said("ibstat", warned + device("mlx5_0"), context) == ("ok", "healthy")


def test_port_guids_and_names_alone_are_no_state() -> None:
    guids = judged("ibstat", "0x946dae03003e9b40\n0x946dae03003e9d12\n")
    assert guids.facts["guids"] == ["0x946dae03003e9b40", "0x946dae03003e9d12"]
    assert said("ibstat", "mlx5_0\nmlx5_1\n", {"compute_hcas": ["mlx5_0"]}) == ("unknown", "nothing-tested")
    assert said("ibstat", "mlx5_1\n", {"compute_hcas": ["mlx5_0"]}) == ("fail", "nic-probe-failed")


@given(st.permutations(range(4)), st.from_regex(r"\A[a-z][a-z0-9_]{0,8}\Z"))
@settings(max_examples=15, deadline=None)
def test_order_names_and_healthy_neighbours_change_nothing(order: list[int], prefix: str) -> None:
    blocks = [device(f"{prefix}_{place}") for place in range(3)] + [device(f"{prefix}_3", state="Down", phys="Polling")]
    context = {"compute_hcas": [f"{prefix}_{place}" for place in range(4)], "expected_rate_gbps": 400}
    found = judged("ibstat", "".join(blocks[place] for place in order) + device("storage0"), context)
    assert (found.verdict, found.cause, found.facts["bad"]) == ("fail", "link-down", [f"{prefix}_3/1"])
    assert found.facts["ignored"] == ["storage0"]


def test_a_cut_neither_heals_nor_invents() -> None:
    a_cut_never_heals("ibstat", POLLING, CONTEXT)
    a_cut_never_heals("ibstat", ONE_PORT, case_of("022")["context"])
    a_cut_never_invents("ibstat", POLLING, CONTEXT, "rate_gbps", "state")


def test_damage_is_survived() -> None:
    survives("ibstat", POLLING, CONTEXT)


def test_a_context_of_the_wrong_kind_is_an_error() -> None:
    wrong: list[dict[str, object]] = [
        {"compute_hcas": "mlx5_0"},
        {"compute_hcas": [5]},
        {"expected_rate_gbps": "400"},
        {"expected_link": "fast"},
        {"link_layer": "token ring"},
        {"unused_ports": "mlx5_0/1"},
    ]
    for context in wrong:
        with pytest.raises(ValueError, match=next(iter(context))):
            judged("ibstat", POLLING, context)


def test_other_tools_are_not_recognised() -> None:
    assert reader("ibstat").recognise(text_of("023")) == 0


def test_a_demanded_device_whose_ports_are_missing_is_not_ok() -> None:
    text = device("mlx5_0") + "CA 'mlx5_1'\n"
    context = {"compute_hcas": ["mlx5_0", "mlx5_1"], "expected_rate_gbps": 400}
    assert said("ibstat", text, context) == ("unknown", "output-truncated")
    without = device("mlx5_1").partition("\tPort 1")[0].replace("Number of ports: 1", "Number of ports: 0")
    assert said("ibstat", device("mlx5_0") + without, context) == ("unknown", "nothing-tested")
    assert said("ibstat", device("mlx5_0") + without, {**context, "compute_hcas": ["mlx5_0"]}) == ("ok", "healthy")
