"""Whatever ends the program that holds a cluster, nothing of the cluster stays."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Callable

import pytest

from tests.slurm.cluster import REPO, Cluster, running

pytestmark = pytest.mark.slurm
HOLDER = """
import sys, time
from pathlib import Path
from tests.slurm.cluster import running
with running(Path(sys.argv[1]), Path(sys.argv[2])) as cluster:
    print(cluster.pid, flush=True)
    time.sleep(600)
"""


def soon(what: Callable[[], bool], words: str) -> None:
    end = time.monotonic() + 30
    while not what():
        assert time.monotonic() < end, words
        time.sleep(0.05)


def members(namespace: str) -> list[str]:
    """Return the processes in a pid namespace."""
    found = []
    for path in Path("/proc").glob("[0-9]*/ns/pid"):
        with suppress(OSError):  # it ended meanwhile
            if str(path.readlink()) == namespace:
                found.append((path.parents[1] / "comm").read_text().strip())
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_stays(daemons: Cluster, tmp_path: Path, number: signal.Signals) -> None:
    folder = daemons.work.parent / f"cleanup-{tmp_path.parent.name}-{number}"
    folder.mkdir()
    argv = [sys.executable, "-c", HOLDER, str(daemons.rootfs), str(folder)]
    path = [str(REPO), str(REPO / "slurm"), str(REPO / "molecule/cluster")]
    try:
        with subprocess.Popen(
            argv,
            cwd="/",
            env={"PYTHONPATH": ":".join(path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as holder:
            assert holder.stdout is not None
            namespace = str(Path(f"/proc/{int(holder.stdout.readline())}/ns/pid").readlink())
            names = members(namespace)
            assert {"slurmctld", "munged"} <= set(names), names
            assert sum(name.startswith("slurmd") for name in names) >= 3, names
            holder.send_signal(number)
            holder.wait(60)
        soon(lambda: not members(namespace), f"processes stay: {members(namespace)}")
        assert str(folder) not in Path("/proc/mounts").read_text()
        if number == signal.SIGINT:
            assert list(folder.iterdir()) == []
            return
        # Nobody could clear the folder away; the next one does.
        assert len(list(folder.iterdir())) == 1
        with running(daemons.rootfs, folder) as cluster:
            assert list(folder.iterdir()) == [cluster.work]
        assert list(folder.iterdir()) == []
    finally:
        for left in (*folder.iterdir(), folder):
            subprocess.run(["rm", "-rf", "--one-file-system", str(left)], check=False)
