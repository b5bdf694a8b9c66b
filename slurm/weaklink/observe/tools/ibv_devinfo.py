"""Read ``ibv_devinfo``, plain and ``-v``, and ``-l`` (names only). Layout by rdma-core's libibverbs/examples/devinfo.c.

An enumeration is printed with its number, ``4096 (5)``: a value without it was cut off. Versions older than a speed
print ``invalid speed (128)``: the number still tells it. Before rdma-core 17 ``link_layer`` may be empty text.
"""

import re
from collections.abc import Iterable
from typing import Any, Optional

from weaklink.observe.tools.ib_ports import Port, Ports
from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, layer, named, nothing
from weaklink.observe.tools.text import Trouble, integer

NAME = "ibv_devinfo"

_HCA = re.compile(r"\s*hca_id:\s*(\S{1,64})\s*\Z")
_KEY = re.compile(r"\s*([a-z_]+):\s*(.*)\Z")
_CODED = re.compile(r"(.*?)\s*\((\d{1,5})\)\Z")
_COUNT = re.compile(r"\s*(\d{1,5}) HCAs? found:\s*\Z")
_NAME_LINE = re.compile(r"\s+([A-Za-z][\w.-]{1,63})\s*\Z")
_NO_DEVICE = re.compile(r"No IB devices found|Failed to get IB devices list|IB device '.*' wasn't found")
_STATES = {0: "PORT_NOP", 1: "PORT_DOWN", 2: "PORT_INIT", 3: "PORT_ARMED", 4: "PORT_ACTIVE", 5: "PORT_ACTIVE_DEFER"}
_PHYS = {
    1: "SLEEP",
    2: "POLLING",
    3: "DISABLED",
    4: "PORT_CONFIGURATION_TRAINING",
    5: "LINK_UP",
    6: "LINK_ERROR_RECOVERY",
    7: "PHY_TEST",
}
_MTU = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}
_LANES = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
_SPEEDS = {1: "SDR", 2: "DDR", 4: "QDR", 8: "FDR10", 16: "FDR", 32: "EDR", 64: "HDR", 128: "NDR", 256: "XDR"}


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is ibv_devinfo's."""
    if re.search(r"^[ \t]*hca_id:\s+\S", head, re.MULTILINE):
        return 95
    return 70 if re.search(rf"^\d+ HCAs? found:|{_NO_DEVICE.pattern}", head, re.MULTILINE) else named(NAME, head)


