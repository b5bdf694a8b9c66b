"""Read ``ibqueryerrors``: with ``-r``, ``--details``, ``--data``, ``--counters``, and what it says on stderr.

Layout by infiniband-diags' ibqueryerrors.c. Its return code is 0 with nodes missing, so that only the Summary and the
lines about queries that failed tell what was not asked. ``port ALL`` is a sum. A value with brackets behind it,
``[SymbolErrorCounter == 70000 (70.000K)]``, is a 64-bit counter; without, the old width and its end hold.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools.ib_counters import DATA, Count, Port
from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, named, nothing
from weaklink.observe.tools.iblinkinfo import Row, link_row
from weaklink.observe.tools.text import Trouble

NAME = "ibqueryerrors"

_NODE = re.compile(r"\s*(?:Errors|Data Counters) for (?:(0x[0-9a-fA-F]{1,16}) )?\"(.*)\"\s*\Z")
_PORT = re.compile(r"\s*GUID (0x[0-9a-fA-F]{1,16}) port (ALL|\d{1,3}):(.*)\Z")
_COUNT = re.compile(r"\s*\[(\w{1,64}) == (\d{1,20})(?: \(\s*(\d+(?:\.\d+)?)\s*(\w{0,2})\))?\]")
_NODES = re.compile(r"\s*## Summary: (\d{1,9}) nodes checked, (\d{1,9}) bad nodes found\s*\Z")
_PORTS = re.compile(r"\s*##\s+(\d{1,9}) ports checked, (\d{1,9}) ports have errors beyond threshold\s*\Z")
_PMA = re.compile(r"\s*##\s+(\d{1,9}) PMA query failures\s*\Z")
_THRESHOLD = re.compile(r"\[(\w{1,64}) = (\d{1,20})\]")
_FAILED_ON = re.compile(r"query failed on (.+), (Lid \d+|DR path [^;]*(?:;[^;]*){0,2}?) port (\d+)\s*\Z")
_FAILED_PATH = re.compile(r"DR path slid \d+; dlid \d+; ([\d,]+) Attr .*(?:bad status|timed out)")
_SILENT = re.compile(r"_do_madrpc failed; dport \((Lid \d+)\)")
_NOT_FOUND = re.compile(r"Failed to find node: (\S.*?)\s*\Z")
_LINK = re.compile(r"\s*Link info:(.*)\Z")


class Errors(NamedTuple):
    """Everything of one run. ``unreachable``: nodes, or directed routes, that could not be asked, in order."""

    ports: tuple[Port, ...]
    nodes_checked: Optional[int] = None
    bad_nodes: Optional[int] = None
    ports_checked: Optional[int] = None
    ports_over: Optional[int] = None
    query_failures: int = 0
    unreachable: tuple[str, ...] = ()
    thresholds: tuple[tuple[str, int], ...] = ()
    suppressed: tuple[str, ...] = ()
    links: tuple[Row, ...] = ()
    complaints: tuple[Complaint, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    version: Optional[str] = None


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is ibqueryerrors's."""
    if re.search(
        r"^[ \t]*(?:Errors|Data Counters) for (?:0x[0-9a-f]+ )?\"|^[ \t]*## Summary: \d+ nodes", head, re.MULTILINE
    ):
        return 96
    return 90 if re.search(r"^[ \t]*GUID 0x[0-9a-f]+ port (?:ALL|\d+):", head, re.MULTILINE) else named(NAME, head)


