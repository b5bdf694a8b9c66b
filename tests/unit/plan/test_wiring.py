"""The links as laid: even, no port twice, as many as the formulas say, non-blocking where a design says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

import networkx as nx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from weaklink.model.fabric import Fabric, FabricError, Link, validate
from weaklink.model.topology import HcaName, Names, build
from weaklink.model.topology.shape import DRAGONFLY, TREE, Shape, leaf_counts
from weaklink.plan.design import Design, PlanError, Request, design, shape_of

SOME = settings(max_examples=120, deadline=None)
FEW = settings(max_examples=80, deadline=None)


@st.composite
def trees(draw: st.DrawFn) -> Request:
    """Small trees of every kind: one to three tiers, rails, planes, tapers, extra end points."""
    topology = draw(st.sampled_from(["fat-tree", "rail", "multi-plane"]))
    gpus = draw(st.sampled_from([1, 2, 4]))
    planes = draw(st.sampled_from([1, 2, 4])) if topology == "multi-plane" else 1
    return Request(
        topology,
        draw(st.integers(1, 24)),
        gpus,
        draw(st.sampled_from([4, 6, 8, 12])),
        planes=planes,
        taper=draw(st.sampled_from([1.0, 1.0, 1.5, 2.0, 3.0])),
        extra_endpoints=draw(st.integers(0, 5)),
        su_nodes=draw(st.sampled_from([None, 2, 3])) if topology == "rail" else None,
        hcas_per_gpu=draw(st.sampled_from([1, 1, 4])) if planes > 1 else 1,
    )


@st.composite
def others(draw: st.DrawFn) -> Request:
    """Small dragonflies, dragonflies+ and hypercubes."""
    topology = draw(st.sampled_from(["dragonfly", "dragonfly+", "hypercube"]))
    extra = draw(st.integers(0, 3))
    if topology == "hypercube":
        return Request(topology, 1 << draw(st.integers(0, 5)), draw(st.integers(1, 3)), 16, extra_endpoints=extra)
    radix = draw(st.sampled_from([4, 6, 8, 10, 12]))
    taper = draw(st.sampled_from([1.0, 2.0, 3.0])) if topology == "dragonfly+" else 1.0
    return Request(
        topology, draw(st.integers(1, 40)), draw(st.integers(1, 3)), radix, taper=taper, extra_endpoints=extra
    )


def made(request: Request) -> tuple[Design, Shape, Fabric]:
    try:
        found = design(request)
    except PlanError:
        assume(False)
        raise
    shape = shape_of(request)
    return found, shape, build(shape)


def leaf_of(fabric: Fabric) -> dict[str, str]:
    return {link.a: link.b for link in fabric.links if "/" in link.a}


def max_flow(fabric: Fabric, sources: Iterable[str], sinks: Iterable[str], without: Iterable[Link] = ()) -> int:
    """Most links' worth of traffic from ``sources`` to ``sinks`` over every link that is not taken away."""
    gone = {link.id for link in without}
    graph = nx.DiGraph()
    graph.add_nodes_from(("from", "to"))
    at = leaf_of(fabric)
    for leaf, count in Counter(at[end] for end in sources).items():
        graph.add_edge("from", leaf, capacity=count)
    for leaf, count in Counter(at[end] for end in sinks).items():
        graph.add_edge(leaf, "to", capacity=count)
    between = Counter((link.a, link.b) for link in fabric.links if "/" not in link.a and link.id not in gone)
    for (one, other), count in between.items():
        graph.add_edge(one, other, capacity=count)
        graph.add_edge(other, one, capacity=count)
    return int(nx.maximum_flow_value(graph, "from", "to"))


def ends_in_order(fabric: Fabric, plane: int) -> list[str]:
    order = {switch.name: index for index, switch in enumerate(fabric.switches)}
    ends = [end for end, _, hca in fabric.ends if hca.plane == plane]
    at = leaf_of(fabric)
    return sorted(ends, key=lambda end: order[at[end]])


