"""mlxconfig query: three columns, one, JSON; several cards, read-only rows, stars."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools.cases import case_of, check_case, text_of
from tests.unit.tools.mlx_cuts import tool

CONFIG = tool("mlxconfig")


def device(number: int, rows: str, columns: str = "Default         Current         Next Boot") -> str:
    return f"""
Device #{number}:
----------

Device type:        ConnectX7
Name:               MCX75310AAS-NEA_Ax
Description:        NVIDIA ConnectX-7 HHHL Adapter card; 400GbE / NDR IB (default mode)
Device:             0000:{40 + number}:00.0

Configurations:                                      {columns}
{rows}"""


WAITS = "*        LINK_TYPE_P1                                IB(1)           IB(1)           ETH(2)\n"
DONE = "         LINK_TYPE_P1                                IB(1)           ETH(2)          ETH(2)\n"
LOST = "*        LINK_TYPE_P1                                IB(1)           ETH(2)          IB(1)\n"
WRONG = "         LINK_TYPE_P1                                IB(1)           IB(1)           IB(1)\n"
OTHERS = """         RO MEMIC_BAR_SIZE                           0               0               0
         MAC_LIST                                    Array[0..3]     Array[0..3]     Array[0..3]
         NUM_OF_VFS                                  0               8               8
