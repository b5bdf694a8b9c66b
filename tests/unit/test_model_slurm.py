"""What Slurm and the nodes are told of the examples: scalable units, blocks, runs of nodes, versions, subnets."""

from __future__ import annotations

import ipaddress
import json
import time
from pathlib import Path

import pytest
from weaklink.model import cluster, cluster_render, cluster_slurm, expected
from weaklink.model.hostlist import expand

from tests.scale import cluster_text
from tests.unit.full_cluster import FULL

ROOT = Path(__file__).resolve().parents[2]


def example(name: str) -> cluster.Cluster:
    return cluster.load(ROOT / f"inventory/{name}/cluster.yml")


def test_a_superpod_has_the_switches_of_the_reference_architecture() -> None:
    """NVIDIA DGX SuperPOD (H100), four scalable units: 127 nodes, 32 leaves, 16 spines, non-blocking."""
    site = example("superpod-h100")
    assert len(site.compute) == 127
    assert (len(site.switches["leaf"].names), len(site.switches["spine"].names)) == (32, 16)
    assert site.warnings == ()
    assert cluster_slurm.leaves(site) == {
        "su01": "dgx[001-032]",
        "su02": "dgx[033-064]",
        "su03": "dgx[065-096]",
        "su04": "dgx[097-127]",
    }


def test_nvlink_domains_are_blocks_of_one_rack() -> None:
    topology = cluster_slurm.topology(example("nvl72"))
    assert topology["plugin"] == "block"
    assert topology["leaves"] == {}
    assert [len(expand(nodes)) for nodes in topology["blocks"].values()] == [18] * 8
    assert topology["block_sizes"] == [18, 36, 72, 144]


def test_each_rail_has_a_subnet_of_its_own() -> None:
    site = example("roce-64")
    subnets = {
        nic.rail: {ipaddress.ip_interface(host.nics[nic.rail + 1].address).network for host in site.compute}
        for nic in site.compute[0].nics
        if nic.network == "compute"
    }
    assert all(len(found) == 1 for found in subnets.values())
    networks = [next(iter(found)) for found in subnets.values()]
    assert len(set(networks)) == 8
    assert all(network.subnet_of(ipaddress.ip_network("10.41.0.0/20")) for network in networks)
    assert not any(a.overlaps(b) for a in networks for b in networks if a is not b)


def test_a_rail_in_two_planes_has_two_subnets() -> None:
    text = cluster_text(2, rails=2).replace("fabric: {topology: rail}", "fabric: {topology: multi-plane, planes: 2}")
    text = text[: text.index("switches:")] + text[text.index("mounts:") :]
    text = text.replace("rail: 1,", "rail: 0, plane: 1,")
    nics = [nic for nic in cluster.parse("f.yml", text).compute[0].nics if nic.network == "compute"]
    assert [(nic.plane, nic.rail, nic.address) for nic in nics] == [
        (0, 0, "10.128.0.1/10"),
        (1, 0, "10.192.0.1/10"),
    ]


def test_a_run_of_nodes_ends_where_the_last_byte_of_the_address_starts_again() -> None:
    site = cluster.parse("f.yml", cluster_text(600))
    runs = cluster_slurm.nodes(site)
    assert [(run["name"], run["address"]) for run in runs] == [
        ("gpu[0001-0255]", "10.0.0.[1-255]"),
        ("gpu[0256-0511]", "10.0.1.[0-255]"),
        ("gpu[0512-0600]", "10.0.2.[0-88]"),
    ]
    for run in runs:
        pairs = zip(expand(run["name"]), expand(run["address"]), strict=True)
        assert all(site.hosts[name].nics[0].ip == address for name, address in pairs)


def test_4096_nodes_are_expanded_and_rendered_within_six_seconds() -> None:
    begun = time.monotonic()
    site = cluster.parse("f.yml", cluster_text(4096))
    common = cluster_render.shared(site)
    texts = [
        cluster_render.host_variables(site, host, common)["weaklink_expected_json"] for host in site.hosts.values()
    ]
    seconds = time.monotonic() - begun
    assert len(texts) == 4097
    assert sum(len(host.nics) for host in site.compute) == 4096 * 10
    assert max(map(len, texts)) < 20_000  # nothing in it grows with the number of nodes but the leaves' names
    assert seconds < 6.0


def test_the_budget_sees_every_node_of_a_range() -> None:
    site = cluster.parse("f.yml", cluster_text(64))
    view = expected.parse(json.dumps(cluster_render.expected(site, site.compute[0]))).budget_view()
    assert len(view["partitions"]["main"]) == 64
    assert view["leaves"]["su02"] == [f"gpu{number:04d}" for number in range(33, 65)]


def test_versions_of_a_group_win_over_those_of_the_cluster() -> None:
    text = cluster_text(2).replace(
        "    memory_mb: 2000000\n", "    memory_mb: 2000000\n    expected: {kernel: '6.9', firmware: {B: '2'}}\n"
    )
    site = cluster.parse(
        "f.yml", text + "expected: {kernel: '6.8', nccl: '2.27', firmware: {A: '1'}, switches: {Q: '3'}}\n"
    )
    found = cluster_render.versions(site, site.compute[0])
    assert found == {"kernel": "6.9", "nccl": "2.27", "firmware": {"A": "1", "B": "2"}}
    assert cluster_render.versions(site, site.controller)["kernel"] == "6.8"


@pytest.mark.parametrize(
    ("path", "fstype", "source", "words"),
    [
        ("/home", "nfs4", "10.2.234.97:/home", "vers=4.2,proto=rdma,port=20049,hard,retry=0,nosuid"),
        ("/scratch", "lustre", "10.2.9.1@o2ib:/scratch", "_netdev,flock"),
        ("/weka", "wekafs", "10.2.9.2/default", "_netdev"),
        (
            "/vast",
            "nfs",
            "10.2.9.3:/",
            "vers=3,proto=rdma,port=20049,nconnect=8,remoteports=10.2.9.3-10.2.9.9,hard,retry=0",
        ),
    ],
)
def test_every_kind_of_storage_is_mounted_in_its_own_words(path: str, fstype: str, source: str, words: str) -> None:
    site = cluster.parse("f.yml", FULL)
    mount = next(m for m in cluster_render.mounts(site, site.compute[0]) if m["path"] == path)
    assert (mount["fstype"], mount["source"], mount["options"]) == (fstype, source, words)


def test_an_infiniband_port_without_ipoib_has_no_address_and_no_mtu_to_check() -> None:
    text = (ROOT / "inventory/superpod-h100/cluster.yml").read_text().replace("cidr: 10.20.0.0/16, ", "", 1)
    text = text.replace(", rail_subnets: true", "")
    site = cluster.parse("f.yml", text)
    nic = next(nic for nic in cluster_render.nics(site, site.compute[0]) if nic["network"] == "compute")
    assert (nic["address"], nic["mtu"], nic["rdma"]["link_layer"]) == (None, None, "InfiniBand")
    read = expected.parse(json.dumps(cluster_render.expected(site, site.compute[0])))
    assert {want.address for want in read.nics if want.network == "compute"} == {None}


def test_nccl_is_told_the_traffic_class_of_the_lossless_dscp() -> None:
    assert cluster_render.nccl_settings(example("roce-64"))["traffic_class"] == 26 * 4 + 2
    assert cluster_render.nccl_settings(example("superpod-h100"))["traffic_class"] is None
