"""Read what ``flint q``, ``flint q full`` and their mst names print of a card's flash: FS2, FS3, FS4, FS5.

``FW Version(Running)`` is printed only where the card runs another version than the flash holds. Layout: flint of
Mellanox/mstflint.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.mlx_common import complaint, note, nothing, present
from weaklink.observe.tools.text import Trouble

NAME = "flint"
_LINE = re.compile(r"([A-Za-z][A-Za-z0-9 ()/]{1,38}?)\s{0,4}:(?:\s+(.*))?\Z")
_SIGN = re.compile(r"(?m)^\s{0,4}(?:Image type|FW Version|FW Release Date|Rom Info|Product Version):\s{1,30}\S")
_VERSION = re.compile(r"\d{1,5}\.\d{1,5}\.\d{1,5}(?:-\S{1,40})?\Z")
_RUNNING = re.compile(r"fw version\s?\(running\)\Z")
_FAILED = re.compile(
    r"(?m)^\s{0,4}-E- (?:Cannot open Device:|Can not open .{1,80}: (?:Failed to identify|Can not obtain))"
)
_KEEP = 64
_MOST = 4096


class Device(NamedTuple):
    """One card: versions as printed, ``running`` equal to ``fw_version`` where the tool prints no other one."""

    line: int
    image_type: Optional[str]
    fw_version: Optional[str]
    running: Optional[str]
    psid: Optional[str]
    guid: Optional[str]
    mac: Optional[str]
    product: Optional[str]
    released: Optional[str]
    security: Optional[str]


class Record(NamedTuple):
    """All cards of the text, and the tool's own errors."""

    devices: tuple[Device, ...]
    complaints: tuple[str, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is flint's."""
    found = {match.group(0).strip()[:10] for match in _SIGN.finditer(head[:65_536])}
    if len(found) >= 2:  # noqa: PLR2004 - one key alone may be anything's
        return 92
    return 75 if _FAILED.search(head[:65_536]) else 50 * len(found)


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    devices: list[Device] = []
    complaints: list[str] = []
    troubles: list[Trouble] = []
    values: dict[str, str] = {}
    begun = 0
    first = ""
    for at, line in enumerate(lines, 1):
        first = first or line.strip()
        error = complaint(line)
        if error:
            if len(complaints) < _KEEP:
                complaints.append(error)
            continue
        match = _LINE.match(line.strip())
        if match is None:
            continue
        key, value = match.group(1).strip().lower(), (match.group(2) or "").strip()
        if key == "image type" or (key == "fw version" and key in values):
            _finish(values, begun, devices, troubles)
            values, begun = {}, at
        begun = begun or at
        if len(values) < _KEEP:
            known = values.setdefault(key, value)
            if known != value and (key in {"fw version", "psid"} or _RUNNING.match(key)):
                note(troubles, at, f"{match.group(1)[:40]} comes twice with another value")
    _finish(values, begun, devices, troubles)
    if not devices:
        nothing(first, complaints, troubles, "no firmware version was found", ours=recognise(first) > 0)
    return Record(tuple(devices), tuple(complaints), devices[0].image_type if devices else None, tuple(troubles))


def _finish(values: dict[str, str], begun: int, devices: list[Device], troubles: list[Trouble]) -> None:
    if not {"fw version", "image type", "psid"} & set(values) or len(devices) >= _MOST:
        return
    burned = _version(values.get("fw version"), "FW Version", begun, troubles)
    printed = next((value for key, value in values.items() if _RUNNING.match(key)), None)
    psid = present(values.get("psid"))
    if psid is None:
        note(troubles, begun, "the text ends before the card's PSID")
    running = _version(printed, "FW Version(Running)", begun, troubles) if printed is not None else burned
    # Where the text is cut, the running version may have been on a line that is lost.
    known = running if printed is not None or psid is not None else None
    devices.append(
        Device(
            begun,
            image_type=present(values.get("image type")),
            fw_version=burned,
            running=known,
            psid=psid,
            guid=_first(values.get("base guid") or values.get("guids")),
            mac=_first(values.get("base mac") or values.get("macs")),
            product=present(values.get("product version")),
            released=present(values.get("fw release date")),
            security=present(values.get("security attributes")),
        )
    )


def _version(text: Optional[str], name: str, begun: int, troubles: list[Trouble]) -> Optional[str]:
    word = present(text)
    if word is None:
        return None
    if _VERSION.match(word):
        return word
    note(troubles, begun, f"{name}: {word!r:.60} is no version")
    return None


def _first(text: Optional[str]) -> Optional[str]:
    words = (text or "").split()
    return present(words[0]) if words else None