*        SRIOV_EN                                    False(0)        False(0)        True(1)
"""
LEGEND = "The '*' shows parameters with next value different from default/current value.\n"
WANTED = {"LINK_TYPE_P1": "ETH(2)"}
_ONE = "        {:<44}{}\n"
PLAIN = device(1, _ONE.format("NUM_OF_VFS", 8) + _ONE.format("LINK_TYPE_P1", "ETH(2)"), "Next Boot")


def as_json(current: object = "IB(1)", upcoming: object = "ETH(2)") -> str:
    value = {
        "current_value": current,
        "default_value": "IB(1)",
        "modified": True,
        "next_value": upcoming,
        "read_only": False,
    }
    number = {"current_value": 8, "default_value": 0, "modified": False, "next_value": 8, "read_only": False}
    tlv = {"LINK_TYPE_P1": value, "NUM_OF_VFS": number}
    return json.dumps(
        {"Device #1": {"device": "41:00.0", "device_type": "ConnectX7", "tlv_configuration": tlv}}, indent=4
    )


def test_the_case_is_judged_as_stated() -> None:
    name = "031-mlxconfig"
    check_case(name, CONFIG.judged(text_of(name), **case_of(name)["context"]))


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (WAITS, ("degraded", "config-reset-pending")),
        (LOST, ("degraded", "config-reset-pending")),
        (DONE, ("ok", "healthy")),
        (WRONG, ("fail", "setting-wrong")),
    ],
)
def test_a_required_value_is_in_use_or_waits_or_is_wrong(row: str, verdict: tuple[str, str]) -> None:
    for rows in (row + OTHERS, OTHERS + row):
        assert CONFIG.verdict(device(1, rows + LEGEND), required=WANTED) == verdict


def test_a_value_may_be_wanted_by_name_or_number() -> None:
    for wanted in ("ETH(2)", "ETH", "2", 2, "eth(2)"):
        assert CONFIG.verdict(device(1, DONE), required={"LINK_TYPE_P1": wanted}) == ("ok", "healthy")
    assert CONFIG.verdict(device(1, DONE), required={"LINK_TYPE_P1": "1"})[0] == "fail"
    assert CONFIG.verdict(device(1, OTHERS), required={"SRIOV_EN": True}) == ("degraded", "config-reset-pending")
    assert CONFIG.verdict(device(1, OTHERS), required={"NUM_OF_VFS": 8}) == ("ok", "healthy")


def test_what_is_not_required_is_not_judged_where_something_is() -> None:
    assert CONFIG.verdict(device(1, DONE + OTHERS), required=WANTED) == ("ok", "healthy")
    assert CONFIG.verdict(device(1, DONE + OTHERS)) == ("degraded", "config-reset-pending")
    assert CONFIG.facts(device(1, DONE + OTHERS))["pending"] == ["SRIOV_EN"]


def test_read_only_rows_and_arrays_have_their_values() -> None:
    facts = CONFIG.facts(device(1, DONE + OTHERS))
    assert facts["current"]["MEMIC_BAR_SIZE"] == "0"
    assert facts["next_boot"]["MAC_LIST"] == "Array[0..3]"


def test_one_column_tells_the_next_boot_alone() -> None:
    facts = CONFIG.facts(PLAIN)
    assert (facts["current"], facts["pending"]) == ({}, [])
    assert facts["next_boot"] == {"NUM_OF_VFS": "8", "LINK_TYPE_P1": "ETH(2)"}
    assert CONFIG.verdict(PLAIN, required=WANTED) == ("ok", "healthy")
    assert CONFIG.verdict(PLAIN, required={"LINK_TYPE_P1": "IB(1)"}) == ("fail", "setting-wrong")


def test_json_says_the_same_as_text() -> None:
    assert CONFIG.verdict(as_json(), required=WANTED) == ("degraded", "config-reset-pending")
    assert CONFIG.verdict(as_json("ETH(2)"), required=WANTED) == ("ok", "healthy")
    facts = CONFIG.facts(as_json())
    assert facts["pending"] == ["LINK_TYPE_P1"]
    assert facts["current"] == {"LINK_TYPE_P1": "IB(1)", "NUM_OF_VFS": "8"}
    assert CONFIG.verdict(as_json(2, 2), required=WANTED) == ("ok", "healthy")
    assert CONFIG.verdict(as_json(1, 1), required=WANTED) == ("fail", "setting-wrong")
    assert CONFIG.verdict(as_json(True, False), required={"LINK_TYPE_P1": False})[0] == "degraded"


def test_a_required_setting_that_is_absent_fails() -> None:
    assert CONFIG.verdict(device(1, OTHERS), required=WANTED) == ("fail", "setting-wrong")


def test_every_card_counts() -> None:
    for text in (device(1, DONE) + device(2, WAITS), device(1, WAITS) + device(2, DONE)):
        assert CONFIG.verdict(text, required=WANTED) == ("degraded", "config-reset-pending")
        assert CONFIG.facts(text)["devices"] == 2
    assert CONFIG.facts(device(1, DONE) + device(2, WAITS))["pending"] == ["0000:42:00.0 LINK_TYPE_P1"]


def test_a_tool_that_did_not_run_says_nothing() -> None:
    assert CONFIG.verdict("-E- Failed to open the device\n", required=WANTED) == ("unknown", "test-did-not-run")
    assert CONFIG.verdict("", required=WANTED) == ("unknown", "output-truncated")
    assert CONFIG.verdict("-E- one card failed\n" + device(1, DONE), required=WANTED) == ("ok", "healthy")


def test_a_cut_text_is_never_ok() -> None:
    CONFIG.never_ok_when_cut(device(1, OTHERS + WAITS), step=1, required=WANTED)
    CONFIG.never_ok_when_cut(as_json(), step=1, required=WANTED)
    text = device(1, OTHERS + WAITS)
    found = CONFIG.judged(text[: text.index("ETH(2)")], required=WANTED)
    assert (found.verdict, "LINK_TYPE_P1" in found.facts["current"]) == ("unknown", False)


def test_a_wrong_context_is_an_error() -> None:
    with pytest.raises(ValueError, match="required"):
        CONFIG.judged(PLAIN, required=["LINK_TYPE_P1"])


@pytest.mark.parametrize("text", [device(1, OTHERS + WAITS + LEGEND), PLAIN, as_json()])
def test_damage_is_survived(text: str) -> None:
    CONFIG.survives(text, required=WANTED)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 9999), st.integers(0, 9999), st.integers(0, 9999))
def test_pending_is_what_differs_now_from_next(default: int, now: int, later: int) -> None:
    star = "*" if later not in {default, now} or later != now else " "
    row = f"{star}        NUM_OF_VFS                                  {default:<16}{now:<16}{later:<16}\n"
    facts = CONFIG.facts(device(1, row + LEGEND))
    assert facts["pending"] == (["NUM_OF_VFS"] if now != later else [])
    assert (facts["current"], facts["next_boot"]) == ({"NUM_OF_VFS": str(now)}, {"NUM_OF_VFS": str(later)})


def test_it_is_recognised() -> None:
    assert all(CONFIG.parser.recognise(text) >= 90 for text in (PLAIN, device(1, DONE), as_json()))
