"""Read what ``ip link`` and ``ip addr`` print: text, ``-br``, ``-s``, ``-d``, or ``-j`` JSON.

The flag UP says that somebody switched the interface on; a carrier is the flag LOWER_UP, and operstate tells what the
kernel makes of both (RFC 2863). IPoIB addresses have 20 bytes. Layout: ip/ipaddress.c of iproute2.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools import mlx_json
from weaklink.observe.tools.mlx_common import note, nothing, present
from weaklink.observe.tools.text import Trouble, integer

NAME = "ip-link"
_HEAD = re.compile(
    r"(\d{1,9}): ([^\s:@]{1,40}|[^\s@]{1,40})(?:@([^\s:]{1,40}))?:(?: <([A-Z0-9_,-]{0,400})>)?(.{0,2000})\Z"
)
_CUT = re.compile(r"\d{1,9}:(?: |\Z)")
_WORD = re.compile(r"\b(mtu|qdisc|state|mode|group|qlen|master) (\S{1,60})")
_LINK = re.compile(r"\s{1,12}link/(\S{1,20})(?: ([0-9a-fA-F:.]{2,80}))?")
_ADDRESS = re.compile(r"\s{1,12}inet6? (\S{1,60})")
_BRIEF = re.compile(
    r"([^\s@<>:]{1,40})(?:@(\S{1,40}))?\s{1,40}(UP|DOWN|UNKNOWN|LOWERLAYERDOWN|DORMANT|TESTING|NOTPRESENT)\b(.{0,600})\Z"
)
_FLAGS = re.compile(r"<([A-Z0-9_,-]{0,400})>")
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5,19}[0-9a-f]{2}\Z")
_SIGN = re.compile(r"(?m)^(?:\d{1,9}: )[^\s:]{1,40}(?:@\S{1,40})?: <[A-Z0-9_,-]{0,400}>.{0,200}\bmtu \d")
_JSON = re.compile(r'"ifname"')
_SLAVE = re.compile(
    r"\s{1,12}(vlan|bond|bridge|vxlan|macvlan|ipvlan|ipoib|veth|dummy|team|bond_slave)\b"
    r"(?: protocol 802\.1Q id (\d{1,4}))?"
)
_ABSENT = re.compile(r"(?:Error: )?(?:Device \"(\S{1,40})\" does not exist|Cannot find device \"(\S{1,40})\")")
_MOST = 65_536


class Link(NamedTuple):
    """One interface; ``flags`` as printed, ``operstate`` None where the output does not tell it."""

    name: str
    line: int
    flags: tuple[str, ...]
    operstate: Optional[str]
    mtu: Optional[int]
    kind: Optional[str]
    mac: Optional[str]
    lower: Optional[str]
    master: Optional[str]
    detail: Optional[str]
    vlan: Optional[int]
    addresses: tuple[str, ...]

    @property
    def carrier(self) -> Optional[bool]:
        """Whether there is a link, by the flags; None where none are printed."""
        if not self.flags:
            return None
        return "LOWER_UP" in self.flags and "NO-CARRIER" not in self.flags


class Record(NamedTuple):
    """All interfaces of the text; ``complaints`` the tool's own errors, ``unknown`` names that it does not know."""

    links: tuple[Link, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]
    complaints: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is ip's."""
    head = head[:65_536]
    if mlx_json.looks_json(head):
        return 90 if _JSON.search(head) and ('"operstate"' in head or '"flags"' in head) else 0
    if _SIGN.search(head):
        return 92
    lines = [line for line in head.split("\n")[:40] if line.strip()]
    if lines and all(_ABSENT.match(line) for line in lines):
        return 60
    brief = [line for line in lines if _BRIEF.match(line)]
    return 70 if brief and len(brief) * 2 > len(lines) else 0


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    first, everything = mlx_json.peek(lines)
    return _json(everything) if mlx_json.looks_json(first) else _text(everything, first)


