"""Network tools that failed, and what their texts hold besides the ports that count."""

from __future__ import annotations

import pytest

from tests.unit.tools.cases import text_of
from tests.unit.tools.mlx_cuts import tool

TOOLS = (
    *("mlxlink", "flint", "mlxfwmanager", "mlxconfig", "mlnx_qos", "dcb"),
    *("ethtool", "ethtool_m", "ethtool_s", "ip_link", "lldpcli"),
)
NULLS = {
    "mlxlink": ("state", "phys_state", "rate_gbps", "width", "opcode"),
    "flint": ("fw_version", "fw_running", "psid", "pending", "image_type"),
    "mlxfwmanager": ("fw_version", "fw_running", "pending"),
    "mlnx_qos": ("trust", "pfc_on", "prio_tc", "dscp_map"),
    "dcb": ("pfc_on", "dscp_map"),
    "ethtool": ("netdev", "speed_mbps", "rate_gbps", "link_detected", "duplex"),
    "ethtool_m": ("rx_power_dbm", "ddm"),
}
XML = """<?xml version="1.0" encoding="UTF-8"?>
<lldp label="LLDP neighbors">
 <interface label="Interface" name="ens7f0np0" via="LLDP" rid="1" age="0 day, 00:10:02">
  <chassis label="Chassis">
   <id label="ChassisID" type="mac">94:8e:d3:41:0c:5f</id>
   <name label="SysName">leaf-a03</name>
   <descr label="SysDescr">Cumulus &amp; Linux</descr>
   <capability label="Capability" type="Bridge" enabled="on"/>
  </chassis>
  <port label="Port">
   <id label="PortID" type="ifname">swp31s0</id>
   <descr label="PortDescr">gpu rail 0</descr>
  </port>
 </interface>
</lldp>
"""
PAUSES = "NIC statistics:\n     rx_prio3_pause: 5\n     tx_prio3_pause: 0\n"


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("text", ["bash: x: command not found\n", "slurmstepd: error: execve(): No such file\n"])
def test_a_text_of_another_program_says_that_the_tool_did_not_run(name: str, text: str) -> None:
    assert tool(name).verdict(text) == ("unknown", "test-did-not-run")


@pytest.mark.parametrize("name", TOOLS)
def test_a_missing_right_is_named(name: str) -> None:
    assert tool(name).verdict("sudo: x: Permission denied\n") == ("unknown", "not-root")


@pytest.mark.parametrize("name", NULLS)
def test_facts_of_a_tool_that_failed_are_there_without_a_value(name: str) -> None:
    facts = tool(name).facts("-E- it broke\n")
    assert [facts[key] for key in NULLS[name]] == [None] * len(NULLS[name])


def test_one_card_that_cannot_be_opened_does_not_hide_a_fault_of_another() -> None:
    text = text_of("304").replace("20.43.2026", "20.41.1000")
    assert tool("mlxfwmanager").judged(text, required_fw="20.43.2026").verdict == "fail"
    refused = text_of("304").replace("MFE_CR_ERROR", "Permission denied")
    assert tool("mlxfwmanager").verdict(refused, required_fw={"MT_0000000223": "20.43.2026"}) == (
        "unknown",
        "not-root",
    )


def test_boards_without_a_required_version_do_not_count() -> None:
    text, flint = text_of("301"), tool("flint")
    assert flint.verdict(text, required_fw={"MT_0000000359": "22.41.1000"}) == ("degraded", "fw-reset-pending")
    assert flint.verdict(text, required_fw={"MT_0000000008": "16.35.3502"}) == ("ok", "healthy")
    assert flint.facts(text, required_fw={"MT_0000000008": "16.35.3502"})["pending"] is True


def test_a_setting_that_the_card_refuses_is_unknown_and_one_that_is_not_there_fails() -> None:
    config, text = tool("mlxconfig"), text_of("308")
    assert config.judged(text, required={"ABSENT": "1"}).verdict == "fail"
    refused = f"{text}-E- The Device doesn't support ABSENT parameter\n"
    assert config.verdict(refused, required={"ABSENT": "1"}) == ("unknown", "test-did-not-run")


def test_an_interface_that_ip_does_not_know_is_down_only_where_it_is_wanted() -> None:
    link, text = tool("ip_link"), 'Device "ib9" does not exist.\n'
    assert link.verdict(text, fabric_netdevs=["ib9"]) == ("fail", "link-down")
    assert link.facts(text, fabric_netdevs=["ib9"])["bad"] == ["ib9"]
    assert link.verdict(text, fabric_netdevs=["ib8"]) == ("unknown", "test-did-not-run")


