"""dcb of iproute2: its objects in text and JSON, code points by name and number."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools.cases import case_of, check_case, text_of
from tests.unit.tools.mlx_cuts import tool

DCB = tool("dcb")
PFC = "pfc-cap 8 macsec-bypass off delay 0\nprio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off\n"
ETS = (
    "willing on ets-cap 8 cbs off\ntc-bw 0:0 1:0 2:0 3:50 4:0 5:0 6:0 7:0\n"
    "tc-tsa 0:strict 1:strict 2:strict 3:ets 4:strict 5:strict 6:strict 7:strict\n"
    "prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7\nreco-prio-tc 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0\n"
)
APP = "ethtype-prio 8906:3\ndefault-prio 0\ndscp-prio AF31:3 CS6:6 EF:5\n"
BUFFER = (
    "prio-buffer 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0\nbuffer-size 0:20016b 1:156096b 2:0b 3:0b 4:0b 5:0b 6:0b 7:0b\n"
    "total-size 1027728b\n"
)
ALL = f"# dcb pfc show dev ens7f0np0\n{PFC}# dcb ets show dev ens7f0np0\n{ETS}{APP}{BUFFER}host ieee\norder: dscp pcp\n"
OBJECTS: list[object] = [
    {
        "pfc_cap": 8,
        "macsec_bypass": False,
        "delay": 0,
        "prio_pfc": [False, False, False, True, False, False, False, False],
    },
    {"willing": True, "ets_cap": 8, "tc_bw": [0] * 8, "tc_tsa": ["strict"] * 8, "prio_tc": list(range(8))},
    {"dscp_prio": [["AF31", 3], [48, 6]], "default_prio": [0]},
    {"prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0], "buffer_size": [20016, 156096, 0, 0, 0, 0, 0, 0], "total_size": 1027728},
    {"host": True, "ieee": True, "cee": False},
]
JSON = "\n".join(json.dumps(item) for item in OBJECTS) + "\n"
WANTED = {"lossless_priority": 3, "rdma_dscp": 26, "cnp_dscp": 48}


def test_the_case_is_judged_as_stated() -> None:
    name = "038-dcb"
    check_case(name, DCB.judged(text_of(name), **case_of(name)["context"]))


@pytest.mark.parametrize("text", [ALL, JSON, PFC + APP, APP + PFC, (PFC + APP).replace("\nprio-pfc", " prio-pfc")])
def test_several_objects_in_one_text_are_one_port(text: str) -> None:
    assert DCB.verdict(text, **WANTED) == ("ok", "healthy")
    facts = DCB.facts(text)
    assert (facts["pfc_on"], facts["priorities_listed"]) == ([3], 8)
    assert (facts["dscp_map"][26], facts["dscp_map"][48]) == (3, 6)


def test_titles_between_objects_are_no_values() -> None:
    text = f"ens7f0np0:\n{PFC}ens7f0np0 app:\n{APP}=== buffer ===\n{BUFFER}"
    assert DCB.verdict(text, **WANTED) == ("ok", "healthy")
    wrapped = PFC + "dscp-prio AF31:3 CS6:6\nEF:5 CS1:1\n"
    assert DCB.facts(wrapped)["dscp_map"] == {26: 3, 48: 6, 46: 5, 8: 1}


def test_every_object_leaves_its_facts() -> None:
    facts = DCB.facts(ALL)
    assert (facts["prio_tc"][5], facts["tc_bw"][3], facts["tc_tsa"][3]) == (5, 50, "ets")
    assert (facts["prio_buffer"][3], facts["buffer_size"][1]) == (1, 156096)
    assert (facts["dcbx"], facts["trust"]) == ("host ieee", "dscp pcp")
    assert DCB.facts(JSON)["buffer_size"][1] == 156096
    assert DCB.facts(JSON)["dcbx"] == "host ieee"


def test_code_points_have_names_and_numbers() -> None:
    text = PFC + "dscp-prio CS0:0 LE:1 AF11:1 AF23:2 EF:5 VA:5 63:7 0x22:4\n"
    assert DCB.facts(text)["dscp_map"] == {0: 0, 1: 1, 10: 1, 22: 2, 46: 5, 44: 5, 63: 7, 34: 4}
    assert DCB.facts(PFC + "dscp-prio AF41:3 AF41:5\n")["dscp_map"] == {34: 5}


def test_pfc_off_is_not_configured_and_a_wrong_map_misclassified() -> None:
    assert DCB.verdict(ALL.replace("3:on", "3:off"), **WANTED) == ("fail", "qos-not-configured")
    assert DCB.verdict(ALL, **{**WANTED, "rdma_dscp": 34}) == ("fail", "qos-misclassified")
    assert DCB.verdict(ALL.replace("AF31:3", "AF31:4"), **WANTED) == ("fail", "qos-misclassified")
    assert DCB.verdict(ALL.replace(" CS6:6", ""), **WANTED) == ("fail", "qos-misclassified")
    assert DCB.verdict(ALL.replace(":off", ":on"), **WANTED) == ("degraded", "global-pause")


def test_an_app_table_without_code_points_maps_none() -> None:
    assert DCB.verdict(PFC + "default-prio 0\n", **WANTED) == ("fail", "qos-misclassified")


def test_what_the_output_does_not_hold_is_unknown() -> None:
    assert DCB.verdict(PFC, **WANTED)[0] == "unknown"
    assert DCB.verdict(APP, **WANTED)[0] == "unknown"
    assert DCB.verdict(ALL.replace("order: dscp pcp\n", ""), required_trust="dscp")[0] == "unknown"
    assert DCB.verdict(ALL, required_trust="dscp") == ("ok", "healthy")
    assert DCB.verdict(ALL, required_trust="pcp") == ("fail", "qos-not-configured")
    assert DCB.verdict(ALL.replace("order: dscp pcp", "order: pcp dscp"), **WANTED) == ("ok", "healthy")
    assert DCB.verdict(ALL.replace("order: dscp pcp", "order: pcp"), **WANTED) == ("fail", "qos-misclassified")


def test_a_list_of_fewer_priorities_is_cut() -> None:
    found = DCB.judged(PFC.replace(" 6:off 7:off", "") + APP, **WANTED)
    assert (found.verdict, found.facts["priorities_listed"]) == ("unknown", 6)


def test_counts_of_frames_are_read() -> None:
    text = PFC + "requests 0 0 0 17 0 0 0 0\nindications 0 0 0 4 0 0 0 0\n"
    assert DCB.facts(text)["counts"] == {"requests": [0, 0, 0, 17, 0, 0, 0, 0], "indications": [0, 0, 0, 4, 0, 0, 0, 0]}


def test_a_tool_that_did_not_run_says_nothing() -> None:
    assert DCB.verdict('Error: Device "eth9" does not exist.\n', **WANTED) == ("unknown", "test-did-not-run")


def test_a_cut_text_is_never_ok() -> None:
    for text in (ALL, JSON):
        DCB.never_ok_when_cut(text, step=1, **{**WANTED, "rdma_dscp": 34})
    DCB.never_ok_when_cut(PFC.replace("3:on", "3:off") + APP, step=1, **WANTED)


@pytest.mark.parametrize("text", [ALL, JSON])
def test_damage_is_survived(text: str) -> None:
    DCB.survives(text, **WANTED)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.integers(0, 63), st.integers(0, 7), min_size=1), st.integers(0, 63), st.integers(0, 7))
def test_the_map_decides_the_class(points: dict[int, int], point: int, lossless: int) -> None:
    pfc = " ".join(f"{number}:{'on' if number == lossless else 'off'}" for number in range(8))
    text = f"prio-pfc {pfc}\ndscp-prio {' '.join(f'{key}:{value}' for key, value in points.items())}\n"
    found = DCB.judged(text, lossless_priority=lossless, rdma_dscp=point)
    assert found.facts["dscp_map"] == points
    assert (found.verdict == "ok") == (points.get(point) == lossless)


def test_it_is_recognised() -> None:
    assert all(DCB.parser.recognise(text) >= 90 for text in (ALL, JSON, PFC, APP, BUFFER, ETS))
