"""Read iproute2's ``rdma link``, ``rdma dev`` and ``rdma statistic``, as text or as ``-j`` and ``-jp``.

Text of 4.16 to 5.0 begins with numbers (``1/1: mlx5_0/1: state ACTIVE ...``), later text with ``link`` and, for
InfiniBand, subnet prefix and LIDs before the state. JSON has one object a port, ``ifname`` with or without the port.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools.ib_ports import Port, Ports
from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, named, nothing
from weaklink.observe.tools.text import MAX_LINE, MAX_WHOLE, Trouble, integer, whole

NAME = "rdma"

_LINK = re.compile(r"\s*(?:link |\d+/(?:\d+|-): )([\w.-]{1,64})/(\d{1,3}|-):?(?:\s+(.*))?\Z")
_DEV = re.compile(r"\s*(?:\d+: |dev )([\w.-]{1,64}):?\s+(node_type\b.*)\Z")
_STATES = frozenset({"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"})
_PHYS = frozenset(
    {
        "NOP",
        "SLEEP",
        "POLLING",
        "DISABLED",
        "PORT_CONFIGURATION_TRAINING",
        "LINK_UP",
        "LINK_ERROR_RECOVER",
        "LINK_ERROR_RECOVERY",
        "PHY_TEST",
        "UNKNOWN",
    }
)
_STATISTIC = re.compile(r"[a-z][a-z0-9_]{2,63}\Z")
_WORDS = frozenset({"subnet_prefix", "lid", "sm_lid", "lmc", "state", "physical_state", "netdev", "netdev_index"})
_JSON_LINE = re.compile(r"\s*[\[{]")
_JSON_HEAD = re.compile(r"\s*\[\s*\{")


class Counters(NamedTuple):
    """What ``rdma statistic`` counts of one port."""

    port: str
    values: dict[str, int]


class Rdma(NamedTuple):
    """What rdma printed: ``ports`` as ``Ports`` has it (form link, dev or statistic), and counters by port."""

    ports: Ports
    counters: tuple[Counters, ...] = ()

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What could not be read."""
        return self.ports.troubles


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is rdma's."""
    if re.search(r"^[ \t]*(?:link |\d+/\d+: )\S+/\d+:? .*\bstate \S+ physical_state \S+", head, re.MULTILINE):
        return 95
    if re.search(r"^[ \t]*\d+: \S+: node_type \S+ ", head, re.MULTILINE):
        return 92
    if _JSON_HEAD.match(head) and '"ifname"' in head and '"physical_state"' in head:
        return 93
    if _JSON_HEAD.match(head) and '"ifname"' in head and ('"node_type"' in head or '"rx_write_requests"' in head):
        return 85
    return 85 if re.search(r"^link \S+/\d+ [a-z_]+ \d+ [a-z_]+ \d+", head, re.MULTILINE) else named(NAME, head)


class _Reader:
    def __init__(self) -> None:
        self.ports: list[Port] = []
        self.devices: dict[str, None] = {}
        self.firmware: dict[str, str] = {}
        self.counters: list[Counters] = []
        self.troubles: list[Trouble] = []
        self.complaints: list[Complaint] = []
        self.form = "link"

    def text(self, at: int, line: str) -> None:
        link, dev = _LINK.match(line), _DEV.match(line)
        if link:
            self.link(at, link.group(1), link.group(2), (link.group(3) or "").split())
        elif dev:
            self.form = "dev"
            words = dev.group(2).split()
            self.device(dev.group(1), dict(zip(words[::2], words[1::2])))
        elif re.match(r"\s*(?:link |\d+/\d+: )", line):
            self.troubles.append(Trouble(at, f"no port and state in {line.strip()!r:.80}"))
        elif line.strip():
            said = complaint(at, line)
            self.complaints += [said] if said else []

    def link(self, at: int, device: str, port: str, words: list[str]) -> None:
        values: dict[str, Any] = {}
        place = 0
        while place < len(words):
            word = words[place]
            if word.endswith(":") and word[:-1] not in _WORDS:  # caps: <...> and the like of -d
                break
            values[word] = words[place + 1] if place + 1 < len(words) else None
            place += 2
        self.port(at, device, port, values)

    def port(self, at: int, device: str, port: str, values: dict[str, Any]) -> None:
        self.devices[device] = None
        if "state" not in values and any(
            isinstance(integer(str(v)), int) for k, v in values.items() if k not in _WORDS
        ):
            self.form = "statistic"
            counts = {k: integer(str(v)) for k, v in values.items() if k not in _WORDS and _STATISTIC.match(k)}
            self.counters.append(Counters(f"{device}/{port}", {k: v for k, v in counts.items() if v is not None}))
            return
        if port == "-":
            return
        state, phys = (str(values.get(key) or "") for key in ("state", "physical_state"))
        if state not in _STATES or (phys not in _PHYS and "physical_state" in values):
            self.troubles.append(Trouble(at, f"{device}/{port}: state {state!r:.20} {phys!r:.30} is not known"))
        has_lid = values.get("subnet_prefix") is not None or values.get("lid") is not None
        netdev = values.get("netdev")
        self.ports.append(
            Port(
                device,
                int(port),
                at,
                state=state if state in _STATES else None,
                phys_state=phys if phys in _PHYS and phys != "UNKNOWN" else None,
                lid=integer(str(values.get("lid"))),
                sm_lid=integer(str(values.get("sm_lid"))),
                link_layer="InfiniBand" if has_lid else None,
                netdev=str(netdev) if netdev else None,
            )
        )

    def device(self, name: str, values: dict[str, Any]) -> None:
        self.devices[name] = None
        if values.get("fw"):
            self.firmware[name] = str(values["fw"])

    def json(self, text: str) -> None:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            self.troubles.append(Trouble(0, f"no whole JSON: {type(error).__name__}: {error}"[:200]))
            return
        if document == []:
            self.complaints.append(Complaint(0, "no-device", "an empty list: no RDMA device"))
        for at, item in enumerate(document if isinstance(document, list) else [document], 1):
            if not isinstance(item, dict) or not isinstance(item.get("ifname"), str):
                self.troubles.append(Trouble(0, f"entry {at} names no device"))
                continue
            device, _, port = item["ifname"].partition("/")
            number = item.get("port") if not port else integer(port)
            if "node_type" in item and "state" not in item:
                self.form = "dev"
                self.device(device, item)
            elif isinstance(number, int) and not isinstance(number, bool):
                known = {key: value for key, value in item.items() if key not in {"ifindex", "ifname", "port"}}
                self.port(at, device, str(number), known)
            else:
                self.devices[device] = None
                self.troubles.append(Trouble(0, f"entry {at}: {device} has no port number"))


def parse(lines: Iterable[str]) -> Rdma:
    """Return what rdma printed; see ``Rdma``."""
    reader = _Reader()
    source = iter(bounded(lines, MAX_LINE))
    pending: Optional[str] = None
    for at, line in source:
        if _JSON_LINE.match(line):
            pending = line
            break
        reader.text(at, line)
    if pending is not None:
        text, trouble = whole([pending, *(line for _, line in source)], MAX_WHOLE)
        reader.troubles += [trouble] if trouble else []
        reader.json(text)
    troubles = tuple(reader.troubles)
    if not reader.devices and not troubles and pending is None:
        troubles = nothing(tuple(reader.complaints), "RDMA device")
    return Rdma(
        Ports(
            tuple(reader.devices),
            tuple(reader.ports),
            reader.form,
            tuple(reader.firmware.items()),
            complaints=tuple(reader.complaints),
            troubles=troubles,
        ),
        tuple(reader.counters),
    )
