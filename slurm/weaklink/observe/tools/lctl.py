"""Read lctl: list_nids, ping, which_nid, dl, and its errors. Part of Lustre (lustre/utils, lnet/utils/portals.c)."""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.text import Trouble, integer

NAME = "lctl"
_NID = re.compile(r"\s*(?:\d{4,6}-)?([0-9A-Za-z][0-9A-Za-z.:%_\-]{0,63}@[a-z0-9]{2,12})\s*\Z")
_NID_CUT = re.compile(r"\s*(?:\d{4,6}-)?[0-9A-Fa-f.:]{3,40}@?\Z")
_IOC = re.compile(r"(IOC_LIBCFS_\w+) error (-?\d{1,5}): (.{1,120})")
_STACK = re.compile(r"LNet stack down|LNET is not configured|LNet not configured", re.IGNORECASE)
_OPEN = re.compile(r"open(?:ing)? .{0,10}/dev/lnet failed: (.{1,80})|cannot open /dev/lnet: (.{1,80})")
_PING = re.compile(r"failed to ping (\S{1,80}?): (.{1,80})")
_DEVICE = re.compile(r"\s*(\d{1,6}) (UP|IN|AT|ST|OF|DN|--) (\S{1,40}) (\S{1,120}) (\S{1,120}) (\d{1,9})\s*\Z")
_ABSENT = re.compile(r"(?m)^(?:\S{1,40}: )?(?:(?:line )?\d{1,6}: )?(?:\S{0,40}/)?lctl: (?:command )?not found")
_MOST = 20_000


class Error(NamedTuple):
    """An error: the number where it is told, its words, the line as printed, the peer of a ping."""

    number: Optional[int]
    text: str
    printed: str
    peer: Optional[str] = None


class Device(NamedTuple):
    """A device of ``lctl dl``: state, type, name."""

    state: str
    type: str
    name: str


class Record(NamedTuple):
    """NIDs as listed (or answered by a ping), errors, devices."""

    nids: tuple[str, ...]
    errors: tuple[Error, ...]
    devices: tuple[Device, ...]
    hint: bool
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is lctl's."""
    lines = [line for line in head[:65_536].splitlines() if line.strip()]
    if _IOC.search(head[:65_536]) or _PING.search(head[:65_536]):
        return 90
    if not lines:
        return 0
    if _ABSENT.search(head[:65_536]):
        return 60
    fitting = sum(1 for line in lines if _NID.match(line) or _DEVICE.match(line))
    return 85 if fitting == len(lines) else 60 if fitting * 2 > len(lines) or _OPEN.search(head[:65_536]) else 0


def parse(lines: Iterable[str]) -> Record:
    """Return what lctl says; never raises."""
    nids: list[str] = []
    errors: list[Error] = []
    devices: list[Device] = []
    troubles: list[Trouble] = []
    hint = False
    for at, line in enumerate(lines, 1):
        if len(nids) + len(errors) + len(devices) > _MOST:
            troubles.append(Trouble(at, f"more than {_MOST} lines; the rest was not read"))
            break
        found = _error(line)
        nid, device = _NID.match(line), _DEVICE.match(line)
        hint = hint or "modules may not be loaded" in line
        if found:
            errors.append(found)
        elif nid:
            nids.append(nid.group(1))
        elif device:
            devices.append(Device(device[2], device[3], device[4]))
        elif _NID_CUT.match(line) or re.match(r"\s*(?:IOC_LIBCFS|failed to)", line):
            troubles.append(Trouble(at, f"not a whole line: {line.strip()[:60]!r}"))
    return Record(tuple(dict.fromkeys(nids)), tuple(errors), tuple(devices), hint, None, tuple(troubles[:20]))


def _error(line: str) -> Optional[Error]:
    match = _IOC.search(line)
    if match:
        return Error(integer(match[2]), match[3].strip(), line.strip()[:200])
    match = _PING.search(line)
    if match:
        return Error(None, match[2].strip(), line.strip()[:200], match[1])
    match = _OPEN.search(line)
    if match:
        return Error(None, (match[1] or match[2]).strip(), line.strip()[:200])
    return Error(None, line.strip()[:120], line.strip()[:200]) if _STACK.search(line) else None
