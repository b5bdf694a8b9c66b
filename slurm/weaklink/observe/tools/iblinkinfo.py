"""Read ``iblinkinfo``: full, ``--switches-only``, ``-d``, ``-p``, and the one-line form ``-l``.

Layout by infiniband-diags' iblinkinfo.c. A port that is down prints no width and no speed. In the full form a
switch's GUID stands in the line above its ports, and only adapters print theirs in the row. Names are padded inside
the quotes, and may themselves hold quotes or brackets.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, named, nothing, speed_name
from weaklink.observe.tools.text import Trouble, number

NAME = "iblinkinfo"

_NODE = re.compile(r"(?:[<>] )?(Switch|CA|Router|\?\?)(?:: |:? (?=0x))(?:(0x[0-9a-fA-F]{16}) )?(.*):\s*\Z")
_LEFT = re.compile(
    r"(?:[<>] )?\s*(?:(0x[0-9a-fA-F]{1,16})\s+)?(?:\"(.*)\"\s+)?(\d{1,5})\s+(\d{1,3})\[\s*(\d*)\s*\]\s*\Z"
)
_LINK = re.compile(
    r"\s*(?:(\d{1,2})[xX]\s+(\d{1,4}(?:\.\d{1,6})?) Gbps(?: \((\w+)\))?|(\S[^/]*?))??"
    r"\s*([A-Z]\w*)\s*/\s*([A-Z][\w ]*?)\s*\Z"
)
_RIGHT = re.compile(
    r"\s*(?:(0x[0-9a-fA-F]{1,16})\s+)?(?:(\d{1,5})\s+(\d{1,3})\s*)?\[\s*(\d*)\s*\]\s+\"(.*)\"\s+\(\s*(.*?)\s*\)\s*\Z"
)
_NO_PORT = re.compile(r'\s*"Port not available"\s*\Z')
_MAX_ROW = 1000
_STATES = frozenset({"Down", "Initialize", "Init", "Initializing", "Armed", "Active", "NoChange"})
_SETTINGS = re.compile(r"\)\s*\(HOQ:\d+ VL_Stall:\d+\s*\Z")


class Row(NamedTuple):
    """One port. ``hint`` is the tool's own note, "Could be 106.25 Gbps"; ``lane_gbps`` as printed, of one lane."""

    line: int
    guid: Optional[str]
    node: Optional[str]
    lid: int
    port: int
    state: Optional[str]
    phys_state: Optional[str]
    lanes: Optional[int] = None
    lane_gbps: Optional[float] = None
    speed: Optional[str] = None
    peer: Optional[str] = None
    peer_guid: Optional[str] = None
    peer_port: Optional[int] = None
    hint: str = ""


class LinkInfo(NamedTuple):
    """All rows, in order."""

    rows: tuple[Row, ...]
    form: str = "full"
    complaints: tuple[Complaint, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    version: Optional[str] = None


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is iblinkinfo's."""
    row = re.search(r"^(?![ \t]+Link info:).{0,400}\d\[[ \d]*\] {1,3}==\(", head, re.MULTILINE)
    if row is None:
        return named(NAME, head)
    return 0 if re.search(r"^Errors for |^## Summary:", head, re.MULTILINE) else 95


def parse(lines: Iterable[str]) -> LinkInfo:
    """Return iblinkinfo's rows; see ``LinkInfo``."""
    rows: list[Row] = []
    troubles: list[Trouble] = []
    complaints: list[Complaint] = []
    node: tuple[Optional[str], Optional[str]] = (None, None)
    form = "full"
    for at, line in bounded(lines):
        head = _NODE.match(line) if "==(" not in line else None
        if head:
            node = (head.group(2), head.group(3).strip())
        elif "==" in line or re.match(r"\s*0x[0-9a-fA-F]{16} ", line):
            row = link_row(at, line, node)
            if row is None:
                troubles.append(Trouble(at, f"no whole row in {line.strip()!r:.80}"))
            else:
                rows.append(row)
                form = "lines" if row.node is not None and node == (None, None) else form
        elif line.strip():
            said = complaint(at, line)
            complaints += [said] if said else []
            if re.match(r"\s+\d{1,5}\s+\d{1,3}\[", line) or re.match(r"(?:Switch|CA|Router): ", line):
                troubles.append(Trouble(at, f"the line ends early: {line.strip()!r:.80}"))
    if not rows and not troubles:
        troubles += nothing(tuple(complaints), "link")
    return LinkInfo(tuple(rows), form, tuple(complaints), tuple(troubles))


def link_row(at: int, line: str, node: tuple[Optional[str], Optional[str]]) -> Optional[Row]:
    """Return the row in a line, or None for one that is not whole; ``node`` is (GUID, name) of the line above."""
    if len(line) > _MAX_ROW:
        return None
    left, arrow, right = line.partition("==>")
    first, opened, middle = left.rpartition("==(")
    start = _LEFT.match(first)
    inner = middle.rstrip()
    if not arrow or not opened or start is None or not inner.endswith(")"):
        return None
    link = _LINK.match(_SETTINGS.sub("", inner[:-1]))
    gone = _NO_PORT.match(right)
    end = None if gone else _RIGHT.match(right)
    if link is None or (end is None and gone is None) or link.group(5) not in _STATES:
        return None
    rate = number(link.group(2))
    name = (start.group(2) or "").strip() or node[1]
    return Row(
        line=at,
        guid=start.group(1) or node[0],
        node=name,
        lid=int(start.group(3)),
        port=int(start.group(4)),
        state=link.group(5),
        phys_state=link.group(6),
        lanes=int(link.group(1)) if link.group(1) else None,
        lane_gbps=rate,
        speed=link.group(3) or speed_name(rate),
        peer=(end.group(5).strip() or None) if end else None,
        peer_guid=end.group(1) if end else None,
        peer_port=int(end.group(3)) if end and end.group(3) else None,
        hint=end.group(6).strip() if end else "",
    )
