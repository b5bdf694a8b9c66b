"""Read what mlxconfig and mstconfig query prints: with ``-e`` three columns, without it one, or ``-j`` JSON.

``Configurations:`` heads the columns (Default, Current, Next Boot); a star in front of a row marks a next value that
differs, ``RO`` a setting that cannot be written. Layout: mlxconfig of Mellanox/mstflint.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools import mlx_json
from weaklink.observe.tools.mlx_common import complaint, note, nothing, present
from weaklink.observe.tools.text import Trouble

NAME = "mlxconfig"
DEFAULT, CURRENT, NEXT = "default", "current", "next"
_HEAD = re.compile(r"\s{0,8}Configurations:\s+(.{1,200})\Z")
_COLUMN = re.compile(r"Default|Current|Next [Bb]oot|Next")
_DEVICE = re.compile(r"\s{0,8}Device #(\d{1,4}):\s{0,20}\Z")
_KEY = re.compile(r"\s{0,8}(Device type|Name|Description|Device|PCI device)\s{0,4}:\s{0,40}(.{0,400})\Z")
_ROW = re.compile(r"\s{0,4}(\*?)\s{0,16}(RO\s{1,8})?([A-Z][A-Z0-9_]{1,80}(?:\[[\d.]{1,12}\])?)\s{1,80}(\S.{0,600})\Z")
_BARE = re.compile(r"\s{0,4}\*?\s{0,16}[A-Z][A-Z0-9_]{3,80}\s{0,20}\Z")
_GAP = re.compile(r"\s{2,}")
_SIGN = re.compile(r"(?m)^\s{0,8}Configurations:\s{1,80}(?:Default|Current|Next)")
_JSON = re.compile(r'"tlv_configuration"|"next_value"')
_NAMES = {"default": DEFAULT, "current": CURRENT, "next boot": NEXT, "next": NEXT}
_MOST = 20_000


class Setting(NamedTuple):
    """One setting as printed: a value is None where its column is not in the output."""

    line: int
    default: Optional[str]
    current: Optional[str]
    next: Optional[str]
    starred: bool


class Device(NamedTuple):
    """One card and its settings by name; ``columns`` are those of the output."""

    name: str
    kind: Optional[str]
    columns: tuple[str, ...]
    settings: dict[str, Setting]


class Record(NamedTuple):
    """All cards of the text, and the tool's own errors."""

    devices: tuple[Device, ...]
    complaints: tuple[str, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is mlxconfig's."""
    head = head[:65_536]
    if _SIGN.search(head) or _JSON.search(head):
        return 92
    return 40 if "Configurations:" in head else 0


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    first, everything = mlx_json.peek(lines)
    return _json(everything) if mlx_json.looks_json(first) else _text(everything, first)


class _Reader:
    """Rows by device, filled line by line."""

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self.complaints: list[str] = []
        self.troubles: list[Trouble] = []
        self.columns: tuple[str, ...] = ()
        self.keys: dict[str, str] = {}
        self.settings: dict[str, Setting] = {}
        self.number = 0

    def finish(self) -> None:
        if self.settings or self.columns or self.number:
            if not self.settings and not self.complaints:
                note(self.troubles, 0, f"device #{self.number or 1}: no setting was found")
            name = present(self.keys.get("device") or self.keys.get("pci device")) or f"#{len(self.devices) + 1}"
            kind = present(self.keys.get("device type"))
            self.devices.append(Device(name, kind, self.columns, self.settings))
        self.columns, self.keys, self.settings = (), {}, {}

    def line(self, at: int, line: str) -> None:
        error = complaint(line)
        device, head, key = _DEVICE.match(line), _HEAD.match(line), _KEY.match(line)
        if error:
            self.complaints[20:] = []
            self.complaints.append(error)
        elif device:
            self.finish()
            self.number = int(device.group(1))
        elif head and _COLUMN.search(head.group(1)):
            columns = tuple(_NAMES[word.lower()] for word in _COLUMN.findall(head.group(1)))
            if self.settings and columns == self.columns:
                return  # the head repeats within one device
            if self.settings:
                self.finish()
            self.columns = columns
        elif key and not self.columns:
            self.keys.setdefault(key.group(1).lower(), key.group(2).strip())
        elif self.columns:
            self.row(at, line)

    def row(self, at: int, line: str) -> None:
        match = _ROW.match(line)
        if match is None:
            if _BARE.match(line):
                note(self.troubles, at, f"{line.strip():.60}: no value")
            return
        name, rest = match.group(3), match.group(4).strip()
        cells = _GAP.split(rest)
        if len(cells) != len(self.columns):
            cells = rest.split()
        if len(cells) != len(self.columns):
            text = f"{name}: {len(cells)} values, wanted {len(self.columns)} ({', '.join(self.columns)})"
            note(self.troubles, at, text)
            return
        values = dict(zip(self.columns, cells))
        found = Setting(at, values.get(DEFAULT), values.get(CURRENT), values.get(NEXT), bool(match.group(1)))
        if any(value is not None and value.count("(") != value.count(")") for value in found[1:4]):
            note(self.troubles, at, f"{name}: a value is cut")
            return
        known = self.settings.get(name)
        if known is not None and known[1:4] != found[1:4]:
            note(self.troubles, at, f"{name} comes twice with another value")
        elif known is None and len(self.settings) < _MOST:
            self.settings[name] = found


def _text(lines: Iterable[str], first: str) -> Record:
    reader = _Reader()
    for at, line in enumerate(lines, 1):
        reader.line(at, line)
    reader.finish()
    if not reader.devices:
        nothing(first, reader.complaints, reader.troubles, "no settings were found", ours=bool(_DEVICE.match(first)))
    return Record(tuple(reader.devices), tuple(reader.complaints), "text", tuple(reader.troubles))


def _json(lines: Iterable[str]) -> Record:
    found, trouble = mlx_json.documents(lines)
    troubles = list(trouble)
    devices: list[Device] = []
    for document in found:
        for item in mlx_json.objects(document):
            for label, device in item.items():
                if isinstance(device, dict) and isinstance(device.get("tlv_configuration"), dict):
                    devices.append(_device(str(label), device, troubles))
    if not devices and not troubles:
        note(troubles, 0, "no settings were found")
    return Record(tuple(devices), (), "json", tuple(troubles))


def _device(label: str, device: dict[str, Any], troubles: list[Trouble]) -> Device:
    settings: dict[str, Setting] = {}
    columns: set[str] = set()
    for name, values in device["tlv_configuration"].items():
        if not isinstance(values, dict) or "next_value" not in values:
            note(troubles, 0, f"{name!s:.60}: no next_value")
            continue
        texts = {key: _value(values.get(f"{key}_value")) for key in (DEFAULT, CURRENT, NEXT)}
        columns.update(key for key, value in texts.items() if value is not None)
        settings[str(name)] = Setting(0, texts[DEFAULT], texts[CURRENT], texts[NEXT], bool(values.get("modified")))
    name = present(device.get("device")) or label.partition("#")[2] or label
    return Device(name, present(device.get("device_type")), tuple(sorted(columns)), settings)


def _value(value: Any) -> Optional[str]:
    if value is None or isinstance(value, (dict, list)):
        return None
    return ("True" if value else "False") if isinstance(value, bool) else str(value).strip()
