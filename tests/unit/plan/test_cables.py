"""The list of cables: every link once, no port twice, lengths as assumed."""

from __future__ import annotations

import csv
import io
import json

import pytest
from weaklink.model.topology import build
from weaklink.plan.cables import (
    LENGTH_CLASSES,
    Cable,
    Floor,
    cables,
    length_class,
    summary,
    write_csv,
    write_jsonl,
    write_table,
)
from weaklink.plan.design import Request, design, shape_of

REQUESTS = [
    Request("fat-tree", 31, 8, 64, extra_endpoints=4),
    Request("fat-tree", 160, 8, 32),
    Request("rail", 64, 8, 64),
    Request("multi-plane", 32, 8, 64, planes=2),
    Request("dragonfly", 60, 4, 12),
    Request("dragonfly+", 60, 4, 12),
    Request("hypercube", 32, 8, 16),
]


def listed(request: Request, floor: Floor | None = None) -> list[Cable]:
    return list(cables(build(shape_of(request)), floor))


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: f"{request.topology}-{request.nodes}")
def test_every_link_is_listed_once_and_no_port_twice(request_: Request) -> None:
    lines = listed(request_)
    found = design(request_)
    assert len(lines) == found.node_links + found.inter_switch_links
    ports = [(line.b, "", line.b_port) for line in lines] + [(line.a, line.a_hca, line.a_port) for line in lines]
    assert len(ports) == len(set(ports)) == 2 * len(lines)
    assert len({line.link for line in lines}) == len(lines)
    hosts = [line for line in lines if line.tier == "node-leaf"]
    assert len(hosts) == found.node_links
    assert all(line.a_hca for line in hosts)
    assert not any(line.a_hca for line in lines if line.tier != "node-leaf")


def test_two_links_between_the_same_modules_share_a_cable() -> None:
    lines = listed(Request("fat-tree", 64, 8, 64))  # 4 links from each leaf to each spine
    up = [line for line in lines if line.tier == "leaf-spine"]
    assert len({line.cable for line in up}) == len(up) // 2
    assert {(line.a, line.a_module, line.b, line.b_module) for line in up[:2]} == {
        ("leaf1", "leaf1:m17", "spine1", "spine1:m1")
    }
    assert sum(summary(lines)["leaf-spine"].values()) == 256
    hosts = [line for line in lines if line.tier == "node-leaf"]
    assert len({line.cable for line in hosts}) == len(hosts)
    assert len({line.b_module for line in hosts}) == len(hosts) // 2


def test_lengths_follow_from_where_nodes_and_switches_stand() -> None:
    # 4 nodes a rack and 8 HCAs: a leaf of 32 ends is the rack's own; the middle of 16 leaves is rack 9 of 16.
    lines = listed(Request("fat-tree", 64, 8, 64))
    hosts = [line for line in lines if line.tier == "node-leaf"]
    assert {line.length for line in hosts} == {"in-rack"}
    first = next(line for line in lines if line.tier == "leaf-spine")
    assert (first.a_rack, first.b_rack) == ("row1-rack1", "row1-rack9")
    assert first.metres == pytest.approx(8 * 0.6 + 5.0)
    assert first.length == "in-row"
    rows = listed(Request("fat-tree", 64, 8, 64), Floor(racks_per_row=4))
    assert {line.length for line in rows if line.tier == "leaf-spine"} == {"in-rack", "in-row"}
    far = listed(Request("fat-tree", 64, 8, 64), Floor(racks_per_row=1, row_pitch_m=10.0))
    assert {line.length for line in far if line.tier == "leaf-spine"} >= {"in-rack", "in-row", "cross-row", "hall"}


def test_the_leaves_of_a_rail_stand_among_their_nodes() -> None:
    hosts = [line for line in listed(Request("rail", 64, 8, 64)) if line.tier == "node-leaf"]
    assert {line.b_rack for line in hosts} == {"row1-rack5", "row1-rack13"}
    assert {line.length for line in hosts} == {"in-rack", "in-row"}


def test_a_length_belongs_to_the_first_class_that_is_long_enough() -> None:
    assert [length_class(metres) for metres in (0.5, 3.0, 3.1, 20.0, 20.1, 50.1, 9999.0)] == [
        "in-rack", "in-rack", "in-row", "in-row", "cross-row", "hall", "hall",
    ]  # fmt: skip
    assert [found.metres for found in LENGTH_CLASSES] == sorted(found.metres for found in LENGTH_CLASSES)


def test_csv_json_lines_and_table_say_the_same() -> None:
    lines = listed(REQUESTS[0])
    texts = []
    for write in (write_csv, write_jsonl, write_table):
        file = io.StringIO()
        write(iter(lines), file)
        texts.append(file.getvalue())
    rows = list(csv.DictReader(io.StringIO(texts[0])))
    objects = [json.loads(line) for line in texts[1].splitlines()]
    assert objects == [line._asdict() for line in lines]
    assert rows == [{key: str(value) for key, value in entry.items()} for entry in objects]
    table = texts[2].splitlines()
    assert len(table) == len(lines) + 2
    assert "n1/mlx5_0 port 1" in table[1]
    assert "leaf1 port 1" in table[1]
    assert table[-1].startswith("lengths are assumed: in-rack up to 3 m")


def test_writing_does_not_wait_for_the_whole_list() -> None:
    seen = []

    class File(io.StringIO):
        def write(self, text: str) -> int:
            seen.append(text)
            return super().write(text)

    def endless() -> object:
        line = listed(REQUESTS[0])[0]
        for number in range(5):
            assert len(seen) >= number, "nothing was written before the next line was asked for"
            yield line

    for write in (write_csv, write_table):
        seen.clear()
        write(endless(), File())  # type: ignore[arg-type]
        assert len(seen) >= 5
