"""The tables of published reference architectures, row by row: the planner must say what they print."""

from typing import NamedTuple, Optional

import pytest
from weaklink.plan.design import Design, PlanError, Request, design

H100 = "DGX SuperPOD H100 reference architecture, network fabrics"
B200 = "DGX SuperPOD B200 reference architecture, network fabrics"
B300_XDR = "DGX SuperPOD B300 XDR reference architecture, network fabrics"
B300 = "DGX SuperPOD B300 reference architecture, network fabrics"
DEEPSEEK = "DeepSeek-V3 on scaling challenges and hardware (arXiv 2505.09343), table of topologies"


class Row(NamedTuple):
    """A printed row: scalable units, nodes, GPUs as printed, switches by tier, cables; bare minimum of spines."""

    units: int
    nodes: int
    printed_gpus: int
    leaf: int
    spine: int
    core: Optional[int]
    node_leaf: int
    minimum: Optional[int] = None


H100_ROWS = (  # node-leaf: compute and the manager's node, 8 * nodes + 4
    Row(1, 31, 248, 8, 4, None, 252),
    Row(2, 63, 504, 16, 8, None, 508),
    Row(3, 95, 760, 24, 16, None, 764, minimum=12),
    Row(4, 127, 1016, 32, 16, None, 1020),
)
B200_ROWS = (
    Row(2, 64, 512, 16, 8, None, 512),
    Row(4, 128, 1024, 32, 16, None, 1024),
    Row(8, 256, 2048, 64, 32, None, 2048),
    Row(16, 512, 4096, 128, 128, 64, 4096),
    Row(32, 1024, 8192, 256, 256, 128, 8192),
    Row(64, 2048, 16384, 512, 512, 256, 16384),
)
B300_XDR_ROWS = (
    Row(1, 72, 576, 8, 4, None, 576),
    Row(2, 144, 1152, 16, 8, None, 1152),
    Row(4, 288, 2304, 32, 18, None, 2304, minimum=16),
    Row(8, 576, 4608, 64, 36, None, 4608, minimum=32),
    Row(18, 1296, 9216, 144, 72, None, 10368),  # 9216 is what the table prints: see the test below
)
B300_ROWS = (
    Row(1, 64, 512, 16, 8, None, 512),
    Row(2, 128, 1024, 32, 16, None, 1024),
    Row(4, 256, 2048, 64, 32, None, 2048),
    Row(8, 512, 4096, 128, 64, None, 4096),
    Row(16, 1024, 8192, 256, 128, None, 8192),
)
GPUS = 8


def same(found: Design, row: Row, source: str) -> None:
    counts = (found.leaf, found.spine, found.core)
    assert counts == (row.leaf, row.spine, row.core), source
    assert found.switches == row.leaf + row.spine + (row.core or 0), source
    assert found.tiers == (3 if row.core else 2), source
    assert found.oversubscription == 1.0, source
    assert found.minimum == ({"spine": row.minimum} if row.minimum else {}), source


@pytest.mark.parametrize("topology", ["fat-tree", "rail"])
@pytest.mark.parametrize("row", H100_ROWS, ids=lambda row: f"{row.units}su")
def test_h100_rows_with_one_port_group_for_the_manager(row: Row, topology: str) -> None:
    found = design(Request(topology, row.nodes, GPUS, 64, extra_endpoints=4))
    same(found, row, H100)
    assert found.gpus == row.printed_gpus
    assert found.endpoints == found.node_links == row.node_leaf
    assert found.links_by_tier == {"node-leaf": row.node_leaf, "leaf-spine": row.leaf * 32}


@pytest.mark.parametrize("topology", ["fat-tree", "rail"])
@pytest.mark.parametrize("row", B200_ROWS, ids=lambda row: f"{row.units}su")
def test_b200_rows_with_a_third_tier_from_16_units(row: Row, topology: str) -> None:
    found = design(Request(topology, row.nodes, GPUS, 64))
    same(found, row, B200)
    assert found.gpus == found.node_links == row.printed_gpus
    assert set(found.links_by_tier.values()) == {row.node_leaf}
    assert ("spine-core" in found.links_by_tier) == (row.core is not None)


@pytest.mark.parametrize("row", B300_XDR_ROWS, ids=lambda row: f"{row.units}su")
def test_b300_xdr_rows_on_144_ports(row: Row) -> None:
    found = design(Request("rail", row.nodes, GPUS, 144, rate_gbps=800))
    same(found, row, B300_XDR)
    assert found.links_by_tier == {"node-leaf": row.node_leaf, "leaf-spine": row.node_leaf}


def test_the_only_misprint_of_the_tables_is_the_gpus_of_18_xdr_units() -> None:
    rows = (*H100_ROWS, *B200_ROWS, *B300_XDR_ROWS, *B300_ROWS)
    wrong = [row for row in rows if row.printed_gpus != row.nodes * GPUS]
    assert wrong == [B300_XDR_ROWS[-1]]
    found = design(Request("rail", wrong[0].nodes, GPUS, 144))
    assert (found.gpus, wrong[0].printed_gpus) == (10368, 9216)
    assert found.node_links == wrong[0].node_leaf == 10368  # the cables of the same row agree with us
    assert any("prints 9216 GPUs, a misprint" in text for text in found.warnings)
    others = [design(Request("rail", row.nodes, GPUS, 144)) for row in B300_XDR_ROWS[:-1]]
    assert not any("misprint" in text for other in others for text in other.warnings)


