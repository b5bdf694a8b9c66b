"""Read what ``ethtool -S`` prints: one or several snapshots of a netdev's counters; text or JSON.

A snapshot begins at ``NIC statistics:`` or where a counter comes again; other lines between snapshots separate them.
Layout: ethtool.c of ethtool; names of counters: mlx5 (kernel documentation, ethtool counters), and other drivers'.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools import mlx_json
from weaklink.observe.tools.mlx_common import note, nothing
from weaklink.observe.tools.text import Trouble

NAME = "ethtool-S"
_COUNTER = re.compile(r"\s{0,16}([A-Za-z\[][\w.\[\]() /-]{0,100}?)\s{0,60}:\s{0,20}(-?\d{1,20})\s{0,8}\Z")
_HEAD = re.compile(r"\s{0,16}(?:NIC statistics|Standard stats for (\S{1,40})):\s{0,8}\Z")
_BROKEN = re.compile(r"\s{1,16}([A-Za-z]\w{2,100})\s{0,8}:?\s{0,8}\Z")
_COMMAND = re.compile(r"\bethtool\s{1,8}(?:-S|--statistics)\s{1,8}([\w.@:-]{1,40})")
_PROBLEM = re.compile(r"\s{0,8}(?:Cannot get|netlink error|no stats available|ethtool:)")
_SIGN = re.compile(r"(?m)^\s{0,16}(?:NIC statistics|Standard stats for \S{1,40}):\s{0,8}$")
_FAILED = re.compile(r"(?m)^\s{0,4}(?:no stats available|Cannot get stats )")
_KNOWN = re.compile(
    r"(?m)^\s{0,16}(?:[rt]x_prio\d_(?:bytes|packets|pause)|[rt]x_packets_phy|[rt]x_bytes_phy|rx_out_of_buffer"
    r"|outbound_pci_stalled_\w{2,20}|rx_symbol_err_phy|rx_discards_phy|[rt]x_global_pause): \d"
)
_JSON = re.compile(r'"(?:rx_packets|rx_bytes|rx_prio0_bytes|rx_packets_phy|eth-phy|eth-mac|rmon)"')
_MOST = 10_000
_SNAPSHOTS = 100
_FEW = 3


class Snapshot(NamedTuple):
    """One reading: the netdev where the text tells it, the line it begins at, values by counter."""

    netdev: Optional[str]
    line: int
    counters: dict[str, int]


class Record(NamedTuple):
    """All snapshots in their order, and the tool's own errors."""

    snapshots: tuple[Snapshot, ...]
    complaints: tuple[str, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is ethtool's counters."""
    head = head[:65_536]
    if mlx_json.looks_json(head):
        return 80 if _JSON.search(head) and '"stats64"' not in head and '"ifindex"' not in head else 0
    if _SIGN.search(head):
        return 95
    if _KNOWN.search(head):
        return 70
    return 75 if _FAILED.search(head) else 0


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    first, everything = mlx_json.peek(lines)
    return _json(everything) if mlx_json.looks_json(first) else _text(everything, first)


class _Reader:
    """Snapshots, filled line by line."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self.headed: list[bool] = []
        self.complaints: list[str] = []
        self.troubles: list[Trouble] = []
        self.netdev: Optional[str] = None
        self.fresh, self.title, self.indented = True, False, False

    def line(self, at: int, line: str) -> None:
        head, command, match = _HEAD.match(line), _COMMAND.search(line), _COUNTER.match(line)
        if command or head:
            self.netdev = command.group(1) if command else (head.group(1) if head else None) or self.netdev
            self.fresh, self.title = True, bool(head)
        elif match:
            self.counter(at, line, match.group(1).strip(), int(match.group(2)))
        elif _PROBLEM.match(line):
            self.complaints[20:] = []
            self.complaints.append(line.strip()[:300])
        elif _BROKEN.match(line) and self.snapshots:
            note(self.troubles, at, f"{line.strip():.60}: no value; is the text cut?")

    def counter(self, at: int, line: str, name: str, value: int) -> None:
        if self.snapshots and not self.fresh and self.indented and not line[0].isspace():
            return  # counters are indented; this is a note between readings ("seconds: 60")
        self.indented = line[0].isspace()
        if self.fresh or name in self.snapshots[-1].counters:
            if len(self.snapshots) >= _SNAPSHOTS:
                note(self.troubles, at, f"more than {_SNAPSHOTS} snapshots; the rest was not read")
                return
            self.snapshots.append(Snapshot(self.netdev, at, {}))
            self.headed.append(self.title)
            self.fresh, self.title = False, False
        if len(self.snapshots[-1].counters) < _MOST:
            self.snapshots[-1].counters[name] = value

    def kept(self) -> list[Snapshot]:
        """Return the snapshots; where some have a head, a few numbers without one are a note, not a reading."""
        if not any(self.headed):
            return self.snapshots
        pairs = zip(self.snapshots, self.headed)
        return [found for found, mark in pairs if mark or len(found.counters) >= _FEW]


def _text(lines: Iterable[str], first: str) -> Record:
    reader = _Reader()
    for at, line in enumerate(lines, 1):
        reader.line(at, line)
    found = reader.kept()
    if not found:
        nothing(first, reader.complaints, reader.troubles, "no counter was found", ours=recognise(first) > 0)
    return _record(found, reader.complaints, reader.troubles, "text")


def _json(lines: Iterable[str]) -> Record:
    found, troubles = mlx_json.documents(lines)
    snapshots: list[Snapshot] = []
    for document in found:
        for item in mlx_json.objects(document):
            counters: dict[str, int] = {}
            _flatten(item, counters)
            if counters:
                name = item.get("ifname")
                snapshots.append(Snapshot(str(name) if name else None, 0, counters))
    return _record(snapshots[:_SNAPSHOTS], [], list(troubles), "json")


def _flatten(item: dict[str, Any], counters: dict[str, int]) -> None:
    """Put the numbers of an object and of the objects in it (groups of standard counters) under their own names."""
    todo = [item]
    while todo:
        for key, value in todo.pop().items():
            if isinstance(value, dict):
                todo.append(value)
            elif isinstance(value, int) and not isinstance(value, bool) and len(counters) < _MOST:
                counters.setdefault(str(key), value)


def _record(snapshots: list[Snapshot], complaints: list[str], troubles: list[Trouble], version: str) -> Record:
    if not snapshots and not complaints and not troubles:
        note(troubles, 0, "no counter was found")
    if len(snapshots) > 1 and snapshots[0].netdev == snapshots[-1].netdev:
        first, last = snapshots[0].counters, snapshots[-1].counters
        missing = [name for name in first if name not in last]
        if missing:
            text = f"the last snapshot lacks {len(missing)} counters of the first ({missing[0]}); is the text cut?"
            note(troubles, snapshots[-1].line, text)
    return Record(tuple(snapshots), tuple(complaints), version, tuple(troubles))
