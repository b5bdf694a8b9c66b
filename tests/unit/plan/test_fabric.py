"""A fabric as a file: what is written is read back, and every mistake is named by its place."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import weaklink
from jsonschema import Draft202012Validator
from weaklink.model.fabric import Fabric, FabricError
from weaklink.model.fabric_file import lines, load, parse, write
from weaklink.model.topology import build
from weaklink.plan.design import Request, shape_of

SCHEMA = json.loads((Path(weaklink.__file__).parent / "model/fabric.schema.json").read_text())
REQUESTS = [
    Request("fat-tree", 8, 2, 8, extra_endpoints=1),
    Request("rail", 8, 2, 4),
    Request("multi-plane", 8, 2, 8, planes=2),
    Request("dragonfly", 20, 1, 8),
    Request("dragonfly+", 20, 1, 8),
    Request("hypercube", 8, 2, 8),
]
Data = dict[str, Any]


def small() -> Fabric:
    return build(shape_of(REQUESTS[0]))


def data() -> Data:
    found: Data = json.loads("".join(lines(small())))
    return found


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.topology)
def test_what_is_written_is_read_back(tmp_path: Path, request_: Request) -> None:
    fabric = build(shape_of(request_))
    path = tmp_path / "fabric.json"
    with path.open("w", encoding="utf-8") as file:
        write(fabric, file)
    assert load(str(path)) == fabric
    Draft202012Validator(SCHEMA).validate(json.loads(path.read_text()))


def test_the_format_is_the_documented_one() -> None:
    found = data()
    assert set(found) == {"nodes", "switches", "links"}  # routing is unknown
    assert found["nodes"][0]["hcas"][0] == {"name": "mlx5_0", "rail": 0, "plane": 0, "leaf": "leaf1", "port": 1}
    assert found["switches"][0] == {"name": "leaf1", "tier": 1, "plane": 0}
    assert found["links"][0] == {
        "id": "n1/mlx5_0:p1",
        "a": {"name": "n1/mlx5_0", "port": 1},
        "b": {"name": "leaf1", "port": 1},
        "gbps": 400.0,
        "cable": "n1/mlx5_0:m1--leaf1:m1",
        "module_a": "n1/mlx5_0:m1",
        "module_b": "leaf1:m1",
    }
    assert found["nodes"][-1]["extra"] is True


def test_files_of_others_may_leave_out_what_is_not_known() -> None:
    found = data()
    for link in found["links"]:
        for key in ("cable", "module_a", "module_b"):
            del link[key]
        link["b"]["port"] = f"swp{link['b']['port']}"
    for node in found["nodes"]:
        for hca in node["hcas"]:
            for key in ("rail", "plane", "leaf", "port"):
                del hca[key]
    found["site"] = "ours"
    Draft202012Validator(SCHEMA).validate(found)
    fabric = parse(found)
    assert fabric.links[0].cable is None
    assert fabric.nodes[0].hcas[0][1:] == (0, 0, "leaf1", "swp1")


def put(path: str, value: object) -> Callable[[Data], None]:
    """An edit: the value at a path such as links.0.a.port."""

    def edit(found: Data) -> None:
        *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
        at: Any = found
        for step in way:
            at = at[step]
        at[last] = value

    return edit


def twice(key: str) -> Callable[[Data], None]:
    return lambda found: found[key].append(copy.deepcopy(found[key][0]))


@pytest.mark.parametrize(
    ("edit", "place", "words"),
    [
        (twice("nodes"), "nodes[9].name", "'n1', which nodes[0].name has"),
        (twice("switches"), "switches[", "a name of its own"),
        (twice("links"), "links[", "the id of links[0]"),
        (put("switches.0.name", "n1"), "switches[0].name", "which nodes[0].name has"),
        (put("links.0.b.port", 2), "links[1]", "port 2 of leaf1, which link n1/mlx5_0:p1 uses"),
        (put("links.1.a.name", "n1/mlx5_0"), "links[1]", "port 1 of n1/mlx5_0, which link"),
        (put("links.1.a", {"name": "n1/mlx5_0", "port": 2}), "links[1]", "port 2 of n1/mlx5_0, which link"),
        (put("links.0.b.name", "leaf99"), "links[0]", "'leaf99', no switch of this fabric"),
        (put("links.0.b.name", "n1/mlx5_1"), "links[0]", "an HCA is side a"),
        (put("links.0.a.name", "n99/mlx5_0"), "links[0]", "neither node/hca nor a switch"),
        (
            put(
                "links.17",
                {"id": "x", "a": {"name": "spine1", "port": 8}, "b": {"name": "leaf1", "port": 8}, "gbps": 1},
            ),
            "links[17]",
            "the lower tier on side a",
        ),
        (put("links.17.b", {"name": "leaf1", "port": 8}), "links[17]", "another switch on side b"),
        (put("links.0.gbps", 0), "links[0].gbps", "a rate above 0"),
        (put("links.0.gbps", "400"), "links[0].gbps", "a rate above 0"),
        (put("links.0.id", ""), "links[0].id", "a text"),
        (put("links.0.a", None), "links[0].a", "an object"),
        (put("links.0.a", {"name": "n1/mlx5_0"}), "links[0].a.port", "nothing"),
        (put("links.0", 7), "links[0]", "an object"),
        (put("links", {}), "fabric.links", "a list"),
        (put("nodes.0.name", "a/b"), "nodes[0].name", "without /"),
        (put("nodes.0.hcas.1.name", "mlx5_0"), "nodes[n1].hcas", "each HCA once"),
        (put("nodes.0.hcas.0.leaf", "leaf2"), "nodes[n1].hcas[mlx5_0]", "goes to leaf1 port 1"),
        (put("nodes.0.hcas.0.port", 4), "nodes[n1].hcas[mlx5_0]", "goes to leaf1 port 1"),
        (put("nodes.0.hcas.0.leaf", "leaf77"), "nodes[n1].hcas[mlx5_0].leaf", "a switch of this fabric"),
        (put("nodes.0.hcas.0.rail", -1), "nodes[0].hcas[0].rail", "a whole number from 0"),
        (put("switches.0.tier", 0), "switches[0].tier", "a whole number from 1"),
        (put("switches.0.name", "a/b"), "switches[0].name", "without /"),
        (put("routing", {"mode": "magic"}), "routing.mode", "source-chosen, static, adaptive"),
        (put("routing", {"mode": "static"}), "routing.next_hop", "an object by switch"),
        (put("routing", {"mode": "static", "next_hop": {"leaf9": {}}}), "routing.next_hop", "'leaf9'"),
        (put("routing", {"mode": "static", "next_hop": {"leaf1": {"x/y": "l"}}}), "routing.next_hop[leaf1]", "'x/y'"),
        (
            put("routing", {"mode": "static", "next_hop": {"leaf1": {"n1/mlx5_0": "n8/mlx5_0:p1"}}}),
            "routing.next_hop[leaf1][n1/mlx5_0]",
            "a link of leaf1",
        ),
    ],
)
def test_a_mistake_is_named_by_its_place(edit: Callable[[Data], None], place: str, words: str) -> None:
    found = data()
    parse(copy.deepcopy(found))
    edit(found)
    with pytest.raises(FabricError) as caught:
        parse(found)
    assert caught.value.place.startswith(place)
    assert words in str(caught.value)


def test_an_hca_without_a_link_has_no_leaf() -> None:
    found = data()
    del found["links"][0]
    with pytest.raises(FabricError, match="no link from n1/mlx5_0"):
        parse(found)
    put("nodes.0.hcas.0.leaf", None)(found)
    assert parse(found).nodes[0].hcas[0].leaf is None


def test_a_file_that_is_no_fabric_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    for text, words in (("{", "f.json:1"), ("[]", "wanted an object"), ("[" * 100_000, "nested too deeply")):
        path.write_text(text)
        with pytest.raises(FabricError, match=words):
            load(str(path))
    path.write_bytes(b"\xff")
    with pytest.raises(FabricError, match="readable fabric file in UTF-8"):
        load(str(path))
    with pytest.raises(FabricError, match="readable fabric file"):
        load(str(tmp_path / "none.json"))


def test_static_routing_is_kept_as_given() -> None:
    found = data()
    found["routing"] = {"mode": "static", "next_hop": {"leaf1": {"n1/mlx5_0": "n1/mlx5_0:p1"}}}
    fabric = parse(found)
    assert fabric.routing == found["routing"]
    file = io.StringIO()
    write(fabric, file)
    assert parse(json.loads(file.getvalue())) == fabric


def test_links_and_neighbours_are_found_from_both_ends() -> None:
    fabric = small()
    link = fabric.link("n1/mlx5_0:p1")
    assert fabric.links_of("n1/mlx5_0") == (link,)
    assert link in fabric.links_of("leaf1")
    assert fabric.neighbours("n1/mlx5_0") == ("leaf1",)
    spines = [switch.name for switch in fabric.switches if switch.tier == 2]
    assert fabric.neighbours("leaf1")[-len(spines) :] == tuple(spines)
    assert fabric.links_of("nobody") == ()
    assert fabric.switch("leaf1") == fabric.switches[0]
    assert fabric.switch("n1/mlx5_0") is None


def test_directed_ids_say_from_where_to_where() -> None:
    fabric = small()
    link = fabric.links[0]
    assert (link.up, link.down) == ("n1/mlx5_0:p1+", "n1/mlx5_0:p1-")
    assert fabric.direction(link.up) == ("n1/mlx5_0", "leaf1")
    assert fabric.direction(link.down) == ("leaf1", "n1/mlx5_0")
    assert (link.leaving("leaf1"), link.leaving("n1/mlx5_0")) == (link.down, link.up)
    assert (link.other("leaf1"), link.other("n1/mlx5_0")) == ("n1/mlx5_0", "leaf1")
    assert fabric.link(link.down) == link
    directed = list(fabric.directed())
    assert len(directed) == len(set(directed)) == 2 * len(fabric.links)
    for wrong in ("n1/mlx5_0:p1", "nothing+", ""):
        with pytest.raises(KeyError):
            fabric.direction(wrong)
