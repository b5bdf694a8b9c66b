"""What was read of a node, as records. Nothing here is a judgement: None or absent means "not read" or "not there"."""

from typing import Any, NamedTuple, Optional


class Gid(NamedTuple):
    """One entry of a port's GID table: ``gid`` in full form, ``type`` ("RoCE v2", "IB/RoCE v1"), its net device."""

    number: int
    gid: str
    type: str
    netdev: str


class RdmaPort(NamedTuple):
    """One port of one RDMA device.

    ``state`` (ACTIVE, DOWN, INIT…) and ``phys_state`` (LinkUp, Polling…) in sysfs's words, ``rate_gbps`` in Gb/s,
    ``active_mtu`` in bytes with ``mtu_source`` saying who told (ibv_devinfo, or the net device's MTU by the kernel's
    rule), ``counters`` by name.
    """

    device: str
    port: int
    netdev: str
    state: Optional[str]
    phys_state: Optional[str]
    rate_gbps: Optional[float]
    link_layer: Optional[str]
    active_mtu: Optional[int]
    mtu_source: str
    gids: tuple[Gid, ...]
    counters: dict[str, int]


class Netdev(NamedTuple):
    """One network device: ``mtu`` in bytes, ``carrier`` None when the device is administratively down."""

    name: str
    mtu: Optional[int]
    operstate: Optional[str]
    carrier: Optional[bool]


class Nic(NamedTuple):
    """One NIC by its PCI address: is the function there, its net device, its RDMA port."""

    pci: str
    present: bool
    netdev: Optional[Netdev]
    rdma: Optional[RdmaPort]


class Mount(NamedTuple):
    """One line of /proc/mounts."""

    path: str
    fstype: str
    source: str
    options: dict[str, str]


class Observation(NamedTuple):
    """All that was read of a node. A concern that could not be read is None, and ``trouble`` says why by concern.

    ``nics`` by PCI address, ``addresses`` by net device ("10.77.1.11/24"), ``mounts`` by mount point (the one on top),
    ``daemons`` by unit, ``earlier`` the counters of the last reading by "device/port".
    """

    nics: Optional[dict[str, Nic]] = None
    addresses: Optional[dict[str, tuple[str, ...]]] = None
    mounts: Optional[dict[str, Mount]] = None
    daemons: Optional[dict[str, str]] = None
    earlier: Optional[dict[str, dict[str, int]]] = None
    trouble: dict[str, str] = {}  # noqa: RUF012 - never written to

    def as_dict(self) -> dict[str, Any]:
        """Return the observation as JSON can hold it, by concern."""
        found: dict[str, Any] = plain(self)
        return found


def plain(value: Any) -> Any:
    """Return records, tuples and dictionaries as JSON's objects and lists."""
    fields = getattr(value, "_fields", None)
    if fields:
        return {name: plain(item) for name, item in zip(fields, value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
