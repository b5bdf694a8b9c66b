"""Read ``ibstat``: all devices, one port (``CA:`` form), ``-s``, ``-l`` (names) and ``-p`` (port GUIDs).

Layout by infiniband-diags' ibstat.c, 1.2 to 62. Old ones print no link layer; a fractional rate is printed as 2.5
only, and FDR10 in brackets. Indentation is one TAB and two, or blanks, or none.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools.ib_ports import Port, Ports
from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, is_guid, layer, named, nothing
from weaklink.observe.tools.text import Trouble, integer, number

NAME = "ibstat"

_KIND = r"(?:CA|Switch|Router|iWARP RNIC|RNIC|\?\?\?)"
_DEVICE = re.compile(rf"\s*{_KIND}:? '([^'\s]{{1,64}})'\s*\Z")
_PORT = re.compile(r"\s*Port (\d{1,3}):\s*\Z")
_KEY = re.compile(rf"\s*({_KIND} type|[A-Z][A-Za-z ]{{1,24}}):(?: (.*)|\s*)\Z")
_RATE = re.compile(r"(\d{1,5}(?:\.\d{1,3})?)(?: \(FDR10\))?\Z")
_LONG_GUID = re.compile(r"0x[0-9a-fA-F]{16}\Z")
_NAME_LINE = re.compile(r"[A-Za-z][\w.-]{2,63}\Z")
_STATES = frozenset({"Down", "Initializing", "Armed", "Active", "???"})
_PHYS = frozenset(
    {
        "No state change",
        "Sleep",
        "Polling",
        "Disabled",
        "PortConfigurationTraining",
        "LinkUp",
        "LinkErrorRecovery",
        "PhyTest",
        "???",
    }
)


class Draft(NamedTuple):
    """A device being read: how many ports it announced, its firmware."""

    name: str
    line: int
    announced: Optional[int] = None
    firmware: Optional[str] = None


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is ibstat's."""
    if re.search(rf"^[ \t]*{_KIND}:? '[^'\n]+'\s*$", head, re.MULTILINE):
        return 92 if "hysical state:" in head or " type:" in head else 60
    lines = [line.strip() for line in head.split("\n", 64)[:64] if line.strip()]
    if lines and all(_LONG_GUID.match(line) for line in lines):
        return 35
    # The words of its own main() when it finds no device, or can't open the library.
    failed = re.search(r"main: (?:stat of IB device '|can't (?:init UMAD library|list IB device names))", head)
    return 75 if failed else named(NAME, head)


class _Reader:
    def __init__(self) -> None:
        self.devices: list[Draft] = []
        self.ports: list[Port] = []
        self.troubles: list[Trouble] = []
        self.complaints: list[Complaint] = []
        self.guids: list[str] = []
        self.names: list[str] = []
        self.last: tuple[str, int] = ("", 0)
        self.in_port = False
        self.odd = False

    def line(self, at: int, line: str) -> None:
        device = _DEVICE.match(line)
        port = _PORT.match(line)
        key = _KEY.match(line)
        if device:
            self.devices.append(Draft(device.group(1), at))
            self.in_port, self.last = False, ("device", at)
        elif port and self.devices:
            self.ports.append(Port(self.devices[-1].name, int(port.group(1)), at))
            self.in_port, self.last = True, ("port", at)
        elif key and self.devices:
            self.value(at, key.group(1), (key.group(2) or "").strip())
        elif line.strip():
            self.other(at, line)

    def value(self, at: int, key: str, text: str) -> None:
        self.last = (key, at)
        if not self.in_port:
            if key == "Number of ports":
                self.devices[-1] = self.devices[-1]._replace(announced=integer(text))
            elif key == "Firmware version" and text:
                self.devices[-1] = self.devices[-1]._replace(firmware=text)
            return
        fields, wrong = _port_fields(key, text)
        self.ports[-1] = self.ports[-1]._replace(**fields)
        if wrong:
            self.troubles.append(Trouble(at, f"{self.ports[-1].name}: {key}: {text!r:.60} is no value of it"))

    def other(self, at: int, line: str) -> None:
        said = complaint(at, line)
        word = line.strip()
        if said:
            self.complaints.append(said)
        elif _LONG_GUID.match(word):
            self.guids.append(word)
        elif _NAME_LINE.match(word) and not self.devices:
            self.names.append(word)
        else:
            self.odd = True

    def finish(self) -> None:
        """Distrust a text that ends within a port, and name the devices whose ports are fewer than announced."""
        key, at = self.last
        if self.in_port and key not in {"Port GUID", "Link layer"}:
            port = self.ports[-1]
            unread: dict[str, Any] = dict.fromkeys(_FIELDS.get(key, ()))
            self.ports[-1] = port._replace(**unread)
            self.troubles.append(Trouble(at, f"the text ends within port {port.name}, after {key!r}"))
        counts: dict[str, int] = {}
        for port in self.ports:
            counts[port.device] = counts.get(port.device, 0) + 1
        for device in self.devices:
            found = counts.get(device.name, 0)
            if device.announced is None and self.ports and not found:
                self.troubles.append(Trouble(device.line, f"{device.name}: the text ends before its ports"))
            elif device.announced is not None and self.ports and found < device.announced:
                self.troubles.append(
                    Trouble(device.line, f"{device.name} has {device.announced} ports, {found} of them are printed")
                )


_FIELDS = {
    "State": ("state",),
    "Physical state": ("phys_state",),
    "Rate": ("rate_gbps",),
    "Base lid": ("lid",),
    "SM lid": ("sm_lid",),
    "Port GUID": ("guid",),
    "Link layer": ("link_layer",),
}


def _port_fields(key: str, text: str) -> tuple[dict[str, Any], bool]:  # noqa: PLR0911 - one return a key
    """Return the fields of a port that a key sets, and whether its value is none that the tool prints."""
    if key == "State":
        return {"state": text if text in _STATES and text != "???" else None}, text not in _STATES
    if key == "Physical state":
        return {"phys_state": text if text in _PHYS and text != "???" else None}, text not in _PHYS
    if key == "Rate":
        rate = _RATE.match(text)
        return {"rate_gbps": number(rate.group(1)) if rate else None}, rate is None
    if key in {"Base lid", "SM lid"}:
        return {_FIELDS[key][0]: integer(text)}, integer(text) is None
    if key == "Port GUID":
        good = bool(_LONG_GUID.match(text))
        return {"guid": text if good else None}, not good
    if key == "Link layer":
        return {"link_layer": layer(text)}, layer(text) is None and text not in {"Unknown", "Unspecified"}
    return {}, False


def parse(lines: Iterable[str]) -> Ports:
    """Return what ibstat printed; see ``Ports``. Forms: full, guids (-p), names (-l), short (-s)."""
    reader = _Reader()
    for at, line in bounded(lines):
        reader.line(at, line)
    reader.finish()
    form = "full" if reader.ports else "short" if reader.devices else "guids" if reader.guids else "names"
    devices = tuple(device.name for device in reader.devices)
    if form == "names" and not reader.odd:
        devices = tuple(reader.names)
    troubles = tuple(reader.troubles)
    if not devices and not reader.guids:
        troubles += nothing(tuple(reader.complaints), "device")
    return Ports(
        devices=devices,
        ports=tuple(reader.ports),
        form=form,
        firmware=tuple((device.name, device.firmware) for device in reader.devices if device.firmware),
        guids=tuple(guid for guid in reader.guids if is_guid(guid)),
        complaints=tuple(reader.complaints),
        troubles=troubles,
        version="no link layer" if reader.ports and not any(p.link_layer for p in reader.ports) else None,
    )
