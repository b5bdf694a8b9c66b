"""The frame around a hook: it ends in time, and with an exit status that cannot take a node away by accident.

Two processes. The one that slurmd started only waits; the other, in its own session and without slurmd's pipe, does the
work. So even a read of sysfs that sleeps uninterruptibly in a driver cannot hold slurmd: at the deadline the first one
leaves with 0.

Slurm drains a node whose prolog does not exit 0, and repeats a health check until it does. So whatever goes wrong in
here, the exit status is 0.
"""

import os
import select
import signal
import time
from contextlib import suppress
from typing import Callable, NoReturn

OK = 0
_LAST_RESORT = 1.0  # seconds after the deadline


class Clock:
    """The time that a hook has left, in seconds."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left, 0 when there are none."""
        return max(0.0, self.end - time.monotonic())


def supervise(work: Callable[[], int], deadline: float, on_trouble: Callable[[str], None]) -> int:
    """Run ``work`` in a process of its own for at most ``deadline`` seconds; return Slurm's exit status, always OK.

    ``on_trouble`` is told, in this process, why the worker gave no answer.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    pid = os.fork()
    if pid == 0:
        _work(work, deadline)
    state = {"stop": False}

    def stop(_number: int, _frame: object) -> None:
        state["stop"] = True

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    signal.signal(signal.SIGALRM, lambda *_: os._exit(OK))
    signal.setitimer(signal.ITIMER_REAL, deadline + _LAST_RESORT)
    status = _wait(pid, time.monotonic() + deadline, state)
    if status is None:
        _kill(pid)
        on_trouble("told to stop" if state["stop"] else f"not done within {deadline:g} s")
        return OK
    if status != 0:
        on_trouble(f"the worker ended with status {status}")
    return OK


def _wait(pid: int, end: float, state: dict[str, bool]) -> "int | None":
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):  # a kernel before 5.3
        handle = -1
    poller = select.poll()
    if handle >= 0:
        poller.register(handle, select.POLLIN)
    while not state["stop"]:
        try:
            done, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if done:
            return status
        left = end - time.monotonic()
        if left <= 0:
            return None
        # Short naps also where there is a handle: a signal that came just before the poll would not end it.
        poller.poll(int(1000 * min(left, 0.25 if handle >= 0 else 0.005)) + 1)
    return None


def _kill(pid: int) -> None:
    """Kill the worker and the command that it runs, which has a session of its own."""
    _signal(pid, signal.SIGSTOP)  # so that it starts no other meanwhile
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:  # noqa: PTH123 - pathlib is slow to load
            children = file.read().split()
    except OSError:  # a kernel without this file
        children = []
    for child in children:
        _signal(int(child), signal.SIGKILL)
    _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    for kill in (os.killpg, os.kill):  # the second for a process that has not made its session yet
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, number)
            return


def _work(work: Callable[[], int], deadline: float) -> NoReturn:
    code = 1
    try:
        os.setsid()
        # Should the first process be killed from outside, this one still ends.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, deadline + _LAST_RESORT)
        null = os.open("/dev/null", os.O_RDWR)
        for target in (0, 1, 2):
            os.dup2(null, target)
        os.closerange(3, 256)
        code = work()
    except BaseException:  # noqa: BLE001 - whatever it is, it is ours and not the node's; the status tells
        code = 2
    finally:
        os._exit(code)


def leave(code: int) -> NoReturn:
    """Exit at once: nothing of Python's shutdown is needed, and it takes time."""
    os._exit(code)
