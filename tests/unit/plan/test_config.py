"""The cluster.yml to start from: the cluster's own reader takes it, and it says the same as the design."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.cli import lint
from weaklink.model import cluster
from weaklink.model.cluster_wiring import fabric_of
from weaklink.model.fabric import FabricError
from weaklink.model.hostlist import expand
from weaklink.model.topology.build import build
from weaklink.plan.config import cluster_yml, fabric_names, names
from weaklink.plan.design import design
from weaklink.plan.request import PlanError, Request
from weaklink.plan.shapes import shape_of

RAIL = Request("rail", nodes=127, gpus_per_node=8, radix=64, su_nodes=32, extra_endpoints=4)


def written(request: Request, transport: str = "infiniband") -> str:
    return cluster_yml(design(request), shape_of(request), transport)


def read(request: Request, transport: str = "infiniband") -> cluster.Cluster:
    return cluster.parse("cluster.yml", written(request, transport))


@pytest.mark.parametrize("transport", ["infiniband", "roce"])
@pytest.mark.parametrize(
    "request_",
    [
        RAIL,
        Request("fat-tree", nodes=1, gpus_per_node=1, radix=4),
        Request("fat-tree", nodes=300, gpus_per_node=8, radix=64),
        Request("fat-tree", nodes=64, gpus_per_node=8, radix=64, taper=2),
        Request("rail", nodes=2, gpus_per_node=8, radix=64),
        Request("rail", nodes=16, gpus_per_node=8, radix=64, hcas_per_gpu=2),
        Request("multi-plane", nodes=64, gpus_per_node=8, radix=64, planes=8),
        Request("multi-plane", nodes=64, gpus_per_node=8, radix=64, planes=2),
        Request("dragonfly", nodes=32, gpus_per_node=8, radix=64),
        Request("dragonfly+", nodes=512, gpus_per_node=8, radix=64),
        Request("hypercube", nodes=64, gpus_per_node=8, radix=64),
    ],
    ids=lambda request: f"{request.topology}-{request.nodes}-{request.planes}",
)
def test_the_clusters_own_reader_takes_it_and_counts_the_same(request_: Request, transport: str) -> None:
    made, found = design(request_), read(request_, transport)
    assert len(found.compute) == request_.nodes
    host = found.compute[0]
    hcas = [nic for nic in host.nics if nic.network == "compute"]
    assert len(hcas) == shape_of(request_).hcas
    assert host.gpus == request_.gpus_per_node
    assert {nic.plane for nic in hcas} == set(range(made.planes))
    assert sum(len(group.names) for group in found.switches.values()) == made.switches
    assert [text for text in found.warnings if "oversubscribed" not in text] == []
    assert bool(found.warnings) == (request_.taper > 1)
    assert found.mode == "observe", "nothing is touched before somebody says so"


@pytest.mark.parametrize(
    "request_",
    [
        RAIL,
        Request("fat-tree", nodes=512, gpus_per_node=8, radix=64),
        Request("multi-plane", nodes=64, gpus_per_node=8, radix=64, planes=2),
        Request("dragonfly+", nodes=300, gpus_per_node=8, radix=64),
        Request("hypercube", nodes=64, gpus_per_node=8, radix=64),
    ],
    ids=lambda request: request.topology,
)
def test_the_cable_list_has_the_names_of_the_cluster_file(request_: Request) -> None:
    shape = shape_of(request_)
    fabric = build(shape, fabric_names(design(request_), shape))
    found = read(request_)
    nodes = {
        host.name: [(nic.rdma_device, nic.rail, nic.plane) for nic in host.nics if nic.network == "compute"]
        for host in found.compute
    }
    wired = {
        node.name: [(hca.name, hca.rail, hca.plane) for hca in node.hcas] for node in fabric.nodes if not node.extra
    }
    assert nodes == wired
    switches = {(name, group.tier) for group in found.switches.values() for name in group.names}
    assert switches == {(switch.name, switch.tier) for switch in fabric.switches}
    for leaf in {host.leaf for host in found.compute} if shape.unit else ():
        unit = [node.hcas[0].leaf for node in fabric.nodes if not node.extra and found.hosts[node.name].leaf == leaf]
        assert len(set(unit)) == 1, "a unit's nodes share the leaf of a rail"


@pytest.mark.parametrize(
    "request_",
    [
        RAIL._replace(extra_endpoints=0),
        Request("rail", nodes=40, gpus_per_node=8, radix=64, su_nodes=16),
        Request("rail", nodes=512, gpus_per_node=8, radix=64),
        Request("fat-tree", nodes=3, gpus_per_node=8, radix=64),
        Request("fat-tree", nodes=257, gpus_per_node=8, radix=64),
        Request("fat-tree", nodes=128, gpus_per_node=8, radix=64, spines=5),
        Request("fat-tree", nodes=40, gpus_per_node=8, radix=16, taper=3),
        Request("multi-plane", nodes=64, gpus_per_node=8, radix=16, planes=2),
        Request("multi-plane", nodes=64, gpus_per_node=8, radix=64, planes=4, planes_per_gpu=1),
        Request("dragonfly", nodes=64, gpus_per_node=8, radix=64),
        Request("dragonfly", nodes=33, gpus_per_node=8, radix=16),
        Request("dragonfly+", nodes=100, gpus_per_node=8, radix=16, taper=2),
        Request("hypercube", nodes=64, gpus_per_node=8, radix=64),
    ],
    ids=lambda request: f"{request.topology}-{request.nodes}-{request.radix}",
)
def test_the_fabric_of_the_cluster_file_is_that_of_the_plan(request_: Request) -> None:
    shape = shape_of(request_)
    assert fabric_of(read(request_)) == build(shape, fabric_names(design(request_), shape))


def test_three_tiers_say_how_many_pods_they_are() -> None:
    text = written(Request("fat-tree", nodes=512, gpus_per_node=8, radix=64))
    for groups, words in ((", groups: 1}", "three tiers in one pod"), (", groups: 3}", "in each of 3 pods")):
        edited = re.sub(r", groups: \d+}", groups, text)
        assert edited != text
        with pytest.raises(FabricError, match=words):
            fabric_of(cluster.parse("cluster.yml", edited))


def test_nodes_that_fill_a_leaf_of_a_fat_tree_share_it() -> None:
    hosts = read(Request("fat-tree", nodes=16, gpus_per_node=8, radix=64)).compute
    assert [host.leaf for host in hosts[:4]] == [hosts[0].leaf] * 4
    assert len({host.leaf for host in hosts}) == 4


def test_the_leaves_of_a_unit_are_those_of_the_design() -> None:
    leaves = [host.leaf for host in read(RAIL).compute]
    assert len(set(leaves)) == 4
    assert leaves.count(leaves[0]) == 32


@pytest.mark.parametrize("transport", ["infiniband", "roce"])
def test_lint_has_nothing_to_say_about_it(transport: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cluster.yml"
    path.write_text(written(RAIL, transport), encoding="utf-8")
    assert lint.run(["fabric", "--json", str(path)]) == 0
    assert {finding["class"] for finding in json.loads(capsys.readouterr().out)["findings"]} <= {"ok"}


def test_infiniband_needs_no_addresses_and_roce_has_one_subnet_a_rail() -> None:
    assert "cidr" not in yaml.safe_load(written(RAIL))["networks"]["compute"]
    network = yaml.safe_load(written(RAIL, "roce"))["networks"]["compute"]
    assert network["rail_subnets"] is True
    assert network["mtu"] >= network["active_mtu"] + 96
    assert network["qos"]["traffic_class"] == network["qos"]["dscp"] * 4 + 2
    assert network["qos"]["pfc"] == [network["qos"]["lossless_priority"]]


def test_no_address_stands_twice_with_planes() -> None:
    hosts = read(Request("multi-plane", nodes=64, gpus_per_node=8, radix=64, planes=2), "roce").hosts.values()
    addresses = [nic.ip for host in hosts for nic in host.nics if nic.address]
    assert len(addresses) == len(set(addresses)) >= 64 * 16


def test_every_line_with_a_made_up_pci_address_says_so() -> None:
    lines = [line for line in written(RAIL).splitlines() if "pci:" in line]
    assert len(lines) == 8 + 2 + 2
    assert all("PLACEHOLDER" in line for line in lines)


@pytest.mark.parametrize(
    ("request_", "key"),
    [
        (Request("fat-tree", nodes=100_001, gpus_per_node=1, radix=128), "nodes"),
        (Request("fat-tree", nodes=8, gpus_per_node=128, radix=512), "gpus_per_node"),
        (Request("multi-plane", nodes=8, gpus_per_node=32, radix=64, planes=32), "planes"),
    ],
)
def test_what_a_cluster_file_cannot_say_is_refused_by_its_key(request_: Request, key: str) -> None:
    with pytest.raises(PlanError) as caught:
        written(request_)
    assert caught.value.key == key


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 100_000))
def test_names_are_as_many_as_asked_and_sort_as_they_count(count: int) -> None:
    listed = expand(names("gpu", count))
    assert len(listed) == count
    assert listed == sorted(set(listed))


@settings(max_examples=15, deadline=None)
@given(
    topology=st.sampled_from(["fat-tree", "rail"]),
    nodes=st.integers(1, 600),
    gpus=st.sampled_from([1, 4, 8]),
    transport=st.sampled_from(["infiniband", "roce"]),
)
def test_whatever_the_size_the_file_can_be_read(topology: str, nodes: int, gpus: int, transport: str) -> None:
    asked = Request(topology, nodes=nodes, gpus_per_node=gpus, radix=64)
    assert len(read(asked, transport).compute) == nodes
