"""The node's NCCL file: what is rendered lints clean, and the area writes what is really there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.lint.facts import Facts, read_facts
from weaklink.lint.nccl import judge
from weaklink.lint.parse import read
from weaklink.lint.selection import parse
from weaklink.lint.version import NEWEST, Version
from weaklink.model.nccl import Hca, Node, RenderError, render, traffic_class

from tests.unit.apply_fake import FakeNode

if TYPE_CHECKING:
    from pathlib import Path

    from weaklink.lint.base import Judgement

COMPUTE = Hca("mlx5_0", "compute", "Ethernet")


def settings_of(text: str) -> dict[str, str]:
    return {setting.name: setting.value for setting in read("/etc/nccl.conf", text.encode()).settings}


def lint(text: str, at: Version = NEWEST, facts: Facts | None = None) -> list[Judgement]:
    return judge([read("/etc/nccl.conf", text.encode())], at, facts)


# ---- rendering


def test_only_what_nccl_cannot_know_is_written_with_a_reason_above_each_line() -> None:
    hcas = (
        COMPUTE,
        Hca("mlx5_10", "compute", "Ethernet"),
        Hca("mlx5_2", "compute", "Ethernet"),
        Hca("mlx5_1", "storage", "Ethernet"),
    )
    text = render(Node(hcas, "eth0", traffic_class(26), None, (("NCCL_IB_QPS_PER_CONNECTION", "4"),)))
    lines = text.splitlines()
    assert lines[0].startswith("# Written by weaklink")
    assert lines[2::2] == [
        "NCCL_IB_HCA==mlx5_0,mlx5_2,mlx5_10",
        "NCCL_SOCKET_IFNAME==eth0",
        "NCCL_IB_TC=106",
        "NCCL_IB_QPS_PER_CONNECTION=4",
    ]
    assert all(line.startswith("# ") for line in lines[1::2])
    assert "mlx5_1" in lines[1]
    assert text.endswith("\n")


def test_rails_come_in_their_order() -> None:
    hcas = (Hca("a", "compute", "InfiniBand", 1), Hca("b", "compute", "InfiniBand", 0))
    assert settings_of(render(Node(hcas)))["NCCL_IB_HCA"] == "=b,a"


@pytest.mark.parametrize("layer", ["InfiniBand", "Ethernet"])
def test_a_traffic_class_is_for_roce_only(layer: str) -> None:
    text = render(Node((Hca("mlx5_0", "compute", layer),), "", 104))
    assert ("NCCL_IB_TC" in text) == (layer == "Ethernet")


def test_a_node_whose_hcas_are_all_for_storage_keeps_jobs_off_them() -> None:
    hcas = (Hca("mlx5_4", "storage", "Ethernet"), Hca("mlx5_5", "management", "Ethernet"))
    assert settings_of(render(Node(hcas, "eth0"))) == {
        "NCCL_IB_HCA": "^=mlx5_4,mlx5_5",
        "NCCL_SOCKET_IFNAME": "=eth0",
    }


def test_the_sites_own_settings_win() -> None:
    assert settings_of(render(Node((COMPUTE,), "eth0", 106, None, (("NCCL_IB_TC", "41"),))))["NCCL_IB_TC"] == "41"


def test_an_old_nccl_is_told_the_gid_index_where_it_is_the_same_everywhere() -> None:
    same = tuple(Hca(name, "compute", "Ethernet", 0, 3) for name in ("a", "b"))
    assert settings_of(render(Node(same, version=(2, 20))))["NCCL_IB_GID_INDEX"] == "3"
    assert "GID_INDEX" not in render(Node(same, version=(2, 21)))
    with pytest.raises(RenderError, match="a 3, b 5"):
        render(Node((same[0], same[1]._replace(gid_index=5)), version=(2, 20)))


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (Node((Hca("mlx5_0,mlx5_1", "compute", "Ethernet"),)), "device name"),
        (Node((COMPUTE,), "eth0:1"), "device name"),
        (Node(tuple(Hca(f"m{n}", "compute", "Ethernet") for n in range(33))), "33 compute HCAs"),
        (Node((COMPUTE,), "", 256), "no byte"),
        (Node((COMPUTE,), extra=(("PATH", "/bin"),)), "no NCCL variable"),
        (Node((COMPUTE,), extra=(("NCCL_IB_TC", "1\nLD_PRELOAD=x"),)), "no value"),
        (Node((COMPUTE,), extra=(("NCCL_IB_TC", "106 # lossless"),)), "no value"),
        (Node((COMPUTE,), extra=(("NCCL_TOPO_FILE", "/" + "a" * 1023),)), "1024 bytes"),
    ],
)
def test_what_nccl_would_misread_is_refused(node: Node, words: str) -> None:
    with pytest.raises(RenderError, match=words):
        render(node)


NAMES = st.lists(
    st.one_of(
        st.integers(0, 31).map("mlx5_{}".format),
        st.integers(0, 9).map("mlx5_bond_{}".format),
        st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True),
    ),
    max_size=16,
    unique=True,
)
EXTRA = st.dictionaries(
    st.sampled_from(["NCCL_IB_QPS_PER_CONNECTION", "NCCL_IB_TIMEOUT"]), st.integers(2, 8).map(str), max_size=1
).map(lambda extra: {name: "22" if name == "NCCL_IB_TIMEOUT" else value for name, value in extra.items()})


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    """Discoveries: any names, roles and rails, RoCE or InfiniBand, an old NCCL or a current one."""
    layer = draw(st.sampled_from(["Ethernet", "InfiniBand"]))
    roles = st.sampled_from(["compute", "storage", "management"])
    return Node(
        tuple(Hca(name, draw(roles), layer, rail, 3) for rail, name in enumerate(draw(NAMES))),
        draw(st.sampled_from(["", "eth0", "ens1f0np0", "bond0.12"])),
        draw(st.one_of(st.none(), st.integers(8, 63).map(traffic_class))),
        draw(st.sampled_from([None, (2, 20)])),
        tuple(draw(EXTRA).items()),
    )


def facts_of(node: Node) -> Facts:
    """The facts of the node that was discovered."""
    facts: dict[str, Any] = {
        "hcas": {hca.name: {"role": hca.role, "rail": hca.rail, "link_layer": hca.link_layer} for hca in node.hcas},
        "gids": {hca.name: [{"index": 3, "type": "RoCE v2", "address": "10.0.0.1"}] for hca in node.hcas},
        "netdevs": {"eth0": {}, "ens1f0np0": {}, "bond0.12": {}, "eth00": {}},
        "bootstrap_interface": node.interface,
    }
    if node.traffic_class is not None:
        dscp = node.traffic_class >> 2
        facts |= {"trust": "dscp", "rdma_dscp": dscp, "lossless_priority": dscp >> 3}
    return read_facts(facts)


@settings(max_examples=150, deadline=None)
@given(node=nodes())
def test_what_is_rendered_lints_clean_and_selects_what_it_should(node: Node) -> None:
    text = render(node)
    for judgement in lint(text, Version(*node.version) if node.version else NEWEST, facts_of(node)):
        assert judgement.klass == "ok", judgement
    wanted = {hca.name for hca in node.hcas if hca.role == "compute"}
    chosen = parse(settings_of(text).get("NCCL_IB_HCA", ""))
    assert {hca.name for hca in node.hcas if chosen.selects(hca.name)} == wanted
    assert text == render(node._replace(hcas=node.hcas[::-1]))


# ---- the area

NIC = {"network": "management", "role": "management", "pci": "0000:00:10.0", "rdma": None}
DESIRED: dict[str, Any] = {
    "nics": [
        NIC,
        {
            "network": "compute",
            "role": "compute",
            "pci": "0000:00:11.0",
            "rdma": {"device": "first", "kind": "hca", "link_layer": "Ethernet"},
        },
        {
            "network": "storage",
            "role": "storage",
            "pci": "0000:00:12.0",
            "rdma": {"device": "second", "kind": "hca", "link_layer": "Ethernet"},
        },
    ],
    "traffic_class": 106,
    "socket_network": "management",
    "extra": {"NCCL_IB_TIMEOUT": 22},
}


@pytest.fixture
def fake(tmp_path: Path) -> FakeNode:
    """A node with a management NIC, a compute and a storage HCA under names that the cluster file does not know."""
    node = FakeNode(tmp_path)
    for pci, netdev in (("0000:00:10.0", "enp0s16"), ("0000:00:11.0", "enp0s17"), ("0000:00:12.0", "enp0s18")):
        (tmp_path / f"sys/bus/pci/devices/{pci}/net/{netdev}").mkdir(parents=True)
    for pci, device in (("0000:00:11.0", "mlx5_7"), ("0000:00:12.0", "mlx5_3")):
        (tmp_path / f"sys/bus/pci/devices/{pci}/infiniband/{device}").mkdir(parents=True)
        node.write(f"/sys/class/infiniband/{device}/ports/1/link_layer", "Ethernet\n")
    return node


def test_device_names_are_found_by_their_pci_address(fake: FakeNode) -> None:
    before = fake.digest()
    predicted = fake.apply("nccl", DESIRED, check=True)
    assert fake.digest() == before
    result = fake.apply("nccl", DESIRED)
    assert result["failed"] == []
    assert [(step["what"], step["to"]) for step in result["changes"]] == [("file /etc/nccl.conf", "root:root 0644")]
    assert [step["what"] for step in predicted["changes"]] == [step["what"] for step in result["changes"]]
    assert "+NCCL_IB_HCA==mlx5_7" in predicted["changes"][0]["diff"]
    assert settings_of(fake.read("/etc/nccl.conf")) == {
        "NCCL_IB_HCA": "=mlx5_7",
        "NCCL_SOCKET_IFNAME": "=enp0s16",
        "NCCL_IB_TC": "106",
        "NCCL_IB_TIMEOUT": "22",
    }
    assert fake.apply("nccl", DESIRED)["changes"] == []
    assert {judgement.klass for judgement in lint(fake.read("/etc/nccl.conf"))} == {"ok"}


def test_a_setting_changed_by_hand_is_healed_alone(fake: FakeNode) -> None:
    fake.apply("nccl", DESIRED)
    good = fake.read("/etc/nccl.conf")
    fake.write("/etc/nccl.conf", good.replace("NCCL_IB_TC=106", "NCCL_IB_TC=26"))
    (change,) = fake.apply("nccl", DESIRED)["changes"]
    signed = [row for row in change["diff"].splitlines() if row[:1] in "+-" and row[:3] not in ("+++", "---")]
    assert signed == ["-NCCL_IB_TC=26", "+NCCL_IB_TC=106"]
    assert fake.read("/etc/nccl.conf") == good


def test_a_renamed_device_is_followed(fake: FakeNode) -> None:
    fake.apply("nccl", DESIRED)
    devices = fake.root / "sys/bus/pci/devices/0000:00:11.0/infiniband"
    (devices / "mlx5_7").rename(devices / "mlx5_0")
    assert len(fake.apply("nccl", DESIRED)["changes"]) == 1
    assert settings_of(fake.read("/etc/nccl.conf"))["NCCL_IB_HCA"] == "=mlx5_0"


def test_a_compute_nic_without_an_rdma_device_stops_the_area(fake: FakeNode) -> None:
    (fake.root / "sys/bus/pci/devices/0000:00:11.0/infiniband/mlx5_7").rmdir()
    before = fake.digest()
    result = fake.apply("nccl", DESIRED)
    assert "no RDMA device at PCI 0000:00:11.0" in result["failed"][0]["message"]
    assert fake.digest() == before


def test_a_storage_nic_without_one_does_not(fake: FakeNode) -> None:
    (fake.root / "sys/bus/pci/devices/0000:00:12.0/infiniband/mlx5_3").rmdir()
    assert fake.apply("nccl", DESIRED)["failed"] == []


def test_a_software_device_has_its_name_before_it_is_made_and_is_found_after(fake: FakeNode) -> None:
    rdma = {"device": "rxe_compute", "kind": "rxe", "link_layer": "Ethernet"}
    desired = {**DESIRED, "nics": [NIC, {"network": "compute", "role": "compute", "pci": "0000:00:11.0", "rdma": rdma}]}
    (fake.root / "sys/bus/pci/devices/0000:00:11.0/infiniband/mlx5_7").rmdir()
    fake.apply("nccl", desired)
    assert settings_of(fake.read("/etc/nccl.conf"))["NCCL_IB_HCA"] == "=rxe_compute"
    fake.write("/sys/class/infiniband/other/parent", "enp0s17\n")
    fake.apply("nccl", desired)
    assert settings_of(fake.read("/etc/nccl.conf"))["NCCL_IB_HCA"] == "=other"


def test_an_old_nccl_gets_the_gid_index_that_is_there(fake: FakeNode) -> None:
    port = "/sys/class/infiniband/mlx5_7/ports/1"
    gids = ["fe80::1", "0000:0000:0000:0000:0000:ffff:0a4d:0101", "0000:0000:0000:0000:0000:ffff:0a4d:0101"]
    for index, (gid, kind) in enumerate(zip(gids, ["RoCE v2", "IB/RoCE v1", "RoCE v2"])):
        fake.write(f"{port}/gids/{index}", f"{gid}\n")
        fake.write(f"{port}/gid_attrs/types/{index}", f"{kind}\n")
    fake.apply("nccl", {**DESIRED, "nccl_version": "2.20.5"})
    assert settings_of(fake.read("/etc/nccl.conf"))["NCCL_IB_GID_INDEX"] == "2"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"socket_network": "out-of-band"}, "no NIC in the network 'out-of-band'"),
        ({"extra": {"LD_PRELOAD": "x"}}, "no NCCL variable"),
        ({"nccl_version": "2.20"}, "GID indexes are mlx5_7 none"),
    ],
)
def test_what_cannot_be_rendered_is_a_problem_and_nothing_is_written(
    fake: FakeNode, change: dict[str, Any], words: str
) -> None:
    result = fake.apply("nccl", {**DESIRED, **change})
    assert words in result["failed"][0]["message"]
    assert not (fake.root / "etc/nccl.conf").exists()
