"""The frame around a hook: it ends in time, with 0, and holds nothing of slurmd's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from weaklink.hooks import frame, prolog, start
from weaklink.hooks.frame import Clock
from weaklink.model import expected as expected_file
from weaklink.observe.command import Tools

from tests.hooknode import REPO, Node


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
