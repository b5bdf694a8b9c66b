"""scontrol show node: several lines, one line, JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.checks.tools import scontrol_node as checks
from weaklink.observe.tools import scontrol_node, slurm_nodes
from weaklink.observe.tools.text import clean

from tests.unit.tools import fuzz
from tests.unit.tools.cases import case_of, check_case, text_of

LINES = """\
NodeName={name} Arch=x86_64 CoresPerSocket=48
   CPUAlloc=0 CPUEfctv=192 CPUTot=192 CPULoad=0.00
   AvailableFeatures=h200,rack3
   ActiveFeatures=h200,rack3
   Gres={gres}
   NodeAddr={name} NodeHostName={name} Version=24.11.5
   OS=Linux 6.8.0-52-generic #53-Ubuntu SMP PREEMPT_DYNAMIC State=fake Sat Jan 11 00:06:25 UTC 2025
   RealMemory=2010000 AllocMem=0 FreeMem=1877240 Sockets=2 Boards=1
   State={state} ThreadsPerCore=2 TmpDisk=0 Weight=10 Owner=N/A MCS_label=N/A
   Partitions=train,all
   BootTime=2025-06-02T07:51:16 SlurmdStartTime=2025-06-02T07:53:40
   LastBusyTime=2025-06-11T21:18:09 ResumeAfterTime=None
   CfgTRES=cpu=192,mem=2010000M,billing=192,gres/gpu=8
   AllocTRES=
   CurrentWatts=0 AveWatts=0
