"""Slurm through its command line: look-ups that fail loudly, updates of one validated name at a time.

Every failure (time-out, exit status, text that does not parse) is a ``SlurmError``: to the caller that is *unknown*,
never "not drained". Nothing goes through a shell: one argument list per call.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Optional, Union

from weaklink.model.process import Feeder, Runner, RunResult
from weaklink.scheduler.text import (
    SlurmError,
    parse_jobs,
    parse_nodes_json,
    parse_nodes_line,
    parse_reservations,
    split_node_records,
    valid_name,
)
from weaklink.scheduler.types import JobInfo, NodeInfo, ReservationInfo

__all__ = ["JobInfo", "NodeInfo", "ReservationInfo", "SlurmClient", "SlurmError"]

# The data parser that Slurm 24.11 and 26.05 share.
_JSON = "--json=v0.0.42"
_JOB_FIELDS = "JobID:|,UserName:|,BatchFlag:|,Requeue:|,State:|,Partition:|,NodeList:|,ArrayJobID:|,ArrayTaskID:|"
_RESERVATION_FLAGS = frozenset(
    {"MAINT", "IGNORE_JOBS", "OVERLAP", "FLEX", "MAGNETIC", "PURGE_COMP", "NO_HOLD_JOBS_AFTER"}
)


class Exchange(NamedTuple):
    """A write and what was read around it; ``before`` is as close to the write as the command line allows."""

    before: NodeInfo
    after: NodeInfo


class SlurmClient:
    """Slurm as seen through ``scontrol``, ``squeue`` and ``scancel``.

    ``run`` runs an argument list with a deadline (``weaklink.observe.command.run``); ``feed`` does the same with text
    on standard input and narrows the window of ``exchange``; ``timeout`` is the deadline of one call in seconds.
    """

    def __init__(self, run: Runner, timeout: float = 8.0, feed: Optional[Feeder] = None) -> None:
        self._run = run
        self._feed = feed
        self.timeout = timeout

    # look-ups

    def nodes(self, names: Optional[Iterable[str]] = None) -> dict[str, NodeInfo]:
        """Return the nodes by name: all, or exactly ``names``. An unknown name is a SlurmError."""
        argv = ["scontrol", "show", "node", "-o"]
        wanted: Optional[list[str]] = None
        if names is not None:
            wanted = [valid_name(name) for name in names]
            if not wanted:
                return {}
            argv.insert(3, ",".join(wanted))
        found = self._parse_nodes(self._call(argv).out)
        if wanted is not None and set(found) != set(wanted):
            raise SlurmError(f"asked Slurm for {','.join(wanted)}, was told of {','.join(sorted(found)) or 'nothing'}")
        return found

    def job(self, job_id: int) -> JobInfo:
        """Return one job. Asked of squeue, whose columns carry none of the user's free text."""
        number = _job_number(job_id)
        out = self._call(["squeue", "-h", "-t", "all", "-j", number, "-O", _JOB_FIELDS]).out
        jobs = [job for job in parse_jobs(out) if str(job.id) == number]
        if len(jobs) != 1:
            raise SlurmError(f"squeue told of {len(jobs)} jobs with number {number}")
        return jobs[0]

    def reservations(self) -> dict[str, ReservationInfo]:
        """Return all reservations by name."""
        return parse_reservations(self._call(["scontrol", "show", "reservation", "-o"]).out)

    # updates

    def drain(self, node: str, reason: str) -> None:
        """Drain one node. Overwrites whatever reason it had: callers read first (see ``ownership``)."""
        self._call(["scontrol", "update", f"nodename={valid_name(node)}", "state=drain", f"reason={_no_nul(reason)}"])

    def undrain(self, node: str, reason: str = "") -> None:
        """Take the drain flag off one node. Slurm keeps the old reason: ``reason`` replaces it in the same update."""
        words = [f"reason={_no_nul(reason)}"] if reason else []
        self._call(["scontrol", "update", f"nodename={valid_name(node)}", "state=undrain", *words])

    def set_reason(self, node: str, reason: str) -> None:
        """Replace the reason of one node and leave its state alone."""
        self._call(["scontrol", "update", f"nodename={valid_name(node)}", f"reason={_no_nul(reason)}"])

    def set_extra(self, node: str, text: str) -> None:
        """Replace the node's Extra field."""
        self._call(["scontrol", "update", f"nodename={valid_name(node)}", f"extra={_one_line(text)}"])

    def exchange_drain(self, node: str, reason: str) -> Exchange:
        """Drain one node with a reason of ours, reading it right before and right after the write."""
        return self._exchange(node, f'state=drain reason="{_plain(reason)}"', lambda: self.drain(node, reason))

    def exchange_undrain(self, node: str, reason: str) -> Exchange:
        """Undrain one node and replace its reason, reading it right before and right after the write."""
        return self._exchange(node, f'state=undrain reason="{_plain(reason)}"', lambda: self.undrain(node, reason))

    # Of a job out of an array these three want its ``handle``: its number alone may mean the whole array.

    def requeue(self, job: Union[int, str]) -> None:
        """Requeue a batch job. It is pending again, not held; Slurm lets it start after two minutes."""
        self._call(["scontrol", "requeue", _job_handle(job)])

    def cancel(self, job: Union[int, str]) -> None:
        """Cancel a job of any kind."""
        self._call(["scancel", _job_handle(job)])

    def note_job(self, job: Union[int, str], text: str) -> None:
        """Write ``text`` into the job's AdminComment."""
        self._call(["scontrol", "update", f"jobid={_job_handle(job)}", f"admincomment={_one_line(text)}"])

    def create_reservation(
        self, name: str, nodes: Sequence[str], users: Sequence[str], minutes: int, flags: Sequence[str] = ()
    ) -> None:
        """Reserve ``nodes`` for ``users`` from now on, for ``minutes``."""
        argv = [
            "scontrol",
            "create",
            "reservation",
            f"reservationname={valid_name(name)}",
            f"nodes={self._known(nodes)}",
            f"users={','.join(valid_name(user) for user in users)}",
            "starttime=now",
            f"duration={int(minutes)}",
        ]
        bad = [flag for flag in flags if flag.upper() not in _RESERVATION_FLAGS]
        if bad:
            raise SlurmError(f"not a reservation flag that is used here: {','.join(bad)}")
        if flags:
            argv.append(f"flags={','.join(flag.upper() for flag in flags)}")
        self._call(argv)

    def update_reservation(self, name: str, *, nodes: Sequence[str]) -> None:
        """Replace the nodes of a reservation."""
        self._call(["scontrol", "update", f"reservationname={valid_name(name)}", f"nodes={self._known(nodes)}"])

    def delete_reservation(self, name: str) -> None:
        """Delete a reservation."""
        self._call(["scontrol", "delete", f"reservationname={valid_name(name)}"])

    # inside

    def _call(self, argv: Sequence[str]) -> RunResult:
        result = self._run(argv, self.timeout)
        # scontrol says 0 for some updates it refused and tells so on standard error only.
        if not result.ok or (argv[1] in ("update", "create", "delete", "requeue") and "rror" in result.err):
            raise SlurmError(result.failure() or f"{argv[0]} {argv[1]}: {' '.join(result.err.split())[:160]}")
        return result

    def _known(self, nodes: Sequence[str]) -> str:
        # Slurm acts on the valid part of a list that holds one unknown name and then reports failure.
        if not nodes:
            raise SlurmError("a reservation needs at least one node")
        return ",".join(self.nodes(nodes))

    def _parse_nodes(self, out: str) -> dict[str, NodeInfo]:
        found: dict[str, NodeInfo] = {}
        for record in split_node_records(out):
            info = parse_nodes_line(record)
            if info is None:  # free text that the one-line form cannot delimit: ask in the form that can
                name = valid_name(record.partition("NodeName=")[2].split(" ", 1)[0])
                info = self._exact(name)
            if info.name in found:
                raise SlurmError(f"Slurm told of node {info.name} twice")
            found[info.name] = info
        return found

    def _exact(self, name: str) -> NodeInfo:
        result = self._call(["scontrol", "show", "node", name, _JSON])
        try:
            data: Any = json.loads(result.out)
        except ValueError as error:
            raise SlurmError(f"scontrol's JSON of node {name} does not parse: {error}") from error
        nodes = parse_nodes_json(data)
        if set(nodes) != {name}:
            raise SlurmError(f"asked Slurm for {name}, was told of {','.join(nodes) or 'nothing'}")
        return nodes[name]

    def _exchange(self, node: str, words: str, write: Any) -> Exchange:
        name = valid_name(node)
        if self._feed is None:
            before = self.nodes([name])[name]
            write()
            return Exchange(before, self.nodes([name])[name])
        script = f"show node {name}\nupdate nodename={name} {words}\nshow node {name}\nquit\n"
        result = self._feed(["scontrol", "-o"], self.timeout, script)
        if not result.ok:
            raise SlurmError(result.failure())
        # Fed by a pipe, scontrol still writes its prompt, and after it what it read.
        lines = [line for line in result.out.split("\n") if not line.startswith("scontrol: ")]
        records = list(split_node_records("\n".join(lines)))
        complaint = " ".join(result.err.split())[:160]
        if len(records) != 2 or "rror" in complaint:  # noqa: PLR2004 - one before, one after
            raise SlurmError(f"scontrol update of {name}: {complaint or 'it told of no node'}")
        # The first cannot be asked for again: the likeliest reading is all there is.
        first, after = parse_nodes_line(records[0], likely=True), parse_nodes_line(records[1])
        if after is None:
            after = self._exact(name)
        if first is None or {first.name, after.name} != {name}:
            raise SlurmError(f"{name} was changed while it was read; it said: {_tail(records[0])}")
        return Exchange(first, after)


def _job_number(job_id: Union[int, str]) -> str:
    number = str(job_id)
    if not (number.isascii() and number.isdigit()):
        raise SlurmError(f"not a job number: {number[:40]!r}")
    return number


def _job_handle(job: Union[int, str]) -> str:
    number, mark, task = str(job).partition("_")
    return f"{_job_number(number)}_{_job_number(task)}" if mark else _job_number(number)


def _tail(record: str) -> str:
    return " ".join(record.partition(" Reason=")[2].split())[:1000]


def _plain(reason: str) -> str:
    # It goes into a line that scontrol itself takes apart.
    if not (reason.isascii() and reason.isprintable()) or '"' in reason or "\\" in reason:
        raise SlurmError("a reason of ours is printable ASCII without quotes")
    return reason


def _no_nul(text: str) -> str:
    # An admin's reason is put back as it was, line breaks and all; only NUL cannot be passed.
    if not text or "\0" in text:
        raise SlurmError("a reason is text without NUL, and not empty")
    return text


def _one_line(text: str) -> str:
    # A line break would start a second record in every one-line listing.
    if any(char in text for char in "\n\r\0"):
        raise SlurmError("text for Slurm may not hold a line break")
    return text
