"""What Slurm says of nodes, jobs and reservations, as records."""

from typing import NamedTuple

# A node in one of these takes no new job, whoever put it there. NOT_RESPONDING alone is not among them: every node says
# so for a moment after an undrain, and one that really is gone becomes DOWN.
_OUT = frozenset(
    {"DRAIN", "DRAINED", "DRAINING", "DOWN", "FAIL", "FAILING", "ERROR", "UNKNOWN", "FUTURE", "INVAL", "INVALID_REG"}
)
_DRAINED = frozenset({"DRAIN", "DRAINED", "DRAINING"})


class NodeInfo(NamedTuple):
    """One node: ``states`` in capitals (IDLE, DRAIN), ``reason`` word for word, ``reason_time`` as Slurm prints it."""

    name: str
    states: frozenset[str]
    reason: str
    reason_user: str
    reason_time: str
    extra: str
    partitions: tuple[str, ...]
    weight: int

    @property
    def out(self) -> bool:
        """True when the node takes no new job: drained, down, failed."""
        return bool(self.states & _OUT)

    @property
    def drained(self) -> bool:
        """True when somebody drained the node (it may still finish jobs)."""
        return bool(self.states & _DRAINED)

    @property
    def taken(self) -> bool:
        """True when a drain or a verdict of Slurm's stands, which is somebody's to respect (ours included)."""
        return self.drained or bool(self.states & {"DOWN", "FAIL", "FAILING", "ERROR"})


class JobInfo(NamedTuple):
    """One job: ``batch`` has a script, ``requeue`` its owner allows it, ``nodes`` a host list.

    ``array_task`` is "40_3" for task 3 of array 40, else empty. The last task of an array to start has the array's own
    number as its ``id``, and an update of that number is one of all the array's tasks: see ``handle``.
    """

    id: int
    user: str
    batch: bool
    requeue: bool
    state: str
    nodes: str
    partition: str
    array_task: str = ""

    @property
    def handle(self) -> str:
        """What names this job, and no other task of its array, in an update."""
        return self.array_task or str(self.id)


class ReservationInfo(NamedTuple):
    """One reservation: ``nodes`` as a host list, ``users`` by name, ``end`` as Slurm prints it."""

    name: str
    nodes: str
    users: tuple[str, ...]
    end: str
