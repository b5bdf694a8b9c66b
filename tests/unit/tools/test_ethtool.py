"""ethtool: settings, driver and pause in text and JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools.mlx_cuts import tool

ETHTOOL = tool("ethtool")


def port(name: str = "ens7f0np0", speed: str = "200000Mb/s", detected: str = "yes", duplex: str = "Full") -> str:
    return f"""Settings for {name}:
\tSupported ports: [ Backplane ]
\tSupported link modes:   1000baseKX/Full
\t                        200000baseCR4/Full
\tSupported pause frame use: Symmetric
\tSupports auto-negotiation: Yes
\tSupported FEC modes: None\t RS
\tAdvertised link modes:  200000baseCR4/Full
\tSpeed: {speed}
\tLanes: 4
\tDuplex: {duplex}
\tAuto-negotiation: on
\tPort: Direct Attach Copper
\tPHYAD: 0
\tTransceiver: internal
netlink error: Operation not permitted
        Current message level: 0x00000004 (4)
                               link
\tLink detected: {detected}
"""


DRIVER = """driver: mlx5_core
version: 24.10-1.1.4
firmware-version: 20.43.2026 (MT_0000000228)
expansion-rom-version: \n\
bus-info: 0000:41:00.0
supports-statistics: yes
"""
PAUSE = "Pause parameters for ens7f0np0:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\toff\n"
JSON = json.dumps(
    [
        {
            "ifname": "ens7f0np0",
            "supported-ports": ["FIBRE"],
            "speed": 100000,
            "duplex": "Full",
            "auto-negotiation": False,
            "link-detected": True,
        }
    ],
    indent=4,
)


def test_a_link_has_its_speed() -> None:
    assert ETHTOOL.verdict(port(), expected_rate_gbps=200, fabric_netdevs=["ens7f0np0"]) == ("ok", "healthy")
    facts = ETHTOOL.facts(port())
    assert (facts["netdev"], facts["speed_mbps"], facts["rate_gbps"]) == ("ens7f0np0", 200000, 200)
    assert (facts["link_detected"], facts["duplex"], facts["lanes"]) == (True, "Full", 4)


def test_json_says_the_same() -> None:
    facts = ETHTOOL.facts(JSON)
    assert (facts["netdev"], facts["rate_gbps"], facts["link_detected"], facts["duplex"]) == (
        "ens7f0np0",
        100,
        True,
        "Full",
    )
    assert ETHTOOL.verdict(JSON, expected_rate_gbps=100) == ("ok", "healthy")
    assert ETHTOOL.verdict(JSON, expected_rate_gbps=200) == ("degraded", "rate-below-expected")


@pytest.mark.parametrize("speed", ["Unknown!", "Unknown! (65535)", "4294967295Mb/s", "0Mb/s", "-1"])
def test_an_unknown_speed_is_no_number(speed: str) -> None:
    assert ETHTOOL.facts(port(speed=speed))["speed_mbps"] is None
    assert ETHTOOL.verdict(port(speed=speed), expected_rate_gbps=200)[0] == "unknown"


@pytest.mark.parametrize("detected", ["no", "no (No cable)", "no (Autoneg, No partner detected)"])
def test_no_link_fails(detected: str) -> None:
    text = port(speed="Unknown!", duplex="Unknown! (255)", detected=detected)
    assert ETHTOOL.verdict(text, expected_rate_gbps=200) == ("fail", "link-down")
    facts = ETHTOOL.facts(text)
    assert (facts["speed_mbps"], facts["rate_gbps"], facts["duplex"], facts["link_detected"]) == (
        None,
        None,
        None,
        False,
    )


def test_netdevs_that_are_not_named_are_ignored() -> None:
    text = port() + port("eno1", "Unknown!", "no")
    assert ETHTOOL.verdict(text, fabric_netdevs=["ens7f0np0"]) == ("ok", "healthy")
    assert ETHTOOL.facts(text, fabric_netdevs=["ens7f0np0"])["ignored"] == ["eno1"]
    assert ETHTOOL.verdict(text) == ("fail", "link-down")
    assert ETHTOOL.facts(text)["link_detected"] == {"ens7f0np0": True, "eno1": False}
    assert ETHTOOL.verdict(port(), fabric_netdevs=["ens7f0np0", "ens8f0np0"])[0] == "unknown"


def test_the_drivers_firmware_runs() -> None:
    facts = ETHTOOL.facts(DRIVER)
    assert (facts["driver"], facts["fw_version"], facts["psid"]) == ("mlx5_core", "20.43.2026", "MT_0000000228")
    assert ETHTOOL.verdict(DRIVER, required_fw={"MT_0000000228": "20.43.2026"}) == ("ok", "healthy")
    assert ETHTOOL.verdict(DRIVER, required_fw="20.43.3608") == ("fail", "fw-version-wrong")
    both = ETHTOOL.facts(port() + DRIVER)
    assert (both["netdev"], both["rate_gbps"], both["fw_version"]) == ("ens7f0np0", 200, "20.43.2026")


def test_pause_of_the_whole_link_excludes_a_lossless_priority() -> None:
    assert ETHTOOL.verdict(PAUSE, lossless_priority=3) == ("fail", "global-pause")
    assert ETHTOOL.verdict(PAUSE) == ("ok", "healthy")
    assert ETHTOOL.verdict(PAUSE.replace("on\n", "off\n"), lossless_priority=3) == ("ok", "healthy")


def test_a_tool_that_did_not_run_says_nothing() -> None:
    assert ETHTOOL.verdict("netlink error: No such device\n", expected_rate_gbps=200) == ("unknown", "test-did-not-run")


def test_a_cut_text_is_never_ok() -> None:
    ETHTOOL.never_ok_when_cut(port(detected="no"), step=1)
    ETHTOOL.never_ok_when_cut(port(speed="100000Mb/s"), step=1, expected_rate_gbps=200)
    text = port()
    assert ETHTOOL.facts(text[: text.index("000Mb/s")])["speed_mbps"] is None


@pytest.mark.parametrize("text", [port(), port() + DRIVER, PAUSE, JSON])
def test_damage_is_survived(text: str) -> None:
    ETHTOOL.survives(text, expected_rate_gbps=200, required_fw="20.43.2026", lossless_priority=3)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 800), st.integers(1, 800), st.from_regex(r"[a-z][a-z0-9]{1,12}", fullmatch=True))
def test_a_rate_is_below_exactly_when_it_is_less(found: int, wanted: int, name: str) -> None:
    text = port(name, f"{found * 1000}Mb/s")
    assert (ETHTOOL.verdict(text, expected_rate_gbps=wanted)[0] == "degraded") == (found < wanted)
    assert ETHTOOL.facts(text)["netdev"] == name


def test_it_is_recognised() -> None:
    assert all(ETHTOOL.parser.recognise(text) >= 85 for text in (port(), DRIVER, PAUSE, JSON))
