"""sinfo: tables of all formats, JSON old and new."""

from __future__ import annotations

import json
from typing import Any

import pytest
from weaklink.checks.tools import sinfo as checks
from weaklink.observe.tools import sinfo
from weaklink.observe.tools.text import clean

from tests.unit.tools import fuzz
from tests.unit.tools.cases import case_of, check_case, text_of

CASE = "045-"
SHORT = """\
PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
train*       up   infinite      1  {state} n1
train*       up   infinite      3    mix n[2-3],m7
debug        up    1:00:00      1   idle m7
spare      down   infinite      0    n/a
"""
LONG = """\
Wed Mar 05 18:20:41 2025
NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
n1             1    train*     {state} 192    2:48:2 201000        0      1   (null) {reason}
n1             1     debug     {state} 192    2:48:2 201000        0      1   (null) {reason}
n2             1    train*        idle 192    2:48:2 201000        0      1   (null) none
"""
REASONS = """\
REASON               USER      TIMESTAMP           NODELIST
Not responding       slurm     2025-06-11T21:24:33 n1
mlx5_1 port flaps    root      2025-06-11T21:24:33 n[4-5]
"""


def judge(text: str, **context: Any) -> Any:
    return checks.judge(sinfo.parse(clean(text.split("\n"))), context)


def concluded(text: str, **context: Any) -> tuple[str, str]:
    judged = judge(text, **context)
    return judged.verdict, judged.cause


def test_the_known_case_is_judged_right() -> None:
    check_case(CASE, judge(text_of(CASE), **case_of(CASE)["context"]))
    assert sinfo.recognise(text_of(CASE)) >= 70


STATES = [
    ("idle", "ok", ["IDLE"]),
    ("alloc", "ok", ["ALLOCATED"]),
    ("mix-", "ok", ["MIXED", "PLANNED"]),
    ("comp", "ok", ["IDLE", "COMPLETING"]),
    ("idle~", "ok", ["IDLE", "POWERED_DOWN"]),
    ("idle#", "ok", ["IDLE", "POWERING_UP"]),
    ("idle%", "ok", ["IDLE", "POWERING_DOWN"]),
    ("idle!", "ok", ["IDLE", "POWER_DOWN"]),
    ("idle@", "ok", ["IDLE", "REBOOT_REQUESTED"]),
    ("boot^", "ok", ["IDLE", "REBOOT_ISSUED"]),
    ("maint", "ok", ["IDLE", "MAINTENANCE"]),
    ("maint$", "ok", ["IDLE", "MAINTENANCE"]),
    ("resv", "ok", ["IDLE", "RESERVED"]),
    ("reserved", "ok", ["IDLE", "RESERVED"]),
    ("plnd", "ok", ["IDLE", "PLANNED"]),
    ("planned", "ok", ["IDLE", "PLANNED"]),
    ("powered_down", "ok", ["IDLE", "POWERED_DOWN"]),
    ("drain", "fail", ["IDLE", "DRAIN"]),
    ("drained", "fail", ["IDLE", "DRAIN"]),
    ("drain*", "fail", ["IDLE", "DRAIN", "NOT_RESPONDING"]),
    ("drng", "fail", ["ALLOCATED", "DRAIN"]),
    ("draining", "fail", ["ALLOCATED", "DRAIN"]),
    ("down", "fail", ["DOWN"]),
    ("down*", "fail", ["DOWN", "NOT_RESPONDING"]),
    ("down$", "fail", ["DOWN", "MAINTENANCE"]),
    ("idle*", "fail", ["IDLE", "NOT_RESPONDING"]),
    ("fail", "fail", ["IDLE", "FAIL"]),
    ("failing", "fail", ["ALLOCATED", "FAIL"]),
    ("inval", "fail", ["IDLE", "INVALID_REG"]),
    ("unk", "unknown", ["UNKNOWN"]),
    ("idle+drain", "fail", ["IDLE", "DRAIN"]),
]


@pytest.mark.parametrize(("state", "verdict", "words"), STATES, ids=[state for state, _, _ in STATES])
def test_states_and_suffixes_are_told_apart(state: str, verdict: str, words: list[str]) -> None:
    for text in (SHORT.format(state=state), LONG.format(state=state, reason="x")):
        judged = judge(text)
        node = judged.facts["nodes"]["n1"]
        assert [node["base"], *node["flags"]] == words
        assert judged.verdict == verdict, judged.findings
        assert sinfo.recognise(text) >= 85


def test_host_lists_are_expanded_and_a_node_of_two_partitions_is_one() -> None:
    facts = judge(SHORT.format(state="idle")).facts
    assert list(facts["nodes"]) == ["n1", "n2", "n3", "m7"]
    assert facts["partitions"] == {"train": "up", "debug": "up", "spare": "down"}


def test_reasons_keep_their_blanks() -> None:
    judged = judge(LONG.format(state="drained", reason="mlx5_1 port flaps"))
    assert judged.facts["nodes"]["n1"]["reason"] == "mlx5_1 port flaps"
    assert judged.facts["unusable"] == ["n1"]
    assert judge(LONG.format(state="draining", reason="scheduled maintenance")).verdict == "ok"


