"""Read ``ibstatus``: the shell script of infiniband-diags and OFED over /sys/class/infiniband.

Values are what the kernel says: ``4: ACTIVE``, ``400 Gb/sec (4X NDR)``; ``unknown`` where a file can't be read, and
old scripts print no link layer, or ``IB``.
"""

import re
from collections.abc import Iterable
from typing import Any

from weaklink.observe.tools.ib_ports import Port, Ports
from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, layer, named, nothing
from weaklink.observe.tools.text import Trouble, integer, number

NAME = "ibstatus"

_HEAD = re.compile(r"\s*Infiniband device '([^'\s]{1,64})' port (\d{1,3}) status:\s*\Z", re.IGNORECASE)
_KEY = re.compile(r"\s*(default gid|base lid|sm lid|state|phys state|rate|link_layer):\s*(.*)\Z")
_CODED = re.compile(r"\d{1,2}:\s*([A-Za-z][\w ?-]*?|<unknown>)\s*\Z")
_RATE = re.compile(r"(\d{1,5}(?:\.\d{1,3})?) Gb/sec(?: \((\d{1,2})X(?: (\w+))?\))?\Z")
_STATES = frozenset({"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"})
_PHYS = frozenset(
    {
        "Sleep",
        "Polling",
        "Disabled",
        "PortConfigurationTraining",
        "LinkUp",
        "LinkErrorRecovery",
        "Phy Test",
        "<unknown>",
    }
)
_LAST = ("link_layer", "rate")


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is ibstatus's."""
    if re.search(r"^[ \t]*Infiniband device '[^'\n]+' port \d+ status:", head, re.MULTILINE | re.IGNORECASE):
        return 95
    # What the script says where no device is there, or not the one asked for.
    return (
        80
        if re.search(r"^[ \t]*Fatal error:  ?device '.*': sys files not found", head, re.MULTILINE)
        else named(NAME, head)
    )


def parse(lines: Iterable[str]) -> Ports:
    """Return what ibstatus printed; see ``Ports``."""
    ports: list[Port] = []
    devices: list[str] = []
    troubles: list[Trouble] = []
    complaints: list[Complaint] = []
    last = ("", 0)
    for at, line in bounded(lines):
        head = _HEAD.match(line)
        key = _KEY.match(line)
        if head:
            ports.append(Port(head.group(1), int(head.group(2)), at))
            if head.group(1) not in devices:
                devices.append(head.group(1))
            last = ("head", at)
        elif key and ports:
            fields, wrong = _fields(key.group(1), key.group(2).strip())
            ports[-1] = ports[-1]._replace(**fields)
            last = (key.group(1), at)
            if wrong:
                troubles.append(
                    Trouble(at, f"{ports[-1].name}: {key.group(1)}: {key.group(2)!r:.60} is no value of it")
                )
        elif line.strip():
            said = complaint(at, line)
            complaints += [said] if said else []
    if ports and last[0] not in _LAST:
        unread: dict[str, Any] = {name: None for name in ("lid", "sm_lid") if name == last[0].replace(" ", "_")}
        ports[-1] = ports[-1]._replace(**unread)
        troubles.append(Trouble(last[1], f"the text ends within port {ports[-1].name}, after {last[0]!r}"))
    if not ports:
        troubles += nothing(tuple(complaints), "port")
    return Ports(tuple(devices), tuple(ports), complaints=tuple(complaints), troubles=tuple(troubles))


def _fields(key: str, text: str) -> "tuple[dict[str, Any], bool]":  # noqa: PLR0911 - one return a key
    """Return the fields that a key sets, and whether its value is none that the kernel says."""
    if text == "unknown":
        return {}, False
    if key in {"state", "phys state"}:
        coded = _CODED.match(text)
        word = coded.group(1) if coded else None
        known = _STATES if key == "state" else _PHYS
        return {key.replace(" ", "_"): word if word in known and word != "<unknown>" else None}, word not in known
    if key == "rate":
        rate = _RATE.match(text)
        if rate is None:
            return {}, True
        lanes = integer(rate.group(2))
        return {
            "rate_gbps": number(rate.group(1)),
            "lanes": lanes,
            "speed": (rate.group(3) or "SDR") if lanes else None,
        }, False
    if key == "link_layer":
        return {"link_layer": layer(text)}, layer(text) is None
    if key == "default gid":
        return {}, False
    return {"lid" if key == "base lid" else "sm_lid": integer(text)}, integer(text) is None
