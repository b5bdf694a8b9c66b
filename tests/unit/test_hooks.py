"""The hooks as a whole, with a fake tree, fake tools, and a fake Slurm. Real ones: tests/slurm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

import pytest
from weaklink.hooks import epilog, frame, health, prolog, start
from weaklink.hooks.files import Places, lock, log, read_state, write_atomic, write_evidence
from weaklink.hooks.frame import Clock
from weaklink.model import expected as expected_file
from weaklink.model.process import TIMEOUT, RunResult
from weaklink.observe.command import Tools
from weaklink.scheduler import digest, ownership
from weaklink.scheduler.fake import FakeSlurm
from weaklink.scheduler.types import JobInfo

from tests.fakenode import FakeNode, dump, expected

KEY = "5a" * 32
REPO = Path(__file__).parents[2]
ADDRESSES = json.dumps(
    [{"ifname": f"enp0s1{6 + net}", "addr_info": [{"local": f"10.77.{net}.11", "prefixlen": 24}]} for net in range(3)]
)


class Node:
    """One node with everything around it; ``prolog()`` and the like run its hooks in this process."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.folder = folder
        self.tree = FakeNode(folder / "root")
        self.places = Places(
            expected=str(folder / "expected.json"),
            key=str(folder / "token.key"),
            state=str(folder / "lib/state"),
            evidence=str(folder / "lib/evidence"),
            log=str(folder / "log/guard.log"),
        )
        self.slurm = FakeSlurm()
        self.slurm.put_job(JobInfo(7, "alice", True, True, "RUNNING", "c1", "main"))
        self.asked: list[list[str]] = []
        self.hang: set[str] = set()
        self.expect(**changes)
        (folder / "token.key").write_text(KEY)
        (folder / "token.key").chmod(0o600)

    def expect(self, **changes: Any) -> None:
        dump(expected(**changes), Path(self.places.expected))

    # a toolbox

    def run(self, argv: Sequence[str], timeout: float) -> RunResult:
        self.asked.append(list(argv))
        if argv[0] in self.hang:
            return RunResult(tuple(argv), None, "", "", TIMEOUT, timeout)
        out = {"systemctl": "active\nactive\n", "ip": ADDRESSES}.get(argv[0])
        return RunResult(tuple(argv), 0 if out else None, out or "", "", "exited" if out else "missing", 0.0)

    def feed(self, argv: Sequence[str], timeout: float, _stdin: str) -> RunResult:
        return self.run(argv, timeout)

    # hooks

    def _hook(self, work: Callable[..., int], **environ: str) -> int:
        want = expected_file.read(self.places.expected)
        return work(
            want,
            self.places,
            Clock(20),
            environ,
            tools=self,
            root=str(self.folder / "root"),
            make_client=lambda _: self.slurm,
        )

    def prolog(self, job: str = "7", user: str = "alice") -> int:
        return self._hook(prolog.work, SLURM_JOB_ID=job, SLURM_JOB_USER=user)

    def epilog(self) -> int:
        return self._hook(epilog.work, SLURM_JOB_ID="7", SLURM_JOB_USER="alice")

    def health(self) -> int:
        return self._hook(health.work)

    # what came of it

    def lines(self) -> list[dict[str, Any]]:
        path = Path(self.places.log)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def actions(self) -> list[str]:
        return [line["action"] for line in self.lines()]

    def evidence(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(Path(self.places.evidence).glob("*.json"))]

    def reason(self) -> str:
        found = self.slurm.nodes()["c1"]
        return found.reason if found.drained else ""

    def wrote(self) -> list[str]:
        """The kinds of updates that Slurm was asked for."""
        return [call[0] for call in self.slurm.calls if call[0] not in ("nodes", "job", "reservations")]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody else drains at the same time here.
    monkeypatch.setattr(ownership, "_SAME_STAMP", 0.0)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


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


# files


def test_files_are_private_and_whole(node: Node) -> None:
    node.tree.down("rxe_compute")
    node.prolog()
    node.health()
    for path in (node.folder / "lib", node.folder / "log"):
        assert path.stat().st_mode & 0o077 == 0
        for file in path.rglob("*"):
            assert file.stat().st_mode & 0o077 == 0
            assert not file.name.endswith(".new")