@SOME
@given(st.one_of(trees(), others()))
def test_formulas_count_what_is_laid(request: Request) -> None:
    found, shape, fabric = made(request)
    validate(fabric)  # no port twice, no unknown end, the lower tier first
    tiers = Counter(fabric.tier_of(link) for link in fabric.links)
    assert tiers == Counter({name: count for name, count in found.links_by_tier.items() if count})
    by_tier = Counter(switch.tier for switch in fabric.switches)
    assert (found.leaf, found.spine or 0, found.core or 0) == (by_tier[1], by_tier[2], by_tier[3])
    assert found.switches == len(fabric.switches)
    assert found.tiers == max(by_tier)
    assert found.endpoints <= found.max_endpoints
    assert found.node_links == sum(1 for _ in fabric.ends)
    modules = {module for link in fabric.links for module in (link.module_a, link.module_b)}
    node_modules = {link.module_a for link in fabric.links if "/" in link.a}
    assert len(node_modules) == found.modules["node"]
    assert len(modules - node_modules) == found.modules["switch"]
    at = Counter(leaf_of(fabric).values())
    for plane in range(shape.planes):
        names = [switch.name for switch in fabric.switches if (switch.tier, switch.plane) == (1, plane)]
        assert [at[name] for name in names] == leaf_counts(shape, plane)


@SOME
@given(st.one_of(trees(), others()))
def test_no_switch_has_more_links_than_ports_and_no_module_more_than_two(request: Request) -> None:
    _, _, fabric = made(request)
    for switch in fabric.switches:
        ports = [link.a_port if link.a == switch.name else link.b_port for link in fabric.links_of(switch.name)]
        assert len(ports) == len(set(ports))
        assert all(1 <= int(port) <= request.radix for port in ports)
    used = Counter(module for link in fabric.links for module in (link.module_a, link.module_b))
    assert max(used.values()) <= 2
    shared = Counter(link.cable for link in fabric.links)
    ends = {link.cable: (link.module_a, link.module_b) for link in fabric.links}
    assert all(ends[link.cable] == (link.module_a, link.module_b) for link in fabric.links)
    assert max(shared.values()) <= 2


@SOME
@given(trees())
def test_every_leaf_has_as_many_links_to_each_spine_and_every_spine_to_each_core(request: Request) -> None:
    found, shape, fabric = made(request)
    group = {switch.name: (switch.plane, switch.group) for switch in fabric.switches}
    pairs = Counter((link.a, link.b) for link in fabric.links if fabric.tier_of(link) == "leaf-spine")
    assert len(set(pairs.values())) <= 1
    for leaf in (switch for switch in fabric.switches if switch.tier == 1 and shape.spines):
        reached = {spine for name, spine in pairs if name == leaf.name}
        assert len(reached) == shape.spines
        assert {group[spine] for spine in reached} == {group[leaf.name]}
    cores = Counter((link.a, link.b) for link in fabric.links if fabric.tier_of(link) == "spine-core")
    assert len(set(cores.values())) <= 1
    if found.core:
        above = {name: {core for spine, core in cores if spine == name} for name, _ in cores}
        assert len({frozenset(reached) for reached in above.values()}) == shape.spines * shape.planes


def test_a_rail_goes_to_its_own_leaf_of_the_unit() -> None:
    fabric = build(shape_of(Request("rail", 8, 4, 8)))  # units of 4 nodes, 4 rails
    for index, node in enumerate(fabric.nodes):
        assert [hca.rail for hca in node.hcas] == [0, 1, 2, 3]
        assert [hca.leaf for hca in node.hcas] == [f"leaf{index // 4 * 4 + rail + 1}" for rail in range(4)]


