"""Read ``ibnetdiscover``: the ports report (``-p``), the topology (plain, ``-f``, ``-g``), and the lists (``-l``).

Layout by infiniband-diags' ibnetdiscover.c. In the report a port without a partner still has a width and a speed, or
``???``: both mean nothing. Names may have blanks at either end, or no quotes in old versions. Only the report shows
ports without a partner.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, named, nothing
from weaklink.observe.tools.text import Trouble

NAME = "ibnetdiscover"

_SPEED = r"(?:SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR|\?\?\?|\d+(?:\.\d+)? Gbps)"
_WIDTH = r"(?:\d{1,2}[xX]|\?\?)"
_REPORT = re.compile(
    rf"\s*(SW|CA|RT|\?\?)\s+(\d{{1,5}})\s+(\d{{1,3}})\s+(0x[0-9a-fA-F]{{16}})\s+({_WIDTH})\s+({_SPEED})(?=\s)(.*)\Z"
)
_PARTNER = re.compile(r"\s*-\s+(SW|CA|RT|\?\?)\s+(\d{1,5})\s+(\d{1,3})\s+(0x[0-9a-fA-F]{16})\s+\((.*)\)\s*\Z")
_NODE = re.compile(r"(?:[<>] )?(Switch|Ca|Rt)\t?\s*(\d{1,3}) \"([SHR])-([0-9a-fA-F]{16})\"\s+# \"(.*)\"(.*)\Z")
_PORT = re.compile(
    r"(?:[<>] )?\[(\d{1,3})\](?:\[ext \d+\])?\s*(?:\([0-9a-fA-F]{1,16}\))?\s*\"([SHR])-([0-9a-fA-F]{16})\"\[(\d{1,3})\]"
    rf"(?:\[ext \d+\])?\s*(?:\([0-9a-fA-F]{{1,16}}\))?\s*# (?:lid \d+ lmc \d+ )?\"(.*)\""
    rf" lid (\d+) ({_WIDTH})\s*({_SPEED})(?:\s.*)?\Z"
)
_LIST = re.compile(r"(Ca|Switch|Router)\s+: (0x[0-9a-fA-F]{16}) ports (\d{1,3}) devid \S+ vendid \S+ \"(.*)\"\s*\Z")
_PATH = re.compile(r"DR path slid \d+; dlid \d+; ([\d,]+) .*(?:bad status|timed out)")
_KINDS = {"S": "SW", "H": "CA", "R": "RT", "Switch": "SW", "Ca": "CA", "Rt": "RT", "Router": "RT"}


class End(NamedTuple):
    """One port: kind SW, CA, RT or ??; the node's name without the blanks around it."""

    kind: str
    guid: str
    port: int
    name: str


class Row(NamedTuple):
    """One port and its partner, None without one. ``speed`` is None where the tool did not know it (???)."""

    line: int
    near: End
    lanes: Optional[int]
    speed: Optional[str]
    far: Optional[End]


class Net(NamedTuple):
    """What was discovered. ``nodes`` are (kind, GUID, name) of forms that name nodes; form report, topology or list."""

    rows: tuple[Row, ...]
    nodes: tuple[tuple[str, str, str], ...] = ()
    form: str = "report"
    unreachable: tuple[str, ...] = ()
    complaints: tuple[Complaint, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    version: Optional[str] = None


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is ibnetdiscover's."""
    if re.search(r"^# Topology file: generated on|^# Initiated from node [0-9a-f]{16}", head, re.MULTILINE):
        return 95
    if re.search(rf"^[ \t]*(?:SW|CA|RT)\s+\d+\s+\d+ 0x[0-9a-fA-F]{{16}} {_WIDTH} ", head, re.MULTILINE):
        return 95
    if re.search(r"^(?:Switch|Ca)\t?\s*\d+ \"[SH]-[0-9a-fA-F]{16}\"", head, re.MULTILINE):
        return 92
    return (
        85
        if re.search(r"^(?:Ca|Switch)\s+: 0x[0-9a-fA-F]{16} ports \d+ devid", head, re.MULTILINE)
        else named(NAME, head)
    )


class _Reader:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.nodes: list[tuple[str, str, str]] = []
        self.form = "report"
        self.unreachable: dict[str, None] = {}
        self.complaints: list[Complaint] = []
        self.troubles: list[Trouble] = []

    def line(self, at: int, line: str) -> None:
        node, port, listed = _NODE.match(line), _PORT.match(line), _LIST.match(line)
        if node:
            self.form = "topology"
            self.nodes.append((_KINDS[node.group(1)], f"0x{node.group(4)}", node.group(5).strip()))
        elif port and self.nodes:
            self.port(at, port)
        elif listed:
            self.form = "list"
            self.nodes.append((_KINDS[listed.group(1)], listed.group(2), listed.group(4).strip()))
        elif re.match(r"\s*(?:SW|CA|RT)\s+\d", line):
            self.report(at, line)
        elif re.match(r"\s*(?:SW|CA|RT)\s*\Z|(?:Switch|Ca|Rt)\t|\[\d+\]", line):
            self.troubles.append(Trouble(at, f"the line ends early: {line.strip()!r:.80}"))
        elif line.strip():
            path = _PATH.search(line)
            said = None if path else complaint(at, line)
            self.complaints += [said] if said else []
            if path:
                self.unreachable[path.group(1)] = None

    def report(self, at: int, line: str) -> None:
        row = _REPORT.match(line)
        rest = row.group(7) if row else ""
        partner = _PARTNER.match(rest)
        if row is None or not rest.strip() or (partner is None and re.match(r"\s*-(?:\s|\Z)", rest)):
            self.troubles.append(Trouble(at, f"no whole port in {line.strip()!r:.80}"))
            return
        kind, _, number, guid, width, speed = row.groups()[:6]
        name = rest.strip().strip("'").strip()
        far = None
        if partner:
            name, other = _names(partner.group(5))
            far = End(partner.group(1), partner.group(4), int(partner.group(3)), other)
        self.rows.append(_row(at, End(kind, guid, int(number), name), (width, speed), far))

    def port(self, at: int, port: "re.Match[str]") -> None:
        number, kind, guid, other, name, _, width, speed = port.groups()
        near = End(self.nodes[-1][0], self.nodes[-1][1], int(number), self.nodes[-1][2])
        far = End(_KINDS[kind], f"0x{guid}", int(other), name.strip())
        self.rows.append(_row(at, near, (width, speed), far))


def _row(at: int, near: End, link: tuple[str, str], far: Optional[End]) -> Row:
    width, speed = link
    lanes = int(width[:-1]) if width[:-1].isdigit() else None
    return Row(at, near, lanes, None if speed == "???" else speed, far)


def _names(text: str) -> tuple[str, str]:
    """Return the two names of ``'one' - 'other'``, which may hold quotes and dashes themselves."""
    inner = text.strip()
    if inner.startswith("'") and inner.endswith("'") and "' - '" in inner:
        near, _, far = inner[1:-1].partition("' - '")
    else:
        near, _, far = inner.partition(" - ")
    return near.strip(), far.strip()


def parse(lines: Iterable[str]) -> Net:
    """Return what was discovered; see ``Net``."""
    reader = _Reader()
    for at, line in bounded(lines):
        reader.line(at, line)
    troubles = list(reader.troubles)
    if not reader.rows and not reader.nodes and not troubles and not reader.unreachable:
        troubles += nothing(tuple(reader.complaints), "port")
    return Net(
        tuple(reader.rows),
        tuple(reader.nodes),
        reader.form,
        tuple(reader.unreachable),
        tuple(reader.complaints),
        tuple(troubles),
    )
