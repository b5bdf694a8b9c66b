"""One Slurm allocation in which the rounds of a sweep run, as the service user and never as root.

``salloc --no-shell`` makes it, one ``srun`` step a round runs in it, ``scancel`` ends it. Its time limit ends it even
when nobody is left to do so.
"""

import os
import re
import time
from collections.abc import Sequence
from typing import NamedTuple, Optional

from weaklink.model.process import EXITED, Runner, RunResult

JOB_NAME = "weaklink-sweep"
_GRANTED = re.compile(r"Granted job allocation (\d+)")
_WEAKLINK = "/usr/bin/weaklink"
# Seconds: epilogs run while a job is completing.
_GONE_WITHIN = 90.0
_LOOK_EVERY = 0.5


class AllocationError(Exception):
    """There is no allocation; the text says why, as Slurm put it."""


class Place(NamedTuple):
    """Where an allocation is made: Slurm's names, empty where the site uses none."""

    user: str
    account: str = ""
    qos: str = ""
    partition: str = ""
    reservation: str = ""


class Allocation:
    """An allocation of whole nodes. ``open`` it, run steps, ``close`` it (also after an error)."""

    def __init__(self, run: Runner, place: Place, nodes: Sequence[str], minutes: int, command: str = _WEAKLINK) -> None:
        self._run, self.place, self.nodes, self.minutes, self._command = run, place, list(nodes), minutes, command
        self.job: Optional[int] = None

    def _as_user(self, argv: Sequence[str]) -> list[str]:
        # Root may become the service user; whoever else runs this is taken to be it.
        return ["runuser", "-u", self.place.user, "--", *argv] if os.geteuid() == 0 else list(argv)

    def open(self, wait_seconds: int = 60) -> int:
        """Make the allocation and return its job number; AllocationError when it is not granted in time."""
        argv = ["salloc", "--no-shell", f"--job-name={JOB_NAME}", "--exclusive", f"--immediate={wait_seconds}"]
        argv += [f"--nodes={len(self.nodes)}", f"--nodelist={','.join(self.nodes)}", "--ntasks-per-node=1"]
        argv += [f"--time={self.minutes}"]
        for name in ("account", "qos", "partition", "reservation"):
            value = getattr(self.place, name)
            if value:
                argv.append(f"--{name}={value}")
        result = self._run(self._as_user(argv), wait_seconds + 30.0)
        granted = _GRANTED.search(result.err + "\n" + result.out)
        if granted:
            self.job = int(granted.group(1))
        if not result.ok or self.job is None:
            self.close()
            raise AllocationError(f"no allocation of {','.join(self.nodes)}: {result.failure() or result.err[:200]}")
        return self.job

    def step(self, nodes: Sequence[str], arguments: Sequence[str], deadline: float) -> RunResult:
        """Run ``weaklink`` with ``arguments`` once on each of ``nodes``; the output of all tasks together."""
        if self.job is None:
            raise AllocationError("the allocation is not open")
        argv = ["srun", f"--jobid={self.job}", "--overlap", f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}"]
        argv += ["--ntasks-per-node=1", f"--nodelist={','.join(nodes)}", "--kill-on-bad-exit=0", "--input=none"]
        return self._run(self._as_user([*argv, self._command, *arguments]), deadline)

    def close(self) -> None:
        """Give the nodes back and wait until they are: a job that is completing still holds its reservation.

        Never raises: the time limit is the second line.
        """
        if self.job is None:
            # Killed between the grant and its announcement, salloc may have left an allocation of this name.
            self._run(["scancel", f"--user={self.place.user}", f"--name={JOB_NAME}"], 20.0)
            return
        job, self.job = self.job, None
        self._run(["scancel", str(job)], 20.0)
        give_up = time.monotonic() + _GONE_WITHIN
        while time.monotonic() < give_up:
            left = self._run(["squeue", f"--jobs={job}", "--noheader", "--format=%T"], 20.0)
            # squeue says "Invalid job id" once the controller has forgotten the job.
            if not left.out.strip() and left.status == EXITED:
                return
            time.sleep(_LOOK_EVERY)
