"""Reading and judging ibdev2netdev."""

from __future__ import annotations

import pytest

from tests.unit.tools.cases import case_of, text_of
from tests.unit.tools.ib_reading import a_cut_never_heals, holds_case, judged, reader, said, survives

PLAIN = text_of("024")
CONTEXT = case_of("024")["context"]
VERBOSE = (
    "0000:1a:00.0 mlx5_0 (MT4129 - MCX75310AAS-NEAT) NVIDIA ConnectX-7 (port 1 of 1) fw 28.39.1002 port 1 (ACTIVE)"
    " ==> ibp26s0 (Down)\n"
    "0000:3c:00.0 mlx5_1 (MT4129 - MCX75310AAS-NEAT) NVIDIA ConnectX-7 fw 28.39.1002 port 1"
    " (DOWN  ) ==> ibp60s0 (Down)\n"
    "mlx4_0 (MT4099 - MT1427X00312) FDR14 fw 2.42.5000 port 2 (INIT  ) ==> ib1 (Up)\n"
)


def test_the_case_is_judged_right() -> None:
    holds_case("024")


def test_an_interface_that_is_down_is_a_link_that_is_down_on_ethernet_alone() -> None:
    text = PLAIN.replace("ens15f0np0 (Up)", "ens15f0np0 (Down)")
    assert said("ibdev2netdev", text, CONTEXT) == ("fail", "link-down")
    assert judged("ibdev2netdev", text, CONTEXT).facts["bad"] == ["mlx5_1"]
    infiniband = {"compute_hcas": ["mlx5_0"], "link_layer": "InfiniBand"}
    assert said("ibdev2netdev", text, infiniband) == ("unknown", "nothing-tested")


@pytest.mark.parametrize(
    ("device", "verdict"),
    [
        ("mlx5_0", ("ok", "healthy")),
        ("mlx5_1", ("fail", "link-down")),
        ("mlx4_0", ("fail", "no-subnet-manager")),
        ("mlx5_7", ("fail", "nic-probe-failed")),
    ],
)
def test_the_verbose_form_tells_the_ports_own_state(device: str, verdict: tuple[str, str]) -> None:
    assert reader("ibdev2netdev").recognise(VERBOSE) == 95
    context = {"compute_hcas": [device], "link_layer": "InfiniBand"}
    assert said("ibdev2netdev", VERBOSE, context) == verdict


def test_the_interface_demanded_is_the_devices_own() -> None:
    assert said("ibdev2netdev", PLAIN, {**CONTEXT, "netdev": {"mlx5_1": "eth9"}}) == ("fail", "miscabled")


def test_a_line_that_is_cut_is_unknown_and_damage_is_survived() -> None:
    assert said("ibdev2netdev", PLAIN + "mlx5_4 port 1 ==> ens", CONTEXT) == ("unknown", "output-truncated")
    a_cut_never_heals("ibdev2netdev", PLAIN, {"compute_hcas": ["mlx5_3"], "link_layer": "Ethernet"})
    survives("ibdev2netdev", PLAIN + VERBOSE, CONTEXT)


def test_devices_may_be_demanded_by_their_pci_addresses() -> None:
    found = judged("ibdev2netdev", VERBOSE, {"expected_hcas": ["1A:00.0"], "link_layer": "InfiniBand"})
    assert (found.verdict, found.facts["ignored"]) == ("ok", ["mlx5_1", "mlx4_0"])
    assert said("ibdev2netdev", VERBOSE, {"expected_hcas": ["0000:3c:00.0"]}) == ("fail", "link-down")
    lost = judged("ibdev2netdev", VERBOSE, {"expected_hcas": ["0000:1a:00.0", "0000:9a:00.0"]})
    assert (lost.verdict, lost.cause, lost.facts["bad"]) == ("fail", "nic-probe-failed", ["0000:9a:00.0"])
    # Without -v no address is printed, and nothing is known of them.
    assert said("ibdev2netdev", PLAIN, {**CONTEXT, "expected_hcas": ["0000:9a:00.0"]}) == ("ok", "healthy")


def test_an_ipoib_interface_counts_where_it_is_itself_demanded() -> None:
    text = "mlx5_0 port 1 ==> ibp14s0 (Down)\nmlx5_1 port 1 ==> ens15f0np0 (Down)\n"
    assert said("ibdev2netdev", text, {"compute_hcas": ["mlx5_0"]}) == ("unknown", "nothing-tested")
    assert said("ibdev2netdev", text, {"compute_hcas": ["mlx5_1"]}) == ("fail", "link-down")
    demanded = {"fabric_netdevs": ["ibp14s0"], "link_layer": "InfiniBand"}
    assert said("ibdev2netdev", text, demanded) == ("fail", "link-down")
    assert said("ibdev2netdev", VERBOSE, {"fabric_netdevs": ["ibp26s0"]}) == ("fail", "link-down")
