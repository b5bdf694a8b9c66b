"""Read ``smpquery``: nodeinfo, nodedesc, portinfo (and the vendor's mepi), switchinfo. Layout by libibmad's dump.c."""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.ib_dots import Where, field, where
from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, link, named, nothing, speed_name
from weaklink.observe.tools.text import Trouble, integer, number

NAME = "smpquery"

_TITLE = re.compile(r"\s*# (Node info|Port info|Switch info|MLNX ext Port info|SL2VL table|[A-Z][\w ]* info): (.*)\Z")
_GBPS = re.compile(r"(\d{1,4}(?:\.\d{1,6})?) Gbps\Z")
_STATES = frozenset({"Down", "Initialize", "Armed", "Active", "NoChange"})
# IsExtendedSpeedsSupported of PortInfo:CapabilityMask: speeds above QDR are said in lines of their own, at the end.
_EXTENDED_SPEEDS = 0x4000
_ENDS = {
    "Node info": frozenset({"VendorId"}),
    "Port info": frozenset({"RoundTrip", "MaxCreditHint", "OverrunErr", "LinkSpeedExtEnabled", "CapabilityMask2"}),
    "Switch info": frozenset({"EnhancedPort0", "MulticastFDBTop"}),
}


class Block(NamedTuple):
    """One answer: its kind ("Port info"), whom it is about, and its values by name."""

    line: int
    kind: str
    where: Where
    values: dict[str, str]

    def gbps(self) -> Optional[float]:
        """The speed of one lane in Gb/s; the extended one counts where there is one."""
        for key in ("LinkSpeedExtActive", "LinkSpeedActive"):
            match = _GBPS.match(self.values.get(key, ""))
            if match:
                return number(match.group(1))
        return None

    def link(self) -> Optional[object]:
        """The active width and speed, or None."""
        name = speed_name(self.gbps())
        return link(f"{self.values.get('LinkWidthActive', '')} {name}") if name else None


class Answers(NamedTuple):
    """All answers, and node descriptions, which have no title."""

    blocks: tuple[Block, ...]
    descriptions: tuple[str, ...] = ()
    complaints: tuple[Complaint, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    version: Optional[str] = None


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is smpquery's."""
    if re.search(r"^[ \t]*# (?:Node|Port|Switch|MLNX ext Port) info: ", head, re.MULTILINE):
        return 96
    return 92 if re.search(r"^[ \t]*Node Description:\.{3,}", head, re.MULTILINE) else named(NAME, head)


def parse(lines: Iterable[str]) -> Answers:
    """Return all answers; see ``Answers``."""
    blocks: list[Block] = []
    descriptions: list[str] = []
    complaints: list[Complaint] = []
    troubles: list[Trouble] = []
    last = ""
    for at, line in bounded(lines):
        title, pair = _TITLE.match(line), field(line)
        if title:
            _check(blocks, last, troubles)
            blocks.append(Block(at, title.group(1), where(title.group(2)), {}))
            last = ""
        elif pair and pair[0] == "Node Description":
            descriptions.append(pair[1].strip())
        elif pair and blocks:
            last = pair[0]
            blocks[-1].values[last] = pair[1]
            if last == "LinkState" and pair[1] not in _STATES:
                troubles.append(Trouble(at, f"LinkState: {pair[1]!r:.40} is not known"))
        elif line.strip():
            said = complaint(at, line)
            complaints += [said] if said else []
    _check(blocks, last, troubles)
    if not blocks and not descriptions:
        troubles += nothing(tuple(complaints), "answer")
    return Answers(tuple(blocks), tuple(descriptions), tuple(complaints), tuple(troubles))


def _check(blocks: list[Block], last: str, troubles: list[Trouble]) -> None:
    """Distrust an answer that does not end as its kind does, and its last value most of all."""
    if not blocks or blocks[-1].kind not in _ENDS:
        return
    values = blocks[-1].values
    faster = (integer(values.get("CapMask")) or 0) & _EXTENDED_SPEEDS and "LinkSpeedExtActive" not in values
    if last in _ENDS[blocks[-1].kind] and values[last] and not faster:
        return
    values.pop(last, None)
    troubles.append(Trouble(blocks[-1].line, f"the {blocks[-1].kind.lower()} of {blocks[-1].where.node} ends early"))


def lid_of(block: Block) -> Optional[int]:
    """Return the LID of a port info: the port's own, or the one asked at for a switch's port."""
    return integer(block.values.get("Lid")) or block.where.lid