def test_a_bar_in_a_reason_is_only_a_bar() -> None:
    judged = judge(LONG.format(state="drained", reason="link a|b: down"))
    assert judged.facts["nodes"]["n1"]["reason"] == "link a|b: down"
    odd = REASONS.replace("mlx5_1 port flaps ", "at 2025-01-01T00:00:00 down ")
    assert judge(odd).facts["nodes"]["n4"]["reason"] == "at 2025-01-01T00:00:00 down"


def test_a_list_of_reasons_is_a_list_of_nodes_that_are_out() -> None:
    judged = judge(REASONS)
    assert (judged.verdict, judged.cause) == ("fail", "node-not-responding")
    assert judged.facts["unusable"] == ["n1", "n4", "n5"]
    assert judged.facts["nodes"]["n4"]["reason"] == "mlx5_1 port flaps"
    assert judged.facts["nodes"]["n1"]["reason_by"] == "slurm"
    state = "REASON               USER         TIMESTAMP           STATE  NODELIST\n"
    long = state + "mlx5_1 port flaps    root(0)      2025-06-11T21:24:33 drain* n4\n"
    assert judge(long).facts["nodes"]["n4"]["flags"] == ["DRAIN", "NOT_RESPONDING"]


FORMATS = {
    "bars": "PARTITION|NODELIST|STATE|GRES|REASON\na*|n1|drained|gpu:8(S:0,1)|bad cable\na*|n2|idle|gpu:8(S:0)|none\n",
    "own columns": "HOSTNAMES STATE GRES REASON\nn1 drained gpu:8(S:0,1) bad cable\nn2 idle gpu:8(S:0) none\n",
    "no header": "n1 drained bad cable\nn2 idle none\n",
    "no header, bars": "n1|drained|bad cable\nn2|idle|none\n",
}


@pytest.mark.parametrize("text", FORMATS.values(), ids=FORMATS)
def test_formats_of_ones_own_are_read(text: str) -> None:
    judged = judge(text)
    assert judged.facts["unusable"] == ["n1"], judged.findings
    assert judged.facts["nodes"]["n1"]["reason"] == "bad cable"
    assert "GRES" not in text or judged.facts["gpus_total"] == 16


def test_a_summary_does_not_say_which_nodes_are_out() -> None:
    text = "PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST\ntrain*       up   infinite        3/4/{}/7 n[1-7]\n"
    assert concluded(text.format(0))[0] == "ok"
    assert concluded(text.format(2)) == ("unknown", "test-did-not-run")


def group(state: Any, names: list[str]) -> dict[str, Any]:
    return {
        "node": {"state": state},
        "nodes": {
            "allocated": 0,
            "idle": 1,
            "other": 0,
            "total": len(names),
            "hostnames": [],
            "addresses": names,
            "nodes": names,
        },
        "gres": {"total": "gpu:h100:8(S:0-1)", "used": "gpu:h100:0"},
        "reason": {"time": 0, "description": "port flaps" if "DRAIN" in state else "", "user": "root"},
        "partition": {"name": "train"},
    }


def test_the_newer_json_groups_nodes_by_state() -> None:
    text = json.dumps(
        {"sinfo": [group(["IDLE", "DRAIN"], ["n1"]), group(["IDLE"], ["n2", "n3"])], "meta": {}, "errors": []}
    )
    judged = judge(text)
    assert (judged.verdict, judged.cause) == ("fail", "node-drained")
    assert judged.facts["unusable"] == ["n1"]
    assert judged.facts["nodes"]["n1"]["reason"] == "port flaps"
    assert judged.facts["gpus_total"] == 24
    assert sinfo.recognise(text) >= 85


def test_no_answer_is_unknown() -> None:
    refused = "slurm_load_partitions: Unable to contact slurm controller (connect failure)"
    for text in ("", refused, '{"nodes": []}', "bash: sinfo: command not found", "sh: 1: sinfo: not found"):
        assert concluded(text) == ("unknown", "test-did-not-run"), text
        assert judge(text).facts["unusable"] is None


def test_cut_json_is_unknown() -> None:
    text = text_of(CASE)
    assert concluded(text[: len(text) // 2]) == ("unknown", "output-truncated")


def test_a_cut_row_is_unknown_and_invents_no_node() -> None:
    text = SHORT.format(state="down")
    cut = text[: text.index("n[2-3]") + 4]
    judged = judge(cut.replace(" down n1", " idle n1"))
    assert judged.verdict == "unknown"
    assert list(judged.facts["nodes"]) == ["n1"]


@pytest.mark.parametrize(
    "sample",
    [SHORT.format(state="drng*"), LONG.format(state="down*", reason="x y"), REASONS, text_of(CASE), *FORMATS.values()],
)
def test_damage_never_raises_nor_takes_long(sample: str) -> None:
    fuzz.survives(sinfo, sample, judge=checks.judge)
