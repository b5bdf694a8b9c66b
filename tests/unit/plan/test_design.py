"""What a design says of what is asked, and what is refused."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest
import weaklink
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from weaklink.plan.design import Design, PlanError, Request, as_dict, design
from weaklink.plan.request import TOPOLOGIES

SCHEMA = json.loads((Path(weaklink.__file__).parent / "plan/plan.schema.json").read_text())
SIZES = {topology: Request(topology, 64, 8, 64) for topology in TOPOLOGIES}


def change(topology: str, **other: Any) -> Request:
    return SIZES[topology]._replace(**other)


@pytest.mark.parametrize(
    ("request_", "key", "words"),
    [
        (Request("torus", 64, 8, 64), "topology", "fat-tree | rail"),
        (change("fat-tree", nodes=0), "nodes", "from 1"),
        (change("fat-tree", nodes=-3), "nodes", "from 1"),
        (change("fat-tree", gpus_per_node=0), "gpus_per_node", "from 1"),
        (change("fat-tree", radix=63), "radix", "even"),
        (change("fat-tree", radix=2), "radix", "from 4"),
        (change("fat-tree", radix=0), "radix", "from 4"),
        (change("fat-tree", radix=1 << 20), "radix", "to 1024"),
        (change("fat-tree", taper=0.5), "taper", "from 1"),
        (change("fat-tree", taper=math.nan), "taper", "from 1"),
        (change("fat-tree", taper=math.inf), "taper", "less than the 64"),
        (change("fat-tree", extra_endpoints=-1), "extra_endpoints", "0 or more"),
        (change("fat-tree", rate_gbps=0), "rate_gbps", "above 0"),
        (change("fat-tree", rate_gbps=math.inf), "rate_gbps", "above 0"),
        (change("fat-tree", planes=0), "planes", "from 1"),
        (change("multi-plane", planes=3), "planes", "a divisor of the 8 GPUs"),
        (change("multi-plane", planes=3, hcas_per_gpu=2), "planes", "a divisor of the 16 HCAs"),
        (change("multi-plane", planes=2, planes_per_gpu=3), "planes_per_gpu", "at most the 2 planes"),
        (change("multi-plane", planes=2, planes_per_gpu=0), "planes_per_gpu", "from 1"),
        (change("multi-plane", planes=16, planes_per_gpu=1), "planes_per_gpu", "as many ports of a node"),
        (change("multi-plane", planes=2, planes_per_gpu=1, hcas_per_gpu=2), "planes_per_gpu", "several HCAs"),
        (change("multi-plane", planes=2, spines=9), "spines", "a multiple of the 2 planes"),
        (change("fat-tree", spines=0), "spines", "from 1"),
        (change("fat-tree", spines=33), "spines", "at most 32"),
        (change("fat-tree", nodes=512, spines=16), "spines", "none: 128 leaves"),
        (change("fat-tree", nodes=8193), "nodes", "at most 65536 end points"),
        (change("fat-tree", nodes=10**15), "nodes", "at most 65536 end points"),
        (change("rail", nodes=8193), "nodes", "at most 65536 end points"),
        (change("rail", nodes=2049, su_nodes=8), "nodes", "at most 16384 end points"),
        (change("rail", su_nodes=64), "su_nodes", "less than the 64 ports"),
        (change("rail", su_nodes=40), "su_nodes", "too few at 1:1"),
        (change("rail", su_nodes=0), "su_nodes", "from 1"),
        (change("fat-tree", su_nodes=32), "su_nodes", "none but with rail"),
        (change("dragonfly", nodes=32833), "nodes", "at most 262656 end points"),
        (change("dragonfly+", nodes=131201), "nodes", "at most 1049600 end points"),
        (change("dragonfly", taper=2), "taper", "1 with dragonfly"),
        (change("dragonfly", planes=2), "planes", "none with dragonfly"),
        (change("dragonfly+", spines=4), "spines", "none with dragonfly+"),
        (change("hypercube", nodes=96), "nodes", "64 or 128"),
        (change("hypercube", radix=12), "radix", "at least 14"),
        (change("hypercube", taper=2), "taper", "1 with hypercube"),
    ],
)
def test_what_cannot_be_is_refused_by_key(request_: Request, key: str, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        design(request_)
    assert caught.value.key == key
    assert words in caught.value.wanted
    assert str(caught.value) == f"{key}: found {caught.value.found}, wanted {caught.value.wanted}"


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_design_is_as_the_schema_says(topology: str) -> None:
    value = json.loads(json.dumps(as_dict(design(SIZES[topology]))))
    Draft202012Validator(SCHEMA).validate(value)
    assert value["cost"] is None
    assert value["topology"] == topology
    assert set(SCHEMA["required"]) <= set(value) == set(SCHEMA["properties"])


@settings(max_examples=200, deadline=None)
@given(
    st.builds(
        Request,
        st.sampled_from(TOPOLOGIES),
        st.integers(-1, 3000),
        st.integers(-1, 9),
        st.integers(-2, 130),
        spines=st.none() | st.integers(-1, 70),
        planes=st.integers(-1, 9),
        taper=st.floats(),
        extra_endpoints=st.integers(-1, 9),
        su_nodes=st.none() | st.integers(-1, 70),
        hcas_per_gpu=st.integers(-1, 3),
    )
)
def test_any_request_is_designed_or_refused(request_: Request) -> None:
    try:
        found = design(request_)
    except PlanError:
        return
    Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(as_dict(found))))
    assert found.endpoints <= found.max_endpoints


def test_any_size_is_designed_at_once() -> None:
    begun = time.perf_counter()
    assert design(Request("hypercube", 2**40, 8, 64)).switches == 2**40
    assert design(Request("dragonfly", 10**9, 1, 1024)).leaf == 7630 * 512
    assert design(Request("fat-tree", 1024**3 // 4, 1, 1024)).switches == 5 * 1024**2 // 4
    assert time.perf_counter() - begun < 30


def test_the_largest_size_can_be_designed_and_one_more_cannot() -> None:
    for radix in (4, 8, 12, 64):
        most = design(Request("fat-tree", radix * radix, 1, radix)).max_endpoints
        assert most == radix**3 // 4
        found = design(Request("fat-tree", most, 1, radix))
        assert (found.tiers, found.max_endpoints, found.switches) == (3, most, 5 * radix * radix // 4)
        with pytest.raises(PlanError):
            design(Request("fat-tree", most + 1, 1, radix))


def test_two_tiers_as_long_as_a_spine_reaches_every_leaf() -> None:
    assert design(Request("fat-tree", 2048, 1, 64)).tiers == 2
    assert design(Request("fat-tree", 2049, 1, 64)).tiers == 3


def test_one_leaf_needs_no_spine() -> None:
    found = design(Request("fat-tree", 4, 8, 64))
    assert (found.tiers, found.leaf, found.spine, found.switches) == (1, 1, None, 1)
    assert (found.diameter, found.mean_hops, found.inter_switch_links) == (0, 0.0, 0)
    assert found.bisection_gbps == 16 * 400


def warned(found: Design, words: str) -> bool:
    return any(words in text for text in found.warnings)


def test_what_one_switch_would_hold_is_said() -> None:
    assert warned(design(Request("fat-tree", 8, 8, 64)), "one switch of 64 ports takes all")
    assert not warned(design(Request("fat-tree", 9, 8, 64)), "one switch")


def test_forced_spines_say_what_they_cost() -> None:
    found = design(Request("fat-tree", 95, 8, 64, spines=12, extra_endpoints=4))
    assert found.oversubscription == pytest.approx(4 / 3)  # 24 of 32 links up can be spread evenly over 12 spines
    assert found.inter_switch_links == 24 * 24
    assert warned(found, "16 spines make it 1:1")
    assert not design(Request("fat-tree", 95, 8, 64, spines=16, extra_endpoints=4)).warnings


def test_more_spines_than_needed_take_no_more_links_than_needed() -> None:
    found = design(Request("fat-tree", 128, 8, 64, spines=32))
    assert (found.spine, found.oversubscription, found.inter_switch_links) == (32, 1.0, 1024)
    # 8 leaves of 16 end points and 32 free ports: 2 links to each of 8 spines are enough.
    found = design(Request("rail", 16, 8, 64, su_nodes=16, spines=8))
    assert (found.leaf, found.oversubscription, found.inter_switch_links) == (8, 1.0, 128)


def test_the_spines_of_a_design_can_be_asked_for() -> None:
    for request_ in (Request("fat-tree", 512, 8, 64), Request("rail", 288, 8, 144)):
        free = design(request_)
        assert (
            design(request_._replace(spines=free.spine))._replace(
                request=request_, minimum=free.minimum, warnings=free.warnings
            )
            == free
        )


def test_a_taper_asked_for_is_kept() -> None:
    found = design(Request("fat-tree", 128, 8, 64, taper=3))
    assert found.leaf == math.ceil(1024 / 48)
    assert 1 < found.oversubscription <= 3
    assert design(Request("dragonfly+", 512, 8, 64, taper=2)).oversubscription == 2.0


def test_units_of_another_size_have_leaves_of_their_own() -> None:
    found = design(Request("rail", 64, 8, 64, su_nodes=16))
    assert found.leaf == 4 * 8
    assert found.oversubscription == 1.0


def test_groups_say_what_two_of_them_share() -> None:
    found = design(Request("dragonfly", 1000, 8, 64))
    assert warned(found, "groups are built whole: 16 x 512 end points, 192 ports stay free")
    assert warned(found, "two groups of 512 end points have 34 links between them")
    assert found.bisection_gbps < 4000 * 400


def test_a_hypercube_is_far_from_non_blocking() -> None:
    found = design(Request("hypercube", 128, 8, 64))
    assert found.oversubscription == 8.0
    assert found.bisection_gbps == 64 * 400
    assert found.node_links == 1024
    assert design(Request("hypercube", 8, 3, 10)).max_endpoints == 3 * 2**7


def test_the_planes_of_a_node_are_said() -> None:
    assert warned(design(change("multi-plane", planes=2)), "every GPU has a port in each of the 2 planes")
    own = design(change("multi-plane", planes=8))
    assert warned(own, "each of the 8 GPUs of a node is in one plane")
    assert (own.endpoints, own.node_links) == (512, 512)
    one = design(change("multi-plane", nodes=1024, planes=4, planes_per_gpu=1))  # four times two full tiers
    assert (one.endpoints, one.node_links, one.switches, one.inter_switch_links) == (8192, 8192, 384, 8192)
    assert one.max_endpoints == 8192
    half = design(change("multi-plane", planes=4, planes_per_gpu=2))
    assert warned(half, "each GPU has a port in 2 of the 4 planes")
    assert (half.endpoints, half.node_links) == (512, 1024)
    two = design(change("multi-plane", planes=2, hcas_per_gpu=2))
    assert (two.endpoints, two.node_links) == (1024, 1024)