def test_every_gpu_has_a_port_in_each_plane_or_a_plane_of_its_own() -> None:
    spread = build(shape_of(Request("multi-plane", 4, 4, 8, planes=2)))
    assert [(hca.rail, hca.plane) for hca in spread.nodes[0].hcas] == [(i // 2, i % 2) for i in range(8)]
    own = build(shape_of(Request("multi-plane", 4, 4, 8, planes=4)))
    assert [(hca.rail, hca.plane) for hca in own.nodes[0].hcas] == [(0, plane) for plane in range(4)]
    for fabric in (spread, own):
        plane = {switch.name: switch.plane for switch in fabric.switches}
        assert all(plane[hca.leaf or ""] == hca.plane for node in fabric.nodes for hca in node.hcas)
        assert all(plane[link.a] == plane[link.b] for link in fabric.links if "/" not in link.a)


@FEW
@given(trees(), st.randoms())
def test_random_halves_of_a_non_blocking_tree_are_joined_at_full_rate(request: Request, random: Random) -> None:
    found, _, fabric = made(request._replace(taper=1.0))
    assert found.oversubscription == 1.0
    for plane in range(found.planes):
        ends = [end for end, _, hca in fabric.ends if hca.plane == plane]
        random.shuffle(ends)
        half = len(ends) // 2
        assert max_flow(fabric, ends[:half], ends[half:]) == half


@st.composite
def full_trees(draw: st.DrawFn) -> Request:
    """Trees of two and three tiers whose leaves and pods are all full: every link counts."""
    radix = draw(st.sampled_from([4, 6, 8, 12]))
    half = radix // 2
    two = draw(st.booleans())
    leaves = draw(st.integers(2, radix)) if two else half * draw(st.integers(3, min(radix, 8)))
    return Request("fat-tree", leaves * half, 1, radix)


@FEW
@given(full_trees(), st.data())
def test_without_one_cable_a_full_non_blocking_tree_blocks(request: Request, data: st.DataObject) -> None:
    """All of a leaf (a pod) sends out: the worst that end points of one link each can ask of the links above it."""
    _, _, fabric = made(request)
    links = [link for link in fabric.links if "/" not in link.a]
    cable = data.draw(st.sampled_from(sorted({link.cable or "" for link in links})))
    gone = [link for link in links if link.cable == cable]
    at = leaf_of(fabric)
    below = fabric.switch(gone[0].a)
    assert below is not None
    behind = {below.name}
    if below.tier == 2:
        behind = {switch.name for switch in fabric.switches if switch.tier == 1 and switch.group == below.group}
    sending = [end for end, leaf in at.items() if leaf in behind]
    rest = [end for end, leaf in at.items() if leaf not in behind]
    assume(len(rest) >= len(sending))
    assert max_flow(fabric, sending, rest) == len(sending)
    assert max_flow(fabric, sending, rest, without=gone) == len(sending) - len(gone)


@FEW
@given(trees())
def test_the_bisection_of_a_tree_is_the_max_flow_between_its_halves(request: Request) -> None:
    found, _, fabric = made(request)
    flow = 0
    for plane in range(found.planes):
        ends = ends_in_order(fabric, plane)
        half = len(ends) // 2
        flow += max_flow(fabric, ends[:half], ends[half:])
    assert found.bisection_gbps == flow * request.rate_gbps


@FEW
@given(others())
def test_the_bisection_of_groups_and_cubes_is_the_max_flow_between_their_halves(request: Request) -> None:
    found, shape, fabric = made(request)
    at = leaf_of(fabric)
    group = {switch.name: switch.group or 0 for switch in fabric.switches}
    ends = ends_in_order(fabric, 0)
    if shape.groups > 1:
        first = [end for end in ends if group[at[end]] < shape.groups // 2]
    elif found.topology == "hypercube" and shape.up:
        first = [end for end in ends if int(at[end].removeprefix("router")) <= shape.leaves // 2]
    else:
        first = ends[: len(ends) // 2]
    rest = [end for end in ends if end not in set(first)]
    assert found.bisection_gbps == max_flow(fabric, first, rest) * request.rate_gbps


def switch_graph(fabric: Fabric) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(switch.name for switch in fabric.switches)
    graph.add_edges_from((link.a, link.b) for link in fabric.links if "/" not in link.a)
    return graph


@FEW
@given(st.one_of(trees(), others()))
def test_hops_are_those_of_the_links(request: Request) -> None:
    found, shape, fabric = made(request)
    graph = switch_graph(fabric)
    hops = one_global if shape.kind == DRAGONFLY and shape.groups > 1 else shortest
    leaves = [switch.name for switch in fabric.switches if (switch.tier, switch.plane) == (1, 0)]
    lengths = [
        length
        for leaf in leaves
        for other, length in hops(fabric, graph, leaf).items()
        if other in set(leaves) - {leaf}
    ]
    assert found.diameter >= max(lengths, default=0)
    if shape.kind == TREE or shape.groups == 1:
        assert found.diameter == max(lengths, default=0)
    assert found.mean_hops == pytest.approx(sum(lengths) / len(lengths) if lengths else 0)


def shortest(_: Fabric, graph: nx.Graph, start: str) -> dict[str, int]:
    return dict(nx.single_source_shortest_path_length(graph, start))


def one_global(fabric: Fabric, graph: nx.Graph, start: str) -> dict[str, int]:
    """The shortest ways of a dragonfly over at most one link between groups."""
    group = {switch.name: switch.group for switch in fabric.switches}
    found = {other: 1 for other in graph if group[other] == group[start]}
    for here in [other for other in graph if group[other] == group[start]]:
        for there in graph[here]:
            if group[there] != group[start]:
                for end in (other for other in graph if group[other] == group[there]):
                    length = (here != start) + 1 + (end != there)
                    found[end] = min(length, found.get(end, length))
    return found


@FEW
@given(others())
def test_groups_have_the_same_number_of_links_to_each_other_or_one_more(request: Request) -> None:
    _, shape, fabric = made(request)
    group = {switch.name: switch.group for switch in fabric.switches}
    links = Counter(
        tuple(sorted((group[link.a] or 0, group[link.b] or 0)))
        for link in fabric.links
        if fabric.tier_of(link) == "global"
    )
    if shape.groups > 1:
        assert len(links) == shape.groups * (shape.groups - 1) // 2
        assert max(links.values()) - min(links.values()) <= 1
        total = shape.groups * shape.group_out
        odd = shape.groups * (shape.group_out % 2 and shape.groups % 2)
        assert 2 * sum(links.values()) == total - odd


def test_own_names_are_used_and_must_be_as_many() -> None:
    shape = shape_of(Request("rail", 2, 2, 4))
    hcas = [HcaName("ibs2", 1, 0), HcaName("ibs1", 0, 0)]
    names = Names([("gpu-a", hcas), ("gpu-b", hcas)], {1: ["left", "right"], 2: ["top"]})
    fabric = build(shape, names)
    assert [switch.name for switch in fabric.switches] == ["left", "right", "top"]
    assert [(hca.name, hca.leaf) for hca in fabric.nodes[0].hcas] == [("ibs2", "right"), ("ibs1", "left")]
    assert "gpu-b/ibs1" in {link.a for link in fabric.links}
    wrong: list[Callable[[], Names]] = [
        lambda: names._replace(nodes=names.nodes[:1]),
        lambda: names._replace(nodes=[("a", hcas[:1]), ("b", hcas)]),
        lambda: names._replace(nodes=[("a", [*hcas, HcaName("x", 0, 1)]), ("b", hcas)]),
        lambda: names._replace(switches={1: ["left"]}),
        lambda: names._replace(switches={1: ["left", "right", "third"]}),
    ]
    for given_names in wrong:
        with pytest.raises(FabricError, match="names of"):
            build(shape, given_names())


def test_four_thousand_end_points_in_three_tiers() -> None:
    found, _, fabric = made(Request("fat-tree", 512, 8, 64))
    validate(fabric)
    assert len(fabric.links) == found.node_links + found.inter_switch_links == 3 * 4096
    pods = Counter(switch.group for switch in fabric.switches if switch.tier == 1)
    assert pods == {0: 32, 1: 32, 2: 32, 3: 32}
