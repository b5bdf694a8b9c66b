"""The error counters of an InfiniBand port, under all names that tools of any age print, and how far each counts.

Widths by the InfiniBand specification's PortCounters and PortCountersExtended (libibmad's fields.c). Pure.
"""

from typing import NamedTuple, Optional

# Names of infiniband-diags before 1.4 to those of later ones.
_OLD = {
    "SymbolErrors": "SymbolErrorCounter",
    "LinkRecovers": "LinkErrorRecoveryCounter",
    "LinkDowned": "LinkDownedCounter",
    "RcvErrors": "PortRcvErrors",
    "RcvRemotePhysErrors": "PortRcvRemotePhysicalErrors",
    "RcvSwRelayErrors": "PortRcvSwitchRelayErrors",
    "XmtDiscards": "PortXmitDiscards",
    "XmtConstraintErrors": "PortXmitConstraintErrors",
    "RcvConstraintErrors": "PortRcvConstraintErrors",
    "LinkIntegrityErrors": "LocalLinkIntegrityErrors",
    "ExcBufOverrunErrors": "ExcessiveBufferOverrunErrors",
    "XmtWait": "PortXmitWait",
    "XmtData": "PortXmitData",
    "XmtBytes": "PortXmitData",
    "RcvData": "PortRcvData",
    "RcvBytes": "PortRcvData",
    "XmtPkts": "PortXmitPkts",
    "RcvPkts": "PortRcvPkts",
}
_BITS = {
    "SymbolErrorCounter": 16,
    "LinkErrorRecoveryCounter": 8,
    "LinkDownedCounter": 8,
    "PortRcvErrors": 16,
    "PortRcvRemotePhysicalErrors": 16,
    "PortRcvSwitchRelayErrors": 16,
    "PortXmitDiscards": 16,
    "PortXmitConstraintErrors": 8,
    "PortRcvConstraintErrors": 8,
    "LocalLinkIntegrityErrors": 4,
    "ExcessiveBufferOverrunErrors": 4,
    "QP1Dropped": 16,
    "VL15Dropped": 16,
    "PortXmitData": 32,
    "PortRcvData": 32,
    "PortXmitPkts": 32,
    "PortRcvPkts": 32,
    "PortXmitWait": 32,
}
# What only a bad signal counts up.
PHYSICAL = (
    "SymbolErrorCounter",
    "LinkErrorRecoveryCounter",
    "PortRcvErrors",
    "LocalLinkIntegrityErrors",
    "ExcessiveBufferOverrunErrors",
)
DOWNED = "LinkDownedCounter"
WAIT = "PortXmitWait"
DATA = frozenset(name for name in _BITS if name.endswith(("Data", "Pkts"))) | frozenset(
    {"PortUnicastXmitPkts", "PortUnicastRcvPkts", "PortMulticastXmitPkts", "PortMulticastRcvPkts"}
)
SELECTORS = frozenset({"PortSelect", "CounterSelect", "CounterSelect2"})


class Count(NamedTuple):
    """One counter of one port: its name as printed, its value, and whether it is the 64-bit form."""

    name: str
    value: int
    wide: bool = False

    @property
    def known(self) -> str:
        """The counter's name of today."""
        return _OLD.get(self.name, self.name)

    @property
    def limit(self) -> Optional[int]:
        """The value at which it stops, or None for a counter whose width is not known."""
        if self.wide:
            return 2**64 - 1
        bits = _BITS.get(self.known)
        return None if bits is None else 2**bits - 1

    @property
    def saturated(self) -> bool:
        """Whether it stands at its end: what happened since is not counted."""
        return self.limit is not None and self.value >= self.limit


class Port(NamedTuple):
    """The counters of one port. ``port`` None is the sum over all ports of a switch."""

    line: int
    node: str
    guid: str
    port: Optional[int]
    counts: tuple[Count, ...]

    @property
    def name(self) -> str:
        """``<guid or LID>/<port>``, ``ALL`` for the sum."""
        return f"{self.guid}/{'ALL' if self.port is None else self.port}"

    def value(self, known: str) -> Optional[int]:
        """Return a counter's value by its name of today, or None."""
        return next((count.value for count in self.counts if count.known == known), None)
