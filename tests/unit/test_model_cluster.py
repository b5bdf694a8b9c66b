"""The cluster file: expansion, addresses, refusals with file, line and nearest word, what is derived from it."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import pytest
import yaml
from ClusterShell.NodeSet import NodeSet
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.model import cluster, cluster_render
from weaklink.model.cluster_file import schema
from weaklink.model.hostlist import expand, fold

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "inventory/lab/cluster.yml"

TEXT = """\
format: 1
cluster: site
networks:
  management: {cidr: 10.0.0.0/16, role: management, mtu: 1500}
  fabric: {cidr: 10.1.0.0/16, role: compute, mtu: 9000, transport: roce, rate_gbps: 400}
  store: {cidr: 10.2.0.0/16, role: storage, mtu: 9000, transport: roce, rate_gbps: 200}
groups:
  head:
    role: controller
    hosts: head
    first_address: 1
    nics:
      - {network: management, pci: "0000:01:00.0"}
      - {network: store, pci: "0000:02:00.0", rdma: {device: mlx5_0, kind: hca}}
  gpu:
    role: compute
    hosts: "gpu[001-003]"
    first_address: 257
    cpus: 128
    memory_mb: 2000000
    gpus: 8
    nics:
      - {network: management, pci: "0000:01:00.0"}
      - {network: fabric, pci: "0000:10:00.0", rdma: {device: rail0, kind: hca}}
      - {network: fabric, pci: "0000:20:00.0", rdma: {device: rail1, kind: hca}}
      - {network: store, pci: "0000:30:00.0", rdma: {device: mlx5_s, kind: hca}}
mounts:
  - {path: /data, server: head, export: /srv/data, network: store, transport: rdma}
partitions:
  main: {groups: [gpu], default: true}
