"""The hooks as a whole, with a fake tree, fake tools, and a fake Slurm. Real ones: tests/slurm."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from weaklink.hooks import prolog
from weaklink.hooks.files import lock
from weaklink.hooks.frame import Clock
from weaklink.model import expected as expected_file
from weaklink.scheduler import digest, ownership
from weaklink.scheduler.types import JobInfo

from tests.fakenode import FakeNode, dump, expected
from tests.hooknode import KEY, Node

if TYPE_CHECKING:
    from weaklink.model.process import RunResult


def test_nothing_wrong_no_slurm_call_no_file(node: Node) -> None:
    assert node.prolog() == 0
    assert node.slurm.calls == []
    assert {argv[0] for argv in node.asked} == {"ibv_devinfo"}
    assert node.lines() == []
    assert not Path(node.places.state).exists()
    assert node.health() == node.epilog() == 0
    assert node.slurm.calls == []
    assert node.evidence() == node.lines() == []


def test_a_fault_drains_and_requeues(node: Node) -> None:
    node.tree.mtu("enp0s17", 1500)
    assert node.prolog() == 0
    reason = ownership.owned(bytes.fromhex(KEY), "c1", node.reason())
    assert reason is not None
    assert reason.check == "net.mtu"
    assert node.wrote() == ["drain", "note_job", "requeue", "set_extra"]
    [evidence] = node.evidence()
    assert (evidence["format"], evidence["action"], evidence["token"], evidence["job"]) == (
        1,
        "drained",
        reason.token,
        "7",
    )
    assert evidence["id"] in node.slurm.notes[7]
    found = digest.read(node.slurm.nodes()["c1"].extra)
    assert found is not None
    assert (found["id"], found["verdict"], found["cause"], found["job"]) == (
        evidence["id"],
        "fail",
        "mtu-too-small",
        "7",
    )
    assert node.actions() == ["drained", "job-requeued"]


def test_an_extra_of_somebody_elses_is_merged_or_left(node: Node) -> None:
    node.slurm.set_extra("c1", '{"rack": 4}')
    node.tree.mtu("enp0s17", 1500)
    node.prolog()
    assert json.loads(node.slurm.nodes()["c1"].extra)["rack"] == 4
    other = Node(node.folder / "other")
    other.slurm.set_extra("c1", "rack 4, left")
    other.tree.mtu("enp0s17", 1500)
    other.prolog()
    assert other.slurm.nodes()["c1"].extra == "rack 4, left"
    assert other.reason()


@pytest.mark.parametrize(
    ("policy", "wanted", "action"), [("cancel", "cancel", "job-cancelled"), ("run", None, "job-runs")]
)
@pytest.mark.parametrize("batch", [True, False])
def test_a_job_that_cannot_be_requeued(node: Node, policy: str, wanted: str | None, action: str, batch: bool) -> None:
    data = expected()
    data["policy"]["nonbatch"] = policy
    dump(data, Path(node.places.expected))
    node.slurm.put_job(JobInfo(7, "alice", batch, False, "RUNNING", "c1", "main"))
    node.tree.down("rxe_compute")
    assert node.prolog() == 0
    assert node.reason()
    assert (wanted in node.wrote()) if wanted else not {"requeue", "cancel"} & set(node.wrote())
    assert action in node.actions()


@pytest.mark.parametrize(("requeue", "nonbatch"), [(True, "cancel"), (False, "cancel")])
def test_of_an_array_only_the_task_on_this_node_goes(node: Node, requeue: bool, nonbatch: str) -> None:
    # The last task of an array to start has the number of the whole array.
    for number, task, where in ((7, "7_3", "c1"), (8, "7_1", "c2"), (9, "7_2", "c3")):
        node.slurm.put_job(JobInfo(number, "alice", True, requeue, "RUNNING", where, "main", task))
    node.tree.down("rxe_compute")
    assert node.prolog(job="7") == 0
    gone = "PENDING" if requeue else "CANCELLED"
    assert [node.slurm.job(number).state for number in (7, 8, 9)] == [gone, "RUNNING", "RUNNING"]
    assert set(node.slurm.notes) == {7}


@pytest.mark.parametrize("when", ["job", "note_job"])
def test_a_job_that_its_owner_cancels_meanwhile_stays_cancelled(node: Node, when: str) -> None:
    """Slurm would requeue it all the same."""
    node.slurm.before[when] = lambda: node.slurm.put_job(JobInfo(7, "alice", True, True, "CANCELLED", "c1", "main"))
    node.tree.down("rxe_compute")
    assert node.prolog() == 0
    assert node.reason()
    assert "requeue" not in node.wrote()
    assert "job-gone" in node.actions()


@pytest.mark.parametrize("job", ["", "7; reboot", "7\n8", "x" * 100_000, "-1"])
def test_a_job_number_that_is_none_is_told_and_the_job_runs(node: Node, job: str) -> None:
    node.tree.down("rxe_compute")
    assert node.prolog(job=job, user='"; reboot #\n') == 0
    assert {"requeue", "cancel"}.isdisjoint(node.wrote())
    assert "unknown" in node.actions()  # every line of the log is whole


def test_our_own_jobs_are_not_looked_at(node: Node) -> None:
    node.tree.down("rxe_compute")
    assert node.prolog(user="weaklink") == 0
    assert node.slurm.calls == []
    assert node.asked == []


def test_a_user_without_a_name_is_not_our_service(node: Node) -> None:
    node.expect(service_user="")
    node.tree.down("rxe_compute")
    node.prolog(user="")
    assert node.reason()


def test_over_budget(node: Node) -> None:
    for name in ("c2", "c3"):
        node.slurm.put_state(name, "IDLE", "DRAIN", reason="alice: RMA")
    node.tree.down("rxe_compute")
    assert node.prolog() == 0
    assert node.wrote() == ["set_extra"]
    found = digest.read(node.slurm.nodes()["c1"].extra)
    assert found is not None
    assert found["action"] == "over-budget"
    assert node.actions() == ["over-budget"]


@pytest.mark.parametrize("states", [("IDLE", "DRAIN"), ("DOWN",)])
def test_somebody_elses_drain_and_its_job_are_untouched(node: Node, states: tuple[str, ...]) -> None:
    node.slurm.put_state("c1", *states, reason="alice: RMA 4711", user="alice")
    node.tree.down("rxe_compute")
    for _ in range(3):
        assert node.prolog() == node.epilog() == node.health() == 0
    assert node.wrote() == []
    assert node.slurm.nodes()["c1"].reason == "alice: RMA 4711"
    assert "foreign" in node.actions()


def test_observe_asks_slurm_nothing(node: Node) -> None:
    node.expect(mode="observe")
    node.tree.down("rxe_compute")
    for _ in range(4):
        assert node.prolog() == node.epilog() == node.health() == 0
    assert node.slurm.calls == []
    assert node.evidence() == []
    said = [line for line in node.lines() if line["action"] == "would-drain"]
    assert all(line["message"].startswith("would have drained c1: rxe_compute port 1") for line in said)
    assert [line["context"] for line in said].count("prolog") == 4
    assert len(said) == 5  # health and epilog say a state that lasts once


@pytest.mark.parametrize("method", ["nodes", "drain", "job", "note_job", "requeue", "set_extra"])
def test_slurm_failing_anywhere_is_unknown_and_exit_0(node: Node, method: str) -> None:
    node.slurm.fail.add(method)
    node.tree.down("rxe_compute")
    assert node.prolog() == 0
    assert "unknown" in node.actions()
    if method in ("nodes", "drain"):
        assert "requeue" not in node.wrote()


def test_without_a_key_nothing_is_drained(node: Node) -> None:
    (node.folder / "token.key").unlink()
    node.tree.down("rxe_compute")
    assert node.prolog() == 0
    assert node.slurm.calls == []
    assert node.actions() == ["unknown"]


def test_what_cannot_be_read_is_unknown_and_never_drains(node: Node) -> None:
    node.tree.remove("/sys")
    node.tree.remove("/proc/mounts")
    for _ in range(4):
        assert node.prolog() == node.health() == node.epilog() == 0
    assert node.slurm.calls == []
    assert set(node.actions()) == {"unknown"}


def test_hanging_tools_are_unknown(node: Node) -> None:
    node.hang |= {"ibv_devinfo", "ip", "systemctl"}
    assert node.prolog() == node.health() == 0
    assert node.slurm.calls == []


def test_a_tool_that_hangs_is_told_also_where_all_is_well_without_it(node: Node) -> None:
    node.hang.add("ibv_devinfo")
    assert node.prolog() == 0
    assert node.slurm.calls == []
    [line] = node.lines()
    assert (line["action"], line["verdict"]) == ("unknown", "unknown")
    assert line["message"].startswith("ibv_devinfo did not end within")


def test_what_is_bad_but_drains_nobody_is_noted_once(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    real = node.run

    def run(argv: Sequence[str], timeout: float) -> RunResult:
        done = real(argv, timeout)
        return done._replace(out="active\nfailed\n") if argv[0] == "systemctl" else done

    monkeypatch.setattr(node, "run", run)
    for _ in range(3):
        assert node.health() == 0
    said = [line["message"] for line in node.lines() if line["action"] == "noted"]
    assert len(said) == 1
    assert said[0].startswith("slurmd: failed, wanted active")
    assert node.slurm.calls == []


def test_sysfs_that_cannot_be_read_is_unknown_not_an_absent_device(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.listdir

    def listdir(path: Any = ".") -> list[str]:
        if str(path).endswith("/sys/class/infiniband"):
            raise OSError(24, "Too many open files")
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    for _ in range(4):
        assert node.prolog() == node.health() == node.epilog() == 0
    assert node.slurm.calls == []
    assert set(node.actions()) <= {"unknown", "noted"}
    assert any("Too many open files" in line["message"] for line in node.lines())


def test_strikes_are_counted_shared_and_forgotten(node: Node) -> None:
    node.tree.down("rxe_compute")
    node.health()
    assert not node.reason()
    node.tree = FakeNode(node.folder / "root")
    node.health()
    assert "recovered" in node.actions()
    node.tree.down("rxe_compute")
    node.epilog()
    assert not node.reason()
    node.health()
    assert node.reason()
    assert node.actions()[-1] == "drained"
    before = len(node.lines()), len(node.evidence())
    for _ in range(3):
        node.health()
    assert node.actions()[before[0] :] == ["already-out"]  # a state that lasts is said once
    node.tree = FakeNode(node.folder / "root")
    node.health()
    assert node.reason()  # it never gives a node back


def test_an_unknown_run_leaves_the_strikes_as_they_are(node: Node) -> None:
    node.tree.down("rxe_compute")
    node.health()
    node.tree.write("/sys/class/infiniband/rxe_compute/ports/1/state", "\n")
    node.health()
    assert not node.reason()
    node.tree.down("rxe_compute")
    node.health()
    assert node.reason()


def test_over_budget_in_health_is_told_once_and_done_when_there_is_room(node: Node) -> None:
    for name in ("c2", "c3"):
        node.slurm.put_state(name, "IDLE", "DRAIN", reason="alice: RMA")
    node.tree.down("rxe_compute")
    for _ in range(5):
        node.health()
    assert node.actions().count("over-budget") == 1
    assert node.wrote() == ["set_extra"]
    node.slurm.put_state("c2", "IDLE")
    node.health()
    assert node.reason()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"strikes": "x", "ports": 5}', '{"strikes": -3}', "\x00" * 100])
def test_broken_state_is_survived(node: Node, text: str) -> None:
    node.health()
    for name in ("strikes.json", "counters.json"):
        (Path(node.places.state) / name).write_text(text)
    node.tree.down("rxe_compute")
    assert node.health() == node.epilog() == node.health() == node.health() == 0
    assert node.reason()


def test_counters_that_rose_are_logged(node: Node) -> None:
    node.epilog()
    node.tree.counter("rxe_compute", "link_downed", 3)
    node.tree.counter("rxe_compute", "retry_exceeded_err", 5)
    node.epilog()
    [line] = [line for line in node.lines() if line["action"] == "counters"]
    assert line["moved"] == {"rxe_compute/1": {"link_downed": 3, "retry_exceeded_err": 5}}
    assert line["job"] == "7"
    node.epilog()
    assert node.actions().count("counters") == 1
    node.tree.counter("rxe_compute", "link_downed", 4)
    node.health()
    [line] = [line for line in node.lines() if line["action"] == "noted"]
    assert "went down 1 times" in line["message"]
    assert node.slurm.calls == []
    node.tree.write("/proc/sys/kernel/random/boot_id", "another boot\n")
    node.tree.counter("rxe_compute", "link_downed", 9)
    node.health()
    assert node.actions().count("noted") == 1


def test_health_runs_do_not_overlap(node: Node) -> None:
    with lock(f"{node.places.state}/health.lock", wait=False) as mine:
        assert mine
        assert node.health() == 0
    assert node.asked == []
    assert node.actions() == ["unknown"]


def test_no_time_left_runs_no_tool(node: Node) -> None:
    want = expected_file.read(node.places.expected)
    node.tree.down("rxe_compute")
    prolog.work(want, node.places, Clock(0.1), {"SLURM_JOB_ID": "7"}, tools=node, root=str(node.folder / "root"))
    assert node.asked == []
    assert node.actions() == ["unknown"]  # not even Slurm could be asked