"""


def many(
    name: str = "n1", state: str = "IDLE", reason: str = "", gres: str = "gpu:h200:8(S:0-1)", tail: str = ""
) -> str:
    text = LINES.format(name=name, state=state, gres=gres)
    return text + (f"\n   Reason={reason}\n" if reason else "") + tail + "\n"


def one(*args: str, tail: str = "", **kwargs: str) -> str:
    text = " ".join(line.strip() for line in many(*args, **kwargs).splitlines() if line.strip())
    return f"{text} {tail}".rstrip() + "\n"


def judge(text: str, **context: Any) -> Any:
    return checks.judge(scontrol_node.parse(clean(text.split("\n"))), context)


def concluded(text: str, **context: Any) -> tuple[str, str]:
    judged = judge(text, **context)
    return judged.verdict, judged.cause


@pytest.mark.parametrize("name", ["043-", "044-"])
def test_the_known_cases_are_judged_right(name: str) -> None:
    check_case(name, judge(text_of(name), **case_of(name)["context"]))
    assert scontrol_node.recognise(text_of(name)) >= 85


STATES = [
    ("IDLE", "ok", "healthy"),
    ("MIXED", "ok", "healthy"),
    ("ALLOCATED", "ok", "healthy"),
    ("IDLE+PLANNED", "ok", "healthy"),
    ("MAINT", "ok", "healthy"),
    ("IDLE+MAINTENANCE+RESERVED", "ok", "healthy"),
    ("IDLE+DRAIN+MAINTENANCE", "ok", "healthy"),
    ("IDLE+CLOUD+POWERED_DOWN", "ok", "healthy"),
    ("IDLE~", "ok", "healthy"),
    ("IDLE#", "ok", "healthy"),
    ("IDLE+CLOUD+NOT_RESPONDING+POWERING_UP", "ok", "healthy"),
    ("IDLE+REBOOT_REQUESTED", "ok", "healthy"),
    ("IDLE+DRAIN+REBOOT_ISSUED", "ok", "healthy"),
    ("FUTURE", "ok", "healthy"),
    ("IDLE+COMPLETING", "ok", "healthy"),
    ("DOWN", "fail", "node-drained"),
    ("DOWN*", "fail", "node-not-responding"),
    ("DOWN+DRAIN+NOT_RESPONDING", "fail", "node-not-responding"),
    ("IDLE+DRAIN", "fail", "node-drained"),
    ("IDLE*+DRAIN", "fail", "node-not-responding"),
    ("MIXED+DRAIN", "fail", "node-drained"),
    ("ALLOCATED+DRAIN", "fail", "node-drained"),
    ("IDLE+FAIL", "fail", "node-drained"),
    ("ERROR", "fail", "node-drained"),
    ("IDLE+INVALID_REG", "fail", "node-drained"),
    ("IDLE+NOT_RESPONDING", "fail", "node-not-responding"),
    ("UNKNOWN", "unknown", "state-unknown"),
]


@pytest.mark.parametrize(("state", "verdict", "cause"), STATES, ids=[state for state, _, _ in STATES])
@pytest.mark.parametrize("form", [many, one], ids=["lines", "-o"])
def test_states_are_told_apart(form: Any, state: str, verdict: str, cause: str) -> None:
    assert concluded(form("n1", state)) == (verdict, cause)


@pytest.mark.parametrize(
    ("reason", "verdict", "cause"),
    [
        ("Not responding [slurm@2025-06-11T21:24:33]", "fail", "node-not-responding"),
        (
            "Low RealMemory (reported:515627 < 100.00% of configured:520000) [slurm@2025-06-11T21:24:33]",
            "fail",
            "realmemory-too-high",
        ),
        ("gres/gpu count reported lower than configured (7 < 8) [slurm@2025-06-11T21:24:33]", "fail", "gpu-missing"),
        ("Kill task failed [root@2025-06-11T21:24:33]", "fail", "node-drained"),
        ("Reboot ASAP [root@2025-06-11T21:24:33]", "ok", "healthy"),
        ("scheduled maintenance until Monday [alice@2025-06-11T21:24:33]", "ok", "healthy"),
        ("maintenance: bad DIMM failed [alice@2025-06-11T21:24:33]", "fail", "node-drained"),
    ],
)
def test_a_drain_is_a_fault_unless_it_is_planned_work(reason: str, verdict: str, cause: str) -> None:
    assert concluded(many(state="IDLE+DRAIN", reason=reason)) == (verdict, cause)


ODD = [
    'say "hi" a=b State=DOWN <x> [1] [not a stamp]',
    "see http://t/1?a=b&c=d #42",
    "weaklink:rdma.state: mlx5_3 down [abc12]",
    "Reason=Comment=Extra=",
    "käse ünd 日本語",
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("form", [many, one], ids=["lines", "-o"])
def test_odd_words_in_a_reason_are_only_words(form: Any, odd: str) -> None:
    text = form(state="IDLE+DRAIN", reason=f"{odd} [alice@2025-06-11T21:24:33]") + form("n2")
    judged = judge(text)
    node = judged.facts["nodes"]["n1"]
    assert (node["base"], node["flags"]) == ("IDLE", ["DRAIN"])
    assert (node["reason"], node["reason_by"], node["reason_at"]) == (odd, "alice", "2025-06-11T21:24:33")
    assert judged.facts["unusable"] == ["n1"]
    assert judged.facts["nodes"]["n2"] == {"base": "IDLE", "flags": [], "memory_mb": 2010000}


def test_a_reason_of_several_lines_stays_one_reason() -> None:
    text = many(state="IDLE+DRAIN", reason="first line [alice@2025-06-11T21:24:33]\n          second: State=IDLE")
    node = judge(text).facts["nodes"]["n1"]
    assert (node["base"], node["reason_by"]) == ("IDLE", "alice")
    assert node["reason"].startswith("first line")
    assert "second" in node["reason"]


def test_our_own_comments_are_told_from_others() -> None:
    lines = many(
        state="IDLE+DRAIN",
        reason="weaklink:nic: down [root@2025-06-11T21:24:33]",
        tail="   Comment=weaklink: State=DOWN Gres=gpu:99\n",
    )
    judged = judge(lines + many("n2", tail="   Comment=hands off\n"), comment_prefix="weaklink:")
    assert judged.facts["ours"] == ["n1"]
    assert judged.facts["gpus"] == {"n1": 8, "n2": 8}
    assert judged.facts["nodes"]["n2"]["comment"] == "hands off"
    line = one("n3", tail='Reason=x [root@2025-06-11T21:24:33] Comment=weaklink: State=DOWN Extra={"a": 1}')
    judged = judge(line, comment_prefix="weaklink:")
    assert judged.facts["ours"] == ["n3"]
    assert judged.facts["nodes"]["n3"]["extra"] == '{"a": 1}'
    assert judged.verdict == "ok"


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu:h200:8(S:0-1)", 8),
        ("gpu:8", 8),
        ("gpu:a100:4(S:0),gpu:v100:2(S:1)", 6),
        ("gpu:a100:1(S:0,1),gpu:a100:1(IDX:2,3)", 2),
        ("gpu:no_consume:4", 4),
        ("gpu:1g.5gb:7,shard:a100:28", 7),
        ("craynetwork:4,gpu:h100:2", 2),
    ],
)
def test_gpus_are_counted_out_of_any_gres(gres: str, gpus: int) -> None:
    assert judge(many(gres=gres)).facts["gpus"] == {"n1": gpus}


def node(**more: Any) -> dict[str, Any]:
    return {"name": "n1", "gres": "gpu:h100:8", "reason": "", "real_memory": 1000, **more}


@pytest.mark.parametrize(
    "more",
    [
        {"state": "idle", "state_flags": ["DRAIN"]},
        {"state": ["IDLE", "DRAIN"]},
        {"state": ["DRAIN", "IDLE"]},
        {"state": "IDLE+DRAIN"},
        {"state": ["idle"], "state_flags": ["DRAIN"]},
    ],
)
def test_json_of_every_data_parser_shows_the_drain(more: dict[str, Any]) -> None:
    stamp = {"set": True, "infinite": False, "number": 1736411022}
    text = json.dumps(
        {"meta": {"slurm": {"release": "24.11.5"}}, "nodes": [node(**more, reason="x", reason_changed_at=stamp)]}
    )
    judged = judge(text)
    assert (judged.verdict, judged.cause) == ("fail", "node-drained")
    assert judged.facts["nodes"]["n1"]["reason_at"] == "1736411022"
    assert judged.facts["gpus"] == {"n1": 8}
    assert scontrol_node.recognise(text) >= 70


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slurm_load_node error: Unable to contact slurm controller (connect failure)",
        "Node n9 not found",
        '{"nodes": []}',
    ],
)
def test_no_node_is_unknown_and_never_not_drained(text: str) -> None:
    assert concluded(text) == ("unknown", "test-did-not-run")


def test_a_node_cut_before_its_state_is_unknown() -> None:
    text = many(state="DOWN")
    assert concluded(text[: text.index("State=DOWN")]) == ("unknown", "output-truncated")
    assert concluded(one(state="DOWN")[:200]) == ("unknown", "output-truncated")


def test_a_state_at_the_very_end_may_go_on() -> None:
    text = many(state="IDLE+DRAIN")
    assert concluded(text[: text.index("+DRAIN")]) == ("unknown", "output-truncated")


def test_names_and_order_follow_the_output() -> None:
    text = many("x_1.example.org", "IDLE") + many("b-2", "DOWN") + many("a", "IDLE+DRAIN")
    judged = judge(text)
    assert judged.facts["unusable"] == ["b-2", "a"]
    assert list(judged.facts["nodes"]) == ["x_1.example.org", "b-2", "a"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(slurm_nodes.FLAGS)), max_size=4, unique=True),
    st.sampled_from(["IDLE", "DOWN", "MIXED"]),
)
def test_flags_are_kept_in_any_order(flags: list[str], base: str) -> None:
    text = "+".join([base, *flags])
    renamed = {{"NO_RESPOND": "NOT_RESPONDING", "MAINT": "MAINTENANCE"}.get(flag, flag) for flag in flags}
    found = slurm_nodes.states(text)
    assert found is not None
    assert (found[0], set(found[1])) == (base, renamed)


@pytest.mark.parametrize(
    "sample",
    [
        text_of("043-"),
        text_of("044-"),
        many(state="IDLE+DRAIN", reason="x [a@b]") + one("n2", "DOWN"),
        '{"nodes": [{"name": "a"}]}',
    ],
)
def test_damage_never_raises_nor_takes_long(sample: str) -> None:
    fuzz.survives(scontrol_node, sample, judge=checks.judge, context={"comment_prefix": "weaklink:"})


def test_a_context_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(ValueError, match="power_saving"):
        judge(many(), power_saving="yes")


@pytest.mark.parametrize("form", [many, one])
@pytest.mark.parametrize("state", ["DOWN+DRAIN+REBOOT_ISSUED", "DOWN+REBOOT_ISSUED+NOT_RESPONDING"])
def test_a_node_on_its_way_through_a_reboot_is_no_fault(form: Any, state: str) -> None:
    text = form("n1", state, "Reboot ASAP : reboot issued [slurm@2025-06-11T21:26:33]")
    assert concluded(text) == ("ok", "healthy")


@pytest.mark.parametrize("words", [["DRAIN", "ALLOCATED"], ["ALLOCATED", "DRAIN"], ["drain", "allocated"]])
def test_a_flag_before_the_base_state_does_not_become_one(words: list[str]) -> None:
    assert slurm_nodes.json_states({"state": words}) == ("ALLOCATED", ("DRAIN",))
    assert slurm_nodes.json_states({"state": ["DRAIN"]}) == ("IDLE", ("DRAIN",))


@pytest.mark.parametrize("state", ["IDLE+MAINTENANCE+NOT_RESPONDING", "IDLE+MAINTENANCE+RESERVED+DRAIN"])
def test_a_node_in_maintenance_may_be_silent(state: str) -> None:
    assert concluded(many("n1", state)) == ("ok", "healthy")


def test_what_was_not_answered_is_not_none_unusable() -> None:
    assert (
        judge("slurm_load_node error: Unable to contact slurm controller (connect failure)").facts["unusable"] is None
    )
