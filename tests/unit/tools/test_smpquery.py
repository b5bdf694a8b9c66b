"""Reading and judging smpquery."""

from __future__ import annotations

import pytest

from tests.unit.tools.ib_reading import a_cut_never_heals, data, judged, reader, said, survives

PORT = data("pi")
CONTEXT = {"expected_link": "4x SDR", "expected_active_mtu": 2048}
NDR = PORT.replace("LinkSpeedExtActive:..............No Extended Speed", "LinkSpeedExtActive:..............106.25 Gbps")


def test_a_real_port_is_read() -> None:
    found = judged("smpquery", PORT, CONTEXT)
    assert reader("smpquery").recognise(PORT) == 96
    assert (found.verdict, found.facts["lid"], found.facts["link"]) == ("ok", 2, {"2/1": "4x SDR"})
    assert (found.facts["state"], found.facts["mtu"]) == ({"2/1": "Active"}, {"2/1": 2048})


@pytest.mark.parametrize(
    ("text", "context", "verdict"),
    [
        (PORT, {"expected_link": "4x QDR"}, ("degraded", "rate-below-expected")),
        (NDR, {"expected_rate_gbps": 400}, ("ok", "healthy")),
        (
            NDR.replace("Active:.................4X", "Active:.................2X"),
            {"expected_link": "4x NDR"},
            ("degraded", "rate-below-expected"),
        ),
        (PORT, {"expected_active_mtu": 4096}, ("degraded", "mtu-too-small")),
        (
            PORT.replace("LinkState:.......................Active", "LinkState:.......................Initialize"),
            {},
            ("fail", "no-subnet-manager"),
        ),
        (
            PORT.replace("LinkState:.......................Active", "LinkState:.......................Down"),
            CONTEXT,
            ("fail", "link-down"),
        ),
        (
            PORT.replace("LinkState:.......................Active", "LinkState:.......................Down"),
            {},
            ("unknown", "link-down"),
        ),
        (
            PORT.replace("LinkState:.......................Active", "LinkState:.......................?(9)"),
            CONTEXT,
            ("unknown", "output-truncated"),
        ),
        (
            "smpquery: iberror: failed: operation portinfo: port info query failed\n",
            CONTEXT,
            ("unknown", "test-did-not-run"),
        ),
    ],
)
def test_each_port_has_its_verdict(text: str, context: dict[str, object], verdict: tuple[str, str]) -> None:
    assert said("smpquery", text, context) == verdict


def test_a_fast_port_whose_extended_speed_is_missing_was_cut() -> None:
    fast = NDR.replace("CapMask:.........................0x0", "CapMask:.........................0x2651e848")
    assert said("smpquery", fast, {"expected_link": "4x NDR"}) == ("ok", "healthy")
    cut = fast.partition("LinkSpeedExtActive")[0]
    assert judged("smpquery", cut, {"expected_link": "4x SDR"}).verdict == "unknown"


def test_nodes_and_switches_are_read() -> None:
    facts = judged("smpquery", data("ni") + data("nd") + data("si")).facts
    assert (facts["node_type"], facts["num_ports"], facts["description"]) == ("Switch", 8, "S1")
    assert facts["guid"] == "0x0000000000200000"


def test_a_cut_never_heals_and_damage_is_survived() -> None:
    a_cut_never_heals("smpquery", PORT, {"expected_link": "4x QDR"})
    head = PORT.partition("OverrunErr")[0]
    for at in range(0, len(head), 3):
        assert judged("smpquery", head[:at], CONTEXT).verdict == "unknown", head[:at][-60:]
    survives("smpquery", PORT, CONTEXT)
