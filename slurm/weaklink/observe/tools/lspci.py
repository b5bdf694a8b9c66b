"""Read lspci: plain lists, -n, -nn, -D, -mm, and the details of -v to -vvv.

Layout: pciutils' lspci.c, ls-caps.c, ls-ecaps.c. Speeds are GT/s, widths lanes, sizes bytes; addresses stay as printed.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Optional

from weaklink.observe.tools.text import Trouble, integer, number

NAME = "lspci"
_ADDRESS = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_HEAD = re.compile(rf"({_ADDRESS}) (?=\S)(.*)")
_NUMERIC = re.compile(r"(?:Class )?([0-9a-fA-F]{4}): ([0-9a-fA-F]{4}):([0-9a-fA-F]{4})")
_CODE = re.compile(r"\[([0-9a-fA-F]{4})\]: ")
_IDS = re.compile(r"\[([0-9a-fA-F]{4}):([0-9a-fA-F]{4})\]")
_REV = re.compile(r"\(rev ([0-9a-fA-F]{2})\)|(?<= )-r([0-9a-fA-F]{2})\b")
_QUOTED = re.compile(r'"([^"]{0,200})"')
_SPEED = re.compile(r"Speed (\d{1,4}(?:\.\d{1,3})?) ?GT/s")
_WIDTH = re.compile(r"Width x(\d{1,3})")
_LOWER_SPEED = re.compile(r"Speed [^,()]{1,20}\(downgraded\)")
_LOWER_WIDTH = re.compile(r"Width x\d{1,3} \(downgraded\)")
_READ = re.compile(r"MaxReadReq (\d{1,5}) bytes")
_FLAG = re.compile(r"([A-Za-z]\w{2,24})([+-])(?=\s|\Z)")
_TOOL = re.compile(r"(?m)^(?:(?:-?bash|-?sh): .{0,60})?(?:pcilib|lspci): .{0,200}$")
_BROKEN = ("Cannot open", "opendir failed", "Cannot find any working access method", "command not found")
_MOST = 20_000
_CLASSES = {
    "pci bridge": "0604",
    "3d controller": "0302",
    "vga compatible controller": "0300",
    "display controller": "0380",
    "processing accelerators": "1200",
    "infiniband controller": "0207",
    "ethernet controller": "0200",
    "network controller": "0280",
}
_VENDORS = (("nvidia", "10de"), ("mellanox", "15b3"), ("advanced micro devices", "1002"), ("aspeed", "1a03"))


class Link(NamedTuple):
    """A PCI Express link: speed (GT/s) and lanes, and whether lspci itself calls each of them downgraded."""

    speed: Optional[float]
    width: Optional[int]
    lower_speed: bool = False
    lower_width: bool = False


class Device(NamedTuple):
    """A PCI function as listed.

    ``kind`` four hex digits of the class where known; ``dead`` configuration space reads as ones; ``denied`` its
    capabilities are hidden; ``detail`` 0 listed only, 1 capabilities named, 2 capabilities in full; ``acs`` the flags
    of ACSCtl that are on, None without that line; ``read_request`` MaxReadReq.
    """

    address: str
    kind: Optional[str]
    vendor: Optional[str]
    name: str
    revision: Optional[str]
    dead: bool = False
    denied: bool = False
    detail: int = 0
    capable: Optional[Link] = None
    link: Optional[Link] = None
    acs: Optional[tuple[str, ...]] = None
    read_request: Optional[int] = None
    driver: Optional[str] = None


class Record(NamedTuple):
    """The list. ``failed`` is the tool's own complaint when it could not run."""

    devices: tuple[Device, ...]
    failed: Optional[str]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is lspci's."""
    lines = head[:65_536].splitlines()
    heads = [match for match in (_HEAD.match(line) for line in lines) if match and _kind(match.group(2))]
    if not heads:
        return 60 if _TOOL.search(head) else 0
    plain = sum(1 for line in lines if line and not line[0].isspace())
    return 92 if len(heads) * 2 >= plain else 55


