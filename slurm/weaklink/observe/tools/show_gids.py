"""Read ``show_gids`` (OFED's script), and the same table out of /sys: ``grep . .../gid*`` or ``head`` with ``==>``.

Cells without a value are empty, so that words are told by their form: the version is v1 or v2, the address has dots,
the interface comes last and may be missing. The last line, ``n_gids_found=``, tells whether all was printed.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, named, nothing
from weaklink.observe.tools.text import Trouble

NAME = "show_gids"

_GID = r"(?:[0-9a-fA-F]{4}:){7}[0-9a-fA-F]{4}"
_ROW = re.compile(rf"\s*([\w.-]{{1,64}})\s+(\d{{1,3}})\s+(\d{{1,4}})\s+({_GID})(?:\s+(.*))?\Z")
_FOUND = re.compile(r"\s*n_gids_found\s*=\s*(\d{1,6})\s*\Z")
_VERSION = re.compile(r"(?:(?:IB/)?RoCE )?[vV]([12])(?:\.\d)?\Z")
_IPV4 = re.compile(r"(\d{1,3}\.){3}\d{1,3}\Z")
_SYSFS = re.compile(
    r"(?:.*/)?([\w.-]{1,64})/ports/(\d{1,3})/(gids|gid_attrs/types|gid_attrs/ndevs)/(\d{1,4})(?::\s?(.*))?\Z"
)
_HEAD = re.compile(r"==> (\S+) <==\Z")
_UNSET = re.compile(r"(?:0000:){7}0000\Z|fe80:(?:0000:){6}0000\Z")
_NONE = frozenset({"N/A", "N\\A", "n/a", "-", ""})


class Gid(NamedTuple):
    """One entry of a GID table. ``slot`` is its index, ``roce`` 1 or 2, ``ip`` the address that the GID carries."""

    device: str
    port: int
    slot: int
    line: int
    gid: Optional[str] = None
    roce: Optional[int] = None
    netdev: Optional[str] = None

    @property
    def ip(self) -> Optional[str]:
        """The IPv4 address for a mapped GID, the IPv6 address otherwise."""
        try:
            address = ipaddress.IPv6Address(self.gid or "")
        except ValueError:
            return None
        return str(address.ipv4_mapped or address)

    @property
    def version(self) -> Optional[int]:
        """4 for an IPv4-mapped GID, 6 for another, None without a GID."""
        return None if self.ip is None else 6 if ":" in self.ip else 4

    @property
    def link_local(self) -> bool:
        """Whether its address reaches this link's neighbours alone: fe80::/64 or 169.254.0.0/16."""
        return self.version is not None and ipaddress.ip_address(str(self.ip)).is_link_local


class Gids(NamedTuple):
    """All entries. ``found`` is the number that the script printed, or that of entries for a listing of /sys."""

    gids: tuple[Gid, ...]
    found: Optional[int] = None
    form: str = "table"
    complaints: tuple[Complaint, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    version: Optional[str] = None


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is show_gids's."""
    if re.search(r"^[ \t]*DEV\s+PORT\s+INDEX\s+GID\b", head, re.MULTILINE) or "n_gids_found=" in head:
        return 97
    return 90 if re.search(r"/ports/\d+/(?:gids|gid_attrs/(?:types|ndevs))/\d+", head) else named(NAME, head)


def parse(lines: Iterable[str]) -> Gids:
    """Return the GID table; see ``Gids``."""
    rows: list[Gid] = []
    listed: dict[tuple[str, int, int], Gid] = {}
    troubles: list[Trouble] = []
    complaints: list[Complaint] = []
    found: Optional[int] = None
    path = ""
    for at, line in bounded(lines):
        row, end = _ROW.match(line), _FOUND.match(line)
        head = _HEAD.match(line.strip())
        if row:
            gid, wrong = _row(at, row)
            rows.append(gid)
            troubles += [wrong] if wrong else []
        elif end:
            found = int(end.group(1))
        elif head:
            path = head.group(1)
        elif line.strip():
            text = line.strip() if "/ports/" in line.partition(":")[0] else f"{path}:{line.strip()}"
            entry = _SYSFS.match(text)
            if entry:
                _listing(at, entry, listed)
            else:
                said = complaint(at, line)
                complaints += [said] if said else []
                if re.match(r"\s*\S+\s+\d+\s+\d+\s+[0-9a-f]{4}:", line):
                    troubles.append(Trouble(at, f"no whole GID in {line.strip()!r:.80}"))
    gids = tuple(rows) or tuple(gid for gid in listed.values() if gid.gid and not _UNSET.match(gid.gid))
    form = "table" if rows or found is not None or not listed else "sysfs"
    troubles += _unfinished(form, gids, found, complaints)
    return Gids(gids, len(gids) if form == "sysfs" else found, form, tuple(complaints), tuple(troubles))


def _unfinished(form: str, gids: tuple[Gid, ...], found: Optional[int], said: list[Complaint]) -> list[Trouble]:
    if form == "sysfs":
        bare = next((gid for gid in gids if gid.roce is None), None)
        return [Trouble(bare.line, f"{bare.device} GID {bare.slot}: its type is not listed")] if bare else []
    if not gids and found is None:
        return list(nothing(tuple(said), "GID table"))
    if found is None:
        return [Trouble(0, "the last line, n_gids_found=, is missing: the table may be cut off")]
    return [Trouble(0, f"n_gids_found={found}, but {len(gids)} rows are printed")] if found != len(gids) else []


def _row(at: int, row: "re.Match[str]") -> tuple[Gid, Optional[Trouble]]:
    device, port, index, gid, rest = row.groups()
    roce: Optional[int] = None
    netdev: Optional[str] = None
    words = re.sub(r"(?:IB/)?RoCE\s+(?=[vV][12])", "", rest or "").split()
    for word in words:
        version = _VERSION.match(word)
        if version and roce is None:
            roce = int(version.group(1))
        elif not _IPV4.match(word) and word not in _NONE:
            netdev = word
    wrong = None if roce else Trouble(at, f"{device} GID {index}: no version in {(rest or '')!r:.60}")
    return Gid(device, int(port), int(index), at, gid.lower(), roce, netdev), wrong


def _listing(at: int, entry: "re.Match[str]", listed: dict[tuple[str, int, int], Gid]) -> None:
    device, port, kind, index, text = entry.groups()
    key = (device, int(port), int(index))
    known = listed.get(key, Gid(device, int(port), int(index), at))
    value = (text or "").strip()
    if kind == "gids" and re.match(rf"{_GID}\Z", value):
        known = known._replace(gid=value.lower())
    elif kind.endswith("types"):
        version = _VERSION.match(value)
        known = known._replace(roce=int(version.group(1)) if version else None)
    elif kind.endswith("ndevs") and value:
        known = known._replace(netdev=value)
    listed[key] = known
