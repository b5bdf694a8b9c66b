"""Read what mlxfwmanager and mlxup print of all cards: the text table, or ``--query-format XML``.

``FW (Running)`` is a row only where the card runs another version than the flash holds. Layout: mlxfwops of
Mellanox/mstflint, and captures of MFT 4.x.
"""

import html
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Optional

from weaklink.observe.tools.mlx_common import complaint, note, nothing, present
from weaklink.observe.tools.text import Trouble, whole

NAME = "mlxfwmanager"
_DEVICE = re.compile(r"\s{0,8}Device #(\d{1,4}):\s{0,20}\Z")
_KEY = re.compile(
    r"\s{0,8}(Device Type|Part Number|Description|PSID|PCI Device Name|Base GUID|Base MAC|Port1 GUID|Port1 MAC|Status)"
    r"\s{0,4}:\s{0,40}(.{0,400})\Z"
)
_ROW = re.compile(r"\s{1,12}(FW(?: ?\(Running\))?)\s{1,20}(\S{1,60})\s{1,20}(\S{1,60})\s{0,20}\Z")
_OTHER = re.compile(r"\s{1,12}(?!FW)[A-Z][\w ]{1,30}?\s{2,20}\S{1,60}\s{1,20}\S")
_HEAD = re.compile(r"(?m)^\s{0,8}Device #\d{1,4}:\s{0,20}$")
_TABLE = re.compile(r"Versions:\s{1,20}Current\s{1,20}Available")
_XML_DEVICE = re.compile(r"<Device\s[^<>]{0,2000}\bpciName=|<Device\s[^<>]{0,2000}\bpsid=")
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9_.()-]{0,60})([^<>]{0,4000})>")
_ATTRIBUTE = re.compile(r"([A-Za-z][\w:.-]{0,60})\s{0,4}=\s{0,4}(?:\"([^\"<>]{0,1000})\"|'([^'<>]{0,1000})')")
_VERSION = re.compile(r"\d{1,5}\.\d{1,5}\.\d{1,5}(?:-\S{1,40})?\Z")
_FIRMWARE_TAG = re.compile(r"fw(?:[_.( -]{0,2}running\W?_?)?\Z|running_?fw\Z")
_ATTRIBUTES = {"pci device name": "pciname", "device type": "type", "psid": "psid", "part number": "partnumber"}
_MOST = 4096


class Device(NamedTuple):
    """One card: what the flash holds, what runs (the same where the tool prints no other), what could be burned."""

    name: str
    kind: Optional[str] = None
    part: Optional[str] = None
    psid: Optional[str] = None
    fw_version: Optional[str] = None
    running: Optional[str] = None
    available: Optional[str] = None
    status: Optional[str] = None


