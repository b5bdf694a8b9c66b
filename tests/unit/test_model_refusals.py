"""The whole cluster file: every key with a wrong value is refused by name and line; contradictions are told apart."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from weaklink.model import cluster
from weaklink.model.cluster_file import ClusterError, Document, schema

from tests.unit.full_cluster import FULL

DATA: dict[str, Any] = yaml.safe_load(FULL)
Path_ = tuple[Any, ...]


def leaves(node: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of every value that is no mapping, and of every mapping with named keys."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif isinstance(node, list) and node and isinstance(node[0], dict):
        for index, value in enumerate(node):
            yield from leaves(value, (*path, index))
    else:
        yield path


def changed(path: Path_, value: Any, *, key: Any = ...) -> dict[str, Any]:
    data = copy.deepcopy(DATA)
    place: Any = data
    for part in path[:-1]:
        place = place[part]
    if key is ...:
        place[path[-1]] = value
    else:
        place[key] = value
    return data


def refuse(data: dict[str, Any]) -> ClusterError:
    with pytest.raises(ClusterError) as caught:
        cluster.parse("full.yml", yaml.safe_dump(data, sort_keys=False))
    return caught.value


def dotted(path: Path_) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def named(path: Path_) -> str:
    return dotted(path)


def test_the_full_file_is_good_and_has_every_key_of_the_schema() -> None:
    site = cluster.parse("full.yml", FULL)
    assert [len(site.hosts), len(site.switches), len(site.mounts)] == [7, 2, 4]
    assert site.warnings == ()
    named_in_schema: set[str] = set()

    def collect(node: Any) -> None:
        if isinstance(node, dict):
            named_in_schema.update(node.get("properties", {}))
            for value in node.values():
                collect(value)

    collect(schema())
    used = {part for path in leaves(DATA) for part in path if isinstance(part, str)}
    missing = named_in_schema - used
    assert missing == set()


@pytest.mark.parametrize("path", list(leaves(DATA)), ids=named)
@pytest.mark.parametrize("wrong", [[[]], {"x": {}}, ""], ids=["list", "mapping", "empty"])
def test_a_value_of_the_wrong_kind_is_refused_at_its_key(path: Path_, wrong: Any) -> None:
    error = refuse(changed(path, wrong))
    assert error.key.startswith(dotted(path)), str(error)
    assert error.line > 0
    assert "; allowed: " in str(error)


@pytest.mark.parametrize("path", [p for p in leaves(DATA) if p[:-1] != ("groups",)], ids=named)
def test_a_misspelt_key_is_refused_with_the_nearest_one(path: Path_) -> None:
    free = ("firmware", "packages", "switches", "options")
    if isinstance(path[-1], int) or (len(path) > 1 and path[-2] in free):
        data = changed(path, [])
        assert refuse(data).key.startswith(dotted(path[:-1]))
        return
    word = f"{path[-1]}x"
    error = refuse(changed(path, None, key=word))
    # The names of networks, groups and address ranges are free: there the value is what is wrong.
    assert error.key in (dotted((*path[:-1], word)), dotted((*path[:-1],))), str(error)


def test_a_version_without_quotes_is_told_to_have_them() -> None:
    error = refuse(changed(("expected", "kernel"), 6.8))
    assert "found 6.8; allowed: text, not empty, in quotes: '6.8'" in str(error)


def edited(old: str, new: str) -> str:
    assert FULL.count(old) >= 1, old
    with pytest.raises(ClusterError) as caught:
        cluster.parse("full.yml", FULL.replace(old, new, 1))
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("cidr: 10.2.0.0/16", "cidr: 10.64.0.0/16", "networks.store.cidr: found 10.64.0.0/16, which overlaps fabric"),
        ('"0000:20:00.0"', '"0000:10:00.0"', "hardware.node.nics[2].pci: found 0000:10:00.0, which NIC 1 has"),
        ('"0000:30:00.0"', '"0000:10:00.0"', "separate physical ports: checkpoints would slow the all-reduce"),
        ("position: 1", "position: 0", "groups.control.nics[1].position: found #0, which NIC 0 has"),
        ("position: 1", 'pci: "0000:01:00.0"', "pci for all NICs of a machine or position for all"),
        ("position: 1", 'position: 1, pci: "0000:01:00.0"', "both pci and position"),
        ("position: 1, ", "", "neither pci nor position"),
        ("first_address: 101", "first_address: 1", "found 10.0.0.1 for big1, which gpu1 has"),
        ("gateway: 10.0.255.254", "gateway: 10.0.0.2", "10.0.0.2 for gpu2, which the gateway of management has"),
        ("gateway: 10.0.255.254", "gateway: 10.9.0.1", "an address of hosts in 10.0.0.0/16"),
        ("gateway: 10.0.255.254", "gateway: 10.0.255.255", "an address of hosts in"),
        ("    cidr: 10.2.0.0/16", "    cidr: 10.2.0.0/16\n    gateway: 10.2.255.1", "one network with a gateway"),
        ("first_address: {management: 60001, store: 60001}", "first_address: {management: 1}", "nothing for store"),
        ("cidr: 10.64.0.0/12", "cidr: 10.64.0.0/30", "do not fit into a rail's subnet of fabric (10.64.0.0/30), 2"),
        ("ports: 4, uplinks: 2", "ports: 3, uplinks: 2", "switches.leaf.ports: found 3 a switch: 6 for hosts on 6"),
        (
            "ports: 4, uplinks: 2",
            "ports: 4, uplinks: 5",
            "switches.leaf.uplinks: found 5; allowed: at most its 4 ports",
        ),
        (
            "uplinks: 2, mtu",
            "uplinks: 2, downlinks: 3, mtu",
            "switches.leaf.downlinks: found 3 beside 2 uplinks; allowed: at most its 4 ports in all",
        ),
        ("uplinks: 2, mtu", "uplinks: 2, downlinks: 1, mtu", "6 for hosts on 6 switches, with 12 NICs"),
        ('"leaf[1-6]"', '"leaf[1-8]"', "8 leaves for 3 units with 2 rails; allowed: 6: a leaf for each rail"),
        ('"spine[1-3]"', '"spine[1-2]"', "switches.spine.ports: found 4 a switch: room for 8 links, and leaf sends 12"),
        ("tier: 2, ports: 4", "tier: 3, ports: 4", "tiers 1, 3 in fabric"),
        ('"spine[1-3]"', '"leaf[1-3]"', "leaf1, which is in leaf too"),
        ("rail: 1, plane: 0", "rail: 2, plane: 0", "rails 0, 2 in fabric; allowed: each of 0 … 1 once"),
        ("rail: 1, plane: 0", "rail: 0, plane: 0", "rails 0, 0 in fabric; allowed: each of 0 … 1 once"),
        ("ipoib_mode: datagram", "ipoib_mode: connected", "NICs with enhanced IPoIB (mlx5) have no connected mode"),
        ("mtu: 4092", "mtu: 4096", "networks.store.mtu: found 4096; allowed: at most 4092: IPoIB in datagram mode"),
        ("vlan: 10,", "vlan: 10, pkey: '0x8001',", "pkey with transport infiniband only"),
        ("hardware: node\n    first", "hardware: noed\n    first", "did you mean 'node'"),
        ("network: fabric, tier: 2", "network: fabrik, tier: 2", "did you mean 'fabric'"),
        ("mode: observe", "mode: 2026-02-30", "full.yml:4: (file): found 2026-02-30: day is out of range"),
        ("cpus: 32", "cpus: 31", "sockets x cores x threads = 32"),
        ("fsname: scratch, ", "", "mounts[1].fsname: found nothing; allowed: required of a mount of type lustre"),
        ("fsname: scratch,", "fsname: scratch, nconnect: 4,", "nconnect with type lustre"),
        ("server: 10.2.9.3", "server: files9", "a host of this file, or an address"),
        ("block_sizes: [2]", "block_sizes: [4]", "has 2 nodes; allowed: at most 2"),
        ("block_sizes: [2]", "block_sizes: [2, 6]", "6 after 2; allowed: each one a power of two times"),
        ("topology: block", "topology: tree", "with topology tree; allowed: block_sizes with topology block only"),
        ("leaf: su9, block_nodes: 2", "leaf: su9", "group big says no block_nodes"),
        ("groups: [gpu, big]", "groups: [gpu, bgi]", "did you mean 'big'"),
    ],
)
def test_contradictions_are_told_apart(old: str, new: str, words: str) -> None:
    assert words in edited(old, new)


def test_groups_of_a_rail_fabric_have_the_same_rails() -> None:
    other = (
        '  big: {role: compute, hosts: "big[1-2]", first_address: 101, leaf: su9, block_nodes: 2, nics: [{network: '
        'management, pci: "0000:01:00.0"}, {network: fabric, pci: "0000:10:00.0", rdma: {device: mlx5_0}}]}\n'
    )
    start = FULL.index("  big: {")
    text = FULL[:start] + other + FULL[FULL.index("\n", start) + 1 :]
    with pytest.raises(ClusterError, match="1 rails, and gpu has 2; allowed: the same rails in all groups"):
        cluster.parse("full.yml", text)


def test_a_second_default_partition_is_refused() -> None:
    text = FULL.replace("expected:\n  kernel", "  other: {groups: [gpu], default: true}\nexpected:\n  kernel")
    with pytest.raises(ClusterError, match=r"partitions\.other\.default: found a second default partition"):
        cluster.parse("full.yml", text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("gpus: {type: h100, count: 2}", "gpus: {type: h100, count: 4}", "2 compute HCAs for 4 GPUs"),
        (
            "gpus: {type: h100, count: 2}",
            "gpus: {type: h100, count: 4}",
            "200 Gb/s a GPU (2 HCAs of 400 Gb/s for 4 GPUs)",
        ),
        ("rate_gbps: 400", "rate_gbps: 200", "200 Gb/s a GPU (2 HCAs of 200 Gb/s for 2 GPUs), under 400"),
        ("ports: 4, uplinks: 2", "ports: 4, uplinks: 1", "12 NICs share 6 uplinks to 3 switches, 2:1 oversubscribed"),
    ],
)
def test_what_costs_speed_is_a_warning_with_its_reason(old: str, new: str, words: str) -> None:
    site = cluster.parse("full.yml", FULL.replace(old, new, 1))
    assert any(words in warning for warning in site.warnings), site.warnings


@pytest.mark.parametrize("cut", range(0, len(FULL), 97))
def test_a_cut_file_is_refused_or_whole(cut: int) -> None:
    """Half a file never becomes half a cluster without a word."""
    required = FULL.index("partitions:")
    if cut > required + len("partitions:\n  main:\n    groups: [gpu, big]"):
        with contextlib.suppress(ClusterError):
            assert cluster.parse("full.yml", FULL[:cut]).partitions  # a shorter file that is whole
        return
    with pytest.raises(ClusterError, match=r"full\.yml:\d+: "):
        cluster.parse("full.yml", FULL[:cut])


def test_lines_are_those_of_the_file() -> None:
    document = Document("full.yml", FULL)
    line = FULL.splitlines().index('    pkey: "0x8001"') + 1
    assert document.lines["networks", "store", "pkey"] == line
