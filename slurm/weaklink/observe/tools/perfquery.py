"""Read ``perfquery``: plain, ``-x`` (64-bit counters), ``-a`` (sum, port 255), ``-l`` (all ports), ``-D``, ``-E``.

Layout by infiniband-diags' perfquery.c; names of counters before 1.4 are the short ones. The plain form's counters
stop at 4, 8, 16 or 32 bits; those of the extended form do not in practice.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.ib_counters import SELECTORS, Count, Port
from weaklink.observe.tools.ib_dots import Where, field, where
from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, named, nothing
from weaklink.observe.tools.text import Trouble, integer

NAME = "perfquery"

_TITLE = re.compile(r"\s*# (Port (?:extended )?counters|\w+ counters): (.*)\Z")
_ALL_PORTS = 255
# The last counter of each form; newer versions go on after what was the last one.
_ENDS = {
    "plain": frozenset({"PortRcvPkts", "RcvPkts", "PortXmitWait", "XmtWait"}),
    "extended": frozenset({"PortRcvPkts", "PortMulticastRcvPkts", "PortXmitWait", "QP1Dropped"}),
    "extended errors": frozenset({"PortXmitWait", "QP1Dropped"}),
}
_CAPABILITY = re.compile(r"CapMask2: (0x[0-9a-fA-F]{1,8})")
_ERRORS_TOO = 2


class Perf(NamedTuple):
    """All blocks: ``ports`` as ``Port`` has them (its guid is the LID); ``forms`` plain, extended, details."""

    ports: tuple[Port, ...]
    lid: Optional[int] = None
    forms: tuple[str, ...] = ()
    complaints: tuple[Complaint, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    version: Optional[str] = None


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is perfquery's."""
    if re.search(r"^[ \t]*# (?:Port (?:extended )?counters|Port\w+ counters): ", head, re.MULTILINE):
        return 96
    return (
        70
        if re.search(r"^[ \t]*(?:SymbolErrorCounter|SymbolErrors|PortXmitData):\.+", head, re.MULTILINE)
        else named(NAME, head)
    )


class _Reader:
    def __init__(self) -> None:
        self.blocks: list[tuple[int, Where, str]] = []
        self.counts: list[list[Count]] = []
        self.selected: list[Optional[int]] = []
        self.complaints: list[Complaint] = []
        self.troubles: list[Trouble] = []
        self.last = ("", 0)

    def line(self, at: int, line: str) -> None:
        title, pair = _TITLE.match(line), field(line)
        if title:
            kind = title.group(1)
            form = "extended" if "extended" in kind else "plain" if kind == "Port counters" else "details"
            mask = _CAPABILITY.search(title.group(2))
            if mask and form == "extended" and int(mask.group(1), 16) & _ERRORS_TOO:
                form = "extended errors"
            self.start(at, where(title.group(2)), form)
        elif pair:
            if not self.blocks:
                self.start(at, Where(None, None, None), "plain")
            self.value(at, *pair)
        elif line.strip() and not line.lstrip().startswith("#"):
            said = complaint(at, line)
            self.complaints += [said] if said else []
            if re.match(r"\s*[A-Z]\w+:?\s*\Z", line) and self.blocks:
                self.last = ("", at)

    def start(self, at: int, address: Where, form: str) -> None:
        self.check()
        self.blocks.append((at, address, form))
        self.counts.append([])
        self.selected.append(None)
        self.last = ("title", at)

    def value(self, at: int, name: str, text: str) -> None:
        number = integer(text)
        self.last = (name, at)
        if number is None:
            self.troubles.append(Trouble(at, f"{name}: {text!r:.60} is no number"))
        elif name == "PortSelect":
            self.selected[-1] = number
        elif name not in SELECTORS:
            self.counts[-1].append(Count(name, number, self.blocks[-1][2].startswith("extended")))

    def check(self) -> None:
        """Distrust a block that does not end as blocks do, and its last number most of all."""
        at, address, form = self.blocks[-1] if self.blocks else (0, Where(None, None, None), "")
        if (self.blocks and not self.counts[-1]) or self.last[0] not in _ENDS.get(form, {self.last[0]}):
            if self.counts and self.counts[-1] and self.counts[-1][-1].name == self.last[0]:
                self.counts[-1].pop()
            self.troubles.append(Trouble(self.last[1] or at, f"the counters of {address.node} end early"))


def parse(lines: Iterable[str]) -> Perf:
    """Return all blocks of counters; see ``Perf``."""
    reader = _Reader()
    for at, line in bounded(lines):
        reader.line(at, line)
    reader.check()
    ports = []
    for (at, address, _), counts, selected in zip(reader.blocks, reader.counts, reader.selected):
        number = selected if selected is not None else address.port
        chosen = None if number == _ALL_PORTS else number or 0
        ports.append(Port(at, address.node, address.node, chosen, tuple(counts)))
    lids = [address.lid for _, address, _ in reader.blocks if address.lid is not None]
    troubles = tuple(reader.troubles)
    if not ports:
        troubles += nothing(tuple(reader.complaints), "counter")
    return Perf(
        tuple(ports),
        lids[0] if lids else None,
        tuple(form for _, _, form in reader.blocks),
        tuple(reader.complaints),
        troubles,
    )
