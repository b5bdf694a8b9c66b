"""Read what ``mlnx_qos -i NETDEV`` prints: trust state, code point map, PFC, buffers, traffic classes.

A traffic class has its priorities on the lines below it. Buffers, cable length and the map of code points come with
the trust state, by driver and version. Layout: mlnx_qos of MLNX_OFED 4.2 to 24, and its manual.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.eth_qos import PRIORITIES, dscp, priority
from weaklink.observe.tools.mlx_common import complaint, note, nothing
from weaklink.observe.tools.text import Trouble, integer

NAME = "mlnx_qos"
_TRUST = re.compile(r"\s{0,8}Priority trust (?:state|mode)\s{0,4}:\s{0,8}(\S{1,40})", re.IGNORECASE)
_DCBX = re.compile(r"\s{0,8}DCBX mode\s{0,4}:\s{0,8}(.{1,60})\Z")
_MAP = re.compile(r"\s{0,20}prio:\s{0,4}(\d)\s{1,8}dscp:\s{0,4}([0-9a-fA-Fx, ]{0,2000})\Z")
_MORE = re.compile(r"\s{0,40}(?:\d{1,2},\s?){1,64}\s{0,4}\Z")
_DEFAULT = re.compile(r"\s{0,8}default priority\s{0,4}:\s{0,8}(\d)?\s{0,8}\Z")
_CABLE = re.compile(r"\s{0,8}Cable len\s{0,4}:\s{0,8}(\d{1,6})\s{0,4}m?\s{0,8}\Z")
_BUFFERS = re.compile(r"\s{0,8}Receive buffer size \(bytes\)\s{0,4}:\s{0,8}([\d, ]{1,400})")
_ROW = re.compile(r"\s{0,20}(priority|enabled|buffer)\s{1,20}((?:\d{1,3}\s{1,8}){0,15}\d{1,3})\s{0,8}\Z")
_TC = re.compile(
    r"\s{0,8}tc:\s{0,4}(\d)\s{1,4}ratelimit:\s{0,4}(.{1,60}?),\s{0,4}tsa:\s{0,4}(\w{1,20})(?:,\s?bw:\s?(\d{1,3})%)?"
)
_TC_PRIORITY = re.compile(r"\s{1,40}priority:\s{0,8}(\d)\s{0,8}\Z|\s{0,40}priority:\s{1,8}(\d)\s{0,8}\Z")
_DEVICE = re.compile(r"(?:.{0,80}[#$] )?(?:sudo )?\S{0,40}mlnx_qos\s.{0,80}?-i\s{0,4}(\S{1,20})")


class Class(NamedTuple):
    """One traffic class: its scheduler (``tsa``), limit as printed, share in percent."""

    tsa: str
    limit: str
    percent: Optional[int]


class Record(NamedTuple):
    """The settings; None where the output does not hold them.

    ``pfc`` maps priorities to on or off, ``prio_tc`` priorities to traffic classes, ``dscp_map`` code points to
    priorities, ``prio_buffer`` priorities to receive buffers, ``buffers`` their bytes, ``cable_m`` metres.
    """

    netdev: Optional[str]
    dcbx: Optional[str]
    trust: Optional[str]
    dscp_map: Optional[dict[int, int]]
    default_priority: Optional[int]
    pfc: Optional[dict[int, bool]]
    prio_buffer: Optional[dict[int, int]]
    buffers: Optional[tuple[int, ...]]
    cable_m: Optional[int]
    prio_tc: Optional[dict[int, int]]
    classes: dict[int, Class]
    complaints: tuple[str, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is mlnx_qos's."""
    head = head[:65_536]
    signs = ("Priority trust state:", "dscp2prio mapping:", "PFC configuration:", "DCBX mode:", "tsa: ", "Cable len:")
    found = sum(sign in head for sign in signs)
    return 92 if found >= 2 else 55 * min(found, 1)  # noqa: PLR2004 - one sign alone may be anything's


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    reader = _Reader()
    for at, line in enumerate(lines, 1):
        reader.line(at, line)
    return reader.record()


