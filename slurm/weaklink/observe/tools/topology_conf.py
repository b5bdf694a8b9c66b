"""Read topology.conf (tree and block) and the plain form of topology.yaml. topology.conf(5), topology.yaml(5)."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Optional

from weaklink.observe.tools.slurm_text import Line, hosts, logical
from weaklink.observe.tools.text import Trouble

NAME = "topology.conf"
_MARKS = re.compile(r"(?im)^[ \t]*(?:SwitchName|BlockName)\s*=\s*\S+")
_YAML = re.compile(r"(?m)^- topology:|^[ \t]+(?:switches|blocks):[ \t]*$")
_ITEM = re.compile(r"[ \t]*(?:- )?([a-z_]{2,20}):(?:[ \t]+(.*))?\Z")
_KEYS = frozenset({"switchname", "blockname", "nodes", "switches", "linkspeed", "comment", "blocksizes", "blocklevels"})
_MOST = 100_000


class Unit(NamedTuple):
    """A switch or block: name, nodes and child switches as named (each once), its line."""

    name: str
    block: bool
    nodes: tuple[str, ...]
    children: tuple[str, ...]
    line: int


class Record(NamedTuple):
    """The file. ``problems`` are lines that Slurm would not take: (line, what)."""

    units: tuple[Unit, ...]
    block_sizes: tuple[int, ...]
    problems: tuple[tuple[int, str], ...]
    yaml: bool
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is a topology file."""
    head = head[:65_536]
    if _MARKS.search(head):
        return 92
    return 85 if _YAML.search(head) and re.search(r"(?m)^[ \t]*- (?:switch|block):", head) else 0


class _Reading:
    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.sizes: list[int] = []
        self.problems: list[tuple[int, str]] = []
        self.troubles: list[Trouble] = []


def parse(lines: Iterable[str]) -> Record:
    """Return the switches or blocks; never raises."""
    reading = _Reading()
    kept: list[str] = []
    rest = iter(lines)
    yaml = False
    for line in rest:
        kept.append(line)
        if line.strip() and line.strip() != "---" and not line.lstrip().startswith("#"):
            yaml = line.lstrip().startswith("- topology:") or _YAML.search(line) is not None
            break
        if len(kept) > 10_000:  # noqa: PLR2004 - a preface of comments
            break
    whole = _chain(kept, rest)
    if yaml:
        _yaml(reading, whole)
    else:
        for entry in logical(whole):
            _take(reading, entry)
            if len(reading.units) > _MOST:
                reading.troubles.append(Trouble(entry.number, f"more than {_MOST} switches"))
                break
    return Record(
        tuple(reading.units),
        tuple(reading.sizes),
        tuple(reading.problems[:50]),
        yaml,
        None,
        tuple(reading.troubles[:20]),
    )


def _chain(kept: list[str], rest: Iterator[str]) -> Iterator[str]:
    yield from kept
    yield from rest


def _take(reading: _Reading, line: Line) -> None:
    if line.include:
        return
    if line.open:
        reading.troubles.append(Trouble(line.number, "the file ends within a line"))
        return
    if line.rest:
        reading.problems.append((line.number, f"{line.rest[:60]!r} is no Key=Value"))
    keys = {key.lower(): value for key, value in line.pairs}
    for key, value in line.pairs:
        if key.lower() not in _KEYS:
            reading.problems.append((line.number, f"{key} is no key of topology.conf"))
        elif not value:
            reading.problems.append((line.number, f"{key}= has no value"))
    name = keys.get("switchname") or keys.get("blockname")
    for key in ("blocksizes", "blocklevels"):
        if key in keys:
            reading.sizes += [int(word) for word in keys[key].split(",") if word.isdigit() and len(word) < 8]  # noqa: PLR2004 - nodes
    if name:
        _unit(reading, name, keys, line.number)


def _unit(reading: _Reading, name: str, keys: dict[str, str], number: int) -> None:
    nodes, children = _hosts(reading, keys.get("nodes"), number), _hosts(reading, keys.get("switches"), number)
    reading.units.append(Unit(name, "blockname" in keys, nodes, children, number))


def _hosts(reading: _Reading, text: Optional[str], number: int) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(hosts(text))) if text else ()
    except ValueError as error:
        reading.problems.append((number, str(error)))
        return ()


def _yaml(reading: _Reading, lines: Iterable[str]) -> None:
    """Read the nested lists of topology.yaml: ``- switch: name`` with ``children:`` and ``nodes:``."""
    name, keys, begun = "", {"": ""}, 0
    for number, raw in enumerate(lines, 1):
        match = _ITEM.match(raw.split(" #")[0])
        if match is None:
            continue
        key, value = match[1], (match[2] or "").strip().strip("\"'")
        if key in ("switch", "block") and value:
            if name:
                _unit(reading, name, keys, begun)
            name, begun, keys = value, number, ({"blockname": value} if key == "block" else {})
        elif key == "children" and value:
            keys["switches"] = value
        elif key == "nodes" and value:
            keys["nodes"] = value
    if name:
        _unit(reading, name, keys, begun)
