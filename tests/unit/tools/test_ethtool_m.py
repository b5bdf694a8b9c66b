"""ethtool -m: SFP, QSFP, CMIS, copper, JSON; light, alarms, and what a module cannot tell."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools.cases import case_of, check_case, text_of
from tests.unit.tools.mlx_cuts import tool

MODULE = tool("ethtool_m")


def power(mw: float, dbm: str) -> str:
    return f"{mw:.4f} mW / {dbm} dBm"


GOOD = power(0.9, "-0.46")
DARK = power(0.0002, "-36.99")
NOTHING = power(0.0, "-inf")


def qsfp(rx: tuple[str, ...] = (GOOD,) * 4, on: tuple[str, ...] = (), lost: str = "None") -> str:
    lanes = range(1, 5)
    kinds = ("Laser bias current", "Laser output power", "Laser rx power")
    levels = ("high alarm", "low alarm", "high warning", "low warning")
    names = [f"{kind} {level}   (Chan {lane})" for kind in kinds for lane in lanes for level in levels]
    lines = [
        "Identifier : 0x11 (QSFP28)",
        "Transceiver type : 100G Ethernet: 100G Base-SR4 or 25GBase-SR",
        "Transmitter technology : 0x00 (850 nm VCSEL)",
        "Vendor name : Mellanox",
        "Vendor PN : MMA1B00-C100D",
        "Vendor SN : MT1924FT05123",
        f"Rx loss of signal : {lost}",
        "Tx fault : None",
        "Module temperature : 38.11 degrees C / 100.60 degrees F",
        "Module voltage : 3.2640 V",
        "Alarm/warning flags implemented : Yes",
        *[f"Laser tx bias current (Channel {lane}) : 6.750 mA" for lane in lanes],
        *[f"Transmit avg optical power (Channel {lane}) : {GOOD}" for lane in lanes],
        *[f"Rcvr signal avg optical power(Channel {lane}) : {rx[lane - 1]}" for lane in lanes],
        *[f"{name} : {'On' if ' '.join(name.split()) in on else 'Off'}" for name in names],
        "Module temperature high alarm : Off",
        "Laser output power low alarm threshold : 0.0724 mW / -11.40 dBm",
        "Module temperature high alarm threshold : 80.00 degrees C / 176.00 degrees F",
        "Laser rx power low alarm threshold : 0.0407 mW / -13.90 dBm",
        "Laser rx power low warning threshold : 0.1023 mW / -9.90 dBm",
    ]
    pairs = [line.split(" : ", 1) for line in lines]
    return "".join(f"\t{key:<41} : {value}\n" for key, value in pairs)


COPPER_SFP = """\tIdentifier                                : 0x03 (SFP)
\tConnector                                 : 0x21 (Copper pigtail)
\tTransceiver type                          : Passive Cable
\tPassive Cu cmplnce.                       : 0x01 (SFF-8431 appendix E) [SFF-8472 rev10.4 only]
\tVendor name                               : Mellanox
\tVendor PN                                 : MCP2M00-A001
\tOptical diagnostics support               : No
"""
COPPER_QSFP = f"""\tIdentifier                                : 0x11 (QSFP28)
\tTransceiver type                          : 100G Ethernet: 100G Base-CR4 or 25G Base-CR CA-L
\tTransmitter technology                    : 0xa0 (Copper cable unequalized)
\tModule temperature                        : 0.00 degrees C / 32.00 degrees F
\tModule voltage                            : 0.0000 V
\tAlarm/warning flags implemented           : No
\tLaser tx bias current (Channel 1)         : 0.000 mA
\tTransmit avg optical power (Channel 1)    : {NOTHING}
\tRcvr signal avg optical power(Channel 1)  : {NOTHING}
"""
CMIS = "\tModule State                              : 0x03 (ModuleReady)\n" + qsfp().replace(
    "0x11 (QSFP28)", "0x18 (QSFP-DD Double Density 8X Pluggable Transceiver (INF-8628))"
)
JSON_MODULE = {
    "identifier": 3,
    "identifier_description": "SFP",
    "vendor_name": "FINISAR CORP.",
    "vendor_pn": "FTLF8536P4BCL",
    "optical_diagnostics_support": True,
    "laser_bias_current": 7.482,
    "laser_output_power": 0.8913,
    "rx_power": {"value": 0.0002, "type": "Receiver signal average optical power"},
    "module_temperature": 41.2,
    "module_voltage": 3.29,
    "alarm/warning_flags_implemented": True,
    "laser_rx_power_low_alarm": True,
    "laser_rx_power_high_alarm": False,
    "laser_rx_power_thresholds": {"high_alarm": 2.19, "low_alarm": 0.0407, "high_warning": 1.7, "low_warning": 0.1},
    "module_temperature_thresholds": {"high_alarm": 75.0, "low_alarm": -5.0},
}


def test_the_case_is_judged_as_stated() -> None:
    name = "033-ethtool-m"
    check_case(name, MODULE.judged(text_of(name), **case_of(name)["context"]))


@pytest.mark.parametrize("text", [qsfp(), CMIS, qsfp().replace("\t", "")])
def test_a_module_with_light_on_all_lanes_is_ok(text: str) -> None:
    assert MODULE.verdict(text) == ("ok", "healthy")
    facts = MODULE.facts(text)
    assert (facts["rx_power_dbm"], facts["temperature_c"], facts["ddm"]) == ([-0.46] * 4, 38.11, True)
    assert (facts["rx_low_alarm_dbm"], facts["alarms_on"]) == (-13.9, [])


@pytest.mark.parametrize("lane", range(4))
@pytest.mark.parametrize("value", [DARK, NOTHING])
def test_one_dark_lane_fails(lane: int, value: str) -> None:
    rx = tuple(value if number == lane else GOOD for number in range(4))
    assert MODULE.verdict(qsfp(rx)) == ("fail", "optics-no-light")


def test_zero_milliwatts_are_no_number_of_dbm() -> None:
    facts = MODULE.facts(qsfp((NOTHING,) * 4))
    assert facts["rx_power_dbm"] == [None] * 4
    assert facts["rx_power_mw"] == [0.0] * 4


def test_loss_of_signal_fails_and_weak_light_is_degraded() -> None:
    assert MODULE.verdict(qsfp(lost="[ No, Yes, No, No ]")) == ("fail", "optics-no-light")
    assert MODULE.facts(qsfp(lost="[ No, Yes, No, No ]"))["lost"] == {"rx loss of signal": [2]}
    assert MODULE.verdict(qsfp((power(0.03, "-15.23"), GOOD, GOOD, GOOD))) == ("degraded", "optics-no-light")


def test_other_alarms_are_degraded_and_named_as_printed() -> None:
    text = qsfp(on=("Laser bias current high warning (Chan 2)",))
    assert MODULE.verdict(text) == ("degraded", "bad-cable")
    assert MODULE.facts(text)["alarms_on"] == ["Laser bias current high warning (Chan 2)"]
    hot = qsfp().replace("38.11 degrees C", "81.50 degrees C")
    assert MODULE.verdict(hot) == ("degraded", "bad-cable")


@pytest.mark.parametrize("text", [COPPER_SFP, COPPER_QSFP])
def test_copper_has_no_light_to_judge(text: str) -> None:
    assert MODULE.verdict(text) == ("unknown", "ddm-not-supported")
    facts = MODULE.facts(text)
    assert (facts["ddm"], facts["rx_power_dbm"], facts["alarms_on"]) == (False, None, [])


def test_json_says_what_text_says() -> None:
    text = json.dumps([JSON_MODULE])
    assert MODULE.verdict(text) == ("fail", "optics-no-light")
    facts = MODULE.facts(text)
    assert facts["rx_power_dbm"] == pytest.approx(-36.99, abs=0.01)
    assert facts["tx_power_dbm"] == pytest.approx(-0.5, abs=0.01)
    assert (facts["rx_low_alarm_dbm"], facts["temperature_c"]) == (pytest.approx(-13.9, abs=0.01), 41.2)
    assert facts["alarms_on"] == ["Laser rx power low alarm"]


def test_json_lanes_are_lanes() -> None:
    module = {**JSON_MODULE, "rx_power": [0.9, 0.8, 0.0, 0.7], "laser_rx_power_low_alarm": False}
    assert MODULE.verdict(json.dumps([module])) == ("fail", "optics-no-light")
    module["rx_power"] = {"values": [0.9, 0.8, 0.6, 0.7], "type": "Rcvr signal avg optical power", "units": "mW"}
    assert MODULE.verdict(json.dumps([module])) == ("ok", "healthy")
    assert len(MODULE.facts(json.dumps([module]))["rx_power_dbm"]) == 4


def test_a_tool_that_did_not_run_says_nothing() -> None:
    assert MODULE.verdict("netlink error: Input/output error\n") == ("unknown", "test-did-not-run")
    assert MODULE.verdict("Cannot get module EEPROM information: Operation not permitted\n") == ("unknown", "not-root")


def test_a_cut_text_is_never_ok() -> None:
    MODULE.never_ok_when_cut(qsfp((GOOD, GOOD, GOOD, DARK)), step=3)
    MODULE.never_ok_when_cut(text_of("033-ethtool-m"), step=3)
    MODULE.never_ok_when_cut(json.dumps([JSON_MODULE]), step=3)


@pytest.mark.parametrize("text", [qsfp(), COPPER_QSFP, json.dumps([JSON_MODULE], indent=4)])
def test_damage_is_survived(text: str) -> None:
    MODULE.survives(text)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-39.0, 2.0), min_size=4, max_size=4))
def test_the_darkest_lane_decides(powers: list[float]) -> None:
    text = qsfp(tuple(power(10 ** (dbm / 10), f"{dbm:.2f}") for dbm in powers))
    darkest = min(round(dbm, 2) for dbm in powers)
    wanted = "fail" if darkest <= -25 or 10 ** (min(powers) / 10) < 0.00005 else "degraded" if darkest < -13.9 else "ok"
    assert MODULE.verdict(text)[0] == wanted


def test_it_is_recognised() -> None:
    assert all(
        MODULE.parser.recognise(text) >= 90 for text in (qsfp(), COPPER_SFP, COPPER_QSFP, json.dumps([JSON_MODULE]))
    )
