"""Reading and judging ibnetdiscover."""

from __future__ import annotations

import pytest

from tests.unit.tools.cases import text_of
from tests.unit.tools.ib_reading import data, holds_case, judged, reader, said, survives

ODD = text_of("027")
CONTEXT = {"expected_link": "4x HDR"}
SLOW = ODD.replace("0xb83fd203008e1c30 4x HDR", "0xb83fd203008e1c30 4x EDR").replace(
    "307 12 0x506b4b0300a97742 4x HDR", "307 12 0x506b4b0300a97742 4x EDR"
)


def test_the_case_is_judged_right() -> None:
    holds_case("027")


def test_a_slow_link_is_named_once_by_its_switch_port() -> None:
    found = judged("ibnetdiscover", SLOW, CONTEXT)
    assert (found.verdict, found.cause) == ("degraded", "rate-below-expected")
    [link] = found.facts["slow_links"]
    assert (link["guid"], link["port"], link["peer"]) == ("0x506b4b0300a97742", 12, "node-71 HCA-1")
    assert len(found.findings) == 1


def test_a_narrow_link_is_slow_and_a_faster_one_is_not() -> None:
    assert said("ibnetdiscover", SLOW.replace("4x EDR", "2x HDR"), CONTEXT) == ("degraded", "rate-below-expected")
    assert said("ibnetdiscover", SLOW.replace("4x EDR", "4x NDR"), CONTEXT) == ("ok", "healthy")


def test_a_speed_that_the_tool_does_not_know_allows_no_judgement() -> None:
    assert said("ibnetdiscover", SLOW.replace("4x EDR", "4x ???"), CONTEXT) == ("unknown", "nothing-tested")
    assert said("ibnetdiscover", SLOW.replace("4x EDR", "4x ???")) == ("ok", "healthy")


@pytest.mark.parametrize("name", ["ibnet", "ibnetp"])
def test_report_and_topology_of_a_real_run_name_the_same_links(name: str) -> None:
    found = judged("ibnetdiscover", data(name), {"expected_link": "4x QDR"})
    assert reader("ibnetdiscover").recognise(data(name)) == 95
    assert sorted(found.facts["hosts"]) == ["H1", "H2", "H3", "H4"]
    assert found.facts["ca_ports"] == 4
    assert len(found.facts["slow_links"]) == 6
    assert len(found.facts["unconnected"]) == (8 if name == "ibnetp" else 0)


def test_a_list_of_nodes_has_hosts_but_no_links() -> None:
    assert judged("ibnetdiscover", data("ibnetl")).facts["hosts"] == ["H2", "H1", "H4", "H3"]
    assert said("ibnetdiscover", data("ibnetl"), CONTEXT) == ("unknown", "nothing-tested")


def test_products_and_aggregation_nodes_are_no_hosts() -> None:
    row = (
        "CA     9  1 0xb83fd203008e1fff 4x HDR - SW   307 14 0x506b4b0300a97742"
        " ( 'MT4123 ConnectX6   Mellanox Technologies' - 's' )\n"
    )
    found = judged("ibnetdiscover", ODD + row, CONTEXT)
    assert found.facts["hosts"] == ["node-71", "node-72"]
    assert (found.facts["ca_ports"], found.facts["sharp_nodes"]) == (4, 1)


def test_names_with_quotes_and_dashes_are_told_apart() -> None:
    row = (
        "CA     9  1 0xb83fd203008e1fff 1x SDR - SW   307 14 0x506b4b0300a97742 ( 'bob's - box HCA-1' - ' s-1 (b) ' )\n"
    )
    [link] = judged("ibnetdiscover", row, CONTEXT).facts["slow_links"]
    assert link["peer"] == "s-1 (b)"
    assert judged("ibnetdiscover", row).facts["hosts"] == ["bob's - box"]


def test_nodes_that_time_out_leave_the_rest_unknown() -> None:
    warned = (
        "src/query_smp.c:196; umad (DR path slid 0; dlid 0; 0,1,5 Attr 0x11:0) bad status 110; Connection timed out\n"
    )
    assert said("ibnetdiscover", warned + ODD, CONTEXT) == ("unknown", "node-not-responding")
    assert said("ibnetdiscover", warned + SLOW, CONTEXT) == ("degraded", "rate-below-expected")
    assert said("ibnetdiscover", "ibnetdiscover: iberror: failed: discover failed\n")[0] == "unknown"


@pytest.mark.parametrize("line", [0, 3])
def test_a_row_that_is_cut_is_unknown(line: int) -> None:
    row = ODD.splitlines()[line]
    for at in range(2, len(row)):
        assert judged("ibnetdiscover", row[:at], CONTEXT).verdict == "unknown", row[:at]


def test_damage_is_survived() -> None:
    survives("ibnetdiscover", ODD, CONTEXT)
    survives("ibnetdiscover", data("ibnet"), CONTEXT)
