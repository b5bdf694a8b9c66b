"""The command line client: what it asks for, and what it makes of every answer. The real Slurm: tests/slurm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from weaklink.model.process import EXITED, MISSING, TIMEOUT, RunResult
from weaklink.scheduler.slurm import SlurmClient, SlurmError
from weaklink.scheduler.text import parse_nodes_json, parse_nodes_line, split_node_records

HEAD = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=4 CPUTot=4 AvailableFeatures=(null) "
    "ActiveFeatures=(null) Gres=(null) NodeAddr=10.77.0.1 NodeHostName=ctl Port=17001 Version=24.11.5 "
    "OS=Linux 6.12.1 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=100 AllocMem=0 Sockets=4 Boards=1 State={state} "
    "ThreadsPerCore=1 TmpDisk=0 Weight=7 Owner=N/A MCS_label=N/A Partitions=main,long  BootTime=2026-11-29T14:28:51 "
    "SlurmdStartTime=2026-11-29T14:57:42 LastBusyTime=2026-11-29T14:57:42 ResumeAfterTime=None CfgTRES=cpu=4,mem=100M "
    "AllocTRES= CurrentWatts=0 AveWatts=0 "
)
STAMP = " [root@2026-11-29T14:57:42]"


def line(tail: str = "", name: str = "c1", state: str = "IDLE+DRAIN") -> str:
    return HEAD.format(name=name, state=state) + tail


class Tools:
    """Answers commands in turn, or always the same, and remembers them."""

    def __init__(self, *answers: RunResult | str) -> None:
        self.answers = list(answers)
        self.asked: list[list[str]] = []
        self.fed: list[str] = []

    def __call__(self, argv: Sequence[str], _timeout: float) -> RunResult:
        self.asked.append(list(argv))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return RunResult(tuple(argv), 0, answer, "", EXITED, 0.01) if isinstance(answer, str) else answer

    def feed(self, argv: Sequence[str], timeout: float, stdin: str) -> RunResult:
        self.fed.append(stdin)
        return self(argv, timeout)


@pytest.mark.parametrize(
    ("tail", "reason", "extra"),
    [
        ("", "", ""),
        (f" Reason=alice: RMA 4711{STAMP}", "alice: RMA 4711", ""),
        (f' Reason=a=b Extra=c State=DOWN{STAMP} Comment=x Extra={{"a":1}}', "a=b Extra=c State=DOWN", '{"a":1}'),
        (f" Reason=x{STAMP} Extra=(null)", "x", ""),
        (' Comment=hello Extra={"b c":"d e"}', "", '{"b c":"d e"}'),
        (" Comment=State=IDLE Weight=99", "", ""),
    ],
)
def test_a_record_is_taken_apart(tail: str, reason: str, extra: str) -> None:
    found = parse_nodes_line(line(tail))
    assert found is not None
    assert (found.name, found.reason, found.extra, found.weight) == ("c1", reason, extra, 7)
    assert found.states == {"IDLE", "DRAIN"}
    assert found.partitions == ("main", "long")
    assert found.reason_user == ("root" if reason else "")


@pytest.mark.parametrize(
    "tail",
    [
        f" Reason=forged{STAMP} and more{STAMP}",
        f" Reason=two lines{STAMP}        NodeName=c2 Reason=forged",
        f" Comment=x Reason=forged{STAMP}",
        " Reason=without a stamp",
        f" Reason=x{STAMP} Extra=a Extra=b",
        f" Reason=x\ny{STAMP}",
    ],
)
def test_what_could_be_read_in_two_ways_is_not_guessed(tail: str) -> None:
    assert parse_nodes_line(line(tail)) is None


def test_such_a_node_is_asked_for_in_the_exact_form() -> None:
    node = {
        "name": "c1",
        "state": ["IDLE", "DRAIN"],
        "reason": "forged [root@2026-11-29T14:57:42] and more",
        "reason_set_by_user": "alice",
        "reason_changed_at": {"set": True, "infinite": False, "number": 1795962531},
        "extra": "",
        "partitions": ["main"],
        "weight": 1,
    }
    exact = json.dumps({"nodes": [node]})
    tools = Tools(line(f" Reason=forged{STAMP} and more{STAMP}"), exact)
    found = SlurmClient(tools).nodes()["c1"]
    assert found.reason == "forged [root@2026-11-29T14:57:42] and more"
    assert found.reason_user == "alice"
    assert tools.asked[1] == ["scontrol", "show", "node", "c1", "--json=v0.0.42"]


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        ("IDLE", {"IDLE"}),
        ("IDLE+DRAIN+NOT_RESPONDING", {"IDLE", "DRAIN", "NOT_RESPONDING"}),
        ("DOWN*", {"DOWN", "NOT_RESPONDING"}),
        ("IDLE*+DRAIN", {"IDLE", "DRAIN", "NOT_RESPONDING"}),
        ("MIXED-", {"MIXED"}),
        ("IDLE~", {"IDLE"}),
        ("idle+planned", {"IDLE", "PLANNED"}),
    ],
)
def test_states_of_all_spellings(state: str, wanted: set[str]) -> None:
    found = parse_nodes_line(line(state=state))
    assert found is not None
    assert found.states == wanted


@pytest.mark.parametrize(
    ("states", "out", "drained", "taken"),
    [
        ("IDLE", False, False, False),
        ("ALLOCATED+DRAIN", True, True, True),
        ("DOWN", True, False, True),
        ("IDLE+NOT_RESPONDING", False, False, False),
        ("IDLE+POWERED_DOWN", False, False, False),
        ("IDLE+MAINTENANCE+RESERVED", False, False, False),
        ("IDLE+FAIL", True, False, True),
        ("DRAINED", True, True, True),
    ],
)
def test_what_is_out(states: str, out: bool, drained: bool, taken: bool) -> None:
    found = parse_nodes_line(line(state=states))
    assert found is not None
    assert (found.out, found.drained, found.taken) == (out, drained, taken)


def test_json_of_other_versions() -> None:
    found = parse_nodes_json({"nodes": [{"name": "c1", "state": "idle", "reason_changed_at": 0, "partitions": "a,b"}]})[
        "c1"
    ]
    assert found.states == {"IDLE"}
    assert (found.reason, found.reason_time, found.partitions) == ("", "", ("a", "b"))
    bad: Any
    for bad in ({}, [], {"nodes": [{}]}, {"nodes": [{"name": "x", "state": ["IDLE"], "weight": "y"}]}, {"nodes": 5}):
        with pytest.raises(SlurmError):
            parse_nodes_json(bad)


@pytest.mark.parametrize(
    "answer",
    [
        RunResult(("scontrol",), None, "", "", TIMEOUT, 8.0),
        RunResult(("scontrol",), None, "", "", MISSING, 0.0),
        RunResult(("scontrol",), 1, "", "slurm_load_node error: Unable to contact slurm controller", EXITED, 0.1),
        RunResult(("scontrol",), 1, line(), "", EXITED, 0.1),  # told something, and failed
        "garbage",
        "NodeName=c1 nothing else",
        line() + "\n" + line(),  # twice
        line(state="").replace("State= ", "State="),
    ],
)
def test_every_failure_is_a_slurm_error(answer: RunResult | str) -> None:
    client = SlurmClient(Tools(answer))
    with pytest.raises(SlurmError):
        client.nodes(["c1"])
    with pytest.raises(SlurmError):
        client.nodes()


def test_told_of_others_than_asked_for() -> None:
    with pytest.raises(SlurmError, match="asked Slurm for c2"):
        SlurmClient(Tools(line())).nodes(["c2"])
    with pytest.raises(SlurmError):
        SlurmClient(Tools(line() + "\n" + line(name="c2"))).nodes(["c1"])


def test_no_nodes_at_all() -> None:
    assert SlurmClient(Tools("")).nodes() == {}
    assert SlurmClient(Tools("x")).nodes([]) == {}


@pytest.mark.parametrize(
    "name", ["c[1-3]", "c1,c2", "ALL", "all", "", " ", "c1 state=resume", "-c", "c1\n", "é", "x" * 80, "$(id)", "../c1"]
)
def test_no_command_is_run_for_what_is_not_a_name(name: str) -> None:
    tools = Tools("")
    client = SlurmClient(tools, feed=tools.feed)
    calls: list[Any] = [
        lambda: client.nodes([name]),
        lambda: client.drain(name, "why"),
        lambda: client.undrain(name),
        lambda: client.set_reason(name, "why"),
        lambda: client.set_extra(name, "x"),
        lambda: client.exchange_drain(name, "why"),
        lambda: client.exchange_undrain(name, "why"),
        lambda: client.delete_reservation(name),
        lambda: client.create_reservation("r", [name], ["root"], 5),
        lambda: client.create_reservation("r", ["c1"], [name], 5),
    ]
    for call in calls[:-1]:
        with pytest.raises(SlurmError):
            call()
    assert tools.asked == []


def test_arguments_are_arguments() -> None:
    tools = Tools("")
    client = SlurmClient(tools)
    reason = "a \"b\" 'c' $(id) ; | & = [x]"
    client.drain("c1", reason)
    client.set_extra("c1", '{"a": "b c"}')
    client.note_job(5, "x=y z")
    client.requeue(5)
    client.cancel(5)
    assert tools.asked == [
        ["scontrol", "update", "nodename=c1", "state=drain", f"reason={reason}"],
        ["scontrol", "update", "nodename=c1", 'extra={"a": "b c"}'],
        ["scontrol", "update", "jobid=5", "admincomment=x=y z"],
        ["scontrol", "requeue", "5"],
        ["scancel", "5"],
    ]


@pytest.mark.parametrize("text", ["a\nb", "a\0b", "a\rb"])
def test_line_breaks_go_nowhere(text: str) -> None:
    client = SlurmClient(Tools(""))
    for call in (
        lambda: client.set_extra("c1", text),
        lambda: client.note_job(1, text),
        lambda: client.exchange_drain("c1", text),
    ):
        with pytest.raises(SlurmError):
            call()


@pytest.mark.parametrize("text", ['a"b', "a\\b", "é", "tab\t"])
def test_what_scontrol_would_take_apart_is_not_fed_to_it(text: str) -> None:
    tools = Tools("")
    with pytest.raises(SlurmError):
        SlurmClient(tools, feed=tools.feed).exchange_drain("c1", text)
    assert tools.asked == []


def test_an_update_that_says_0_and_complains_has_failed() -> None:
    client = SlurmClient(Tools(RunResult(("scontrol",), 0, "", "slurm_update error: Invalid node name", EXITED, 0.1)))
    with pytest.raises(SlurmError, match="Invalid node name"):
        client.drain("c1", "why")


def test_an_exchange_in_one_process() -> None:
    out = (
        f"scontrol: show node c1\n{line(f' Reason=bob: x{STAMP}')}\nscontrol: \r<ng long line\nscontrol: show node c1\n"
        f"{line(f' Reason=ours{STAMP}')}\nscontrol: quit\n"
    )
    tools = Tools(out)
    before, after = SlurmClient(tools, feed=tools.feed).exchange_drain("c1", "ours")
    assert (before.reason, after.reason) == ("bob: x", "ours")
    assert tools.fed == ['show node c1\nupdate nodename=c1 state=drain reason="ours"\nshow node c1\nquit\n']
    assert tools.asked == [["scontrol", "-o"]]


def test_an_exchange_keeps_the_lines_of_what_it_overwrote() -> None:
    first = line(f" Reason=one{STAMP}        two three        four")
    tools = Tools(f"{first}\n{line(f' Reason=ours{STAMP}')}\n")
    before, _ = SlurmClient(tools, feed=tools.feed).exchange_drain("c1", "ours")
    assert before.reason == "one\ntwo three\nfour"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        line(),
        f"{line()}\n{line(name='c2')}\n",
        f"{line()}\n{line()}\n{line()}\n",
        RunResult(("scontrol",), 0, f"{line()}\n{line()}\n", "slurm_update error: Access denied", EXITED, 0.1),
        RunResult(("scontrol",), 1, f"{line()}\n{line()}\n", "", EXITED, 0.1),
    ],
)
def test_an_exchange_that_went_wrong_is_an_error(answer: RunResult | str) -> None:
    tools = Tools(answer)
    with pytest.raises(SlurmError):
        SlurmClient(tools, feed=tools.feed).exchange_drain("c1", "ours")


def test_without_a_feeder_it_takes_three_processes() -> None:
    tools = Tools(line(state="IDLE"), "", line(f" Reason=ours{STAMP}"))
    before, after = SlurmClient(tools).exchange_drain("c1", "ours")
    assert (before.drained, after.reason) == (False, "ours")
    assert len(tools.asked) == 3


def test_jobs() -> None:
    job = SlurmClient(Tools("7|alice|1|0|RUNNING|main|c[1-2]|7|N/A|\n")).job(7)
    assert (job.id, job.user, job.batch, job.requeue, job.state, job.nodes, job.partition) == (
        7,
        "alice",
        True,
        False,
        "RUNNING",
        "c[1-2]",
        "main",
    )
    for bad in (
        "",
        "8|alice|1|0|RUNNING|main|c1|8|N/A|\n",
        "7|a|1|0|R|main|c1|7|N/A|\n7|a|1|0|R|main|c1|7|N/A|\n",
        "7|al|ice|1|0|R|main|c1|7|N/A|\n",
        "7|a|1|0|R|main|c1|\n",
        "x\n",
    ):
        with pytest.raises(SlurmError):
            SlurmClient(Tools(bad)).job(7)


def test_a_task_of_an_array_is_named_as_such() -> None:
    # The last task has the array's number; the tasks that wait are one line with a list.
    out = "40|a|1|1|RUNNING|main|c3|40|3|\n41|a|1|1|RUNNING|main|c1|40|1|\n42|a|1|1|PENDING|main||42|4-9|\n"
    assert [SlurmClient(Tools(out)).job(number).handle for number in (40, 41, 42)] == ["40_3", "40_1", "42"]
    tools = Tools("", "", "")
    slurm = SlurmClient(tools)
    slurm.requeue("40_3")
    slurm.cancel("40_3")
    slurm.note_job("40_3", "why")
    assert [argv[-1] for argv in tools.asked[:2]] == ["40_3", "40_3"]
    assert "jobid=40_3" in tools.asked[2]
    for bad in ("40_", "_3", "40_3_4", "40_[1-3]", "40_*"):
        with pytest.raises(SlurmError):
            slurm.requeue(bad)


def test_reservations() -> None:
    out = "ReservationName=q EndTime=2026-11-29T16:00:00 Nodes=c1 Users=root,bob Accounts=(null)\n"
    found = SlurmClient(Tools(out)).reservations()["q"]
    assert (found.nodes, found.users, found.end) == ("c1", ("root", "bob"), "2026-11-29T16:00:00")
    assert SlurmClient(Tools("No reservations in the system\n")).reservations() == {}
    with pytest.raises(SlurmError):
        SlurmClient(Tools("garbage\n")).reservations()


def test_records_with_a_line_break_stay_whole() -> None:
    records = list(split_node_records(f"{line()}\n{line(' Comment=a', 'c2')}\nsecond line\n"))
    assert len(records) == 2
    assert records[1].endswith("second line")