def parse(lines: Iterable[str]) -> Record:
    """Return the functions listed; never raises."""
    devices: list[Device] = []
    troubles: list[Trouble] = []
    failed: Optional[str] = None
    current: Optional[Device] = None
    last, at = "", 0
    for at, line in enumerate(lines, 1):
        match = _HEAD.match(line)
        if match and (_kind(match.group(2)) or match.group(2)[:1] == '"'):
            if len(devices) >= _MOST:
                troubles.append(Trouble(at, f"more than {_MOST} devices; the rest was not read"))
                break
            if current:
                devices.append(current)
            current = _device(match.group(1), match.group(2))
        elif current and line[:1] in (" ", "\t"):
            current = _detail(current, line.strip())
        elif line.startswith(("pcilib:", "lspci:", "bash:", "-bash:", "sh:")) and any(word in line for word in _BROKEN):
            failed = failed or line[:200]
        elif match:
            troubles.append(Trouble(at, f"a device's line is cut off: {line[:60]!r}"))
        last = line or last
    if current:
        devices.append(current)
        troubles += _cut(last, at)
    return Record(tuple(devices), failed, None, tuple(troubles[:20]))


def _cut(last: str, at: int) -> Iterator[Trouble]:
    """A last line that ends within a word that lspci always completes."""
    text = last.strip()
    unfinished = text.startswith(("LnkSta:", "LnkCap:")) and not _WIDTH.search(text)
    unfinished = unfinished or (text.startswith("ACSCtl:") and "DirectTrans" not in text)
    if unfinished or re.search(r"\((?:rev[ 0-9a-f]{0,3}|prog-if[^)]{0,40})\Z", text):
        yield Trouble(at, f"the output ends within a line: {text[-60:]!r}")


def _kind(rest: str) -> Optional[str]:
    """Return the class of a device, as four hex digits, or its name where that has no digits here."""
    match = _NUMERIC.match(rest)
    if match:
        return match.group(1).lower()
    match = _CODE.search(rest[:120])
    if match:
        return match.group(1).lower()
    if rest[:1] == '"':
        name = _QUOTED.match(rest)
        word = name.group(1) if name else ""
        code = re.search(r"\[([0-9a-fA-F]{4})\]\Z", word)
        return code.group(1).lower() if code else _CLASSES.get(word.lower(), word or None)
    word, colon, _ = rest.partition(": ")
    return _CLASSES.get(word.lower(), word) if colon and len(word) < 80 else None  # noqa: PLR2004 - class names are short


def _device(address: str, rest: str) -> Device:
    name = rest.partition(": ")[2] or rest
    if rest[:1] == '"':
        name = " ".join(_QUOTED.findall(rest)[1:3])
    numeric, ids, rev = _NUMERIC.match(rest), _IDS.findall(rest), _REV.search(rest)
    vendor = numeric.group(2).lower() if numeric else ids[-1][0].lower() if ids else None
    vendor = vendor or next((code for word, code in _VENDORS if word in name.lower()), None)
    revision = (rev.group(1) or rev.group(2)).lower() if rev else None
    return Device(address, _kind(rest), vendor, name[:200], revision, dead=revision == "ff")


def _detail(device: Device, text: str) -> Device:  # noqa: PLR0911 - one return a kind of line
    if text.startswith("!!! Unknown header type"):
        return device._replace(dead=True)
    if text.startswith("Capabilities:"):
        if "<access denied>" in text:
            return device._replace(denied=True)
        return device._replace(detail=max(device.detail, 1))
    if text.startswith("LnkCap:"):
        return device._replace(capable=_link(text), detail=2)
    if text.startswith("LnkSta:"):
        return device._replace(link=_link(text), detail=2)
    if text.startswith("ACSCtl:"):
        return device._replace(acs=tuple(flag for flag, sign in _FLAG.findall(text) if sign == "+"), detail=2)
    if text.startswith(("ACSCap:", "DevCtl:", "DevSta:")):
        device = device._replace(detail=2)
    if "MaxReadReq" in text:
        match = _READ.search(text)
        return device._replace(read_request=integer(match.group(1)) if match else None, detail=2)
    if text.startswith("Kernel driver in use:"):
        return device._replace(driver=text.partition(": ")[2][:80] or None)
    return device


def _link(text: str) -> Link:
    speed, width = _SPEED.search(text), _WIDTH.search(text)
    lanes = integer(width.group(1)) if width else None
    return Link(
        number(speed.group(1)) if speed else None,
        lanes,
        _LOWER_SPEED.search(text) is not None,
        _LOWER_WIDTH.search(text) is not None,
    )