@pytest.mark.parametrize("topology", ["multi-plane", "rail"])
@pytest.mark.parametrize("row", B300_ROWS, ids=lambda row: f"{row.units}su")
def test_b300_rows_of_64_nodes_are_two_planes_of_128_ports(row: Row, topology: str) -> None:
    found = design(Request(topology, row.nodes, GPUS, 128, planes=2))
    same(found, row, B300)
    assert (found.leaf, found.spine) == (2 * found.gpus // 64, found.gpus // 64)  # a plane: N/64 and half of it
    assert found.endpoints == row.printed_gpus
    # The table counts a cable of two 400G links once.
    assert found.node_links == 2 * row.node_leaf


def test_b300_rows_of_8_and_16_units_do_not_fit_one_plane_of_64_ports() -> None:
    for row in B300_ROWS[-2:]:
        assert design(Request("fat-tree", row.nodes, GPUS, 64)).tiers == 3


def counts(found: Design) -> tuple[int, int, int]:
    return found.endpoints, found.switches, found.inter_switch_links


def test_deepseek_two_tiers_of_64_ports_full() -> None:
    found = design(Request("fat-tree", 256, GPUS, 64))
    assert counts(found) == (2048, 96, 2048), DEEPSEEK
    assert found.max_endpoints == 2048
    assert (found.diameter, found.mean_hops) == (2, 2.0)


def test_deepseek_eight_planes_of_two_tiers_full() -> None:
    found = design(Request("multi-plane", 2048, GPUS, 64, planes=8))
    assert counts(found) == (16384, 768, 16384), DEEPSEEK
    assert found.max_endpoints == 16384
    with pytest.raises(PlanError, match="at most"):
        design(Request("multi-plane", 8192 * 8 + 1, GPUS, 64, planes=8))


def test_deepseek_three_tiers_of_64_ports_full() -> None:
    found = design(Request("fat-tree", 8192, GPUS, 64))
    assert counts(found) == (65536, 5120, 131072), DEEPSEEK
    assert found.max_endpoints == 65536
    assert (found.leaf, found.spine, found.core) == (2048, 2048, 1024)
    with pytest.raises(PlanError, match="at most 65536 end points"):
        design(Request("fat-tree", 8193, GPUS, 64))


def test_deepseek_dragonfly_of_511_groups() -> None:
    found = design(Request("dragonfly", 261632 // GPUS, GPUS, 64))
    assert counts(found) == (261632, 16352, 384272), DEEPSEEK
    assert found.leaf == 16352
    assert (found.spine, found.core, found.diameter) == (None, None, 3)
    assert found.max_endpoints == 512 * 513


def test_dragonfly_plus_holds_a_million_on_64_ports() -> None:
    """Shpiner et al., Dragonfly+ (HiPINEB 2017): (k/2)^2 ((k/2)^2 + 1) hosts."""
    found = design(Request("dragonfly+", 1049600 // GPUS, GPUS, 64))
    assert found.max_endpoints == found.endpoints == 1049600
    assert found.switches == 1025 * 64
    assert found.links_by_tier["global"] == 1025 * 1024 // 2
    assert found.oversubscription == 1.0
    with pytest.raises(PlanError, match="at most 1049600 end points"):
        design(Request("dragonfly+", 1049601, 1, 64))


@pytest.mark.parametrize(
    ("bits", "nodes", "links", "mean", "bisection"), [(7, 128, 448, 3.528, 64), (11, 2048, 11264, 5.503, 1024)]
)
def test_hypercube_formulas(bits: int, nodes: int, links: int, mean: float, bisection: int) -> None:
    """Textbook: d * 2^(d-1) links, diameter d, mean d/2 * 2^d / (2^d - 1), bisection 2^(d-1)."""
    found = design(Request("hypercube", nodes, 1, 64))
    assert (found.switches, found.inter_switch_links, found.diameter) == (nodes, links, bits)
    assert found.mean_hops == pytest.approx(mean, abs=5e-4)
    assert found.bisection_gbps == bisection * 400


def test_1024_gpus_on_4_spines_are_4_to_1_and_16_are_needed() -> None:
    """A widely read guide calls 32 leaves and 4 spines non-blocking; the B200 and H100 tables have 16."""
    found = design(Request("fat-tree", 128, GPUS, 64, spines=4))
    assert (found.leaf, found.spine, found.inter_switch_links) == (32, 4, 256)
    assert found.oversubscription == 4.0
    assert found.bisection_gbps == 1024 / 2 / 4 * 400
    text = " ".join(found.warnings)
    assert "4:1" in text
    assert "16 spines make it 1:1" in text
    assert "one of only 32 ports would have none left for links up" in text
    with pytest.raises(PlanError, match="has no link at all"):
        design(Request("fat-tree", 128, GPUS, 32, spines=4))
