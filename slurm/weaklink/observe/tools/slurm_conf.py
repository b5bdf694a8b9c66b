"""Read slurm.conf: nodes with their DEFAULTs taken in, partitions, other keys, files that are included."""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.slurm_text import Line, hosts, logical
from weaklink.observe.tools.text import Trouble, integer

NAME = "slurm.conf"
_MARKS = re.compile(
    r"(?im)^[ \t]*(?:ClusterName|SlurmctldHost|ControlMachine|SelectType|PartitionName|SlurmctldPort|AuthType"
    r"|SlurmdSpoolDir|GresTypes"
    r"|ProctrackType|AccountingStorageType|NodeSet|SlurmUser|StateSaveLocation)[ \t]*="
)
_NODE = re.compile(
    r"(?im)^[ \t]*NodeName[ \t]*=[ \t]*\S+(?:[ \t]+\w+=\S+)*[ \t]+(?:RealMemory|CPUs|Sockets|CoresPerSocket|Gres)="
)
_LIVE = re.compile(r"(?m)^[ \t]+(?:NodeAddr|State=|CPUAlloc)|\bCPUAlloc=")
_MOST = 50_000


class NodeLine(NamedTuple):
    """A NodeName line: the host list as written, its names, keys in lower case with those of DEFAULT, its line."""

    expression: str
    names: tuple[str, ...]
    keys: dict[str, str]
    line: int

    def number(self, key: str) -> Optional[int]:
        """Return a key as a whole number."""
        return integer(self.keys.get(key))


class Partition(NamedTuple):
    """A PartitionName line: name, host list as written, its line."""

    name: str
    nodes: str
    keys: dict[str, str]
    line: int


class Record(NamedTuple):
    """The file. ``keys`` the single parameters in lower case (a later one counts), with lines and spelling."""

    nodes: tuple[NodeLine, ...]
    partitions: tuple[Partition, ...]
    nodesets: tuple[str, ...]
    keys: dict[str, str]
    spelt: dict[str, tuple[str, int]]
    includes: tuple[str, ...]
    empty: tuple[tuple[str, int], ...]
    bad_hosts: tuple[tuple[str, int], ...]
    left_over: tuple[tuple[str, int], ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is a slurm.conf or a part of one."""
    head = head[:65_536]
    marks = len(set(_MARKS.findall(head)))
    if marks >= 2:  # noqa: PLR2004 - one alone may be another file's
        return 92
    if _NODE.search(head) and not _LIVE.search(head):
        return 85
    return 60 if marks else 0


class _Reading:
    def __init__(self) -> None:
        self.nodes: list[NodeLine] = []
        self.partitions: list[Partition] = []
        self.nodesets: list[str] = []
        self.keys: dict[str, str] = {}
        self.spelt: dict[str, tuple[str, int]] = {}
        self.includes: list[str] = []
        self.empty: list[tuple[str, int]] = []
        self.bad: list[tuple[str, int]] = []
        self.left: list[tuple[str, int]] = []
        self.troubles: list[Trouble] = []
        self.node_defaults: dict[str, str] = {}
        self.partition_defaults: dict[str, str] = {}


def parse(lines: Iterable[str]) -> Record:
    """Return the file as records; never raises."""
    reading = _Reading()
    for line in logical(lines):
        if len(reading.nodes) + len(reading.partitions) > _MOST:
            reading.troubles.append(Trouble(line.number, f"more than {_MOST} nodes and partitions"))
            break
        if line.open:
            reading.troubles.append(Trouble(line.number, "the file ends within a line"))
            continue
        _take(reading, line)
    return Record(
        tuple(reading.nodes),
        tuple(reading.partitions),
        tuple(reading.nodesets),
        reading.keys,
        reading.spelt,
        tuple(reading.includes),
        tuple(reading.empty),
        tuple(reading.bad),
        tuple(reading.left),
        None,
        tuple(reading.troubles[:20]),
    )


def _take(reading: _Reading, line: Line) -> None:
    if line.include:
        reading.includes.append(line.include)
        return
    if line.rest:
        reading.left.append((line.rest[:80], line.number))
    reading.empty += [(key, line.number) for key, value in line.pairs if not value]
    if not line.pairs:
        return
    first, value = line.pairs[0][0].lower(), line.pairs[0][1]
    rest = {key.lower(): word for key, word in line.pairs[1:] if word}
    if first == "nodename":
        _node(reading, value, rest, line.number)
    elif first == "partitionname":
        _partition(reading, value, rest, line.number)
    elif first == "nodeset":
        reading.nodesets.append(value)
    elif first not in ("downnodes", "frontendname"):
        for key, word in line.pairs:
            reading.keys[key.lower()] = word
            reading.spelt[key.lower()] = (key, line.number)


def _partition(reading: _Reading, value: str, rest: dict[str, str], number: int) -> None:
    if value.upper() == "DEFAULT":
        reading.partition_defaults.update(rest)
        return
    keys = {**reading.partition_defaults, **rest}
    reading.partitions.append(Partition(value, keys.get("nodes", ""), keys, number))


def _node(reading: _Reading, value: str, rest: dict[str, str], number: int) -> None:
    if value.upper() == "DEFAULT":
        reading.node_defaults.update(rest)
        return
    try:
        names = tuple(hosts(value))
    except ValueError as error:
        reading.bad.append((str(error), number))
        names = ()
    reading.nodes.append(NodeLine(value, names, {**reading.node_defaults, **rest}, number))
