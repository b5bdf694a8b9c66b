"""Read ``ibdev2netdev`` and ``ibdev2netdev -v`` (OFED's script): which network interface belongs to which RDMA port.

(Up) and (Down) at the end of a line are the interface's; only ``-v`` also tells the port's own state, padded with
blanks: ``port 1 (DOWN  )``.
"""

import re
from collections.abc import Iterable

from weaklink.observe.tools.ib_ports import Port, Ports
from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, named, nothing
from weaklink.observe.tools.text import Trouble

NAME = "ibdev2netdev"

_PLAIN = re.compile(r"\s*([\w.-]{1,64}) port (\d{1,3}) ==> ([^\s()]*)\s*\(\s*(Up|Down)\s*\)\s*\Z", re.IGNORECASE)
_VERBOSE = re.compile(
    r"\s*(?:([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])\s+)?([\w.-]{1,64})\s+\([^)]{0,80}\)(.{0,400})"
    r"\bport (\d{1,3})\s+\(\s*(\w+)\s*\)\s+==>\s+([^\s()]*)\s*\(\s*(Up|Down)\s*\)\s*\Z",
    re.IGNORECASE,
)
_MAPS = re.compile(r"\bport \d+ (?:\(\s*\w+\s*\) )?==> ")
_FIRMWARE = re.compile(r"\bfw (\d[\w.]*)")
_STATES = frozenset({"DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER", "NOP"})


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is ibdev2netdev's."""
    lines = [line for line in head.split("\n") if line.strip()]
    found = sum(bool(_MAPS.search(line)) for line in lines)
    if not found:
        return named(NAME, head)
    # Among more lines of something else, it is part of that.
    return 95 if found * 3 >= len(lines) else 70


def parse(lines: Iterable[str]) -> Ports:
    """Return what ibdev2netdev printed; see ``Ports``. Forms: plain and verbose."""
    ports: list[Port] = []
    firmware: dict[str, str] = {}
    addresses: dict[str, str] = {}
    troubles: list[Trouble] = []
    complaints: list[Complaint] = []
    verbose = False
    for at, line in bounded(lines):
        if "==>" not in line:
            said = complaint(at, line) if line.strip() else None
            complaints += [said] if said else []
            continue
        plain = _PLAIN.match(line)
        long = None if plain else _VERBOSE.match(line)
        if plain:
            device, port, netdev, up = plain.groups()
            ports.append(Port(device, int(port), at, netdev=netdev or None, netdev_up=up.lower() == "up"))
        elif long:
            verbose = True
            address, device, text, port, state, netdev, up = long.groups()
            if address:
                addresses[device] = address.lower()
            found = _FIRMWARE.search(text)
            if found:
                firmware[device] = found.group(1)
            state = state.upper()
            if state not in _STATES:
                troubles.append(Trouble(at, f"{device}/{port}: port state {state!r:.20} is not known"))
            ports.append(
                Port(
                    device,
                    int(port),
                    at,
                    state=state if state in _STATES else None,
                    netdev=netdev or None,
                    netdev_up=up.lower() == "up",
                )
            )
        else:
            troubles.append(Trouble(at, f"no device, port and interface in {line.strip()!r:.80}"))
    if not ports and not troubles:
        troubles += nothing(tuple(complaints), "device")
    return Ports(
        tuple(dict.fromkeys(port.device for port in ports)),
        tuple(ports),
        "verbose" if verbose else "plain",
        tuple(firmware.items()),
        addresses=tuple(addresses.items()),
        complaints=tuple(complaints),
        troubles=tuple(troubles),
    )
