"""Reading and judging ibstatus."""

from __future__ import annotations

import pytest

from tests.unit.tools.cases import case_of, text_of
from tests.unit.tools.ib_reading import a_cut_never_heals, a_cut_never_invents, holds_case, judged, said, survives

XDR = text_of("023")
CONTEXT = case_of("023")["context"]


def port(name: str, state: str = "4: ACTIVE", rate: str = "400 Gb/sec (4X NDR)", layer: str = "InfiniBand") -> str:
    return (
        f"Infiniband device '{name}' port 1 status:\n\tdefault gid:\t fe80:0000:0000:0000:9c05:9103:00c4:1e60\n"
        f"\tbase lid:\t 0x41\n\tsm lid:\t\t 0x1\n\tstate:\t\t {state}\n\tphys state:\t 5: LinkUp\n\trate:\t\t {rate}\n"
        f"\tlink_layer:\t {layer}\n\n"
    )


def test_the_case_is_judged_right() -> None:
    holds_case("023")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (port("a", rate="200 Gb/sec (2X NDR)"), ("degraded", "rate-below-expected")),
        (port("a", rate="unknown"), ("unknown", "nothing-tested")),
        (port("a", state="2: INIT"), ("fail", "no-subnet-manager")),
        (port("a", state="1: DOWN"), ("fail", "link-down")),
        (port("a", state="5: ACTIVE_DEFER"), ("degraded", "link-flapping")),
        (port("a", state="unknown"), ("unknown", "output-truncated")),
        (port("a", layer="IB"), ("ok", "healthy")),
        (port("b"), ("fail", "nic-probe-failed")),
    ],
)
def test_each_state_and_rate_has_its_verdict(text: str, verdict: tuple[str, str]) -> None:
    assert said("ibstatus", text, {"compute_hcas": ["a"], "expected_rate_gbps": 400}) == verdict


def test_width_and_speed_count_where_a_link_is_demanded() -> None:
    context = {"compute_hcas": ["a"], "expected_link": "4x NDR"}
    assert said("ibstatus", port("a"), context) == ("ok", "healthy")
    assert said("ibstatus", port("a", rate="400 Gb/sec (8X HDR)"), context) == ("degraded", "rate-below-expected")


def test_the_kernels_words_are_kept_without_their_number_and_a_filler_rate_is_none() -> None:
    text = port("a", state="1: DOWN", rate="10 Gb/sec (4X SDR)").replace("5: LinkUp", "2: Polling")
    facts = judged("ibstatus", text).facts
    assert (facts["state"], facts["phys_state"]) == ({"a/1": "DOWN"}, {"a/1": "Polling"})
    assert facts["rate_gbps"] == {"a/1": None}


def test_no_device_at_all_is_the_scripts_failure() -> None:
    text = "Fatal error:  device '*': sys files not found (/sys/class/infiniband/*/ports)\n"
    assert said("ibstatus", text, {"compute_hcas": ["a"]}) == ("fail", "nic-probe-failed")
    assert said("ibstatus", text, {}) == ("unknown", "test-did-not-run")


def test_a_cut_neither_heals_nor_invents_and_damage_is_survived() -> None:
    bad = XDR.replace("800 Gb/sec (4X XDR)", "400 Gb/sec (4X NDR)")
    a_cut_never_heals("ibstatus", bad, CONTEXT)
    a_cut_never_invents("ibstatus", XDR, CONTEXT, "rate_gbps", "state")
    survives("ibstatus", XDR, CONTEXT)