def test_a_full_disk_stops_nothing(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: Any, **_kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("weaklink.hooks.files._make_folder", full)
    node.tree.down("rxe_compute")
    assert node.prolog() == 0
    assert node.reason()


def test_the_log_is_cut_and_turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places(log=str(tmp_path / "log/guard.log"))
    log(places, {"message": "x" * 100, "findings": ["y" * 100_000]})
    log(places, {"message": 'quote " line\nbreak \udcff'})
    first, second = [json.loads(line) for line in Path(places.log).read_text().splitlines()]
    assert first["cut"] is True
    assert "findings" not in first
    assert second["message"] == 'quote " line\nbreak \udcff'
    monkeypatch.setattr("weaklink.hooks.files._MAX_LOG", 10)
    log(places, {"message": "turn"})
    assert Path(places.log + ".1").exists()


def test_old_evidence_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weaklink.hooks.files._KEEP_EVIDENCE", 3)
    places = Places(evidence=str(tmp_path / "evidence"))
    for index in range(6):
        write_evidence(places, {"id": f"2026010{index}"})
    assert sorted(path.stem for path in Path(places.evidence).iterdir()) == ["20260103", "20260104", "20260105"]


def test_state_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "state.json")
    write_atomic(path, {"a": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("crash")))
        with pytest.raises(OSError, match="crash"):
            write_atomic(path, {"a": 2})
    assert read_state(path) == {"a": 1}


@pytest.mark.parametrize("taken", [0, 5])
def test_a_disk_that_takes_a_part_only_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    path = str(tmp_path / "state.json")
    write_atomic(path, {"a": 1})
    real, sizes = os.write, iter([taken])

    def write(fd: int, data: bytes) -> int:
        size = next(sizes, 0)
        if not size:
            raise OSError(28, "No space left on device")
        return real(fd, data[:size])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(OSError, match="No space"):
            write_atomic(path, {"a": 2})
    assert read_state(path) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]


# the frame


def wait_for(what: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for something that is only a matter of when the kernel gets round to it."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    """True when a process is gone, or only its zombie is left."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def in_child(code: Callable[[], int]) -> tuple[int, float]:
    """Run ``code`` in a process of its own; return its exit status and how long it took."""
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os._exit(code())
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - begun


@pytest.mark.parametrize("status", [0, 1, 2, 101, 255])
def test_whatever_the_work_says_the_status_is_0(status: int) -> None:
    said: list[str] = []
    assert in_child(lambda: frame.supervise(lambda: status, 5, said.append))[0] == 0


def test_work_that_hangs_is_left_at_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "_LAST_RESORT", 30)  # it is the deadline that ends it
    note, told = tmp_path / "pid", tmp_path / "told"

    def hang() -> int:
        for number in (signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        note.write_text(str(os.getpid()))
        time.sleep(60)
        return 0

    def write(text: str) -> None:
        told.write_text(text)

    status, seconds = in_child(lambda: frame.supervise(hang, 1, write))
    assert status == 0
    assert 0.9 < seconds < 20
    assert told.read_text() == "not done within 1 s"
    wait_for(lambda: gone(int(note.read_text())))


def test_work_that_dies_is_told() -> None:
    def die() -> int:
        os.kill(os.getpid(), signal.SIGSEGV)
        return 0

    assert in_child(lambda: frame.supervise(die, 5, lambda _: None))[0] == 0


def test_told_to_stop_it_stops_with_0(tmp_path: Path) -> None:
    ready = tmp_path / "ready"

    def hang() -> int:
        ready.write_text("")
        time.sleep(60)
        return 0

    pid = os.fork()
    if pid == 0:
        os._exit(frame.supervise(hang, 30, lambda _: None))
    wait_for(ready.exists)
    os.kill(pid, signal.SIGTERM)
    begun = time.monotonic()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert time.monotonic() - begun < 15


def test_told_to_stop_it_takes_the_running_tool_with_it(tmp_path: Path) -> None:
    """A time-out of slurmd's reaches the hook only; its tool has a session of its own."""
    note = tmp_path / "pid"

    def work() -> int:
        Tools().run(["sh", "-c", f"echo $$ > {note}.new; mv {note}.new {note}; trap '' TERM; sleep 61 & wait"], 60)
        return 0

    pid = os.fork()
    if pid == 0:
        os._exit(frame.supervise(work, 60, lambda _: None))
    wait_for(note.exists)
    os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    wait_for(lambda: gone(int(note.read_text())))


def test_even_a_report_that_hangs_ends() -> None:
    status, seconds = in_child(lambda: frame.supervise(lambda: 1, 0.3, lambda _: time.sleep(60)))
    assert status == 0
    assert seconds < 20


def test_a_worker_that_cannot_be_killed_holds_no_pipe_of_slurmd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "pid"

    def sleeper() -> int:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        note.write_text(str(os.getpid()))
        time.sleep(60)
        return 0

    # Uninterruptible sleep cannot be had on demand: here the signal is lost, which looks the same from outside.
    monkeypatch.setattr(frame, "_kill", lambda _pid: None)
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write_end, 1)
        os.set_inheritable(write_end, True)
        os.close(read_end)
        os._exit(frame.supervise(sleeper, 1, lambda _: None))
    os.close(write_end)
    os.waitpid(pid, 0)
    begun = time.monotonic()
    assert os.read(read_end, 10) == b""  # the end, not a wait for the worker
    assert time.monotonic() - begun < 15
    os.close(read_end)
    worker = int(note.read_text())
    assert not gone(worker)
    os.kill(worker, signal.SIGKILL)


