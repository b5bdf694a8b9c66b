"""Advice by size: right at the borders, each line with a source and its class, no claim of the guide passed on."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.plan import advice
from weaklink.plan.advice import Size, advise

B200 = Size(nodes=128, gpus_per_node=8, radix=64)


def text_of(size: Size, topic: str, transport: str | None = None) -> str:
    return "\n".join(line.text for line in advise(size, transport) if line.topic == topic)


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        (8, "one switch has enough ports"),
        (9, "two tiers (leaf and spine) hold up to k^2/2 = 2,048"),
        (256, "two tiers (leaf and spine) hold up to k^2/2 = 2,048"),
        (257, "more than two tiers hold (k^2/2 = 2,048); a third tier holds up to k^3/4 = 65,536"),
        (8192, "a third tier holds up to k^3/4 = 65,536"),
        (8193, "more than three tiers hold (k^3/4 = 65,536)"),
    ],
)
def test_the_tiers_end_where_they_end(nodes: int, says: str) -> None:
    assert says in text_of(B200._replace(nodes=nodes), "tiers")


def test_a_port_of_the_fabrics_manager_counts() -> None:
    full = B200._replace(nodes=256)
    assert "no third tier" in text_of(full, "tiers")
    assert "more than two tiers hold" in text_of(full._replace(extra_endpoints=1), "tiers")


@pytest.mark.parametrize(("nodes", "offered"), [(257, True), (2048, True), (2049, False)])
def test_planes_are_offered_while_one_of_two_tiers_holds_its_share(nodes: int, offered: bool) -> None:
    assert ("8 planes of two tiers" in text_of(B200._replace(nodes=nodes), "tiers")) is offered


def test_one_hca_a_gpu_and_no_source_for_two() -> None:
    lines = [line for line in advise(B200) if line.topic == "HCAs"]
    assert lines[0].text.startswith("one HCA a GPU: 1,024 for 1,024 GPUs")
    assert lines[0].evidence == "read"
    doubled = next(line for line in lines if "two HCAs" in line.text)
    assert (doubled.evidence, doubled.source, doubled.corrects) == ("no source", "none found", True)


@pytest.mark.parametrize(("nodes", "ratio", "count"), [(8, 64, 1), (64, 64, 8), (65, 128, 5), (512, 128, 32)])
def test_management_nodes_follow_the_guides_ratio_and_it_is_called_unsourced(
    nodes: int, ratio: int, count: int
) -> None:
    lines = [line for line in advise(B200._replace(nodes=nodes)) if line.topic == "management"]
    assert f"one management node per {ratio} GPUs would be {count} here" in lines[0].text
    assert lines[0].evidence == "no source"
    assert "5 management servers for 127 nodes" in lines[1].text


@pytest.mark.parametrize(
    "claim",
    ["not limited to 128 GPUs", "no NDR800", "do not end at 2,000 GPUs", "none of their tables", "hypercube"],
)
def test_wrong_claims_of_the_guide_are_marked_as_corrected(claim: str) -> None:
    found = [line for line in advise(B200) if claim in line.text]
    assert found
    assert all(line.corrects for line in found)


def test_each_mtu_is_its_payload_and_96_bytes() -> None:
    text = text_of(B200, "RoCE")
    for mtu, needed in ((1024, 1120), (2048, 2144), (4096, 4192)):
        assert f"{mtu} needs {needed}" in text


def test_a_transport_narrows_the_advice() -> None:
    def topics(transport: str | None) -> set[str]:
        return {line.topic for line in advise(B200, transport)}

    assert topics("roce") == topics(None) - {"InfiniBand", "InfiniBand or RoCE"}
    assert topics("infiniband") == topics(None) - {"RoCE", "InfiniBand or RoCE"}


@settings(max_examples=80, deadline=None)
@given(
    nodes=st.integers(1, 10**6),
    gpus=st.integers(1, 1024),
    radix=st.integers(2, 4096),
    hcas=st.integers(1, 16),
    extra=st.integers(0, 10**6),
)
def test_every_line_of_every_size_has_a_source_and_a_class(
    nodes: int, gpus: int, radix: int, hcas: int, extra: int
) -> None:
    lines = advise(Size(nodes, gpus, radix, hcas, extra))
    for line in lines:
        assert line.evidence in advice.EVIDENCE
        assert line.source
        assert (line.source == "none found") == (line.evidence == "no source")
        assert set(advice.as_dict(line)) == {"topic", "text", "evidence", "source", "corrects_guide"}
    topics = [topic for topic, _ in itertools.groupby(line.topic for line in lines)]
    assert len(topics) == len(set(topics)), "a topic stands in one place"