def test_a_netdev_without_data_is_unknown_and_a_set_speed_is_no_rate() -> None:
    ethtool = tool("ethtool")
    none = "Settings for ens9np0:\nNo data available\n"
    assert ethtool.verdict(none, expected_rate_gbps=100) == ("unknown", "test-did-not-run")
    down = "Settings for ens9np0:\n\tSpeed: 100000Mb/s\n\tDuplex: Full\n\tLink detected: no\n"
    assert ethtool.verdict(down, expected_rate_gbps=100) == ("fail", "link-down")
    assert ethtool.facts(down)["rate_gbps"] is None


def test_lanes_that_the_link_does_not_use_may_be_dark() -> None:
    text = (
        text_of("295")
        .replace(": Disable\n", ": Active\n")
        .replace("Speed                              : N/A", "Speed : IB-NDR")
    )
    text = text.replace("Width                              : N/A", "Width : 2x")
    text = text.replace(
        "The port is closed by command. Please check that the interface is enabled.", "No issue was observed."
    )
    text = text.replace("Status Opcode                      : 1\n", "Status Opcode : 0\n")
    dark = text.replace("1.204,1.310,0.988,1.411", "1.204,1.310,-40.000,-40.000")
    assert tool("mlxlink").verdict(dark, expected_rate_gbps=200) == ("ok", "healthy")
    darker = text.replace("1.204,1.310,0.988,1.411", "1.204,-40.000,-40.000,-40.000")
    assert tool("mlxlink").verdict(darker, expected_rate_gbps=200) == ("fail", "optics-no-light")


def test_lanes_of_a_module_that_neither_send_nor_receive_are_unused_unless_they_raise_an_alarm() -> None:
    text, module = text_of("326"), tool("ethtool_m")
    receives = text.replace("0.9550 mW / -0.20 dBm", "0.0000 mW / -inf dBm")
    assert module.verdict(receives) == ("fail", "optics-no-light")
    both = receives.replace("0.9772 mW / -0.10 dBm", "0.0000 mW / -inf dBm")
    assert module.verdict(both) == ("ok", "healthy")
    loud = both.replace("Rx loss of signal                         : None", "Rx loss of signal : [ No, No, Yes, No ]")
    assert module.verdict(loud) == ("fail", "optics-no-light")


def test_readings_for_pauses_need_no_bytes_by_priority() -> None:
    counters, later = tool("ethtool_s"), PAUSES.replace("rx_prio3_pause: 5", "rx_prio3_pause: 700005")
    asked = {"lossless_priority": 3, "seconds": 10, "snapshots": "10 s apart", "max_pause_frames_per_s": 1000}
    assert counters.verdict(PAUSES + PAUSES, **asked) == ("ok", "healthy")
    assert counters.verdict(PAUSES + later, **asked) == ("degraded", "global-pause")


def test_errors_of_one_reading_count_where_it_is_known_since_when() -> None:
    text = "NIC statistics:\n     rx_symbol_err_phy: 50000\n     rx_crc_errors_phy: 0\n"
    assert tool("ethtool_s").verdict(text) == ("ok", "healthy")
    assert tool("ethtool_s").verdict(text, counters_cleared_minutes_ago=60) == ("fail", "bad-cable")


def test_neighbours_in_xml_are_read_and_a_cut_is_never_health() -> None:
    lldp = tool("lldpcli")
    right = {"ens7f0np0": {"switch": "leaf-a03", "port": "swp31s0"}}
    wrong = {"ens7f0np0": {"switch": "leaf-a04", "port": "swp31s0"}}
    assert lldp.parser.recognise(XML) >= 70
    assert lldp.verdict(XML, expected=right) == ("ok", "healthy")
    assert lldp.facts(XML, expected=wrong)["mismatch"] == ["ens7f0np0"]
    lldp.never_ok_when_cut(XML, step=3, expected=wrong)
    lldp.survives(XML, expected=right)


def test_counters_of_several_netdevs_are_judged_one_by_one() -> None:
    counters = tool("ethtool_s")
    one = "# ethtool -S {}\nNIC statistics:\n     rx_packets: 5\n     rx_symbol_err_phy: {}\n"
    text = one.format("eno1", 90_000) + one.format("ens7np0", 40_000) + one.format("ens8np0", 1)
    asked = {"counters_cleared_minutes_ago": 60, "fabric_netdevs": ["ens7np0", "ens8np0"]}
    assert counters.verdict(text, **asked) == ("fail", "bad-cable")
    facts = counters.facts(text, **asked)
    assert (facts["netdev"], facts["ignored"], facts["snapshots"]) == ("ens7np0", ["eno1"], 1)
    assert counters.verdict(text.replace("40000", "0").replace(": 1\n", ": 0\n"), **asked) == ("ok", "healthy")
    missing = counters.verdict(one.format("eno1", 0), fabric_netdevs=["ens9np0"])
    assert missing == ("unknown", "test-did-not-run")
