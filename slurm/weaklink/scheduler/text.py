"""Parsers of what Slurm's tools print. Pure; what cannot be told apart is said so, never guessed."""

import re
from collections.abc import Iterator
from typing import Any, Optional

from weaklink.scheduler.types import JobInfo, NodeInfo, ReservationInfo


class SlurmError(Exception):
    """A look-up or an update failed, timed out or did not parse. To the caller: unknown."""


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}\Z")
_RECORD = re.compile(r"^(?:scontrol: ?)*NodeName=", re.MULTILINE)
_STAMP = re.compile(r" \[([^\s\[\]@]+)@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown)\](?= |$)")
# Fields that may follow the reason in the one-line form, in any order, up to the end of the record.
_TAIL = re.compile(r" (Comment|Extra|InstanceId|InstanceType|ReservationName)=")
_JOB_COLUMNS = 9


def valid_name(name: str) -> str:
    """Return ``name`` when it is one plain name; a host list, a keyword or anything odd is a SlurmError."""
    if not _NAME.match(name) or name.upper() == "ALL":
        raise SlurmError(f"not the name of one node, user or reservation: {name[:64]!r}")
    return name


def split_node_records(out: str) -> Iterator[str]:
    """Yield the records of ``scontrol show node -o``; a line break inside a text stays in its record."""
    starts = [match.start() for match in _RECORD.finditer(out)]
    if not starts and out.replace("scontrol:", "").strip():
        raise SlurmError(f"scontrol's list of nodes does not parse: {' '.join(out.split())[:80]!r}")
    for start, end in zip(starts, [*starts[1:], len(out)]):
        record = out[start:end]
        yield record[record.index("NodeName=") :].rstrip("\n")


def parse_nodes_line(record: str, *, likely: bool = False) -> Optional[NodeInfo]:
    """Return the node of one record, or None where the free text in it could be read in more than one way.

    ``likely`` takes the likeliest reading instead, for a record that cannot be asked for again.
    """
    if ("\n" in record or "\r" in record) and not likely:
        return None
    head, found, tail = record.partition(" Reason=")
    first = _TAIL.search(head)
    reason = user = time = ""
    if first and found and not likely:
        return None  # a comment stands before what looks like a reason: one of them is only words in the other
    if first:
        head, rest = head[: first.start()], head[first.start() :]
    elif found:
        stamps = list(_STAMP.finditer(tail))
        if not stamps or (len(stamps) > 1 and not likely):
            return None
        stamp = stamps[-1]  # an earlier one is words of the reason; a later one would be words of Extra
        reason, user, time, rest = tail[: stamp.start()], stamp[1], stamp[2], tail[stamp.end() :]
        more = _TAIL.search(rest)
        lines = rest[: more.start() if more else len(rest)].strip(" ")
        if lines:  # scontrol puts the further lines of a reason behind the stamp, each with an indent
            if not likely:
                return None
            reason = "\n".join([reason, *re.split(r" {7,}", lines)])
    else:
        rest = ""
    fields = dict(re.findall(r"(?:^| )([A-Za-z_]+)=(\S*)", head))
    extra = _extra_of(rest)
    if extra is None:
        return None
    try:
        return NodeInfo(
            name=fields["NodeName"],
            states=_states(fields["State"]),
            reason=reason,
            reason_user=user,
            reason_time=time,
            extra=extra,
            partitions=tuple(name for name in fields.get("Partitions", "").split(",") if name and name != "(null)"),
            weight=int(fields.get("Weight", "1")),
        )
    except (KeyError, ValueError) as error:
        raise SlurmError(f"scontrol's record of a node does not parse ({error}): {record[:80]!r}") from error


def _extra_of(rest: str) -> Optional[str]:
    """Return the Extra field of what follows the reason; None when its limits cannot be told."""
    marks = list(_TAIL.finditer(rest))
    names = [mark[1] for mark in marks]
    if len(names) != len(set(names)):
        return None
    for index, mark in enumerate(marks):
        if mark[1] == "Extra":
            end = marks[index + 1].start() if index + 1 < len(marks) else len(rest)
            value = rest[mark.end() : end].rstrip(" ")
            return "" if value == "(null)" else value
    return ""


def _states(text: str) -> frozenset[str]:
    states = frozenset(word.strip("*~#!%$@^-") for word in text.upper().split("+")) - {""}
    if not states or not all(word.replace("_", "").isalpha() for word in states):
        raise ValueError("no state")
    # Older versions mark a node that does not answer with a star instead of the word.
    return states | {"NOT_RESPONDING"} if "*" in text else states


def parse_nodes_json(data: Any) -> dict[str, NodeInfo]:
    """Return the nodes of ``scontrol show node --json``; states are lists or strings by version."""
    try:
        found = {}
        for node in data["nodes"]:
            states = node["state"]
            changed = node.get("reason_changed_at", 0)
            seconds = changed.get("number", 0) if isinstance(changed, dict) else changed
            partitions = node.get("partitions", [])
            found[str(node["name"])] = NodeInfo(
                name=str(node["name"]),
                states=frozenset(str(s).upper() for s in ([states] if isinstance(states, str) else states)),
                reason=str(node.get("reason") or ""),
                reason_user=str(node.get("reason_set_by_user") or ""),
                reason_time=_iso(int(seconds)),
                extra=str(node.get("extra") or ""),
                partitions=tuple(partitions.split(",") if isinstance(partitions, str) else partitions),
                weight=int(node.get("weight", 1)),
            )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SlurmError(f"scontrol's JSON of nodes does not parse: {error!r}") from error
    return found


def _iso(seconds: int) -> str:
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds)) if seconds else ""


def parse_jobs(out: str) -> list[JobInfo]:
    """Return the jobs of ``squeue -O`` with the columns that the client asks for, each ended by a bar."""
    jobs = []
    for line in out.splitlines():
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != _JOB_COLUMNS + 1 or not parts[0].isdigit():
            raise SlurmError(f"squeue's line does not parse: {line[:80]!r}")
        number, user, batch, requeue, state, partition, nodes, array, task = parts[:_JOB_COLUMNS]
        # One task has a number; tasks that wait together have a list ("1-3"), jobs that are no array "N/A".
        one = f"{array}_{task}" if array.isdigit() and task.isdigit() else ""
        jobs.append(JobInfo(int(number), user, batch == "1", requeue == "1", state, nodes, partition, one))
    return jobs


def parse_reservations(out: str) -> dict[str, ReservationInfo]:
    """Return the reservations of ``scontrol show reservation -o``."""
    found = {}
    for line in out.splitlines():
        if not line.startswith("ReservationName="):
            continue
        fields = dict(re.findall(r"(?:^| )([A-Za-z_]+)=(\S*)", line))
        nodes, users = fields.get("Nodes", ""), fields.get("Users", "")
        found[fields["ReservationName"]] = ReservationInfo(
            name=fields["ReservationName"],
            nodes="" if nodes == "(null)" else nodes,
            users=tuple(user for user in users.split(",") if user and user != "(null)"),
            end=fields.get("EndTime", ""),
        )
    if not found and out.strip() and "No reservations" not in out:
        raise SlurmError(f"scontrol's list of reservations does not parse: {' '.join(out.split())[:80]!r}")
    return found
