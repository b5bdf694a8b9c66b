"""A real Slurm on this machine: slurmctld and three slurmd in the lab image's root, inside namespaces of their own.

One process is the namespaces' init; when it goes (also when this program dies: it reads our pipe), everything in it
goes, mounts too. Each slurmd has a mount namespace with its own fake /sys, /etc/weaklink, /var/lib/weaklink and
/var/log/weaklink, so that the real hooks run unchanged from the paths they are installed at.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable

from weaklink.model.process import RunResult  # noqa: TC002 - as the rest of the tests import
from weaklink.observe.command import Tools

from tests.fakenode import FakeNode, expected

NODES = ("c1", "c2", "c3")
KEY = "5a" * 32
ADDRESS = "10.77.0.1"
PARENT = Path("/var/tmp")  # noqa: S108 - a real disk: an overlay cannot lie on another overlay
PREFIX = "weaklink-slurm-"
WORKDIR = "/tmp"  # noqa: S108 - the namespaces' own
REPO = Path(__file__).resolve().parents[2]
_TOOLS = Tools()

SLURM_CONF = (
    f"""
ClusterName=test
SlurmctldHost=ctl({ADDRESS})
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/var/lib/slurm/ctld
SlurmdSpoolDir=/var/spool/slurm/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
MpiDefault=none
TreeWidth=65533
MessageTimeout=20
KillWait=1
CompleteWait=0
Prolog=/usr/lib/weaklink/current/prolog
Epilog=/usr/lib/weaklink/current/epilog
HealthCheckProgram=/usr/lib/weaklink/current/health
HealthCheckInterval=3600
HealthCheckNodeState=ANY
PrologFlags=Alloc,DeferBatch
PrologEpilogTimeout=30
JobSubmitPlugins=lua
JobRequeue=1
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1,requeue_delay=0
"""
    + "".join(
        f"NodeName={name} NodeHostname=ctl NodeAddr={ADDRESS} Port={17000 + at} CPUs=4 RealMemory=100 State=UNKNOWN\n"
        for at, name in enumerate(NODES, 1)
    )
    + f"PartitionName=main Nodes={','.join(NODES)} Default=YES MaxTime=60 OverSubscribe=EXCLUSIVE State=UP\n"
)

# The init of the namespaces: mounts the root, then reaps what is orphaned until its standard input ends.
_INIT = """
set -e
mount --make-rprivate /
mount -t overlay overlay -o lowerdir=$LOWER,upperdir=$WORK/upper,workdir=$WORK/ovl $WORK/root
cd $WORK/root
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=755 tmpfs dev
for n in null zero full random urandom tty; do touch dev/$n; mount --bind /dev/$n dev/$n; done
mkdir -p dev/shm dev/pts; ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p run/munge run/lock; chown munge:munge run/munge 2>/dev/null || chown 102:103 run/munge
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p nodes; mount --rbind $WORK/nodes nodes
ip link set lo up
ip addr add $ADDRESS/32 dev lo
hostname ctl
exec chroot . /usr/bin/python3 -IS -c '
import os, select, sys
print("ready", flush=True)
poller = select.poll()
poller.register(0, select.POLLIN | select.POLLHUP)
while not poller.poll(50) or os.read(0, 1):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
'
"""

# One slurmd, with a fake /sys over the real one (which stays visible where hwloc looks for processors).
_SLURMD = """
set -e
mount --make-rprivate /
N=/nodes/$1
mkdir -p $N/sys/devices/system
mount --rbind /sys/devices/system $N/sys/devices/system
mount --rbind $N/sys /sys
for d in etc/weaklink var/lib/weaklink var/log/weaklink; do mkdir -p /$d; mount --bind $N/$d /$d; done
exec slurmd -N $1
"""


@contextmanager
def running(rootfs: Path, parent: Path = PARENT) -> Iterator[Cluster]:
    """A cluster in a folder of its own under ``parent``; leftovers of programs that were killed are cleared away."""
    for old in parent.glob(f"{PREFIX}*"):
        with suppress(OSError), (old / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # whoever made it is gone
            shutil.rmtree(old, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cluster = Cluster(rootfs, work)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


class Cluster:
    """A running Slurm. ``work`` is a folder on a real disk that may be thrown away afterwards."""

    def __init__(self, rootfs: Path, work: Path) -> None:
        self.work = work
        self.rootfs = rootfs
        self.fake: dict[str, FakeNode] = {}
        self._init: subprocess.Popen[str] | None = None
        self.pid = 0
        self._slurmd: dict[str, int] = {}

    # life

    def start(self) -> None:
        for name in ("upper", "ovl", "root", "nodes"):
            (self.work / name).mkdir(parents=True)
        self._install()
        for name in NODES:
            self.reset_node(name)
        env = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LOWER": str(self.rootfs),
            "WORK": str(self.work),
            "ADDRESS": ADDRESS,
        }
        argv = ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child", "sh", "-c", _INIT]
        with (self.work / "init.log").open("w") as errors:
            self._init = subprocess.Popen(
                argv,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        assert self._init.stdout is not None
        if self._init.stdout.readline().strip() != "ready":
            raise RuntimeError(f"the namespaces did not start: {(self.work / 'init.log').read_text()[-2000:]}")
        children = Path(f"/proc/{self._init.pid}/task/{self._init.pid}/children").read_text().split()
        self.pid = int(children[0])
        self.must(["sh", "-c", "dd if=/dev/urandom of=/etc/munge/munge.key bs=1 count=128 2>/dev/null"])
        self.must(["chown", "-R", "munge:munge", "/etc/munge", "/var/lib/munge", "/var/log/munge", "/run/munge"])
        self.must(["chmod", "400", "/etc/munge/munge.key"])
        self.must(["setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", "/usr/sbin/munged", "--force"])
        self.must(["mkdir", "-p", "/var/lib/slurm/ctld", "/var/spool/slurm", "/var/log/slurm"])
        self.must(["chown", "-R", "slurm:slurm", "/var/lib/slurm", "/var/log/slurm"])
        self.must(["/usr/sbin/slurmctld", "-c"], timeout=20)
        for name in NODES:
            self.must(["unshare", "--mount", "bash", "-c", _SLURMD, "slurmd", name], timeout=20)
        self.wait(lambda: self.states() == {name: {"IDLE"} for name in NODES}, 60, "nodes idle")

    def stop(self) -> None:
        """End the init, and with it every process and mount in the namespaces; remove the folder. Safe to repeat."""
        if self._init is not None:
            if self.pid:
                self._kill(self.pid)
            self._init.kill()
            self._init.wait(10)
            for stream in (self._init.stdin, self._init.stdout):
                if stream:
                    stream.close()
        shutil.rmtree(self.work, ignore_errors=True)

    @staticmethod
    def _kill(pid: int) -> None:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            return

    def _install(self) -> None:
        upper = self.work / "upper"
        shutil.copytree(
            REPO / "slurm", upper / "usr/lib/weaklink/current", ignore=shutil.ignore_patterns("__pycache__")
        )
        conf = upper / "etc/slurm"
        conf.mkdir(parents=True)
        (conf / "slurm.conf").write_text(SLURM_CONF)
        (conf / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        shutil.copy(REPO / "slurm/job_submit.lua", conf / "job_submit.lua")
        for path in (upper / "etc", conf, upper / "usr", upper / "usr/lib", upper / "usr/lib/weaklink"):
            path.chmod(0o755)

    # nodes

    def place(self, name: str, path: str) -> Path:
        """Return where a node's own file lies on this machine."""
        return self.work / "nodes" / name / path.lstrip("/")

    def reset_node(self, name: str, **changes: Any) -> None:
        """Give a node a healthy fake /sys, an expected.json with ``changes``, no state, an empty log."""
        number = NODES.index(name) + 11
        for folder in ("var/lib/weaklink", "var/log/weaklink", "etc/weaklink"):
            path = self.place(name, folder)
            path.mkdir(parents=True, exist_ok=True)
            for child in path.iterdir():
                shutil.rmtree(child) if child.is_dir() else child.unlink()
        self.fake[name] = FakeNode(self.work / "nodes" / name, (f"10.77.1.{number}", f"10.77.2.{number}"))
        want = expected(node=name, mounts=[], **changes)
        for nic, net in zip(want["nics"], "012", strict=True):
            nic["address"] = f"10.77.{net}.{number}/24"
        self.place(name, "/etc/weaklink/expected.json").write_text(json.dumps(want))
        key = self.place(name, "/etc/weaklink/token.key")
        key.write_text(KEY)
        key.chmod(0o600)

    def reset_fault(self, name: str) -> None:
        """Heal a node's fake /sys; what it has written stays."""
        number = NODES.index(name) + 11
        self.fake[name] = FakeNode(self.work / "nodes" / name, (f"10.77.1.{number}", f"10.77.2.{number}"))

    def log(self, name: str) -> list[dict[str, Any]]:
        path = self.place(name, "/var/log/weaklink/guard.log")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def evidence(self, name: str) -> list[dict[str, Any]]:
        folder = self.place(name, "/var/lib/weaklink/evidence")
        return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]

    # faults around the hooks

    @contextmanager
    def slow_tool(self, name: str) -> Iterator[Callable[[], bool]]:
        """Put a tool in front of the real ``name`` that waits until the block ends; yield "is it being run?"."""
        path, mark, go = f"/usr/sbin/{name}", f"/tmp/{name}-runs", f"/tmp/{name}-go"  # noqa: S108 - the namespaces' own
        script = f"#!/bin/sh\ntouch {mark}\nuntil test -e {go}; do sleep 0.05; done\nexit 1\n"
        self.must(["sh", "-c", 'rm -f "$2" "$3"; printf %s "$4" > "$1"; chmod 755 "$1"', "sh", path, mark, go, script])
        inside = Path(f"/proc/{self.pid}/root")
        try:
            yield (inside / mark[1:]).exists
        finally:
            self.must(["sh", "-c", 'touch "$2"; rm "$1"', "sh", path, go])

    @contextmanager
    def controller_away(self) -> Iterator[None]:
        """Stop slurmctld as a machine that hangs does: connections are taken and never answered."""
        number = self.must(["cat", "/run/slurmctld.pid"]).strip()
        self.must(["kill", "-STOP", number])
        try:
            yield
        finally:
            self.must(["kill", "-CONT", number])

    # commands

    def _prefix(self, pid: int, user: str) -> list[str]:
        argv = ["nsenter", f"--target={pid}", "--mount", "--pid", "--net", "--uts", "--ipc", "--root", "--wd"]
        if user:
            argv += ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all"]
        return argv

    def run(self, argv: Sequence[str], timeout: float = 15.0, user: str = "") -> RunResult:
        """Run a command in the cluster (as root, or as ``user``); this is a Runner."""
        return self.feed(argv, timeout, "", user)

    def feed(self, argv: Sequence[str], timeout: float, stdin: str, user: str = "") -> RunResult:
        """Run a command with a standard input; this is a Feeder."""
        return _TOOLS.feed([*self._prefix(self.pid, user), *argv], timeout, stdin)

    def must(self, argv: Sequence[str], timeout: float = 15.0, user: str = "") -> str:
        result = self.run(argv, timeout, user)
        if not result.ok:
            raise AssertionError(f"{' '.join(argv)[:200]}: {result.failure()}\n{result.out[-1500:]}\n{self.tail()}")
        return result.out

    def on_node(self, name: str, argv: Sequence[str], timeout: float = 60.0) -> RunResult:
        """Run a command in a node's own mount namespace with slurmd's bare environment."""
        pid = self._pid_of(name)
        return _TOOLS.run([*self._prefix(pid, ""), "env", "-i", f"SLURMD_NODENAME={name}", *argv], timeout)

    def _pid_of(self, name: str) -> int:
        if name not in self._slurmd:
            inner = (Path(f"/proc/{self.pid}/root/run/slurmd-{name}.pid")).read_text().strip()
            for status in Path("/proc").glob("[0-9]*/status"):
                try:
                    numbers = status.read_text().partition("NSpid:")[2].partition("\n")[0].split()
                    comm = (status.parent / "comm").read_text().strip()
                    same = (status.parent / "ns/pid").readlink() == Path(f"/proc/{self.pid}/ns/pid").readlink()
                except (OSError, IndexError):
                    continue
                if same and comm.startswith("slurmd") and numbers[-1] == inner:
                    self._slurmd[name] = int(status.parent.name)
        return self._slurmd[name]

    # Slurm

    def states(self) -> dict[str, set[str]]:
        out = self.run(["sinfo", "-h", "-N", "-O", "NodeList:|,StateComplete:|"]).out
        found = {}
        for line in out.splitlines():
            parts = line.split("|")
            found[parts[0].strip()] = set(parts[1].strip().upper().split("+"))
        return found

    def job_state(self, number: int) -> str:
        return self.must(["squeue", "-h", "-t", "all", "-j", str(number), "-O", "State:|,Reason:|"]).strip().rstrip("|")

    def submit(self, *options: str, script: str = "sleep 0.2", user: str = "alice") -> int:
        out = self.must(
            ["sbatch", "--parsable", "-D", WORKDIR, "-o", "/dev/null", *options, "--wrap", script], user=user
        )
        return int(out.strip().splitlines()[-1])

    def wait(self, what: Any, seconds: float, words: str) -> None:
        end = time.monotonic() + seconds
        while not what():
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {words}; {self.states()}\n{self.tail()}")
            time.sleep(0.1)

    def tidy(self) -> None:
        """Cancel all jobs, undrain all nodes, forget Extra."""

        def none_left() -> bool:
            if not self.must(["squeue", "-h"]).strip():
                return True
            self.must(["scancel", "--partition=main", "--quiet"])
            return False

        self.wait(none_left, 60, "no jobs left")
        for line in self.must(["scontrol", "show", "node", "-o"]).splitlines():
            name = line.partition("NodeName=")[2].partition(" ")[0]
            if "DRAIN" in line:
                self.must(["scontrol", "update", f"nodename={name}", "state=undrain", "reason=none"])
            for field in ("Extra", "Comment"):
                if f" {field}=" in line:
                    self.must(["scontrol", "update", f"nodename={name}", f"{field}="])

    def clean(self) -> None:
        """Tidy up, make all nodes healthy again, and wait until they are idle."""
        self.tidy()
        for name in NODES:
            self.reset_node(name)
        self.wait(lambda: self.states() == {name: {"IDLE"} for name in NODES}, 60, "nodes idle")

    def tail(self) -> str:
        logs = self.work / "upper/var/log/slurm"
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-2500:]}" for path in sorted(logs.glob("*.log"))
        )
