"""Slurm in memory, for tests of what calls Slurm. It keeps the real one's habits: the contract tests run over both."""

import time
from collections.abc import Iterable, Sequence
from typing import Callable, Optional, Union

from weaklink.scheduler.slurm import Exchange
from weaklink.scheduler.text import SlurmError, valid_name
from weaklink.scheduler.types import JobInfo, NodeInfo, ReservationInfo


class FakeSlurm:
    """The interface of SlurmClient over dictionaries.

    ``calls`` lists what was asked, in order. ``fail`` names methods that raise SlurmError. ``before[method]`` is called
    right before that method acts: that is how a test lets an admin come between a read and a write.
    """

    def __init__(self, names: Iterable[str] = ("c1", "c2", "c3"), partition: str = "main", user: str = "root") -> None:
        self._nodes = {name: NodeInfo(name, frozenset({"IDLE"}), "", "", "", "", (partition,), 1) for name in names}
        self._jobs: dict[int, JobInfo] = {}
        self._reservations: dict[str, ReservationInfo] = {}
        self.notes: dict[int, str] = {}
        self.user = user
        self.clock: Callable[[], float] = time.time
        self.calls: list[tuple[str, ...]] = []
        self.fail: set[str] = set()
        self.before: dict[str, Callable[[], None]] = {}

    # for tests

    def put_job(self, job: JobInfo) -> None:
        """Add a job."""
        self._jobs[job.id] = job

    def put_state(self, node: str, *states: str, reason: str = "", user: str = "root") -> None:
        """Give a node states and a reason as somebody else would."""
        info = self._nodes[node]
        stamp = self._now() if reason else ""
        self._nodes[node] = info._replace(
            states=frozenset(states), reason=reason, reason_user=user if reason else "", reason_time=stamp
        )

    def _now(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(self.clock()))

    def _enter(self, method: str, *words: str) -> None:
        self.calls.append((method, *words))
        hook = self.before.pop(method, None)
        if hook:
            hook()
        if method in self.fail:
            raise SlurmError(f"{method}: slurm_update error: Unable to contact slurm controller (connect failure)")

    def _known(self, node: str) -> NodeInfo:
        if valid_name(node) not in self._nodes:
            raise SlurmError(f"Node {node} not found")
        return self._nodes[node]

    # look-ups

    def nodes(self, names: Optional[Iterable[str]] = None) -> dict[str, NodeInfo]:
        """Return nodes by name."""
        wanted = None if names is None else [valid_name(name) for name in names]
        self._enter("nodes", *(wanted or ()))
        return dict(self._nodes) if wanted is None else {name: self._known(name) for name in wanted}

    def job(self, job_id: int) -> JobInfo:
        """Return one job."""
        self._enter("job", str(job_id))
        if job_id not in self._jobs:
            raise SlurmError("slurm_load_jobs error: Invalid job id specified")
        return self._jobs[job_id]

    def reservations(self) -> dict[str, ReservationInfo]:
        """Return reservations by name."""
        self._enter("reservations")
        return dict(self._reservations)

    # updates

    def drain(self, node: str, reason: str) -> None:
        """Drain a node; the reason is replaced whatever it was, as in Slurm."""
        self._enter("drain", node, reason)
        info = self._known(node)
        if not reason or "\0" in reason:
            raise SlurmError("You must specify a reason when DOWNING or DRAINING a node")
        self._nodes[node] = info._replace(
            states=info.states | {"DRAIN"}, reason=reason, reason_user=self.user, reason_time=self._now()
        )

    def undrain(self, node: str, reason: str = "") -> None:
        """Take the drain flag off; the old reason stays, as in Slurm, unless another is given."""
        self._enter("undrain", node, reason)
        info = self._known(node)
        self._nodes[node] = info._replace(states=info.states - {"DRAIN"})
        if reason:
            self._nodes[node] = self._nodes[node]._replace(
                reason=reason, reason_user=self.user, reason_time=self._now()
            )

    def set_reason(self, node: str, reason: str) -> None:
        """Replace the reason."""
        self._enter("set_reason", node, reason)
        info = self._known(node)
        self._nodes[node] = info._replace(reason=reason, reason_user=self.user, reason_time=self._now())

    def set_extra(self, node: str, text: str) -> None:
        """Replace Extra."""
        self._enter("set_extra", node, text)
        if any(char in text for char in "\n\r\0"):
            raise SlurmError("text for Slurm may not hold a line break")
        self._nodes[node] = self._known(node)._replace(extra=text)

    def exchange_drain(self, node: str, reason: str) -> Exchange:
        """Read, drain, read."""
        before = self.nodes([node])[node]
        self.drain(node, reason)
        return Exchange(before, self.nodes([node])[node])

    def exchange_undrain(self, node: str, reason: str) -> Exchange:
        """Read, undrain, read."""
        before = self.nodes([node])[node]
        self.undrain(node, reason)
        return Exchange(before, self.nodes([node])[node])

    def _meant(self, job: Union[int, str]) -> list[JobInfo]:
        """Return what an update of ``job`` reaches: one job, or all tasks of an array for the array's own number."""
        word = str(job)
        found = [one for one in self._jobs.values() if word in (one.handle, one.array_task.partition("_")[0])]
        return found or [one for one in self._jobs.values() if str(one.id) == word]

    def requeue(self, job: Union[int, str]) -> None:
        """Requeue a batch job."""
        self._enter("requeue", str(job))
        meant = self._meant(job)
        if not meant or not all(one.batch and one.requeue for one in meant):
            raise SlurmError("Job/step already completing or requested operation is disabled")
        for one in meant:
            self._jobs[one.id] = one._replace(state="PENDING", nodes="")

    def cancel(self, job: Union[int, str]) -> None:
        """Cancel a job."""
        self._enter("cancel", str(job))
        meant = self._meant(job)
        if not meant:
            raise SlurmError("scancel: error: Kill job error on job id: Invalid job id specified")
        for one in meant:
            self._jobs[one.id] = one._replace(state="CANCELLED")

    def note_job(self, job: Union[int, str], text: str) -> None:
        """Write a job's AdminComment."""
        self._enter("note_job", str(job), text)
        meant = self._meant(job)
        if not meant:
            raise SlurmError("Invalid job id specified")
        self.notes.update((one.id, text) for one in meant)

    def create_reservation(
        self, name: str, nodes: Sequence[str], users: Sequence[str], minutes: int, flags: Sequence[str] = ()
    ) -> None:
        """Create a reservation."""
        self._enter("create_reservation", name, *nodes, *flags)
        if valid_name(name) in self._reservations:
            raise SlurmError("Reservation name already exists")
        known = [self._known(node).name for node in nodes]
        end = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(self.clock() + 60 * minutes))
        self._reservations[name] = ReservationInfo(name, ",".join(known), tuple(users), end)

    def update_reservation(self, name: str, *, nodes: Sequence[str]) -> None:
        """Replace a reservation's nodes."""
        self._enter("update_reservation", name, *nodes)
        if name not in self._reservations:
            raise SlurmError("Requested reservation is invalid")
        known = [self._known(node).name for node in nodes]
        self._reservations[name] = self._reservations[name]._replace(nodes=",".join(known))

    def delete_reservation(self, name: str) -> None:
        """Delete a reservation."""
        self._enter("delete_reservation", name)
        if self._reservations.pop(name, None) is None:
            raise SlurmError("Requested reservation is invalid")
