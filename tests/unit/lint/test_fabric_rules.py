"""The fabric of a cluster file: MTU arithmetic, lossless priorities, InfiniBand, HCAs and GPUs, storage."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weaklink.lint.fabric import judge, roce_mtu

if TYPE_CHECKING:
    from weaklink.lint.base import Judgement

QOS = {
    "trust": "dscp",
    "lossless_priority": 3,
    "dscp": 26,
    "traffic_class": 106,
    "cnp_dscp": 48,
    "cnp_priority": 6,
    "pfc": [3],
    "pfc_watchdog": True,
    "ecn": True,
}
GOOD: dict[str, Any] = {
    "networks": {
        "management": {"role": "management", "mtu": 1500},
        "compute": {
            "role": "compute",
            "transport": "roce",
            "mtu": 9000,
            "active_mtu": 4096,
            "rate_gbps": 400,
            "qos": QOS,
        },
        "storage": {"role": "storage", "mtu": 9000},
    },
    "hardware": {
        "gpu": {
            "gpus": {"type": "h100", "count": 2},
            "nics": [
                {"network": "compute", "pci": "0000:18:00.0", "rdma": {"device": "mlx5_0", "kind": "hca"}},
                {"network": "compute", "pci": "0000:19:00.0", "rdma": {"device": "mlx5_1", "kind": "hca"}},
                {"network": "storage", "pci": "0000:20:00.0"},
            ],
        }
    },
    "groups": {"gpu": {"role": "compute", "hardware": "gpu", "hosts": "g[1-4]"}},
    "switches": {
        "leaf": {
            "network": "compute",
            "mtu": 9216,
            "qos": {"pfc": [3], "pfc_watchdog": True, "ecn": True, "trust": "dscp"},
        },
        "spare": {"network": "storage", "mtu": 9216},
    },
    "mounts": [{"path": "/home", "network": "storage"}],
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The good cluster with one value changed; None removes it."""
    data = copy.deepcopy(GOOD)
    at: Any = data
    *folders, last = path.split(".")
    for folder in folders:
        at = at[int(folder)] if isinstance(at, list) else at[folder]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return data


def lint(data: dict[str, Any]) -> list[Judgement]:
    return judge(data, lambda _path: 7)


def test_a_good_fabric_is_fine() -> None:
    assert [item.klass for item in lint(GOOD)] == ["ok"]


@pytest.mark.parametrize(
    ("path", "value", "key", "klass", "words"),
    [
        ("networks.compute.mtu", 1500, "networks.compute.mtu", "contradiction", "MTU 1500 gives RoCE 1024"),
        ("networks.compute.mtu", 4191, "networks.compute.mtu", "contradiction", "4192 bytes (96 of headers)"),
        ("networks.compute.active_mtu", 1024, "networks.compute.active_mtu", "discouraged", "carries 4096"),
        ("networks.compute.gid_type", "RoCE v1", "networks.compute.gid_type", "discouraged", "not routed"),
        ("switches.leaf.mtu", 9021, "switches.leaf.mtu", "contradiction", "9000 + 14 + 4 + 4 = 9022"),
        ("switches.spare.mtu", 9000, "switches.spare.mtu", "contradiction", "9022"),
        ("switches.leaf.mtu", None, "switches.leaf.mtu", "unknown", "9022"),
        ("networks.compute.qos.pfc", list(range(8)), "networks.compute.qos.pfc", "contradiction", "global pause"),
        ("networks.compute.qos.pfc", [3, 4], "networks.compute.qos.pfc", "discouraged", "2 priorities"),
        ("networks.compute.qos.pfc", [4], "networks.compute.qos.pfc", "contradiction", "priority 3 is to be lossless"),
        ("networks.compute.qos.pfc", [], "networks.compute.qos.pfc", "contradiction", "none"),
        ("networks.compute.qos.pfc_watchdog", False, "networks.compute.qos.pfc_watchdog", "discouraged", "storm"),
        ("networks.compute.qos.headroom", False, "networks.compute.qos.headroom", "contradiction", "dropped"),
        ("networks.compute.qos.trust", "pcp", "networks.compute.qos.trust", "contradiction", "without a VLAN"),
        ("networks.compute.qos.dscp", 24, "networks.compute.qos.traffic_class", "contradiction", "dscp says 24"),
        ("networks.compute.qos.dscp", 46, "networks.compute.qos.dscp", "contradiction", "from 24 to 31"),
        ("networks.compute.qos.traffic_class", 26, "networks.compute.qos.traffic_class", "unit", "DSCP 26 is 104"),
        (
            "networks.compute.qos.cnp_priority",
            3,
            "networks.compute.qos.cnp_priority",
            "contradiction",
            "share priority 3",
        ),
        ("networks.compute.qos.cnp_dscp", 40, "networks.compute.qos.cnp_dscp", "contradiction", "priority 5"),
        ("networks.compute.qos.ecn", False, "networks.compute.qos.ecn", "discouraged", "pauses spread"),
        ("networks.compute.qos", None, "networks.compute.qos", "discouraged", "without QoS"),
        ("networks.storage.qos", QOS, "networks.storage.qos", "no-op", "without RDMA"),
        ("switches.leaf.qos", None, "switches.leaf.qos", "contradiction", "every hop"),
        ("switches.leaf.qos.pfc", [4], "switches.leaf.qos.pfc", "contradiction", "make them equal"),
        ("switches.leaf.qos.pfc", list(range(8)), "switches.leaf.qos.pfc", "contradiction", "global pause"),
        ("switches.leaf.qos.trust", "pcp", "switches.leaf.qos.trust", "contradiction", "make them equal"),
        ("switches.leaf.qos.pfc_watchdog", None, "switches.leaf.qos.pfc_watchdog", "discouraged", "watchdog"),
        ("networks.compute.rate_gbps", 200, "groups.gpu", "discouraged", "200 Gb/s a GPU"),
        ("hardware.gpu.gpus", 8, "groups.gpu", "discouraged", "2 compute HCAs for 8 GPUs"),
        ("mounts.0.network", "compute", "mounts[0].network", "discouraged", "compute network"),
        ("hardware.gpu.nics.2.pci", "0000:18:00.1", "groups.gpu", "discouraged", "carries storage and compute"),
    ],
)
def test_one_change_gets_the_right_key_class_and_reason(
    path: str, value: Any, key: str, klass: str, words: str
) -> None:
    judgements = lint(changed(path, value))
    assert any((item.subject, item.klass) == (key, klass) and words in item.message for item in judgements), judgements
    assert all(item.line == 7 for item in judgements)


