"""What a kernel's log says of GPUs, NICs, PCI Express, file systems and links: counted as it streams by. Pure.

Texts as the sources print them: NVIDIA's open kernel modules (Xid, SXid), Linux drivers/net/ethernet/mellanox/mlx5,
drivers/pci/pcie/aer.c and pci.c, kernel/watchdog.c, fs/nfs and net/sunrpc, Lustre's ptlrpc and o2iblnd,
systemd-networkd, NetworkManager. Memory is bounded by the number of devices, not of lines.
"""

from typing import NamedTuple, Optional

from weaklink.observe.tools.text import Trouble

MOST = 4096  # devices and kinds kept; a machine has far fewer
TEXT = 300


class Said(NamedTuple):
    """One message on its way through: its line, text, how many times it is said, by which program."""

    line: int
    text: str
    times: int
    program: Optional[str]


class Xid(NamedTuple):
    """Xid messages of one number on one GPU: address as printed, count of lines, where first, last, what first.

    ``calm`` counts lines that call themselves Nonfatal.
    """

    bdf: str
    xid: int
    lines: int
    first: int
    last: int
    text: str
    calm: int


class Event(NamedTuple):
    """Something seen on a subject: kind (see ``kernel_scan``), how often, first and last line, text, a number."""

    kind: str
    subject: str
    times: int
    first: int
    last: int
    text: str
    detail: str


class Port(NamedTuple):
    """A network device's link: losses and gains as the most talkative source counts them, what came last, and where.

    ``starting`` tells that the first loss was a driver's start; it is not among the losses.
    """

    device: str
    losses: int
    gains: int
    up: Optional[bool]
    first: int
    last: int
    pci: Optional[str]


class Record(NamedTuple):
    """A log. ``lines`` read, ``programs`` whether other programs than the kernel speak, what was seen, troubles."""

    lines: int
    messages: int
    programs: bool
    xids: tuple[Xid, ...]
    events: tuple[Event, ...]
    ports: tuple[Port, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]

    def of(self, *kinds: str) -> tuple[Event, ...]:
        """Return the events of these kinds, in the order of their first line."""
        return tuple(event for event in self.events if event.kind in kinds)


class _Source:
    """One source's count of a device's losses and gains."""

    __slots__ = ("gains", "losses")

    def __init__(self) -> None:
        self.losses = 0
        self.gains = 0


class _PortState:
    __slots__ = ("first", "last", "pci", "sources", "up")

    def __init__(self, line: int) -> None:
        self.sources: dict[str, _Source] = {}
        self.up: Optional[bool] = None
        self.first = line
        self.last = line
        self.pci: Optional[str] = None


class Tally:
    """Counts what ``kernel_scan`` recognises; ``record`` sums it up."""

    def __init__(self) -> None:
        self._xids: dict[tuple[str, int], Xid] = {}
        self._events: dict[tuple[str, str], Event] = {}
        self._ports: dict[str, _PortState] = {}
        self._starting: set[str] = set()
        self._troubles: list[Trouble] = []
        self.version: Optional[str] = None

    def _room(self, kept: int, line: int) -> bool:
        if kept < MOST:
            return True
        if len(self._troubles) < MOST // 256 and not any("more than" in trouble.what for trouble in self._troubles):
            self._troubles.append(Trouble(line, f"more than {MOST} devices of one kind; the rest is not counted"))
        return False

    def trouble(self, line: int, what: str) -> None:
        """Note something that could not be read; twenty are kept."""
        if len(self._troubles) < 20:  # noqa: PLR2004 - enough to look by
            self._troubles.append(Trouble(line, what))

    def xid(self, line: int, bdf: str, number: int, text: str, times: int) -> None:
        """Count a line of an Xid."""
        key = (bdf, number)
        calm = times if "nonfatal" in text.lower().replace("-", "") else 0
        known = self._xids.get(key)
        if known:
            self._xids[key] = known._replace(lines=known.lines + times, last=line, calm=known.calm + calm)
        elif self._room(len(self._xids), line):
            self._xids[key] = Xid(bdf, number, times, line, line, text[:TEXT], calm)

    def event(self, line: int, kind: str, subject: str, text: str, *, times: int = 1, detail: str = "") -> None:
        """Count an event; ``detail`` is that of the last one."""
        key = (kind, subject)
        known = self._events.get(key)
        if known:
            self._events[key] = known._replace(times=known.times + times, last=line, detail=detail or known.detail)
        elif self._room(len(self._events), line):
            self._events[key] = Event(kind, subject, times, line, line, text[:TEXT], detail)

    def over(self, kind: str, subject: str) -> None:
        """Forget an event: it is said to be over."""
        self._events.pop((kind, subject), None)

    def has(self, kind: str, subject: str) -> bool:
        """Tell whether an event has been seen."""
        return (kind, subject) in self._events

    def start(self, pci: str) -> None:
        """A driver starts on a PCI function: the loss that it reports first is its beginning, not a flap."""
        if len(self._starting) < MOST:
            self._starting.add(pci)

    def link(self, line: int, device: str, source: str, *, up: bool, pci: Optional[str] = None, times: int = 1) -> None:
        """Count a loss or a gain of a device's link, as one source (driver, networkd, …) reports it."""
        state = self._ports.get(device)
        if state is None:
            if not self._room(len(self._ports), line):
                return
            state = self._ports[device] = _PortState(line)
        state.last = line
        state.pci = pci or state.pci
        count = state.sources.setdefault(source, _Source())
        if up:
            count.gains += times
        elif not (pci in self._starting and not count.gains and not count.losses):
            count.losses += times
        state.up = up
        if up and pci:
            self._starting.discard(pci)

    def record(self, lines: int, messages: int, *, programs: bool) -> Record:
        """Return the sum."""
        ports = []
        for device, state in self._ports.items():
            losses = max(source.losses for source in state.sources.values())
            gains = max(source.gains for source in state.sources.values())
            ports.append(Port(device, losses, gains, state.up, state.first, state.last, state.pci))
        return Record(
            lines=lines,
            messages=messages,
            programs=programs,
            xids=tuple(self._xids.values()),
            events=tuple(sorted(self._events.values(), key=lambda event: event.first)),
            ports=tuple(ports),
            version=self.version,
            troubles=tuple(self._troubles),
        )
