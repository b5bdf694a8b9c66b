"""slurm.conf as a file that daemons read."""

from __future__ import annotations

from typing import Any

import pytest
from weaklink.checks.tools import slurm_conf as checks
from weaklink.observe.tools import scontrol_node, slurm_conf
from weaklink.observe.tools.text import clean

from tests.unit.tools import fuzz
from tests.unit.tools.cases import case_of, check_case, text_of

CASE = "046-"
HEAD = "ClusterName=orion\nSlurmctldHost=ctl-1\nGresTypes=gpu\n"
C = "NodeName={} CPUs=224 Boards=1 SocketsPerBoard=2 CoresPerSocket=56 ThreadsPerCore=2 RealMemory={}\nUpTime=1-00:00"


def judge(text: str, **context: Any) -> Any:
    return checks.judge(slurm_conf.parse(clean(text.split("\n"))), context)


def concluded(text: str, **context: Any) -> tuple[str, str]:
    judged = judge(text, **context)
    return judged.verdict, judged.cause


def test_the_known_case_is_judged_right() -> None:
    check_case(CASE, judge(text_of(CASE), **case_of(CASE)["context"]))
    assert slurm_conf.recognise(text_of(CASE)) >= 85


@pytest.mark.parametrize(("memory", "verdict"), [(999, "ok"), (1000, "ok"), (1001, "fail")])
def test_equal_memory_is_enough_and_more_is_not(memory: int, verdict: str) -> None:
    text = f"{HEAD}NodeName=n[1-4] RealMemory={memory}\n"
    judged = judge(text, slurmd_C={"n3": C.format("n3", 1000)})
    assert judged.verdict == verdict
    assert judged.facts["too_high"] == (["n[1-4]"] if verdict == "fail" else [])
    assert judged.facts["ok"] == ([] if verdict == "fail" else ["n[1-4]"])


def test_the_smallest_node_of_a_line_counts() -> None:
    text = f"{HEAD}NodeName=n[1-4] RealMemory=1000\n"
    reported = {"n1": C.format("n1", 2000), "n2": C.format("n2", 900)}
    assert concluded(text, slurmd_C=reported) == ("fail", "realmemory-too-high")


def test_defaults_hold_for_the_lines_below_and_the_last_one_counts() -> None:
    text = (
        f"{HEAD}NodeName=a RealMemory=10\nNodeName=DEFAULT RealMemory=2000\nNodeName=b\n"
        "NodeName=DEFAULT RealMemory=500\nNodeName=c\nNodeName=d RealMemory=700\n"
    )
    facts = judge(text).facts
    assert facts["real_memory"] == {"a": 10, "b": 2000, "c": 500, "d": 700}


def test_case_comments_and_continuations_are_slurms() -> None:
    text = (
        f"{HEAD}# NodeName=x RealMemory=9999\nnodename=n[1-2] \\\n   realmemory=2000 \\\n   Gres=gpu:8 # RealMemory=1\n"
        "Include /etc/slurm/nodes.conf\n"
    )
    judged = judge(text, slurmd_C={"n1": C.format("n1", 1000)})
    assert judged.facts["real_memory"] == {"n[1-2]": 2000}
    assert judged.facts["includes"] == ["/etc/slurm/nodes.conf"]
    assert judged.cause == "realmemory-too-high"


def test_config_overrides_lets_slurmd_report_less() -> None:
    text = f"{HEAD}SlurmdParameters=config_overrides\nNodeName=n1 RealMemory=2000\n"
    assert concluded(text, slurmd_C={"n1": C.format("n1", 1000)})[0] == "ok"


def test_more_cores_than_there_are_is_a_fault() -> None:
    text = f"{HEAD}NodeName=n1 CPUs=256 RealMemory=1000\n"
    assert concluded(text, slurmd_C={"n1": C.format("n1", 1000)}) == ("fail", "node-size-too-high")


@pytest.mark.parametrize(
    "line",
    [
        "DebugFlags=",
        "NodeName=n[1-",
        "NodeName=n[1-2]\nNodeName=n2",
        "NodeName=n[1-2]\nPartitionName=p Nodes=n[1-3]",
        "SlurmctlPort=6817",
        "ProctrackTyp=proctrack/cgroup",
    ],
)
def test_what_the_daemons_refuse_is_a_fault(line: str) -> None:
    assert concluded(f"{HEAD}{line}\n") == ("fail", "config-invalid")


@pytest.mark.parametrize(
    "line",
    [
        "SlurmctldDebug=info\nSlurmdDebug=info\nSlurmUser=slurm\nSlurmdUser=root\nSlurmctldPort=6817\nSlurmdPort=6818",
        "NodeName=n[1-2]\nPartitionName=p Nodes=ALL",
        "NodeName=n[1-2]\nNodeSet=fast Feature=x\nPartitionName=p Nodes=fast",
        "NodeName=a_b[1-2]\nPartitionName=p Nodes=a_b1",
        "NodeName=n1\nInclude more.conf\nPartitionName=p Nodes=n[1-9]",
        "SomethingQuiteNew=1",
        'SchedulerParameters="bf_interval=30,nohold_on_prolog_fail"',
    ],
)
def test_what_they_take_is_none(line: str) -> None:
    assert concluded(f"{HEAD}{line}\n")[0] == "ok"


def test_nothing_and_a_file_that_ends_in_a_continuation_are_unknown() -> None:
    assert concluded("") == ("unknown", "test-did-not-run")
    assert concluded(f"{HEAD}NodeName=n1 RealMemory=1000 \\\n  CPUs=4 \\", slurmd_C={})[0] == "unknown"


def test_it_is_told_from_the_state_of_nodes() -> None:
    assert slurm_conf.recognise(text_of("043-")) < scontrol_node.recognise(text_of("043-"))
    assert slurm_conf.recognise(text_of(CASE)) > scontrol_node.recognise(text_of(CASE))
    nodes = "NodeName=n[1-4] RealMemory=1000 Gres=gpu:8\n"
    assert slurm_conf.recognise(nodes) > scontrol_node.recognise(nodes)


def test_scaled_numbers_and_renamed_nodes_follow() -> None:
    text = text_of(CASE).replace("gpu-h", "bignode-").replace("2064384", "206438400")
    judged = judge(text, slurmd_C={"bignode-01": C.format("bignode-01", 206438399)})
    assert judged.facts["too_high"] == ["bignode-[01-16]"]


def test_damage_never_raises_nor_takes_long() -> None:
    fuzz.survives(slurm_conf, text_of(CASE), judge=checks.judge, context=case_of(CASE)["context"])


def test_a_context_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(ValueError, match="slurmd_C"):
        judge(HEAD, slurmd_C={"n1": 5})
