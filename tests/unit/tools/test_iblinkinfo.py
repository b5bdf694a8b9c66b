"""Reading and judging iblinkinfo."""

from __future__ import annotations

import pytest

from tests.unit.tools.cases import case_of, text_of
from tests.unit.tools.ib_reading import a_cut_never_heals, data, holds_case, judged, reader, said, survives

LINES = text_of("026")
CONTEXT = case_of("026")["context"]
SWITCHES = (
    "Switch: 0x08c0eb03007de1a4 sw-leaf-11:Q9700/U1:\n"
    "         512    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>     331    1[  ] "
    '"gpu c05 mlx5_0" (Could be 106.25 Gbps)\n'
    '         512    2[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>     332    1[  ] "gpu-c06 mlx5_0" ( )\n'
    '         512    3[  ] ==( 4X 14.0625 Gbps Initialize/  LinkUp)==>     333    1[  ] "gpu-c07 mlx5_0" ( )\n'
    '         512    4[17] ==( 4X     10.0 Gbps (FDR10) Active/  LinkUp)==>     334    1[ 2] "old (lab) mlx4_0" ( )\n'
    '         512    5[  ] ==( 2X         212.5 Gbps  Armed/  LinkUp)==>    "Port not available"\n'
    '         512   40[  ] ==(                Down/Disabled)==>             [  ] "" ( )\n'
)


def test_the_case_is_judged_right() -> None:
    holds_case("026")


@pytest.mark.parametrize(
    ("name", "rows", "active", "down"),
    [("ibl", 20, 12, 8), ("ibll", 20, 12, 8), ("iblp", 20, 12, 8), ("iblsw", 16, 8, 8)],
)
def test_every_form_of_a_real_run_is_read(name: str, rows: int, active: int, down: int) -> None:
    found = judged("iblinkinfo", data(name))
    assert reader("iblinkinfo").recognise(data(name)) == 95
    assert (found.facts["rows"], found.facts["active_rows"], found.facts["down_rows"]) == (rows, active, down)
    assert len(found.facts["slow"]) == active
    assert {row["hint"] for row in found.facts["slow"]} == {"Could be 12X Could be 10.0 Gbps"}
    assert all(row["guid"] for row in found.facts["slow"])


def test_a_note_is_no_fault_where_the_link_demanded_is_reached() -> None:
    assert said("iblinkinfo", data("ibll"), {"expected_link": "4x SDR"}) == ("ok", "healthy")
    assert said("iblinkinfo", data("ibll"), {"expected_rate_gbps": 10}) == ("ok", "healthy")
    assert said("iblinkinfo", data("ibll"), {"expected_link": "4x QDR"}) == ("degraded", "link-below-capability")


def test_a_switchs_guid_stands_above_its_ports_and_odd_rows_are_whole() -> None:
    record = judged("iblinkinfo", SWITCHES)
    assert (record.verdict, record.cause) == ("fail", "no-subnet-manager")
    assert record.facts["rows"] == 6
    assert record.facts["slow"] == [
        {"guid": "0x08c0eb03007de1a4", "port": 1, "peer": "gpu c05 mlx5_0", "hint": "Could be 106.25 Gbps"}
    ]


def test_a_slow_link_without_a_note_is_found_by_the_link_demanded() -> None:
    text = LINES.replace("(Could be 106.25 Gbps)", "( )").replace("(Could be 4X)", "( )")
    assert said("iblinkinfo", text, CONTEXT) == ("ok", "healthy")
    assert said("iblinkinfo", text, {**CONTEXT, "expected_link": "4x NDR"}) == ("degraded", "rate-below-expected")
    found = judged("iblinkinfo", text, {**CONTEXT, "expected_rate_gbps": 400})
    assert [row["port"] for row in found.facts["slow"]] == [1, 3]


def test_down_ports_count_only_where_somebody_says_which_are_unused() -> None:
    healthy = "".join(line + "\n" for line in LINES.splitlines() if "Could" not in line)
    assert said("iblinkinfo", healthy) == ("ok", "healthy")
    assert said("iblinkinfo", healthy, {"unused_ports": []}) == ("fail", "link-down")
    assert said("iblinkinfo", healthy, {"unused_ports": ["0x8c0eb03007de1a4/40"]}) == ("ok", "healthy")


def test_a_row_that_is_cut_is_unknown_and_damage_is_survived() -> None:
    healthy = LINES.splitlines()[1]
    assert said("iblinkinfo", healthy) == ("ok", "healthy")
    for at in range(1, len(healthy)):
        assert judged("iblinkinfo", healthy[:at]).verdict == "unknown", healthy[:at]
    a_cut_never_heals("iblinkinfo", LINES, CONTEXT)
    survives("iblinkinfo", LINES, CONTEXT)
    survives("iblinkinfo", SWITCHES, CONTEXT)


def test_a_link_that_recovers_is_suspect_while_it_is_active() -> None:
    text = LINES.replace("Active/  LinkUp", "Active/LinkErrorRecovery", 1).replace("(Could be 106.25 Gbps)", "( )", 1)
    text = text.replace("(Could be 4X)", "( )")
    assert said("iblinkinfo", text, CONTEXT) == ("degraded", "link-flapping")


def test_the_perl_script_of_old_puts_no_colon_before_a_switchs_guid() -> None:
    text = (
        "Switch 0x0008f104003f0d21 ISR9024 Voltaire:\n"
        '      1    1[  ]  ==( 4X 5.0 Gbps Active /   LinkUp)==>      2    4[  ] "MT47396" ( Could be 10.0 Gbps)\n'
    )
    assert reader("iblinkinfo").recognise(text) == 95
    [slow] = judged("iblinkinfo", text).facts["slow"]
    assert slow == {"guid": "0x0008f104003f0d21", "port": 1, "peer": "MT47396", "hint": "Could be 10.0 Gbps"}
