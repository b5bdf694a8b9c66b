"""Topologies side by side: as a table, as JSON, as a picture; one that cannot do the size says why."""

from __future__ import annotations

import io

import pytest
from matplotlib import image
from weaklink.cli import plan_print
from weaklink.plan import compare, picture, prices
from weaklink.plan.request import TOPOLOGIES, Request

SIZE = Request("fat-tree", nodes=128, gpus_per_node=8, radix=64)
TOO_MANY = SIZE._replace(nodes=40_000)


def test_each_topology_is_designed_or_says_why_not() -> None:
    for size in (SIZE, TOO_MANY):
        options = compare.compare(size, TOPOLOGIES, None)
        assert [option.topology for option in options] == list(TOPOLOGIES)
        for option in options:
            assert (option.design is None) == bool(option.reason)
            assert option.cost is None


def test_a_size_for_some_alone_lists_the_others_with_their_reason() -> None:
    options = {option.topology: option for option in compare.compare(TOO_MANY, TOPOLOGIES, None)}
    assert options["fat-tree"].design is None, "320,000 end points are more than k^3/4 = 65,536"
    assert options["dragonfly+"].design is not None
    text = plan_print.comparison(list(options.values()))
    assert "cannot do this size:\n  fat-tree: " in text
    done = compare.as_json(options.values())
    assert {entry["topology"] for entry in done["cannot"]} | {entry["topology"] for entry in done["options"]} == set(
        TOPOLOGIES
    )
    assert all(entry["reason"] for entry in done["cannot"])


def test_planes_are_one_a_gpu_so_that_all_have_as_many_ports_a_gpu() -> None:
    options = {option.topology: option.design for option in compare.compare(SIZE, TOPOLOGIES, None)}
    planes = options["multi-plane"]
    assert planes is not None
    assert planes.planes == 8
    for made in options.values():
        assert made is None or made.node_links == 1024
    asked = compare.compare(SIZE._replace(planes=2), ["multi-plane", "fat-tree"], None)
    assert [option.design.planes for option in asked if option.design] == [2, 1]


def test_what_a_topology_lacks_is_not_asked_of_it() -> None:
    asked = SIZE._replace(spines=16, taper=2, su_nodes=32)
    options = {option.topology: option.design for option in compare.compare(asked, TOPOLOGIES, None)}
    assert [name for name, made in options.items() if made is None] == []
    requests = {name: made.request for name, made in options.items() if made is not None}
    assert [name for name, request in requests.items() if request.spines == 16] == ["fat-tree", "rail", "multi-plane"]
    assert [name for name, request in requests.items() if request.taper == 1] == ["dragonfly", "hypercube"]
    assert [name for name, request in requests.items() if request.su_nodes == 32] == ["rail"]


def test_cost_stands_beside_each_design() -> None:
    example = prices.parse("example", prices.example_text())
    done = compare.as_json(compare.compare(SIZE, TOPOLOGIES, example))
    assert done["options"]
    for entry in done["options"]:
        assert entry["cost"]["compute_total"] > 0
        assert entry["cost"]["switches"] == entry["switches"] * example.compute.switch


@pytest.mark.parametrize("priced", [True, False])
def test_the_table_has_a_row_a_topology_in_columns(priced: bool) -> None:
    example = prices.parse("example", prices.example_text()) if priced else None
    lines = plan_print.comparison(compare.compare(SIZE, ["fat-tree", "rail"], example)).splitlines()
    rows = [line for line in lines if line.startswith(("fat-tree ", "rail "))]
    assert [row.split()[1] for row in rows] == ["48", "48"]
    assert len({len(row) for row in rows}) == 1, "columns are aligned"
    assert any("EXAMPLE PRICES, not a quotation" in line for line in lines) is priced


@pytest.mark.parametrize("size", [SIZE, TOO_MANY])
@pytest.mark.parametrize("priced", [True, False])
def test_the_picture_is_a_png_of_one_bar_a_topology_and_a_panel_more_with_prices(size: Request, priced: bool) -> None:
    example = prices.parse("example", prices.example_text())._replace(storage=None, management=None) if priced else None
    data = picture.draw(compare.compare(size, TOPOLOGIES, example), "title")
    assert data.startswith(b"\x89PNG\r\n")
    pixels = image.imread(io.BytesIO(data), format="png")
    height, width = pixels.shape[:2]
    assert width == pytest.approx(150 * (2.7 * (6 if priced else 5) + 1.2), abs=2)
    assert 150 < height < 2000
    border = [pixels[:3, :, :3], pixels[-3:, :, :3], pixels[:, :3, :3], pixels[:, -3:, :3]]
    assert all((part == 1.0).all() for part in border), "nothing is cut off at the border"


def test_a_picture_of_nothing_is_refused() -> None:
    nothing = [compare.Option("fat-tree", None, None, "too many end points")]
    with pytest.raises(ValueError, match="nothing to draw"):
        picture.draw(nothing, "title")
