"""What the kernel's log says of NICs and of links: mlx5's messages, the transmit watchdog, losses of carrier. Pure.

Texts: Linux drivers/net/ethernet/mellanox/mlx5/core (health.c, events.c, en_main.c, main.c), net/sched/sch_generic.c,
systemd-networkd, NetworkManager, dhcpcd.
"""

import re
from typing import Optional

from weaklink.observe.tools.kernel_events import Said, Tally

BDF = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_MLX = re.compile(rf"mlx[45]_\w{{2,8}}:? (?:probe of )?({BDF})[: ] ?(.*)")
_PROBE_OF = re.compile(rf"(\w{{2,24}}): probe of ({BDF}) failed with error (-?\d{{1,6}})")
_PROBE_WITH = re.compile(rf"(\w{{2,24}}) ({BDF}): probe with driver \w{{2,24}} failed with error (-?\d{{1,6}})")
_NETDEV = re.compile(r"([A-Za-z][\w.@-]{0,30}): ")
_IB_PORT = re.compile(r"(mlx[45]_\w{1,12}|[\w-]{2,20}): Port: ?(\d{1,3}) Link (\w{2,12})")
_LINK = re.compile(
    rf"(\w{{2,16}}) ({BDF}) ([\w.@-]{{1,30}}):(?: [\w.@-]{{1,30}}:?)? (?:NIC )?[Ll]ink (?:is )?([Uu][Pp]|[Dd]own)\b"
)
_LINK_PLAIN = re.compile(r"(?:^|[ :])([A-Za-z][\w.@-]{0,30}):? NIC Link is (Up|Down)\b")
_AT = re.compile(BDF)
_WATCHDOG = re.compile(r"NETDEV WATCHDOG: (?:CPU: \d{1,5}: )?(?:([\w.@-]{1,30}) \((\w{2,16})\): )?transmit queue")
_WATCHDOG_FRONT = re.compile(r"([\w.@-]{1,30}): NETDEV WATCHDOG")
_INTO = {"ACTIVE": True, "DOWN": False}
_HEALTH = (
    "health compromised",
    "handling bad device",
    "firmware internal error",
    "fatal error",
    "enter error state",
    "entering error state",
    "will cause a leak of a command resource",
)
_RDMA_DRIVERS = ("mlx", "bnxt", "irdma", "ice", "efa", "ib_", "hfi")
_CARRIER = re.compile(
    r"([A-Za-z][\w.@-]{0,30})(?:: | |\) ?: ?)(?:(lost carrier|carrier lost)|(gained carrier|carrier acquired))\b",
    re.IGNORECASE,
)
# NetworkManager says a loss once more when its waiting is over ("calling deferred action").
_MANAGER = re.compile(
    r"device \(([\w.@-]{1,30})\): carrier: link (connected|disconnected)"
    r"|\(([\w.@-]{1,30})\): link (connected|disconnected)(?! \(calling)"
)
_MANAGER_STATE = re.compile(
    r"\(([\w.@-]{1,30})\): (?:device )?state change: [\w-]{1,30} -> unavailable \(reason 'carrier-changed'"
)


def mlx(said: Said, tally: Tally) -> None:
    """Read a message of mlx5 (or mlx4)."""
    match = _MLX.search(said.text)
    if match is None:
        probe(said, tally)
        return
    pci, lower = match.group(1), match.group(2).lower()
    if _never_started(said.text, lower):
        tally.event(said.line, "probe", pci, said.text, times=said.times)
    elif "tx timeout" in lower:
        name = _NETDEV.match(match.group(2))
        detail = name.group(1) if name else ""
        tally.event(said.line, "tx-timeout", pci, said.text, times=said.times, detail=detail)
    elif any(word in lower for word in _HEALTH):
        tally.event(said.line, "health", pci, said.text, times=said.times)
    elif "port module event" in lower:
        _module(said, pci, match.group(2), tally)
    elif "link" in lower:
        link(said, tally)
    elif "firmware version" in lower:
        tally.start(pci)


def _module(said: Said, pci: str, text: str, tally: Tally) -> None:
    lower = text.lower()
    if "event[error]" in lower:
        tally.event(said.line, "cable", pci, said.text, times=said.times, detail=text.rpartition(", ")[2][:80])
    elif "unplugged" in lower:
        tally.event(said.line, "unplugged", pci, said.text, times=said.times)
    elif "plugged" in lower:
        tally.over("unplugged", pci)


def _never_started(text: str, lower: str) -> bool:
    if "failed with error" in lower:
        return "probe" in text or "load_one" in lower or "init_one" in lower
    # "timeout abort in 100s" counts down; it is not over yet.
    return "initializ" in lower and "abort" in lower and "timeout abort in" not in lower


def probe(said: Said, tally: Tally) -> None:
    """Read that a driver could not start on a device."""
    match = _PROBE_OF.search(said.text) or _PROBE_WITH.search(said.text)
    if match is None:
        return
    kind = "gpu-init" if match.group(1).startswith("nvidia") else "probe"
    if kind == "gpu-init" or match.group(1).startswith(_RDMA_DRIVERS):
        tally.event(said.line, kind, match.group(2), said.text, times=said.times)


def link(said: Said, tally: Tally) -> None:
    """Read that a driver's link went up or down."""
    match = _IB_PORT.search(said.text)
    if match:
        up = _INTO.get(match.group(3).upper())
        found = _AT.search(said.text)
        if up is not None:
            pci = found.group() if found else None
            _started(tally, pci, up=up)
            tally.link(said.line, match.group(1), f"port {match.group(2)}", up=up, pci=pci, times=said.times)
        return
    match = _LINK.search(said.text)
    if match:
        up = match.group(4).lower() == "up"
        _started(tally, match.group(2), up=up)
        tally.link(said.line, match.group(3), "driver", up=up, pci=match.group(2), times=said.times)
        return
    match = _LINK_PLAIN.search(said.text)
    if match:
        tally.link(said.line, match.group(1), "driver", up=match.group(2) == "Up", times=said.times)


def _started(tally: Tally, pci: Optional[str], *, up: bool) -> None:
    """A link that is up has a driver: an earlier try that failed is over."""
    if up and pci:
        tally.over("probe", pci)


def carrier(said: Said, tally: Tally) -> None:
    """Read what a program says of a device's carrier."""
    match = _CARRIER.search(said.text)
    if match:
        source = said.program or "carrier"
        tally.link(said.line, match.group(1), source, up=match.group(3) is not None, times=said.times)
        return
    match = _MANAGER.search(said.text)
    if match:
        device, word = match.group(1) or match.group(3), match.group(2) or match.group(4)
        tally.link(said.line, device, "NetworkManager", up=word == "connected", times=said.times)
        return
    match = _MANAGER_STATE.search(said.text)
    if match:  # newer releases say a loss only so
        tally.link(said.line, match.group(1), "NetworkManager's states", up=False, times=said.times)


def watchdog(said: Said, tally: Tally) -> None:
    """Read that a transmit queue stands still."""
    match = _WATCHDOG.search(said.text)
    if match:
        front = _WATCHDOG_FRONT.search(said.text)
        name = match.group(1) or (front.group(1) if front else "NIC")
        tally.event(said.line, "tx-timeout-netdev", name, said.text, times=said.times)