class _Reader:
    def __init__(self) -> None:
        self.devices: list[str] = []
        self.lines: dict[str, int] = {}
        self.announced: dict[str, int] = {}
        self.firmware: dict[str, str] = {}
        self.ports: list[Port] = []
        self.troubles: list[Trouble] = []
        self.complaints: list[Complaint] = []
        self.listed: Optional[int] = None
        self.names: list[str] = []
        self.last = ("", 0)
        self.in_port = False

    def line(self, at: int, line: str) -> None:
        hca = _HCA.match(line)
        key = _KEY.match(line)
        count = _COUNT.match(line)
        if hca:
            self.devices.append(hca.group(1))
            self.lines[hca.group(1)] = at
            self.in_port, self.last = False, ("hca_id", at)
        elif count:
            self.listed = int(count.group(1))
            self.complaints += [] if self.listed else [Complaint(at, "no-device", line.strip())]
        elif key and self.devices:
            self.value(at, key.group(1), key.group(2).strip())
        elif line.strip():
            name = _NAME_LINE.match(line) if self.listed is not None else None
            said = Complaint(at, "no-device", line.strip()[:200]) if _NO_DEVICE.search(line) else complaint(at, line)
            if said:
                self.complaints.append(said)
            elif name:
                self.names.append(name.group(1))

    def value(self, at: int, key: str, text: str) -> None:
        device = self.devices[-1]
        if key == "port" and integer(text) is not None:
            self.ports.append(Port(device, int(text), at))
            self.in_port = True
        elif not self.in_port:
            if key == "phys_port_cnt" and integer(text) is not None:
                self.announced[device] = int(text)
            elif key == "fw_ver" and text:
                self.firmware[device] = text
        elif key in _PORT_KEYS:
            fields, wrong = _fields(key, text)
            self.ports[-1] = self.ports[-1]._replace(**fields)
            if wrong:
                self.troubles.append(Trouble(at, f"{self.ports[-1].name}: {key}: {text!r:.60} is no value of it"))
        self.last = (key, at)

    def finish(self) -> None:
        counts: dict[str, int] = {}
        for port in self.ports:
            counts[port.device] = counts.get(port.device, 0) + 1
        for port in self.ports:
            if port.state is None and not self.troubles:
                self.troubles.append(Trouble(port.line, f"port {port.name}: no state is printed"))
        if self.in_port and self.last[0] in {
            "port",
            "state",
            "max_mtu",
            "active_mtu",
            "sm_lid",
            "port_lid",
            "port_lmc",
        }:
            name = {"port_lid": "lid", "sm_lid": "sm_lid"}.get(self.last[0])
            if name:
                unread: dict[str, Any] = {name: None}
                self.ports[-1] = self.ports[-1]._replace(**unread)
            self.troubles.append(Trouble(self.last[1], f"the text ends within port {self.ports[-1].name}"))
        for device in self.devices:
            wanted, found = self.announced.get(device), counts.get(device, 0)
            # One port asked for with -i prints that one alone, so that only the last device may look cut off.
            if (wanted is None or wanted > 0) and not found:
                self.troubles.append(Trouble(self.lines[device], f"{device}: the text ends before its ports"))
            elif device == self.devices[-1] and wanted and found < wanted and len(self.devices) == 1:
                self.troubles.append(Trouble(self.lines[device], f"{device}: {found} of {wanted} ports are printed"))
        if self.listed is not None and len(self.names) < self.listed:
            self.troubles.append(Trouble(0, f"{self.listed} devices were found, {len(self.names)} are printed"))


_PORT_KEYS = frozenset(
    {
        "state",
        "max_mtu",
        "active_mtu",
        "sm_lid",
        "port_lid",
        "link_layer",
        "active_width",
        "active_speed",
        "phys_state",
    }
)


def _fields(key: str, text: str) -> "tuple[dict[str, Any], bool]":  # noqa: PLR0911 - one return a key
    """Return the fields that a key sets, and whether its value is none that the tool prints."""
    if key in {"sm_lid", "port_lid"}:
        return {key.replace("port_", ""): integer(text)}, integer(text) is None
    if key == "link_layer":
        return {"link_layer": layer(text)}, layer(text) is None and text not in {"", "Unknown", "Unspecified"}
    coded = _CODED.match(text)
    code = integer(coded.group(2)) if coded else None
    if code is None:
        return {}, True
    if key in {"max_mtu", "active_mtu"}:
        return {key: _MTU.get(code)}, code not in _MTU
    if key == "state":
        return {"state": _STATES.get(code)}, code not in _STATES
    if key == "phys_state":
        return {"phys_state": _PHYS.get(code)}, code not in _PHYS
    if key == "active_width":
        return {"lanes": _LANES.get(code)}, code not in _LANES
    return {"speed": _SPEEDS.get(code)}, code not in _SPEEDS


def parse(lines: Iterable[str]) -> Ports:
    """Return what ibv_devinfo printed; see ``Ports``. Forms: full, names (-l)."""
    reader = _Reader()
    for at, line in bounded(lines):
        reader.line(at, line)
    reader.finish()
    devices = tuple(dict.fromkeys(reader.devices or reader.names))
    troubles = tuple(reader.troubles)
    if not devices and not troubles and reader.listed is None:
        troubles = nothing(tuple(reader.complaints), "device")
    return Ports(
        devices,
        tuple(reader.ports),
        "names" if reader.listed is not None and not reader.devices else "full",
        tuple(reader.firmware.items()),
        complaints=tuple(reader.complaints),
        troubles=troubles,
    )
