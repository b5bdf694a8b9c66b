"""mlxlink: text of several generations, JSON, PCIe; what is a fault and what is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools.cases import case_of, check_case, text_of
from tests.unit.tools.mlx_cuts import tool

MLXLINK = tool("mlxlink")

NDR = """
Operational Info
----------------
State                              : Active
Physical state                     : LinkUp
Speed                              : IB-NDR
Width                              : 4x
FEC                                : Interleaved_Standard_RS_FEC_PLR - (544,514)
Loopback Mode                      : No Loopback
Auto Negotiation                   : ON

Supported Info
--------------
Enabled Link Speed                 : 0x000000f1 (NDR,HDR,EDR,FDR,SDR)
Supported Cable Speed              : 0x000000c1 (NDR,HDR,SDR)

Troubleshooting Info
--------------------
Status Opcode                      : 0
Group Opcode                       : N/A
Recommendation                     : No issue was observed

Tool Information
----------------
Firmware Version                   : 28.39.3004
amBER Version                      : 2.22
MFT Version                        : mft 4.28.0-92

Module Info
-----------
Identifier                         : OSFP
Temperature [C]                    : 52 [-10..80]
Voltage [mV]                       : 3281.9 [3100..3500]
Rx Power Current [dBm]             : 1.562,1.427,1.559,1.761 [-8.508..5]
Tx Power Current [dBm]             : 1.1,1.2,1.3,1.1 [-6.5..6]
Cable Type                         : Optical Module (separated)
Vendor Part Number                 : MMA4Z00-NS
Vendor Serial Number               : MT2310FT00001
Digital Diagnostic Monitoring      : Yes

Physical Counters and BER Info
------------------------------
Time Since Last Clear [Min]        : 600.0
Symbol Errors                      : 0
Symbol BER                         : 15E-255
Effective Physical Errors          : 912
Effective Physical BER             : 3E-12
Raw Physical Errors Per Lane       : 3946476397,5120336064,7692183445,3026261414
Raw Physical BER                   : 2E-7
Link Down Counter                  : 3
Link Error Recovery Counter        : 0
"""
DOWN = """
Operational Info
----------------
State                              : Polling
Physical state                     : ETH_AN_FSM_ABILITY_DETECT
Speed                              : N/A
Width                              : N/A
FEC                                : N/A
Loopback Mode                      : No Loopback
Auto Negotiation                   : ON

Troubleshooting Info
--------------------
Status Opcode                      : 2
Group Opcode                       : PHY FW
Recommendation                     : Negotiation failure

Module Info
-----------
Rx Power Current [dBm]             : 0.2,0.1,0.3,0.2 [-10.4..4]
"""
PCIE = """
PCIe Operational (Enabled) Info
-------------------------------
Depth, pcie index, node            : 0, 0, 0
Link Speed Active (Enabled)        : 16.0G-Gen 4 (32G-Gen 5)
Link Width Active (Enabled)        : 8X (16X)
Device Status                      : Unsupported Request detected

Management PCIe Timers Counters Info
------------------------------------
dl down                            : 0

