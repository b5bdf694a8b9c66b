"""Read lnetctl: net show and peer show with and without -v, export, ping, and its errors. Part of Lustre.

It prints YAML of a fixed shape; only indented ``key: value`` lines matter here, so the standard library is enough.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.text import Trouble, integer

NAME = "lnetctl"
_PAIR = re.compile(r"([ \t]*)(- )?([A-Za-z0-9_][\w ()/.-]{0,60}?) ?:(?:[ \t]+(.*))?\Z")
_SECTIONS = re.compile(
    r"(?m)^(?:net|peer|show|route|routing|global|add|del|configure|manage|ping|stats|export|import|udsp|discover):"
    r"[ \t]*$"
)
_MARKS = re.compile(r"(?m)^[ \t]+(?:- )?(?:net type|local NI\(s\)|primary nid|Multi-Rail|errno|health value): ?")
_OPEN = re.compile(r"(?:opening|cannot open|failed to open|open) .{0,10}/dev/lnet\b.{0,60}")
_ABSENT = re.compile(r"(?m)^(?:\S{1,40}: )?(?:(?:line )?\d{1,6}: )?(?:\S{0,40}/)?lnetctl: (?:command )?not found")
_STATES = frozenset({"up", "down", "na"})
_MOST = 20_000


class Interface(NamedTuple):
    """A local interface of LNet (or one of a peer): its NID, status as printed, health of at most 1000, devices."""

    nid: str
    net: str
    line: int
    status: Optional[str] = None
    health: Optional[int] = None
    fatal: Optional[int] = None
    devices: tuple[str, ...] = ()
    dropped: Optional[int] = None


class Error(NamedTuple):
    """An error that lnetctl reports: number (negative errno), text, line."""

    number: Optional[int]
    text: str
    line: int


class Record(NamedTuple):
    """Networks in order, local interfaces, peers' interfaces, errors."""

    nets: tuple[str, ...]
    interfaces: tuple[Interface, ...]
    peers: tuple[Interface, ...]
    errors: tuple[Error, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is lnetctl's."""
    head = head[:65_536]
    if _MARKS.search(head):
        return 92 if _SECTIONS.search(head) else 75
    return 60 if _OPEN.search(head) or _ABSENT.search(head) else 0


class _State:
    def __init__(self) -> None:
        self.section = ""
        self.net = ""
        self.block = ""
        self.nets: list[str] = []
        self.local: list[Interface] = []
        self.peers: list[Interface] = []
        self.errors: list[Error] = []
        self.of_peer = False
        self.number: Optional[int] = None


def parse(lines: Iterable[str]) -> Record:
    """Return networks, interfaces, peers and errors; never raises."""
    state = _State()
    troubles: list[Trouble] = []
    last, at = "", 0
    for at, line in enumerate(lines, 1):
        if len(state.local) + len(state.peers) + len(state.errors) > _MOST:
            troubles.append(Trouble(at, f"more than {_MOST} interfaces; the rest was not read"))
            break
        found = _OPEN.search(line)
        if found:
            state.errors.append(Error(None, line.strip()[:200], at))
        match = _PAIR.match(line.rstrip())
        if match:
            _pair(state, at, match)
        last = line.strip() or last
    lacking = [item for item in state.local if item.status is None]
    troubles += [Trouble(item.line, f"{item.nid}: its status does not follow") for item in lacking]
    bare = [net for net in state.nets if not any(item.net == net for item in state.local)]
    troubles += [Trouble(at, f"no interface of {net} follows") for net in dict.fromkeys(bare)]
    if state.section and (":" not in last or re.match(r"(?:- )?(?:net type|nid|status):\Z", last)):
        troubles.append(Trouble(at, f"the output ends within a line: {last[:40]!r}"))
    return Record(
        tuple(dict.fromkeys(state.nets)),
        tuple(state.local),
        tuple(state.peers),
        tuple(state.errors),
        None,
        tuple(troubles[:20]),
    )


def _pair(state: _State, at: int, match: "re.Match[str]") -> None:
    indent, key, value = match[1], match[3].lower(), (match[4] or "").strip().strip('"')
    if not indent and not match[2] and not value:
        state.section, state.block = key, ""
        return
    if key in ("net type", "net") and value:
        state.net, state.of_peer = value, False
        state.nets.append(value)
    elif key == "primary nid":
        state.of_peer = True
    elif key == "nid" and value:
        net = value.rpartition("@")[2]
        (state.peers if state.of_peer or state.section == "peer" else state.local).append(Interface(value, net, at))
        state.block = ""
    elif key == "errno":
        state.number = integer(value)
    elif key == "descr":
        if state.number:
            state.errors.append(Error(state.number, value[:200], at))
        state.number = None
    elif not value:
        state.block = key
    else:
        _detail(state, key, value)


def _detail(state: _State, key: str, value: str) -> None:
    kept = state.peers if state.of_peer or state.section == "peer" else state.local
    if not kept:
        return
    item = kept[-1]
    if key in ("status", "state"):
        item = item._replace(status=value.lower() if value.lower() in _STATES else None)
    elif key == "health value":
        item = item._replace(health=integer(value))
    elif key == "fatal_error":
        item = item._replace(fatal=integer(value))
    elif key == "drop_count":
        item = item._replace(dropped=integer(value))
    elif state.block == "interfaces" and key.isdigit():
        item = item._replace(devices=(*item.devices[:63], value))
    kept[-1] = item
