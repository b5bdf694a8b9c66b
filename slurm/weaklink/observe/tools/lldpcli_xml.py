"""Read ``lldpcli -f xml``: tags as they come, without a parser that a cut or an entity could upset."""

import html
import re
from collections.abc import Iterable
from typing import Optional

from weaklink.observe.tools.lldpcli_records import Neighbour, Record
from weaklink.observe.tools.mlx_common import note
from weaklink.observe.tools.text import whole

SIGN = re.compile(r"<lldp\b[^<>]{0,200}>|<interface\b[^<>]{0,400}\bvia=")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]{0,40})((?:\s[^<>]{0,2000})?)>([^<]{0,4000})")
_ATTRIBUTE = re.compile(r"([A-Za-z][\w-]{0,30})=(?:\"([^\"]{0,400})\"|'([^']{0,400})')")
_MOST = 20_000


class _Draft:
    """One interface's neighbour, filled tag by tag."""

    def __init__(self, netdev: str, line: int) -> None:
        self.netdev, self.line = netdev, line
        self.within = ""
        self.switch: Optional[str] = None
        self.chassis: Optional[str] = None
        self.ids: dict[str, str] = {}
        self.descr: Optional[str] = None

    def tag(self, name: str, kind: str, text: str) -> None:
        if name in {"chassis", "port"}:
            self.within = name
        elif self.within == "chassis" and name == "name":
            self.switch = self.switch or text or None
        elif self.within == "chassis" and name == "id":
            self.chassis = self.chassis or text or None
        elif self.within == "port" and name == "id" and text:
            self.ids.setdefault(kind, text)
        elif self.within == "port" and name == "descr":
            self.descr = self.descr or text or None

    def done(self) -> Neighbour:
        return Neighbour(self.netdev, self.line, self.switch, self.chassis, self.ids, self.descr)


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    text, trouble = whole(lines)
    troubles = [trouble] if trouble else []
    drafts: list[_Draft] = []
    line, at, closed = 1, 0, False
    for tag in _TAG.finditer(text):
        line += text.count("\n", at, tag.start())
        at = tag.start()
        name = tag.group(2).lower()
        if tag.group(1):
            closed = closed or name == "lldp"
            if drafts and name == drafts[-1].within:
                drafts[-1].within = ""
            continue
        inner = {key: html.unescape(one or other) for key, one, other in _ATTRIBUTE.findall(tag.group(3))}
        if name == "lldp" and tag.group(3).rstrip().endswith("/"):
            closed = True
        elif name == "interface" and "name" in inner and len(drafts) < _MOST:
            drafts.append(_Draft(inner["name"], line))
        elif drafts:
            drafts[-1].tag(name, inner.get("type", "id"), html.unescape(tag.group(4)).strip())
    if not closed:
        note(troubles, line, "the XML is not whole: </lldp> is missing")
    found = tuple(draft.done() for draft in drafts)
    for item in found:
        if item.switch is None or not (item.ids or item.descr):
            note(troubles, item.line, f"{item.netdev}: no name of a switch and port")
    return Record(found, "xml", tuple(troubles))
