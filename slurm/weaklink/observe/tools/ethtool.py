"""Read what ethtool prints of a netdev: settings (no option), driver (``-i``), pause (``-a``); text or ``--json``.

``Speed: Unknown!`` and 4294967295 (no speed) are no number. Layout: ethtool.c and netlink/ of ethtool 4 to 6.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools import mlx_json
from weaklink.observe.tools.mlx_common import field, note, nothing, present
from weaklink.observe.tools.text import Trouble, integer

NAME = "ethtool"
_SETTINGS = re.compile(r"Settings for (\S{1,40}):\s{0,8}\Z")
_PAUSE = re.compile(r"Pause parameters for (\S{1,40}):\s{0,8}\Z")
_SPEED = re.compile(r"(\d{1,10})\s?Mb/s\Z")
_NONE = 4_294_967_295
_DETECTED = re.compile(r"(yes|no)\b\s{0,4}(?:\((.{0,200})\))?")
_FIRMWARE = re.compile(r"(\d{1,5}\.\d{1,5}\.\d{1,5})(?:\s{0,4}\(([A-Za-z0-9_]{1,40})\))?\Z")
_PROBLEM = re.compile(r"(?:netlink error|Cannot get|ethtool|No data available|no stats available)\b.{0,200}")
_SIGN = re.compile(r"(?m)^(?:Settings for|Pause parameters for) \S{1,40}:\s{0,8}$")
_DRIVER = re.compile(r"(?m)^(?:driver|firmware-version|bus-info|supports-statistics):")
_FAILED = re.compile(r"(?m)^\s{0,4}Cannot get (?:device settings|wake-on-lan settings|message level|link status):")
_NETLINK = re.compile(r"(?m)^\s{0,4}netlink error: ")
_JSON = re.compile(r'"(?:link-detected|supported-link-modes|supported-ports|auto-negotiation|bus-info)"')
_MOST = 4096


class Netdev(NamedTuple):
    """One netdev: speed in Mb/s (None where it has none), what ``-i`` and ``-a`` add."""

    name: Optional[str]
    line: int
    speed_mbps: Optional[int] = None
    duplex: Optional[str] = None
    autoneg: Optional[str] = None
    port: Optional[str] = None
    lanes: Optional[int] = None
    link_detected: Optional[bool] = None
    why_not: Optional[str] = None
    driver: Optional[str] = None
    firmware: Optional[str] = None
    psid: Optional[str] = None
    bus: Optional[str] = None
    pause_rx: Optional[bool] = None
    pause_tx: Optional[bool] = None
    kind: str = "settings"


class Record(NamedTuple):
    """All netdevs of the text, and the tool's own errors."""

    netdevs: tuple[Netdev, ...]
    complaints: tuple[str, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


class _Block(NamedTuple):
    name: Optional[str]
    line: int
    kind: str
    values: dict[str, str]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is ethtool's settings, driver or pause output."""
    head = head[:65_536]
    if _SIGN.search(head):
        return 92
    if len({match.group(0) for match in _DRIVER.finditer(head)}) >= 2:  # noqa: PLR2004 - one may be anything's
        return 88
    if _FAILED.search(head):
        return 75
    if _NETLINK.search(head):
        return 45  # its -m and -S say the same
    return 85 if mlx_json.looks_json(head) and _JSON.search(head) else 0


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    first, everything = mlx_json.peek(lines)
    return _json(everything) if mlx_json.looks_json(first) else _text(everything, first)


def _text(lines: Iterable[str], first: str) -> Record:
    blocks: list[_Block] = []
    complaints: list[str] = []
    troubles: list[Trouble] = []
    for at, line in enumerate(lines, 1):
        word = line.strip()
        settings, pause = _SETTINGS.match(word), _PAUSE.match(word)
        head = settings or pause
        if head and len(blocks) < _MOST:
            blocks.append(_Block(head.group(1), at, "settings" if settings else "pause", {}))
            continue
        if _PROBLEM.match(word):
            complaints[20:] = []
            complaints.append(word[:300])
            continue
        pair = field(line)
        if pair is None:
            continue
        key = pair[0].lower()
        if key == "driver" and len(blocks) < _MOST:
            blocks.append(_Block(None, at, "driver", {}))
        if not blocks:
            continue
        known = blocks[-1].values.setdefault(key, pair[1]) if len(blocks[-1].values) < _MOST else pair[1]
        if known != pair[1] and key in {"speed", "link detected", "duplex", "firmware-version"}:
            note(troubles, at, f"{pair[0][:40]} comes twice with another value")
    netdevs = [_netdev(block, troubles) for block in blocks]
    if not netdevs:
        nothing(first, complaints, troubles, "no settings of a netdev were found")
    return Record(tuple(netdevs), tuple(complaints), None, tuple(troubles))


def _json(lines: Iterable[str]) -> Record:
    found, trouble = mlx_json.documents(lines)
    troubles = list(trouble)
    netdevs: list[Netdev] = []
    for document in found:
        for item in mlx_json.objects(document):
            flat = {str(key).lower().replace("-", " "): value for key, value in item.items()}
            values = {key: _word(value) for key, value in flat.items() if not isinstance(value, (dict, list))}
            values.update({key.replace(" ", "-"): value for key, value in values.items()})
            speed = integer(values.get("speed"))
            if speed is not None:
                values["speed"] = f"{speed}Mb/s"
            kind = "driver" if "driver" in values else "settings"
            if "rx" in values and "speed" not in values:
                kind = "pause"
            netdevs.append(_netdev(_Block(present(values.get("ifname")), 0, kind, values), troubles))
    if not netdevs and not troubles:
        note(troubles, 0, "no settings of a netdev were found")
    return Record(tuple(netdevs), (), "json", tuple(troubles))


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _netdev(block: _Block, troubles: list[Trouble]) -> Netdev:
    values = block.values
    name = block.name or "the netdev"
    speed = _SPEED.match(values.get("speed", ""))
    mbps = int(speed.group(1)) if speed else None
    detected = _DETECTED.match(values.get("link detected", ""))
    firmware = _FIRMWARE.match(values.get("firmware-version", ""))
    if block.kind == "settings" and detected is None:
        note(troubles, block.line, f"{name}: the settings end before 'Link detected'")
    if block.kind == "driver" and "firmware-version" not in values:
        note(troubles, block.line, f"{name}: the driver's output ends before its firmware version")
    duplex = present(values.get("duplex"))
    return Netdev(
        block.name,
        block.line,
        speed_mbps=None if mbps in {0, _NONE, None} else mbps,
        duplex=None if duplex is None or duplex.lower().startswith("unknown") else duplex,
        autoneg=present(values.get("auto-negotiation") or values.get("auto negotiation")),
        port=present(values.get("port")),
        lanes=integer(values.get("lanes")),
        link_detected=detected.group(1) == "yes" if detected else None,
        why_not=detected.group(2) if detected else None,
        driver=present(values.get("driver")),
        firmware=firmware.group(1) if firmware else present(values.get("firmware-version")),
        psid=firmware.group(2) if firmware else None,
        bus=present(values.get("bus-info")),
        pause_rx=_switch(values.get("rx")) if block.kind == "pause" else None,
        pause_tx=_switch(values.get("tx")) if block.kind == "pause" else None,
        kind=block.kind,
    )


def _switch(text: Optional[str]) -> Optional[bool]:
    return {"on": True, "off": False, "yes": True, "no": False}.get((text or "").lower())