"""
MOUNT = "  - {path: /data, server: head, export: /srv/other, network: store, transport: rdma}\n"


def parsed(text: str = TEXT) -> cluster.Cluster:
    return cluster.parse("site.yml", text)


def refusal(old: str, new: str, count: int = 1) -> str:
    assert old in TEXT
    with pytest.raises(cluster.ClusterError) as caught:
        parsed(TEXT.replace(old, new, count))
    return str(caught.value)


# ---- expansion


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ctl", ["ctl"]),
        ("c[1-3]", ["c1", "c2", "c3"]),
        ("c[08-11]", ["c08", "c09", "c10", "c11"]),
        ("c[1,3-4],d", ["c1", "c3", "c4", "d"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_host_ranges(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize("text", ["", "c[1-", "c[3-1]", "c[a-b]", "c[]", "a b", "-x", "c[1-9999999]", "c[1]]"])
def test_bad_host_ranges(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        expand(text)


@settings(max_examples=40, deadline=None)
@given(first=st.integers(0, 5000), count=st.integers(1, 600), width=st.integers(1, 6))
def test_host_ranges_keep_order_count_and_width(first: int, count: int, width: int) -> None:
    low = str(first).zfill(width)
    names = expand(f"n[{low}-{first + count - 1}]")
    assert len(names) == len(set(names)) == count
    assert [int(name[1:]) for name in names] == list(range(first, first + count))
    assert all(len(name) >= len(low) + 1 for name in names)


def test_host_ranges_agree_with_clustershell() -> None:
    for text in ("gpu[001-512]", "c[1-3,7,9-10]", "r[1-3]n[01-04]"):
        assert set(expand(text)) == set(NodeSet(text))


@settings(max_examples=60, deadline=None)
@given(names=st.lists(st.from_regex(r"\A[a-z][a-z0-9-]{0,4}[0-9]{0,5}[a-z]?\Z"), max_size=30))
def test_folded_names_come_back_in_their_order(names: list[str]) -> None:
    folded = fold(names)
    assert (expand(folded) if names else []) == names


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["c1", "c2", "c3"], "c[1-3]"),
        (["c9", "c10", "c11"], "c[9-11]"),
        (["c09", "c10"], "c[09-10]"),
        (["c1", "c02", "c3", "d"], "c[1,02,3],d"),
        (["r1n1", "r1n2", "r2n1"], "r1n[1-2],r2n1"),
        (["10.0.0.9", "10.0.0.10"], "10.0.0.[9-10]"),
        (["ctl"], "ctl"),
        ([], ""),
    ],
)
def test_names_are_folded_as_people_write_them(names: list[str], folded: str) -> None:
    assert fold(names) == folded


def test_four_thousand_names_fold_to_one_range() -> None:
    names = [f"gpu{number:04d}" for number in range(1, 4097)]
    assert fold(names) == "gpu[0001-4096]"
    assert set(NodeSet(fold(names))) == set(names)


# ---- addresses


def test_addresses_are_consecutive_and_rails_get_one_each() -> None:
    site = parsed()
    assert [nic.address for nic in site.hosts["gpu001"].nics] == [
        "10.0.1.1/16",
        "10.1.1.1/16",
        "10.1.1.2/16",
        "10.2.1.1/16",
    ]
    assert [nic.ip for nic in site.hosts["gpu003"].nics if nic.network == "fabric"] == ["10.1.1.5", "10.1.1.6"]
    assert [nic.rail for nic in site.hosts["gpu003"].nics] == [0, 0, 1, 0]


@settings(max_examples=15, deadline=None)  # thousands of hosts take a while on a busy machine
@given(count=st.integers(1, 1000), first=st.integers(2, 3000))
def test_no_address_twice_and_all_inside(count: int, first: int) -> None:
    text = TEXT.replace("gpu[001-003]", f"gpu[0001-{count:04d}]").replace("257", str(first))
    site = parsed(text)
    seen = [nic.ip for host in site.hosts.values() for nic in host.nics]
    assert len(seen) == len(set(seen))
    for host in site.hosts.values():
        for nic in host.nics:
            network = ipaddress.ip_network(site.networks[nic.network].cidr)
            assert ipaddress.ip_address(nic.ip) in network
            assert ipaddress.ip_address(nic.ip) not in (network.network_address, network.broadcast_address)


# ---- refusals


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("cidr: 10.1.0.0/16", "cidr: 10.0.128.0/17", ["site.yml:5", "networks.fabric.cidr", "overlaps management"]),
        ("cidr: 10.1.0.0/16", "cidr: 10.1.0.1/16", ["10.1.0.0/16"]),
        ("cidr: 10.1.0.0/16", "cidr: nonsense", ["'nonsense'"]),
        ("mtu: 9000, transport: roce, rate_gbps: 400", "mtu: 4190, transport: roce", ["networks.fabric.mtu", "4192"]),
        ("first_address: 257", "first_address: 1", ["which head has", "groups.gpu.first_address"]),
        ("first_address: 257", "first_address: 65533", ["do not fit"]),
        ("0000:20:00.0", "0000:10:00.0", ["nics[2].pci", "which NIC 1 has"]),
        ("hosts: head", "hosts: gpu001", ["gpu001 for the second time"]),
        ("device: rail1", "device: rail0", ["which NIC 1 has"]),
        ("default: true", "defualt: true", ["unknown key 'defualt'", "default", "did you mean 'default'"]),
        ("role: storage", "role: storeage", ["did you mean 'storage'", "site.yml:6"]),
        ("groups: [gpu]", "groups: [gpus]", ["did you mean 'gpu'", "partitions.main.groups[0]"]),
        ("groups: [gpu]", "groups: [head]", ["compute groups"]),
        ("network: fabric, pci", "network: fabrik, pci", ["did you mean 'fabric'"]),
        ("groups: [gpu]", "groups: [gpu, gpu]", ["gpu twice", "partitions.main.groups[1]"]),
        ("mounts:\n", f"mounts:\n{MOUNT}", ["mounts[1].path", "/data for the second time"]),
        ("server: head", "server: haed", ["did you mean 'head'"]),
        ("export: /srv/data, network: store", "export: /srv/data, network: fabric", ["where head has no NIC"]),
        ("export: /srv/data, network: store", "export: /srv/data, network: management", ["rdma over management"]),
        ("role: management, mtu: 1500", "role: storage, mtu: 1500", ["0 networks with role management"]),
        ("role: controller", "role: compute", ["0 controller hosts"]),
        ('hosts: "gpu[001-003]"', 'hosts: "gpu[003-001]"', ["runs backwards"]),
        ("cluster: site", "cluster: site\ncluster: again", ["twice (line 2)", "site.yml:3"]),
        ("cluster: site\n", "", ["cluster: found nothing", "required"]),
        ("format: 1", "format: 2", ["allowed: 1"]),
        ("format: 1", "format: [1", ["site.yml:"]),
        ('"0000:02:00.0"', '"02:00.0"', ["groups.head.nics[1].pci", "site.yml:14"]),
    ],
)
def test_refusals_name_place_and_remedy(old: str, new: str, words: list[str]) -> None:
    text = refusal(old, new)
    for word in words:
        assert word in text, text


def test_rdma_on_a_network_without_it_is_refused() -> None:
    text = refusal(
        'pci: "0000:01:00.0"}\n      - {network: fabric',
        'pci: "0000:01:00.0", rdma: {device: x, kind: rxe}}\n      - {network: fabric',
    )
    assert "RDMA on management" in text


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(cluster.ClusterError, match=r"no\.yml:1"):
        cluster.load(tmp_path / "no.yml")


# ---- what is derived


def test_lab_file_gives_what_the_nodes_read() -> None:
    lab = cluster.load(LAB)
    expected = cluster_render.expected(lab, lab.hosts["c1"])
    assert expected["mode"] == "enforce"
    assert expected["policy"]["budget"]["total_nodes"] == 2
    assert expected["partitions"] == {"main": "c[1-3]"}
    assert expected["deadlines"]["prolog"] == 45
    nic = next(nic for nic in expected["nics"] if nic["network"] == "compute")
    assert nic["address"] == "10.77.1.11/24"
    assert nic["rdma"] == {
        "device": "rxe_compute",
        "kind": "rxe",
        "rate_gbps": 400,
        "active_mtu": 4096,
        "gid_type": "RoCE v2",
        "link_layer": "Ethernet",
    }
    assert expected["mounts"] == [{"path": "/home", "fstype": "nfs4", "source": "10.77.2.1:/home", "proto": "rdma"}]
    assert cluster_render.mounts(lab, lab.controller) == []
    assert cluster_render.exports(lab, lab.controller)[0]["clients"] == "10.77.2.0/24"
    assert cluster_render.exports(lab, lab.hosts["c1"]) == []


def test_a_compute_node_does_not_mount_what_it_serves() -> None:
    site = parsed(TEXT.replace("server: head", "server: gpu002"))
    mounted = {
        name: [mount["source"] for mount in cluster_render.mounts(site, site.hosts[name])] for name in site.hosts
    }
    assert mounted == {"head": [], "gpu001": ["10.2.1.2:/srv/data"], "gpu002": [], "gpu003": ["10.2.1.2:/srv/data"]}


def test_rails_have_names_of_their_own() -> None:
    site = parsed()
    names = [nic["name"] for nic in cluster_render.nics(site, site.hosts["gpu002"])]
    assert names == ["management", "fabric0", "fabric1", "store"]
    hcas = cluster_render.controller(site)["nodes"][0]["hcas"]
    assert [(hca["name"], hca["rail"]) for hca in hcas] == [("rail0", 0), ("rail1", 1), ("mlx5_s", 0)]


def test_expected_of_every_host_is_json_without_secrets() -> None:
    site = parsed()
    for host in site.hosts.values():
        text = json.dumps(cluster_render.expected(site, host))
        assert json.loads(text)["node"] == host.name
        assert "key" not in json.loads(text)


def test_observe_is_the_default_mode_and_defaults_are_filled_in() -> None:
    site = parsed()
    assert site.mode == "observe"
    assert site.policy["budget"]["total_fraction"] == 0.10
    assert site.deadlines["prolog"] == 10


def test_every_object_of_the_schema_refuses_unknown_keys() -> None:
    def walk(node: object, path: str) -> None:
        if isinstance(node, dict):
            if node.get("type") == "object":
                assert "additionalProperties" in node, path
            for key, value in node.items():
                walk(value, f"{path}/{key}")

    walk(schema(), "")


def test_lab_file_is_valid_yaml_for_others_too() -> None:
    assert yaml.safe_load(LAB.read_text())["cluster"] == "lab"