def _text(lines: Iterable[str], first: str) -> Record:
    links: list[Link] = []
    complaints: list[str] = []
    unknown: list[str] = []
    troubles: list[Trouble] = []
    seen: dict[str, int] = {}
    for at, line in enumerate(lines, 1):
        found = _first_line(at, line, troubles)
        if found is not None:
            if found.name in seen:
                known = links[seen[found.name]]
                if known.operstate != found.operstate or known.flags != found.flags:
                    note(troubles, at, f"{found.name} comes twice with another state")
            elif len(links) < _MOST:
                seen[found.name] = len(links)
                links.append(found)
        elif links and line[:1].isspace():
            links[-1] = _more(links[-1], line)
        else:
            absent = _ABSENT.match(line)
            if absent and len(unknown) < _MOST:
                unknown.append(absent.group(1) or absent.group(2))
                complaints.append(line.strip())
    if not links and not troubles:
        nothing(first, complaints, troubles, "no interface was found")
    return Record(tuple(links), "text", tuple(troubles), tuple(complaints), tuple(unknown))


def _first_line(at: int, line: str, troubles: list[Trouble]) -> Optional[Link]:
    head = _HEAD.match(line)
    if head:
        words = dict(_WORD.findall(head.group(5)))
        flags = tuple(flag for flag in (head.group(4) or "").split(",") if flag)
        mtu = integer(words.get("mtu"))
        if head.group(4) is None or "state" not in words:
            note(troubles, at, f"{head.group(2)}: flags or state are missing; is the line cut?")
        return Link(
            head.group(2),
            at,
            flags,
            words.get("state"),
            mtu,
            None,
            None,
            head.group(3),
            words.get("master"),
            None,
            None,
            (),
        )
    if _CUT.match(line):
        note(troubles, at, f"{line.strip():.40}: the line is cut")
        return None
    brief = _BRIEF.match(line)
    if brief is None:
        return None
    marks = _FLAGS.search(brief.group(4))
    flags = tuple(flag for flag in marks.group(1).split(",") if flag) if marks else ()
    words_left = brief.group(4).partition("<")[0].split()
    mac = next((word for word in words_left if _MAC.match(word)), None)
    addresses = tuple(word for word in words_left if "/" in word)
    return Link(brief.group(1), at, flags, brief.group(3), None, None, mac, brief.group(2), None, None, None, addresses)


def _more(link: Link, line: str) -> Link:
    """Return the interface with what an indented line adds."""
    physical = _LINK.match(line)
    if physical and link.kind is None:
        return link._replace(kind=physical.group(1), mac=physical.group(2))
    address = _ADDRESS.match(line)
    if address and len(link.addresses) < _MOST:
        return link._replace(addresses=(*link.addresses, address.group(1)))
    slave = _SLAVE.match(line)
    if slave and link.detail is None:
        return link._replace(detail=slave.group(1), vlan=integer(slave.group(2)))
    return link


def _json(lines: Iterable[str]) -> Record:
    found, trouble = mlx_json.documents(lines)
    troubles = list(trouble)
    links: dict[str, Link] = {}
    for document in found:
        for item in mlx_json.objects(document):
            name = item.get("ifname")
            if isinstance(name, str) and name:  # ip prints empty objects for what a filter left out
                links.setdefault(name, _from_json(name, item))
    if not links and not troubles:
        note(troubles, 0, "no interface was found")
    return Record(tuple(links.values()), "json", tuple(troubles))


def _from_json(name: str, item: dict[str, Any]) -> Link:
    flags, info, mtu = item.get("flags"), item.get("linkinfo"), item.get("mtu")
    info = info if isinstance(info, dict) else {}
    data = info.get("info_data")
    vlan = data.get("id") if isinstance(data, dict) and info.get("info_kind") == "vlan" else None
    rows = item.get("addr_info")
    addresses = [
        f"{row['local']}/{row.get('prefixlen')}"
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict) and "local" in row
    ]
    return Link(
        name,
        0,
        tuple(str(flag) for flag in flags) if isinstance(flags, list) else (),
        present(item.get("operstate")) if str(item.get("operstate")).upper() != "UNKNOWN" else "UNKNOWN",
        mtu if isinstance(mtu, int) and not isinstance(mtu, bool) else None,
        present(item.get("link_type")),
        present(item.get("address")),
        present(item.get("link")),
        present(item.get("master")),
        present(info.get("info_kind")),
        vlan if isinstance(vlan, int) else None,
        tuple(addresses),
    )