class Record(NamedTuple):
    """All cards of the text, and the tool's own errors."""

    devices: tuple[Device, ...]
    complaints: tuple[str, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is mlxfwmanager's."""
    head = head[:65_536]
    if _XML_DEVICE.search(head) or (_HEAD.search(head) and _TABLE.search(head)):
        return 92
    if "devices firmware ..." in head or "<Devices>" in head:
        return 75
    return 60 if _TABLE.search(head) else 0


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    ahead: list[str] = []
    rest = iter(lines)
    for line in rest:
        ahead.append(line)
        if line.lstrip().startswith("<") or _DEVICE.match(line) or len(ahead) > _MOST:
            break
    everything = _chain(ahead, rest)
    return _xml(everything) if ahead and ahead[-1].lstrip().startswith("<") else _text(everything)


def _chain(ahead: list[str], rest: Iterator[str]) -> Iterator[str]:
    yield from ahead
    yield from rest


def _text(lines: Iterable[str]) -> Record:
    devices: list[Device] = []
    complaints: list[str] = []
    troubles: list[Trouble] = []
    current: Optional[dict[str, str]] = None
    first = ""
    for at, line in enumerate(lines, 1):
        first = first or line.strip()
        error = complaint(line)
        start = _DEVICE.match(line)
        if error:
            complaints[20:] = []
            complaints.append(error)
        elif start:
            _finish(current, devices, troubles)
            current = {"number": start.group(1), "line": str(at)}
        elif current is not None:
            _row(line, current)
    _finish(current, devices, troubles)
    if not devices:
        nothing(first, complaints, troubles, "no device was found", ours=recognise(first) > 0)
    return Record(tuple(devices), tuple(complaints), "text", tuple(troubles))


def _row(line: str, current: dict[str, str]) -> None:
    pair = _KEY.match(line)
    if pair:
        current.setdefault(pair.group(1).lower(), pair.group(2).strip())
        return
    if _TABLE.search(line):
        current.setdefault("table", "yes")
        return
    row = _ROW.match(line)
    if row:
        current.setdefault("running" if "Running" in row.group(1) else "fw", row.group(2))
        if "Running" not in row.group(1):
            current.setdefault("available", row.group(3))
    elif "fw" in current and _OTHER.match(line):
        current.setdefault("after", "yes")  # a row behind the firmware's: the running one would have come before


def _finish(current: Optional[dict[str, str]], devices: list[Device], troubles: list[Trouble]) -> None:
    if current is None or len(devices) >= _MOST:
        return
    line = int(current["line"])
    burned, running = present(current.get("fw")), present(current.get("running"))
    strange = [word for word in (burned, running) if word is not None and not _VERSION.match(word)]
    troubles.extend(
        Trouble(line, f"device #{current['number']}: {word!r:.60} is no firmware version") for word in strange
    )
    burned = burned if burned and _VERSION.match(burned) else None
    if running is not None:
        running = running if _VERSION.match(running) else None
    elif "after" in current or "status" in current:
        running = burned
    failed = present(current.get("status")) or ""
    if burned is None and "fail" in failed.lower():
        note(troubles, line, f"device #{current['number']}: {failed:.100}")
    elif burned is None or running is None:
        note(troubles, line, f"device #{current['number']}: its firmware versions are not whole")
    devices.append(
        Device(
            present(current.get("pci device name")) or f"#{current['number']}",
            kind=present(current.get("device type")),
            part=present(current.get("part number")),
            psid=present(current.get("psid")),
            fw_version=burned,
            running=running,
            available=present(current.get("available")),
            status=present(current.get("status")),
        )
    )


class _Xml:
    """Cards, filled tag by tag."""

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self.troubles: list[Trouble] = []
        self.current: Optional[dict[str, str]] = None
        self.closed = False

    def tag(self, line: int, tag: "re.Match[str]") -> None:
        end, name, rest = tag.group(1) == "/", tag.group(2).lower(), tag.group(3)
        inner = {key.lower(): html.unescape(one or other) for key, one, other in _ATTRIBUTE.findall(rest)}
        if name == "devices":
            self.closed = end or rest.rstrip().endswith("/")
        elif name == "device" and not end:
            self.finish()
            self.current = {"number": str(len(self.devices) + 1), "line": str(line)}
            self.current.update({key: inner[source] for key, source in _ATTRIBUTES.items() if source in inner})
        elif name == "device" and self.current is not None:
            self.current["after"] = "yes"
            self.finish()
        elif self.current is not None and "current" in inner and _FIRMWARE_TAG.match(name):
            self.current.setdefault("running" if "running" in name else "fw", inner["current"])
            if "running" in inner:
                self.current.setdefault("running", inner["running"])
            if "running" not in name:
                self.current.setdefault("available", inner.get("available", ""))

    def finish(self) -> None:
        _finish(self.current, self.devices, self.troubles)
        self.current = None


def _xml(lines: Iterable[str]) -> Record:
    text, trouble = whole(lines)
    reader = _Xml()
    reader.troubles += [trouble] if trouble else []
    line, at = 1, 0
    for tag in _TAG.finditer(text):
        line += text.count("\n", at, tag.start())
        at = tag.start()
        reader.tag(line, tag)
        if tag.group(2) == "Status" and reader.current is not None and not tag.group(1):
            end = text.find("<", tag.end(), tag.end() + 300)
            reader.current.setdefault("status", html.unescape(text[tag.end() : end]).strip() if end >= 0 else "")
    reader.finish()
    if not reader.closed:
        note(reader.troubles, line, "the XML is not whole: </Devices> is missing")
    elif not reader.devices:
        note(reader.troubles, 0, "no device was found")
    return Record(tuple(reader.devices), (), "xml", tuple(reader.troubles))
