"""Run one command so that it can never hold us: deadline, own session, nothing inherited, killed with its group.

What makes a hook hang in practice, and what is done about it here:

* a tool that never ends: SIGKILL to its whole group at the deadline;
* a tool in uninterruptible sleep, which no signal ends: abandoned after a short grace, recorded, never waited for;
* a child that left the group and kept the pipe open: once the tool itself has ended, or at the deadline, nobody waits
for the pipe; * a tool whose file lies on a dead file system: the fork, not this process, sleeps in exec; * a flood of
output: cut at a cap, killed, and told as an error (half an output is no output).

The search path is fixed here. It can be given to ``Tools`` by a caller in code (tests do), never by the environment:
hooks run as root.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Optional

from weaklink.model.process import ABANDONED, ERROR, EXITED, MISSING, TIMEOUT, RunResult

PATH = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
MAX_OUTPUT = 16 * 1024 * 1024  # bytes; a list of 4,100 nodes is about 5 MB
_CHUNK = 65_536
_AFTER_EXIT = 0.2  # seconds to collect what a tool wrote last, when a child of it still holds the pipe
_AFTER_KILL = 0.5  # seconds for a killed tool to go; after that it is in uninterruptible sleep
_POLL = 0.005
# What a tool may see of our environment: Slurm's own tools need to know which cluster.
_KEEP = ("SLURM_CONF",)


def environment(path: Sequence[str] = PATH) -> dict[str, str]:
    """Return the whole environment of a command."""
    kept = {name: os.environ[name] for name in _KEEP if name in os.environ}
    return {"PATH": ":".join(path), "LC_ALL": "C", "HOME": "/", **kept}


class Tools:
    """Commands found on ``path``, with at most ``max_output`` bytes of output each."""

    def __init__(self, path: Sequence[str] = PATH, max_output: int = MAX_OUTPUT) -> None:
        self.path = tuple(path)
        self.max_output = max_output

    def run(self, argv: Sequence[str], timeout: float) -> RunResult:
        """Run ``argv`` for at most ``timeout`` seconds. Never raises for what the command does."""
        return self.feed(argv, timeout, "")

    def feed(self, argv: Sequence[str], timeout: float, stdin: str) -> RunResult:
        """Run ``argv`` with ``stdin`` as its standard input (up to a pipe's 64 KiB)."""
        start = time.monotonic()
        words = tuple(argv)
        where = self._find(words[0]) if words else None
        if where is None:
            return RunResult(words, None, "", "not found on " + ":".join(self.path), MISSING, 0.0)
        try:
            encoded = [word.encode("utf-8", "surrogateescape") for word in words]
            child = _Child(where, encoded, environment(self.path), stdin.encode("utf-8", "surrogateescape"))
        except (OSError, ValueError) as error:
            return RunResult(words, None, "", str(error), ERROR, time.monotonic() - start)
        return child.collect(words, start, timeout, self.max_output)

    def _find(self, name: str) -> Optional[str]:
        candidates = [name] if name.startswith("/") else [f"{folder}/{name}" for folder in self.path if "/" not in name]
        for candidate in candidates:
            if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):  # noqa: PTH112 - pathlib is slow to load
                return candidate
        return None


