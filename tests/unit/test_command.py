"""A command cannot hold us, whatever it does. The tools are real processes that misbehave in one way each."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

import pytest
from weaklink.model.process import ABANDONED, ERROR, EXITED, MISSING, TIMEOUT, RunResult
from weaklink.observe import command
from weaklink.observe.command import Tools


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(path=[str(tmp_path), "/usr/bin", "/bin"])


def tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def gone(pid: int) -> bool:
    """True when a process is gone, or only its zombie is left."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def soon(what: Callable[[], bool], seconds: float = 20.0) -> bool:
    """True when something comes true; SIGKILL is sent at once, but the kernel takes its time to act on it."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_output_status_and_time() -> None:
    result = command.run(["sh", "-c", "echo out; echo err >&2; exit 3"], 5)
    assert (result.rc, result.out, result.err, result.status) == (3, "out\n", "err\n", EXITED)
    assert not result.ok
    assert result.failure() == "sh exited 3: err"
    assert 0 < result.seconds < 5
    assert command.run(["true"], 5).ok


def test_a_signal_is_told_as_a_negative_status() -> None:
    assert command.run(["sh", "-c", "kill -TERM $$"], 5).rc == -signal.SIGTERM


def test_a_missing_tool_and_one_that_is_no_program(tmp_path: Path) -> None:
    assert command.run(["no-such-tool-anywhere"], 1).status == MISSING
    assert command.run([], 1).status == MISSING
    assert command.run(["../bin/true"], 1).status == MISSING
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF garbage")
    broken.chmod(0o755)
    result = command.run([str(broken)], 5)
    assert result.status == ERROR
    assert "could not start" in result.err
    assert command.run(["echo", "a\0b"], 1).status == ERROR


def test_a_tool_that_hangs_and_ignores_sigterm_is_killed_with_its_group(tmp_path: Path, tools: Tools) -> None:
    note = tmp_path / "pids"
    tool(
        tmp_path,
        "hang",
        f"trap '' TERM HUP INT; sleep 60 & echo $! > {note}; echo $$ >> {note}; echo begun; wait; sleep 60",
    )
    start = time.monotonic()
    result = tools.run(["hang"], 1.5)
    assert time.monotonic() - start < 20
    assert result.status == TIMEOUT
    assert result.rc is None
    assert result.out == "begun\n"
    pids = [int(pid) for pid in note.read_text().split()]
    assert len(pids) == 2
    assert soon(lambda: all(map(gone, pids)))  # by themselves they would last a minute


def test_a_child_that_escaped_and_holds_the_pipe_does_not_hold_us(tmp_path: Path, tools: Tools) -> None:
    note = tmp_path / "pid"
    # Leaves the group and the session, keeps standard output open.
    tool(
        tmp_path,
        "daemonise",
        f"setsid sh -c 'echo $$ > {note}; exec sleep 60' & until test -s {note}; do sleep 0.05; done; echo done",
    )
    start = time.monotonic()
    result = tools.run(["daemonise"], 30)
    assert time.monotonic() - start < 20
    assert (result.status, result.rc, result.out) == (EXITED, 0, "done\n")
    escaped = int(note.read_text())
    assert not gone(escaped)
    os.kill(escaped, signal.SIGKILL)


def test_a_hanging_tool_with_an_escaped_child_ends_at_the_deadline(tmp_path: Path, tools: Tools) -> None:
    note = tmp_path / "pid"
    tool(tmp_path, "both", f"setsid sh -c 'echo $$ > {note}; exec sleep 60' & sleep 60")
    start = time.monotonic()
    result = tools.run(["both"], 1.5)
    assert time.monotonic() - start < 20
    assert result.status == TIMEOUT
    os.kill(int(note.read_text()), signal.SIGKILL)


@pytest.mark.parametrize("where", ["", ">&2"])
def test_a_flood_is_cut_and_is_an_error(tmp_path: Path, where: str) -> None:
    tool(tmp_path, "flood", f"yes {where}")
    start = time.monotonic()
    result = Tools(path=[str(tmp_path), "/usr/bin"], max_output=100_000).run(["flood"], 40)
    assert time.monotonic() - start < 20
    assert result.status == ERROR
    assert len(result.out) <= 100_000
    assert "more than 100000 bytes" in result.err


def test_a_closed_pipe_is_no_end_and_a_late_word_is_heard(tmp_path: Path, tools: Tools) -> None:
    tool(tmp_path, "closes", "exec >&- 2>&-; sleep 0.3; exit 7")
    result = tools.run(["closes"], 20)
    assert (result.status, result.rc) == (EXITED, 7)
    assert result.seconds >= 0.3


def test_nothing_is_inherited() -> None:
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    os.environ["LD_PRELOAD_NOT"] = "1"
    try:
        result = command.run(
            [sys.executable, "-c", "import os; print(sorted(os.listdir('/proc/self/fd'))); print(sorted(os.environ))"],
            10,
        )
        session = command.run(["sh", "-c", "ps -o sid= -p $$ 2>/dev/null || cut -d' ' -f6 /proc/$$/stat; pwd; cat"], 10)
    finally:
        os.close(read_end)
        os.close(write_end)
        del os.environ["LD_PRELOAD_NOT"]
    fds, names = result.out.splitlines()
    assert fds == "['0', '1', '2', '3']"  # 3 is the folder being listed
    assert set(eval(names)) - {"LC_CTYPE"} <= {"PATH", "LC_ALL", "HOME", "SLURM_CONF"}  # noqa: S307 - our own output
    sid, where = session.out.split()
    assert int(sid) != os.getsid(0)
    assert where == "/"


def test_the_environment_cannot_redirect_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "true", "echo hijacked")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin")
    assert command.run(["true"], 5).out == ""


def test_standard_input_is_fed_and_ends() -> None:
    assert command.feed(["cat"], 5, "hello\n").out == "hello\n"
    assert command.feed(["cat"], 5, "").out == ""
    assert command.feed(["true"], 5, "x" * 60_000).ok  # nobody reads it
    assert command.feed(["cat"], 5, "x" * 100_000).status == ERROR


def test_bytes_that_are_no_text_survive() -> None:
    result = command.run(["printf", r"\377\303\244"], 5)
    assert result.out == "\udcffä"
    assert command.run(["printf", "%s", result.out], 5).out == result.out


def test_a_process_that_cannot_be_killed_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(command, "_AFTER_KILL", 0.2)
    # Uninterruptible sleep cannot be had on demand: here the signal is lost, which looks the same from outside.
    monkeypatch.setattr(os, "killpg", lambda pid, _signal: killed.append(pid))
    start = time.monotonic()
    result = command.run(["sleep", "30"], 0.2)
    assert time.monotonic() - start < 15
    assert result.status == ABANDONED
    assert str(killed[0]) in result.err
    monkeypatch.undo()
    os.kill(killed[0], signal.SIGKILL)
    os.waitpid(killed[0], 0)


def test_it_works_where_the_parent_ignores_sigchld() -> None:
    code = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "from weaklink.observe.command import run\n"
        "r = run(['echo', 'x'], 5); print(r.out.strip(), r.status)"
    )
    env = {"PYTHONPATH": str(Path(command.__file__).parents[2]), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.strip() == "x exited"


def test_no_descriptor_and_no_zombie_is_left() -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    for argv in (["true"], ["no-such-tool"], ["sleep", "5"], ["sh", "-c", "exit 1"]):
        command.run(argv, 0.1)
    assert count() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_words_for_every_way_to_fail() -> None:
    def words(status: str, rc: int | None = None) -> str:
        return RunResult(("tool",), rc, "", "why", status, 2.0).failure()

    assert words(TIMEOUT) == "tool did not end within 2.0 s (timeout)"
    assert words(ABANDONED) == "tool did not end within 2.0 s (abandoned)"
    assert words(MISSING) == "tool is not installed"
    assert words(ERROR) == "tool: why"
    assert words(EXITED, 0) == ""


def test_the_entry_scripts_are_executable() -> None:
    for name in ("prolog", "epilog", "health"):
        path = Path(command.__file__).parents[2] / name
        assert path.stat().st_mode & stat.S_IXUSR
        assert path.read_text().startswith("#!/usr/bin/python3 -IS\n")
