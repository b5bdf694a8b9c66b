"""Reading and judging iproute2's rdma."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.tools.ib_reading import a_cut_never_heals, judged, reader, said, survives

NEW = (
    "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0 \n"
    "link mlx5_1/1 state DOWN physical_state DISABLED netdev ens1f1np1 \n"
    "link ibp26s0/1 subnet_prefix fe80:0000:0000:0000 lid 65 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP \n"
    "link ibp60s0/1 subnet_prefix fe80:0000:0000:0000 lid 0 sm_lid 0 lmc 0 state INIT physical_state LINK_UP \n"
)
OLD = (
    "1/1: mlx5_0/1: state ACTIVE physical_state LINK_UP netdev reth0 \n"
    "2/1: mlx5_1/1: state DOWN physical_state POLLING \n"
)
JSON = [
    {"ifindex": 0, "ifname": "mlx5_0", "port": 1, "state": "ACTIVE", "physical_state": "LINK_UP", "netdev": "ens1"},
    {"ifindex": 1, "ifname": "mlx5_1", "port": 1, "state": "DOWN", "physical_state": "DISABLED", "netdev": "ens2"},
]


@pytest.mark.parametrize(
    ("hcas", "verdict", "bad"),
    [
        (["mlx5_0", "ibp26s0"], ("ok", "healthy"), []),
        (["mlx5_0", "mlx5_1"], ("fail", "link-down"), ["mlx5_1/1"]),
        (["ibp60s0"], ("fail", "no-subnet-manager"), ["ibp60s0/1"]),
        (["mlx5_9"], ("fail", "nic-probe-failed"), ["mlx5_9"]),
    ],
)
def test_links_that_count_must_be_active(hcas: list[str], verdict: tuple[str, str], bad: list[str]) -> None:
    found = judged("rdma", NEW, {"compute_hcas": hcas})
    assert (found.verdict, found.cause) == verdict
    assert found.facts["bad"] == bad
    assert found.facts["links"] == 4
    assert found.facts["state"] == {
        "mlx5_0/1": "ACTIVE",
        "mlx5_1/1": "DOWN",
        "ibp26s0/1": "ACTIVE",
        "ibp60s0/1": "INIT",
    }


def test_the_old_form_with_numbers_in_front_is_read() -> None:
    found = judged("rdma", OLD, {"compute_hcas": ["mlx5_1"]})
    assert (found.verdict, found.cause) == ("fail", "link-down")
    assert found.facts["netdev"]["mlx5_0"] == "reth0"
    assert found.facts["netdev"]["mlx5_1"] is None
    assert reader("rdma").recognise(OLD) == reader("rdma").recognise(NEW) == 95


@pytest.mark.parametrize("indent", [None, 4])
def test_json_and_pretty_json_say_the_same_as_text(indent: int | None) -> None:
    text = json.dumps(JSON, indent=indent)
    found = judged("rdma", text + "\n", {"compute_hcas": ["mlx5_0"]})
    assert reader("rdma").recognise(text) == 93
    assert (found.verdict, found.facts["links"], found.facts["netdev"]["mlx5_1/1"]) == ("ok", 2, "ens2")
    assert said("rdma", text[:-9], {"compute_hcas": ["mlx5_0"]})[0] == "unknown"


def test_fabric_netdevs_name_the_links_that_count() -> None:
    assert said("rdma", NEW, {"fabric_netdevs": ["ens1f1np1"]}) == ("fail", "link-down")
    assert said("rdma", NEW, {"fabric_netdevs": ["eth7"]})[0] == "fail"


@pytest.mark.parametrize("text", ["[]\n", '[null, 3, {"ifname": 5}]\n', '[{"ifname": "a", "port": "x"}]\n', "{}\n"])
def test_odd_json_gives_no_verdict(text: str) -> None:
    assert judged("rdma", text, {}).verdict in {"unknown", "ok"}
    assert judged("rdma", text, {}).facts["links"] == 0


def test_devices_and_statistics_are_read() -> None:
    dev = "0: mlx5_0: node_type ca fw 28.39.1002 node_guid b859:9f03:00ca:e2f8 sys_image_guid b859:9f03:00ca:e2f8 \n"
    assert reader("rdma").recognise(dev) == 92
    assert judged("rdma", dev).facts["hcas"] == 1
    statistic = "link mlx5_0/1 rx_write_requests 12 rx_read_requests 0 out_of_sequence 7 \n"
    counters: dict[str, Any] = judged("rdma", statistic).facts["counters"]
    assert counters == {"mlx5_0/1": {"rx_write_requests": 12, "rx_read_requests": 0, "out_of_sequence": 7}}


def test_a_state_that_is_cut_is_unknown_and_damage_is_survived() -> None:
    assert said("rdma", "link mlx5_0/1 state ACT", {"compute_hcas": ["mlx5_0"]})[0] == "unknown"
    a_cut_never_heals("rdma", NEW, {"compute_hcas": ["mlx5_0", "ibp60s0"]})
    survives("rdma", NEW + OLD, {"compute_hcas": ["mlx5_0"]})
    survives("rdma", json.dumps(JSON, indent=1), {"compute_hcas": ["mlx5_0"]})


def test_an_empty_list_has_none_of_the_devices_demanded() -> None:
    assert said("rdma", "[ ]\n", {"compute_hcas": ["mlx5_0"]}) == ("fail", "nic-probe-failed")
    assert said("rdma", "[ ]\n")[0] == "unknown"


def test_devices_named_with_their_interface_count_and_others_do_not() -> None:
    context = {"netdev": {"mlx5_0": "ens1f0np0"}}
    found = judged("rdma", NEW, context)
    assert (found.verdict, found.facts["bad"], found.facts["ignored"]) == (
        "ok",
        [],
        ["mlx5_1", "ibp26s0", "ibp60s0"],
    )
    assert said("rdma", NEW, {"netdev": {"mlx5_1": "ens1f1np1"}}) == ("fail", "link-down")
    assert said("rdma", NEW, {"netdev": {"mlx5_9": "ens9"}}) == ("fail", "nic-probe-failed")