# start


def begin(node: Node, work: start.Work, **environ: str) -> int:
    return start.begin("prolog", work, node.places, {"SLURMD_NODENAME": "c1", **environ})


def test_a_work_that_raises_is_told_with_its_words(node: Node) -> None:
    def broken(*_args: Any) -> int:
        raise RuntimeError("a defect")

    assert in_child(lambda: begin(node, broken, SLURM_JOB_ID="9"))[0] == 0
    [line] = node.lines()
    assert (line["action"], line["job"]) == ("unknown", "9")
    assert "RuntimeError: a defect" in line["message"]


def test_a_broken_expectation_or_one_for_another_node_does_nothing(node: Node) -> None:
    never = lambda *_: 1  # noqa: E731
    assert start.begin("prolog", never, node.places, {"SLURMD_NODENAME": "c2"}) == 0
    Path(node.places.expected).write_text("{")
    assert begin(node, never) == 0
    Path(node.places.expected).unlink()
    assert begin(node, never) == 0
    assert node.actions() == ["unknown"] * 3
    assert "slurmd calls this node c2" in node.lines()[0]["message"]


def script(name: str, copy: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-I", "-S", str(copy / name)]
    return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60, check=False, cwd="/")


@pytest.mark.parametrize("name", ["prolog", "epilog", "health"])
def test_an_entry_script_without_its_package_exits_0(tmp_path: Path, name: str) -> None:
    """Also with a package that does not even compile."""
    (tmp_path / name).write_text((REPO / "slurm" / name).read_text())
    assert script(name, tmp_path).returncode == 0
    (tmp_path / "weaklink").mkdir()
    (tmp_path / "weaklink/__init__.py").write_text("this is no Python")
    done = script(name, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["prolog", "epilog", "health"])
def test_a_variable_cannot_redirect_a_hook(tmp_path: Path, name: str) -> None:
    """Whatever is in the environment: the hook reads the machine's own files, or none."""
    (tmp_path / "expected.json").write_text("{}")
    evil = tmp_path / "weaklink"
    evil.mkdir()
    (evil / "__init__.py").write_text(f"open({str(tmp_path / 'hijacked')!r}, 'w')")
    text = (REPO / "slurm/weaklink/hooks").glob("*.py")
    assert not any("WEAKLINK_" in path.read_text() for path in text)
    done = subprocess.run(
        [str(REPO / "slurm" / name)]
        if os.access("/usr/bin/python3", os.X_OK)
        else [sys.executable, "-IS", str(REPO / "slurm" / name)],
        env={"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nosuch", "SLURMD_NODENAME": "nosuch"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert not (tmp_path / "hijacked").exists()


def test_hook_paths_load_no_slow_module() -> None:
    slow = "argparse logging pathlib urllib dataclasses subprocess asyncio inspect socket ssl hashlib tempfile shutil"
    code = f"""
import sys
sys.path.insert(0, {str(REPO / "slurm")!r})
import weaklink.hooks.prolog, weaklink.hooks.start, weaklink.observe.command
print(*[name for name in {slow!r}.split() if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == ""


def test_real_tools_that_misbehave(tmp_path: Path) -> None:
    """Hung, deaf, double-forking, flooding tools in the place of ibv_devinfo: unknown, in time, nobody drained."""
    node = Node(tmp_path / "node")
    want = expected_file.read(node.places.expected)._replace(deadlines={"prolog": 4.0, "check": 0.5})
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name, text in {
        "hung": "sleep 60",
        "deaf": "trap '' TERM INT HUP; sleep 60 & wait; sleep 60",
        "forking": "setsid sleep 20 & sleep 60",
        "flooding": "yes",
        "dying": "kill -SEGV $$",
        "garbage": "head -c 20000 /dev/urandom",
    }.items():
        (bin_folder / "ibv_devinfo").write_text(f"#!/bin/sh\n{text}\n")
        (bin_folder / "ibv_devinfo").chmod(0o755)
        tools = Tools([str(bin_folder), "/usr/bin", "/bin"], max_output=1_000_000)
        begun = time.monotonic()
        code = prolog.work(
            want,
            node.places,
            Clock(3),
            {"SLURM_JOB_ID": "7"},
            tools=tools,
            root=str(node.folder / "root"),
            make_client=lambda _: node.slurm,
        )
        assert code == 0, name
        assert time.monotonic() - begun < 15, name
        assert node.slurm.calls == [], name