class _Child:
    """One forked command: its pid and the pipes that we read."""

    def __init__(self, where: str, argv: list[bytes], env: dict[str, str], stdin: bytes) -> None:
        if len(stdin) > _CHUNK or any(b"\0" in word for word in argv):
            raise ValueError("standard input is longer than a pipe holds, or a NUL is in an argument")
        self.exited: Optional[int] = None
        self.killed = False
        out_r, out_w = os.pipe()
        err_r, err_w = os.pipe()
        self.trouble, trouble_w = os.pipe()  # says why exec failed; closed by an exec that works
        in_r, in_w = os.pipe() if stdin else (os.open("/dev/null", os.O_RDONLY), -1)
        if in_w >= 0:
            os.write(in_w, stdin)  # fits: a fresh pipe holds 64 KiB
            os.close(in_w)
        self.pid = os.fork()
        if self.pid == 0:
            _become(where, argv, env, (in_r, out_w, err_w, trouble_w))
        for fd in (in_r, out_w, err_w, trouble_w):
            os.close(fd)
        self.pipes = {out_r: bytearray(), err_r: bytearray()}
        self.out, self.err = self.pipes[out_r], self.pipes[err_r]
        for fd in (*self.pipes, self.trouble):
            os.set_blocking(fd, False)

    def collect(self, argv: tuple[str, ...], start: float, timeout: float, cap: int) -> RunResult:
        """Read until the command ends, the deadline passes, or it has written more than ``cap`` bytes."""
        flooded, trouble = False, b""
        try:
            flooded = self._read_until(start + timeout, cap)
        finally:
            gone = self._end()
            with suppress(OSError):
                trouble = os.read(self.trouble, 200)
            for fd in (*self.pipes, self.trouble):
                os.close(fd)
        seconds = time.monotonic() - start
        out, err = (bytes(data[:cap]).decode("utf-8", "surrogateescape") for data in (self.out, self.err))
        if trouble:
            return RunResult(argv, None, "", trouble.decode("utf-8", "replace"), ERROR, seconds)
        if flooded:
            return RunResult(argv, None, out, f"wrote more than {cap} bytes", ERROR, seconds)
        if not gone:
            return RunResult(argv, None, out, f"process {self.pid} is in uninterruptible sleep", ABANDONED, seconds)
        if self.killed:
            return RunResult(argv, None, out, err, TIMEOUT, seconds)
        return RunResult(argv, self.exited, out, err, EXITED, seconds)

    def _read_until(self, deadline: float, cap: int) -> bool:
        """Collect output; return True when it is more than ``cap``."""
        poller = select.poll()
        handle = self._handle()
        reading = set(self.pipes)
        for fd in reading | ({handle} - {-1}):
            poller.register(fd, select.POLLIN)
        ended = False
        try:
            while max(len(self.out), len(self.err)) <= cap:
                now = time.monotonic()
                if not ended and self._ended():
                    ended, deadline = True, min(deadline, now + _AFTER_EXIT)
                    if handle >= 0:
                        poller.unregister(handle)
                if now >= deadline or (ended and not reading):
                    return False
                wait = deadline - now if handle >= 0 or ended else min(deadline - now, _POLL)
                for fd, _ in poller.poll(max(1, int(1000 * wait))):
                    if fd in reading and not self._read(fd):
                        poller.unregister(fd)
                        reading.discard(fd)
            return True
        finally:
            if handle >= 0:
                os.close(handle)

    def _handle(self) -> int:
        # Kernels before 5.3 have no descriptor for a process: then we look every few milliseconds.
        try:
            return os.pidfd_open(self.pid) if sys.version_info >= (3, 9) else -1
        except OSError:
            return -1

    def _read(self, fd: int) -> bool:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return True
        self.pipes[fd] += data
        return bool(data)

    def _ended(self) -> bool:
        # WNOWAIT leaves the zombie: its number, which names the group to kill, cannot be given to somebody else yet.
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # whoever started us ignores SIGCHLD, and the kernel has reaped it
            return True

    def _end(self) -> bool:
        """Kill whatever is left of the group and reap the command. Return False when it cannot be killed."""
        self.killed = not self._ended()
        for kill in (os.killpg, os.kill):  # the second for a child that has not made its session yet
            with suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)
                break
        give_up = time.monotonic() + _AFTER_KILL
        while True:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid:
                self.exited = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
                return True
            if time.monotonic() >= give_up:
                return False
            time.sleep(_POLL)


def _become(where: str, argv: list[bytes], env: dict[str, str], fds: tuple[int, ...]) -> None:
    """In the fork: leave the session, keep three descriptors, turn into the command. Never returns."""
    try:
        os.setsid()
        # First all above the places they go to, so that no dup2 overwrites one that is still needed.
        for target, fd in enumerate([_dup_above(fd) for fd in fds]):
            os.dup2(fd, target, inheritable=target < len(fds) - 1)
        os.closerange(len(fds), _highest() + 1)
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.chdir("/")
        os.umask(0o022)
        os.execve(where, argv, env)  # noqa: S606 - there is no shell on purpose
    except BaseException as error:  # noqa: BLE001 - this copy of the program must not run on, whatever happened
        with suppress(OSError):
            os.write(len(fds) - 1, f"could not start {where}: {error}".encode("utf-8", "replace"))
    finally:
        os._exit(127)


def _dup_above(fd: int) -> int:
    import fcntl

    return int(fcntl.fcntl(fd, fcntl.F_DUPFD, 10))


def _highest() -> int:
    try:
        return max(int(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208 - pathlib is slow to load
    except (OSError, ValueError):
        return 1024


def run(argv: Sequence[str], timeout: float) -> RunResult:
    """Run ``argv`` on the fixed path for at most ``timeout`` seconds."""
    return Tools().run(argv, timeout)


def feed(argv: Sequence[str], timeout: float, stdin: str) -> RunResult:
    """Run ``argv`` on the fixed path with ``stdin`` as its standard input."""
    return Tools().feed(argv, timeout, stdin)


if sys.platform != "linux":  # pragma: no cover - said once, early, rather than as a strange error later
    raise ImportError("weaklink's node code runs on Linux")
