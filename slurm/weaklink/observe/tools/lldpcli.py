"""Read what ``lldpcli show neighbors`` prints: json, json0, keyvalue, xml, plain text.

``json`` names objects by what they hold and turns a list of one into that one; ``json0`` is always lists. In
``keyvalue`` a key may repeat, and may be a value and a prefix at once. An interface may have several neighbours.
Layout: src/client of lldpd.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools import lldpcli_json, lldpcli_xml, mlx_json
from weaklink.observe.tools.lldpcli_records import Neighbour, Record
from weaklink.observe.tools.mlx_common import complaint, note, nothing, present
from weaklink.observe.tools.text import Trouble

NAME = "lldpcli"
_KEYVALUE = re.compile(
    r"lldp\.(\S{1,80}?)\.(via|rid|age|chassis|port|vlan|ppvid|pi|lldp-med|unknown-tlvs|unknown-tlv|dot1|power|ttl)"
    r"(?:\.([\w.-]{1,120}))?=(.{0,4000})\Z"
)
_INTERFACE = re.compile(r"\s{0,4}Interface:\s{1,12}(\S{1,40}), via: ([\w-]{1,20})(?:, RID: (\d{1,9}))?")
_FIELD = re.compile(r"\s{2,16}(SysName|ChassisID|PortID|PortDescr|MgmtIP|TTL|MFS):\s{1,20}(.{0,1000})\Z")
_KEYS = re.compile(r"(?m)^lldp\.\S{1,80}\.(?:via|rid|chassis\.|port\.)")
_PLAIN = re.compile(r"(?m)^\s{0,4}Interface:\s{1,12}\S{1,40}, via: ")
_LOG = re.compile(r"\S{0,40} {0,4}\[ {0,4}(WARN|WARNING|ALERT|ERR|CRIT|EMERG)/lldpc(?:tl|li)\]\s{0,4}(.{1,300})")
_MOST = 20_000


class _Draft(NamedTuple):
    line: int
    netdev: str
    rid: str
    values: dict[str, str]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is lldpcli's."""
    head = head[:65_536]
    if mlx_json.looks_json(head):
        return 92 if re.search(r'"lldp"\s{0,10}:', head) else 0
    if _PLAIN.search(head) or _KEYS.search(head) or lldpcli_xml.SIGN.search(head):
        return 92
    if "LLDP neighbors:" in head:
        return 85
    return 80 if any(_LOG.match(line) for line in head.split("\n", 20)[:20]) else 0


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    first, everything = mlx_json.peek(lines)
    if mlx_json.looks_json(first):
        return lldpcli_json.parse(everything)
    if first.lstrip().startswith("<"):
        return lldpcli_xml.parse(everything)
    return _text(everything, first)


def _text(lines: Iterable[str], first: str) -> Record:
    drafts: list[_Draft] = []
    complaints: list[str] = []
    form: Optional[str] = None
    empty = False
    for at, line in enumerate(lines, 1):
        pair = _KEYVALUE.match(line)
        if pair:
            form = form or "keyvalue"
            _keyvalue(at, pair, drafts)
            continue
        head = _INTERFACE.match(line)
        if head and len(drafts) < _MOST:
            form = form or "plain"
            drafts.append(_Draft(at, head.group(1).rstrip(","), head.group(3) or "", {}))
            continue
        empty = empty or "LLDP neighbors:" in line
        log = _LOG.match(line)
        error = log.group(2) if log else complaint(line)
        if error and len(complaints) < 20:  # noqa: PLR2004 - more than anybody reads
            complaints.append(error.strip())
            continue
        field = _FIELD.match(line)
        if field and drafts and form == "plain":
            drafts[-1].values.setdefault(field.group(1).lower(), field.group(2).strip())
    troubles: list[Trouble] = []
    neighbours = [_neighbour(draft, troubles) for draft in drafts]
    if not drafts and not empty:
        nothing(first, complaints, troubles, "no neighbour was found", ours=not first.strip("- "))
    return Record(tuple(neighbours), form or "plain", tuple(troubles), tuple(complaints))


def _keyvalue(at: int, pair: "re.Match[str]", drafts: list[_Draft]) -> None:
    netdev, section, rest, value = pair.group(1), pair.group(2), pair.group(3) or "", pair.group(4)
    # A neighbour begins with its via; interfaces may have several, one after another.
    begins = section == "via" or not drafts or drafts[-1].netdev != netdev
    if begins:
        if len(drafts) >= _MOST:
            return
        drafts.append(_Draft(at, netdev, "", {}))
    names = {
        ("chassis", "name"): "sysname",
        ("chassis", "mac"): "chassis mac",
        ("port", "descr"): "portdescr",
        ("port", "ifname"): "port ifname",
        ("port", "local"): "port local",
        ("port", "mac"): "port mac",
        ("port", "ifalias"): "port ifalias",
    }
    name = names.get((section, rest))
    if name and len(drafts[-1].values) < 64:  # noqa: PLR2004 - more names than there are
        drafts[-1].values.setdefault(name, value.strip())


def _neighbour(draft: _Draft, troubles: list[Trouble]) -> Neighbour:
    values = draft.values
    for key, name in (("portid", "port"), ("chassisid", "chassis")):
        kind, _, value = values.get(key, "").partition(" ")
        if kind and value.strip():
            values.setdefault(f"{name} {kind.lower()}", value.strip())
    ids: dict[str, str] = {}
    for key, value in values.items():
        word = present(value)
        if key.startswith("port ") and word is not None:
            ids[key.partition(" ")[2]] = word
    found = Neighbour(
        draft.netdev,
        draft.line,
        switch=present(values.get("sysname")),
        chassis=present(values.get("chassis mac") or values.get("chassis local")),
        ids=ids,
        descr=present(values.get("portdescr")),
    )
    if found.switch is None or not (found.ids or found.descr):
        note(troubles, draft.line, f"{draft.netdev}: no name of a switch and port; is the text cut?")
    return found
