"""What the controller's commands work with, and small things they share."""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional, Protocol

from weaklink.history.store import Store
from weaklink.model.process import Runner
from weaklink.model.site import Site
from weaklink.scheduler.budget import Decision, decide
from weaklink.scheduler.ownership import Slurm, owned
from weaklink.scheduler.types import NodeInfo, ReservationInfo

KEY_PATH = "/etc/weaklink/token.key"
LOG_PATH = "/var/log/weaklink/guard.log"
LOCK_PATH = "/run/weaklink-sweep.lock"
_MAX_LINE = 300


class SlurmControl(Slurm, Protocol):
    """The Slurm client with reservations."""

    def reservations(self) -> dict[str, ReservationInfo]:
        """Return all reservations by name."""

    def create_reservation(
        self, name: str, nodes: Sequence[str], users: Sequence[str], minutes: int, flags: Sequence[str] = ()
    ) -> None:
        """Reserve nodes for users."""

    def update_reservation(self, name: str, *, nodes: Sequence[str]) -> None:
        """Replace the nodes of a reservation."""

    def delete_reservation(self, name: str) -> None:
        """Delete a reservation."""


class Guard(NamedTuple):
    """What a command of the controller works with.

    ``key`` is the token key (None: nothing can be owned), ``run`` runs commands, ``tell`` takes lines for the person,
    ``seed`` gives the number that a sweep's schedule begins with.
    """

    site: Site
    slurm: SlurmControl
    key: Optional[bytes]
    store: Store
    run: Runner
    tell: Callable[[str], None]
    log_path: str = LOG_PATH
    seed: Callable[[], int] = lambda: int.from_bytes(os.urandom(4), "big")

    def decide(self, node: str, check: str) -> Callable[[Mapping[str, NodeInfo]], Decision]:
        """Return the budget's decision for a drain of ``node``, as a function of all nodes as they are then."""

        def on(nodes: Mapping[str, NodeInfo]) -> Decision:
            partitions: dict[str, list[str]] = {}
            for name, info in nodes.items():
                for partition in info.partitions:
                    partitions.setdefault(partition, []).append(name)
            like = {"partitions": partitions, "leaves": self.site.leaves, "policy": self.site.policy}
            return decide(nodes, node, check, like, lambda name, reason: owned(self.key, name, reason))

        return on

    def log(self, **fields: Any) -> None:
        """Append one JSON line to the guard's log; a log that cannot be written is told, and stops nothing."""
        line = json.dumps({"time": stamp(time.time()), **fields}, separators=(",", ":"), ensure_ascii=True) + "\n"
        try:
            folder = Path(self.log_path).parent
            if not folder.is_dir():
                folder.mkdir(mode=0o750, parents=True)
            fd = os.open(self.log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)
            with os.fdopen(fd, "w", encoding="ascii") as log:
                log.write(line)
        except OSError as error:
            self.tell(f"weaklink: log {self.log_path}: {error.strerror}")


class BusyError(Exception):
    """Another sweep or return holds the lock."""


@contextmanager
def sole(path: Optional[str] = None) -> Iterator[None]:
    """Hold the lock that keeps sweeps and returns from running at once; BusyError when it is taken. It dies with us."""
    fd = os.open(path or LOCK_PATH, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(
                "another sweep or return is running on this controller; try again when it has ended"
            ) from error
        yield
    finally:
        os.close(fd)


def printable(text: str, limit: int = _MAX_LINE) -> str:
    """Return foreign text as one line without control characters, cut at ``limit``."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    plain = " ".join(plain.split())
    return plain if len(plain) <= limit else plain[: limit - 3] + "..."


def stamp(seconds: float) -> str:
    """Return a time as people and logs read it, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class Owner(NamedTuple):
    """Who took a node out.

    ``who`` is weaklink | admin | slurm | "" (in service); ``note`` says what is odd about it.
    """

    who: str
    check: str = ""
    token: str = ""
    note: str = ""


# What Slurm itself writes as a reason, by its first words.
_SLURMS = (
    "Not responding",
    "Prolog error",
    "Epilog error",
    "Kill task failed",
    "Prolog hung",
    "Node unexpectedly rebooted",
    "Node unexpected",
    "batch job complete failure",
    "Low RealMemory",
    "Low TmpDisk",
    "Low socket",
    "gres/",
    "Duplicate jobid",
    "Job env setup error",
    "reboot",
    "boot",
)


def owner_of(key: Optional[bytes], info: NodeInfo) -> Owner:
    """Tell who took a node out of service, by its reason. An edited or copied reason of ours is the admin's."""
    if not info.taken and not info.out:
        return Owner("")
    reason = owned(key, info.name, info.reason)
    if reason is not None:
        return Owner("weaklink", reason.check, reason.token)
    if info.reason.startswith("weaklink:"):
        why = "no token key here to tell" if key is None else "not signed for this node and these words"
        return Owner("admin", note=f"looks like a drain of weaklink, {why}: treated as an admin's")
    if not info.reason or info.reason.startswith(_SLURMS):
        return Owner("slurm")
    return Owner("admin")