class _Reader:
    """The settings, filled line by line."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.dscp_map: dict[int, int] = {}
        self.map_line = 0
        self.priority: Optional[int] = None
        self.rows: dict[str, tuple[int, list[int]]] = {}
        self.classes: dict[int, Class] = {}
        self.tc: Optional[int] = None
        self.prio_tc: dict[int, int] = {}
        self.complaints: list[str] = []
        self.troubles: list[Trouble] = []
        self.first = ""

    def line(self, at: int, line: str) -> None:
        self.first = self.first or line.strip()
        for name, pattern in (
            ("trust", _TRUST),
            ("dcbx", _DCBX),
            ("cable", _CABLE),
            ("buffers", _BUFFERS),
            ("default", _DEFAULT),
            ("netdev", _DEVICE),
        ):
            match = pattern.match(line)
            if match:
                self.once(at, name, match.group(1) or "")
                return
        error = complaint(line)
        if error or "not supported on your system" in line or "not a Mellanox" in line or "No such device" in line:
            self.complaints[20:] = []
            self.complaints.append(error or line.strip()[:300])
            return
        if "dscp2prio mapping:" in line:
            self.map_line = at
            return
        pair = _MAP.match(line)
        if pair:
            self.priority = int(pair.group(1))
            self.points(at, pair.group(2))
        elif self.priority is not None and _MORE.match(line):
            self.points(at, line)
        else:
            self.priority = None
            self.table(at, line)

    def once(self, at: int, name: str, value: str) -> None:
        known = self.texts.setdefault(name, value.strip())
        if known != value.strip():
            note(self.troubles, at, f"{name} comes twice with another value; more than one device?")

    def points(self, at: int, text: str) -> None:
        self.map_line = self.map_line or at
        for word in text.replace(",", " ").split():
            point = dscp(word)
            if point is None or self.priority is None or self.priority >= PRIORITIES:
                note(self.troubles, at, f"dscp2prio mapping: {word!r:.20} is no code point 0..63")
            else:
                self.dscp_map[point] = self.priority

    def table(self, at: int, line: str) -> None:
        row, tc, below = _ROW.match(line), _TC.match(line), _TC_PRIORITY.match(line)
        if tc:
            self.tc = int(tc.group(1))
            self.classes[self.tc] = Class(tc.group(3), tc.group(2).strip(), integer(tc.group(4)))
        elif below and self.tc is not None:
            number = priority(below.group(1) or below.group(2))
            if number is not None:
                self.prio_tc[number] = self.tc
        elif row:
            values = [int(word) for word in row.group(2).split()]
            known = self.rows.setdefault(row.group(1), (at, values))
            if known[1] != values:
                self.troubles.append(
                    Trouble(at, f"{row.group(1)} comes twice with another value; more than one device?")
                )

    def by_priority(self, name: str) -> Optional[dict[int, int]]:
        if name not in self.rows:
            return None
        line, values = self.rows[name]
        heads = self.rows.get("priority", (0, list(range(PRIORITIES))))[1]
        if len(values) != len(heads) or len(values) != PRIORITIES:
            note(self.troubles, line, f"PFC {name}: {len(values)} values, wanted {PRIORITIES}; is it cut?")
            return None
        return dict(zip(heads, values))

    def record(self) -> Record:
        texts = self.texts
        enabled = self.by_priority("enabled")
        if enabled is None and not self.troubles:
            ours = bool(self.texts or self.rows or self.classes or self.map_line)
            nothing(
                self.first, self.complaints, self.troubles, "the PFC configuration is missing or not whole", ours=ours
            )
        sizes = texts.get("buffers")
        buffers = tuple(int(word) for word in (sizes or "").replace(",", " ").split())
        if self.prio_tc and len(self.prio_tc) != PRIORITIES:
            self.troubles.append(
                Trouble(0, f"traffic classes hold {len(self.prio_tc)} priorities, wanted {PRIORITIES}")
            )
        return Record(
            netdev=texts.get("netdev"),
            dcbx=texts.get("dcbx"),
            trust=(texts.get("trust") or "").lower() or None,
            dscp_map=self.dscp_map if self.map_line else None,
            default_priority=integer(texts.get("default")),
            pfc=None if enabled is None else {key: value == 1 for key, value in enabled.items()},
            prio_buffer=self.by_priority("buffer"),
            buffers=buffers or None,
            cable_m=integer(texts.get("cable")),
            prio_tc=self.prio_tc or None,
            classes=self.classes,
            complaints=tuple(self.complaints),
            version=None,
            troubles=tuple(self.troubles),
        )