def test_pcp_with_a_vlan_is_possible_and_discouraged() -> None:
    data = changed("networks.compute.qos.trust", "pcp")
    data["networks"]["compute"]["vlan"] = 20
    data["switches"]["leaf"]["qos"]["trust"] = "pcp"
    assert {(item.subject, item.klass) for item in lint(data)} == {("networks.compute.qos.trust", "discouraged")}


@pytest.mark.parametrize(
    ("network", "klass", "words"),
    [
        ({"mtu": 4092, "qos": QOS}, "no-op", "not applicable on InfiniBand"),
        ({"mtu": 4092, "ipoib_mode": "connected", "enhanced_ipoib": True}, "contradiction", "datagram mode only"),
        ({"mtu": 65520, "ipoib_mode": "connected"}, "discouraged", "offloads"),
        ({"mtu": 65520, "ipoib_mode": "datagram"}, "contradiction", "4092 bytes at most"),
        ({"mtu": 4092, "ipoib_mode": "datagram"}, "ok", "nothing"),
    ],
)
def test_infiniband_has_its_own_rules(network: dict[str, Any], klass: str, words: str) -> None:
    compute = {"role": "compute", "transport": "infiniband", "rate_gbps": 400, **network}
    data = {**GOOD, "networks": {**GOOD["networks"], "compute": compute}, "switches": {"leaf": {"network": "compute"}}}
    assert [(item.klass, words in item.message) for item in lint(data)] == [(klass, True)]


def test_pfc_on_infiniband_switches_does_not_apply() -> None:
    compute = {"role": "compute", "transport": "infiniband", "rate_gbps": 400, "mtu": 4092}
    data = {**GOOD, "networks": {**GOOD["networks"], "compute": compute}}
    assert [(item.subject, item.klass) for item in lint(data)] == [("switches.leaf.qos", "no-op")]


def test_software_roce_knows_no_priorities() -> None:
    data = changed("networks.compute.qos", None)
    for nic in data["hardware"]["gpu"]["nics"][:2]:
        nic["rdma"]["kind"] = "rxe"
    assert "networks.compute.qos" not in {item.subject for item in lint(data)}


@given(mtu=st.integers(68, 65535))
def test_the_roce_mtu_is_the_largest_that_fits_beside_96_bytes(mtu: int) -> None:
    size = roce_mtu(mtu)
    assert size == 0 or size + 96 <= mtu
    assert size == 4096 or max(256, size * 2) + 96 > mtu


@pytest.mark.parametrize(
    ("mtu", "size"),
    [
        (1500, 1024),
        (1119, 512),
        (1120, 1024),
        (2143, 1024),
        (2144, 2048),
        (4191, 2048),
        (4192, 4096),
        (9000, 4096),
        (351, 0),
    ],
)
def test_the_steps_of_the_roce_mtu(mtu: int, size: int) -> None:
    assert roce_mtu(mtu) == size