class _Reader:
    def __init__(self) -> None:
        self.ports: list[Port] = []
        self.links: list[Row] = []
        self.node = ""
        self.numbers: dict[str, Any] = {}
        self.unreachable: dict[str, None] = {}
        self.silent: dict[str, None] = {}
        self.thresholds: list[tuple[str, int]] = []
        self.suppressed: list[str] = []
        self.complaints: list[Complaint] = []
        self.troubles: list[Trouble] = []

    def line(self, at: int, line: str) -> None:
        node, port, link = _NODE.match(line), _PORT.match(line), _LINK.match(line)
        if node:
            self.node = node.group(2)
        elif port:
            self.port(at, port)
        elif link:
            row = link_row(at, link.group(1), (self.ports[-1].guid if self.ports else None, self.node))
            if row:
                self.links.append(row)
            else:
                self.troubles.append(Trouble(at, f"no whole link in {line.strip()!r:.80}"))
        elif line.lstrip().startswith("##"):
            self.summary(line)
        elif line.strip():
            self.other(at, line)

    def port(self, at: int, port: "re.Match[str]") -> None:
        guid, number, text = port.groups()
        counts = []
        place = 0
        count = _COUNT.match(text)
        while count:
            name, value, readable, unit = count.groups()
            # Data counters carry the bracket in either width: there only the value tells.
            wide = readable is not None and (name not in DATA or int(value) > 2**32 - 1 or unit == "")
            counts.append(Count(name, int(value), wide))
            place = count.end()
            count = _COUNT.match(text, place)
        if text[place:].strip():
            self.troubles.append(Trouble(at, f"{guid} port {number}: no counter in {text[place:].strip()!r:.60}"))
        self.ports.append(Port(at, self.node, guid, None if number == "ALL" else int(number), tuple(counts)))

    def summary(self, line: str) -> None:
        nodes, ports, pma = _NODES.match(line), _PORTS.match(line), _PMA.match(line)
        if nodes:
            self.numbers.update(nodes_checked=int(nodes.group(1)), bad_nodes=int(nodes.group(2)))
        elif ports:
            self.numbers.update(ports_checked=int(ports.group(1)), ports_over=int(ports.group(2)))
        elif pma:
            self.numbers["query_failures"] = int(pma.group(1))
        elif "Thresholds:" in line:
            self.thresholds += [(name, int(value)) for name, value in _THRESHOLD.findall(line)]
        elif "Suppressed:" in line:
            self.suppressed += line.partition("Suppressed:")[2].split()

    def other(self, at: int, line: str) -> None:
        failed, path, lost = _FAILED_ON.search(line), _FAILED_PATH.search(line), _NOT_FOUND.search(line)
        silent = _SILENT.search(line)
        if failed:
            self.unreachable[failed.group(1).strip()] = None
        elif silent:
            self.silent[silent.group(1)] = None
        elif path:
            self.unreachable[path.group(1)] = None
        elif lost:
            self.unreachable[lost.group(1)] = None
        else:
            said = complaint(at, line)
            self.complaints += [said] if said else []
            if line.lstrip().startswith(("GUID", "Errors for", "Data Counters for")):
                self.troubles.append(Trouble(at, f"the line ends early: {line.strip()!r:.80}"))


def parse(lines: Iterable[str]) -> Errors:
    """Return everything of one run; see ``Errors``."""
    reader = _Reader()
    for at, line in bounded(lines):
        reader.line(at, line)
    troubles = list(reader.troubles)
    # The library's line has the LID alone; the tool's own line, which follows it, the node's name.
    reader.unreachable = reader.unreachable or reader.silent
    if not reader.ports and "nodes_checked" not in reader.numbers and not reader.unreachable:
        troubles += nothing(tuple(reader.complaints), "Summary")
    elif "nodes_checked" not in reader.numbers or "ports_checked" not in reader.numbers:
        troubles.append(Trouble(0, "the Summary is missing or not whole: the rest was not asked or was cut off"))
    return Errors(
        ports=tuple(reader.ports),
        unreachable=tuple(reader.unreachable),
        thresholds=tuple(reader.thresholds),
        suppressed=tuple(reader.suppressed),
        links=tuple(reader.links),
        complaints=tuple(reader.complaints),
        troubles=tuple(troubles),
    )._replace(**reader.numbers)