Management PCIe Performance Counters Info
-----------------------------------------
RX Errors                          : 4
TX Errors                          : 0
CRC Error dllp                     : 0
CRC Error tlp                      : 0
"""


def as_json(text: str) -> str:
    """Return a text as --json prints it."""
    output: dict[str, dict[str, object]] = {}
    section = ""
    lines = text.split("\n")
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below.startswith("---"):
            section = line.strip()
            output[section] = {}
        elif ":" in line:
            key, _, value = line.partition(":")
            word: object = value.strip()
            if key.startswith("Raw Physical Errors"):
                word = {"values": value.strip().split(",")}
            output[section][key.strip()] = word
    status = {"code": 0, "message": "success"}
    return json.dumps({"result": {"output": output}, "status": status}, indent=4)


def changed(text: str, **values: str) -> str:
    """Return a text with other values: keys with blanks as underscores."""
    lines = text.split("\n")
    for name, value in values.items():
        key = name.replace("_", " ").lower()
        [at] = [place for place, line in enumerate(lines) if line.partition(":")[0].strip().lower().startswith(key)]
        lines[at] = f"{lines[at].partition(':')[0]}: {value}"
    return "\n".join(lines)


def test_the_case_is_judged_as_stated() -> None:
    name = "029-mlxlink"
    check_case(name, MLXLINK.judged(text_of(name), **case_of(name)["context"]))


@pytest.mark.parametrize("form", [str, as_json])
def test_an_ndr_link_has_four_lanes_of_a_hundred(form: object) -> None:
    text = form(NDR)  # type: ignore[operator] - str and as_json are both called with a text
    assert MLXLINK.verdict(text, expected_rate_gbps=400, link_layer="InfiniBand") == ("ok", "healthy")
    facts = MLXLINK.facts(text)
    assert (facts["rate_gbps"], facts["raw_ber"], facts["symbol_ber"]) == (400, 2e-7, 0.0)
    assert facts["rx_power_dbm"] == [1.562, 1.427, 1.559, 1.761]
    assert (facts["temperature_c"], facts["module_ddm"], facts["version"]) == (52.0, True, "mft 4.28.0-92")


@pytest.mark.parametrize(
    ("speed", "width", "rate"),
    [
        ("IB-XDR", "4x", 800),
        ("IB-NDR", "2x", 200),
        ("IB-HDR", "2x", 100),
        ("IB-FDR", "4x", 56),
        ("IB-QDR", "4x", 40),
        ("400G", "8x", 400),
        ("100GbE", "4x", 100),
        ("25G", "1x", 25),
        ("400G_4X", "4x", 400),
        ("IB-NDR", "N/A", None),
        ("N/A", "4x", None),
        ("20", "4x", None),
        ("0G", "4x", None),
    ],
)
def test_the_rate_is_that_of_speed_and_lanes(speed: str, width: str, rate: float | None) -> None:
    assert MLXLINK.facts(changed(NDR, Speed=speed, Width=width))["rate_gbps"] == rate


def test_raw_errors_that_fec_corrects_are_no_fault() -> None:
    assert MLXLINK.verdict(NDR) == ("ok", "healthy")


def test_a_slower_link_is_degraded_and_an_unknown_speed_is_unknown() -> None:
    assert MLXLINK.verdict(changed(NDR, Speed="IB-HDR"), expected_rate_gbps=400) == ("degraded", "rate-below-expected")
    assert MLXLINK.verdict(changed(NDR, Width="2x"), expected_link="4x NDR") == ("degraded", "rate-below-expected")
    assert MLXLINK.verdict(changed(NDR, Speed="N/A"), expected_rate_gbps=400)[0] == "unknown"


def test_a_port_that_polls_is_down_and_has_no_rate() -> None:
    assert MLXLINK.verdict(DOWN, expected_rate_gbps=200) == ("fail", "link-down")
    assert MLXLINK.facts(DOWN)["rate_gbps"] is None
    assert MLXLINK.verdict(as_json(DOWN)) == ("fail", "link-down")


def test_a_port_down_without_light_names_the_light() -> None:
    dark = changed(DOWN, Rx_Power="-40,-40,-40,-40 [-10.4..4]")
    assert MLXLINK.verdict(dark) == ("fail", "optics-no-light")


def test_a_port_down_for_its_signal_names_the_cable() -> None:
    assert MLXLINK.verdict(changed(DOWN, Recommendation="Bad signal integrity")) == ("fail", "bad-cable")


def test_errors_by_the_thousand_an_hour_fail() -> None:
    bare = "\n".join(line for line in NDR.split("\n") if not line.startswith("Symbol BER"))
    assert MLXLINK.verdict(changed(bare, Effective_Physical_Errors="900000")) == ("ok", "healthy")
    assert MLXLINK.verdict(changed(NDR, Symbol_Errors="20000")) == ("fail", "bad-cable")
    assert MLXLINK.verdict(changed(NDR, Symbol_Errors="9999")) == ("ok", "healthy")
    assert MLXLINK.verdict(changed(NDR, Symbol_BER="1E-9")) == ("degraded", "bad-cable")


def test_a_rate_without_a_count_is_errors_an_hour_all_the_same() -> None:
    lines = [line for line in NDR.split("\n") if not line.startswith(("Symbol", "Effective Physical Errors"))]
    text = "\n".join(lines)
    assert MLXLINK.verdict(changed(text, Effective_Physical_BER="1E-9")) == ("fail", "bad-cable")
    assert MLXLINK.verdict(changed(text, Effective_Physical_BER="1E-13")) == ("ok", "healthy")
    # A time and no count: the rate still says it; a count and no time: nothing says how fast.
    assert MLXLINK.verdict(changed(NDR, Symbol_Errors="20000", Time_Since="N/A")) == ("ok", "healthy")
    assert MLXLINK.verdict(changed(text, Effective_Physical_BER="1E-9", Speed="N/A")) == ("degraded", "bad-cable")


def test_the_tools_own_word_about_an_active_link_is_degraded() -> None:
    text = changed(NDR, Status_Opcode="15", Recommendation="Bad signal integrity")
    assert MLXLINK.verdict(text) == ("degraded", "bad-cable")


def test_another_link_layer_than_wanted_fails() -> None:
    assert MLXLINK.verdict(NDR, link_layer="Ethernet") == ("fail", "miscabled")


def test_flaps_count_against_a_limit_only() -> None:
    assert MLXLINK.verdict(NDR, max_flaps_per_device=2) == ("degraded", "link-flapping")
    assert MLXLINK.verdict(NDR, max_flaps_per_device=3) == ("ok", "healthy")


def test_an_infiniband_port_that_is_only_physically_up_lacks_its_manager() -> None:
    for state in ("Physical LinkUp", "Initialize"):
        assert MLXLINK.verdict(changed(NDR, State=state)) == ("fail", "no-subnet-manager")
        assert MLXLINK.verdict(changed(NDR, State=state, Speed="400G")) == ("fail", "link-down")


def test_an_active_port_with_a_dark_lane_fails() -> None:
    assert MLXLINK.verdict(changed(NDR, Rx_Power="1.5,1.4,-40,1.7 [-8.508..5]")) == ("fail", "optics-no-light")


def test_an_issue_that_is_none_of_the_cable_is_the_tools_own_word() -> None:
    text = changed(NDR, Status_Opcode="59", Recommendation="Speed degraded by the peer")
    assert MLXLINK.verdict(text) == ("degraded", "link-below-capability")


def test_pcie_errors_by_the_thousand_are_degraded() -> None:
    whole = PCIE.replace("8X (16X)", "16X (16X)").replace("16.0G-Gen 4 (", "32.0G-Gen 5 (")
    assert MLXLINK.verdict(changed(whole, RX_Errors="999")) == ("ok", "healthy")
    assert MLXLINK.verdict(changed(whole, RX_Errors="1000")) == ("degraded", "pcie-link-limited")
    assert MLXLINK.verdict(changed(whole, Link_Width="N/A"))[0] == "unknown"


def test_weak_light_and_heat_are_degraded() -> None:
    assert MLXLINK.verdict(changed(NDR, Rx_Power="1.5,1.4,-9.1,1.7 [-8.508..5]")) == ("degraded", "optics-no-light")
    assert MLXLINK.verdict(changed(NDR, Temperature="84 [-10..80]")) == ("degraded", "bad-cable")


def test_a_pcie_link_below_what_is_enabled_is_degraded() -> None:
    for text in (PCIE, as_json(PCIE)):
        assert MLXLINK.verdict(text) == ("degraded", "pcie-link-limited")
        facts = MLXLINK.facts(text)
        assert (facts["pcie_speed_gts"], facts["pcie_width"], facts["pcie_enabled_width"]) == (16.0, 8, 16)
    whole = PCIE.replace("8X (16X)", "16X (16X)").replace("16.0G-Gen 4 (", "32.0G-Gen 5 (")
    assert MLXLINK.verdict(whole) == ("ok", "healthy")
    assert MLXLINK.verdict(whole, expected_pcie={"0000:41:00.0": "32.0 GT/s x16"}) == ("ok", "healthy")
    slow = PCIE.replace("8X (16X)", "16X (16X)").replace("(32G-Gen 5)", "(16G-Gen 4)")
    assert MLXLINK.verdict(slow) == ("ok", "healthy")
    assert MLXLINK.verdict(slow, expected_pcie={"0000:41:00.0": "32.0 GT/s x16"})[0] == "degraded"
    narrow = slow.replace("16X (16X)", "8X (8X)")
    assert MLXLINK.verdict(narrow) == ("ok", "healthy")
    assert MLXLINK.verdict(narrow, expected_pcie={"0000:41:00.0": "16.0 GT/s x16"})[0] == "degraded"


def test_a_tool_that_did_not_run_says_nothing() -> None:
    assert MLXLINK.verdict("-E- Failed to open device: mlx5_0, No such file\n") == ("unknown", "test-did-not-run")
    assert MLXLINK.verdict("-E- Cannot open device: Operation not permitted\n") == ("unknown", "not-root")
    text = json.dumps({"status": {"code": 1, "message": "Failed to open device"}, "result": {"output": {}}})
    assert MLXLINK.verdict(text) == ("unknown", "test-did-not-run")
    assert MLXLINK.verdict("") == ("unknown", "output-truncated")


def test_the_worst_of_several_ports_counts_wherever_it_stands() -> None:
    for text in (NDR + DOWN, DOWN + NDR):
        assert MLXLINK.verdict(text) == ("fail", "link-down")
        assert MLXLINK.facts(text)["links"] == 2
        assert MLXLINK.facts(text)["state"] == "Polling"


def test_a_cut_text_never_turns_a_fault_into_ok() -> None:
    MLXLINK.never_ok_when_cut(DOWN, expected_rate_gbps=200)
    MLXLINK.never_ok_when_cut(changed(NDR, Speed="IB-HDR"), expected_rate_gbps=400)
    MLXLINK.never_ok_when_cut(as_json(DOWN))
    cut = NDR[: NDR.index("Raw Physical BER ") + len("Raw Physical BER                   : 2E-")]
    assert MLXLINK.facts(cut)["raw_ber"] is None


def test_a_wrong_context_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected_rate_gbps"):
        MLXLINK.judged(NDR, expected_rate_gbps="fast")
    with pytest.raises(ValueError, match="expected_pcie"):
        MLXLINK.judged(PCIE, expected_pcie={"0000:41:00.0": "fast"})


@pytest.mark.parametrize("text", [NDR, DOWN, PCIE, as_json(NDR)])
def test_damage_is_survived(text: str) -> None:
    MLXLINK.survives(text, expected_rate_gbps=400, link_layer="InfiniBand", max_flaps_per_device=0)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 400))
def test_a_rate_is_below_exactly_when_it_is_less(found: int, wanted: int, downs: int) -> None:
    text = changed(NDR, Speed=f"{found * 10}G", Link_Down=str(downs))
    verdict = MLXLINK.verdict(text, expected_rate_gbps=wanted * 10)
    assert verdict == (("degraded", "rate-below-expected") if found < wanted else ("ok", "healthy"))


def test_it_is_recognised() -> None:
    assert all(MLXLINK.parser.recognise(text) >= 90 for text in (NDR, DOWN, PCIE, as_json(NDR), as_json(PCIE)))
    assert MLXLINK.parser.recognise("CA 'mlx5_0'\n\tPhysical state: LinkUp\n") < 50
