"""Read a node: the concerns that are asked for, each on its own, so that trouble with one leaves the others."""

from collections.abc import Iterable, Mapping
from typing import Callable, Optional

from weaklink.model.expected import Expected, NicWant
from weaklink.observe import daemons as daemons_of
from weaklink.observe import mounts as mounts_of
from weaklink.observe import netdev, rdma
from weaklink.observe.host import Host
from weaklink.observe.records import Gid, Mount, Nic, Observation

NICS = "nics"
MTUS = "mtus"  # the active MTU from ibv_devinfo; without it the kernel's rule is applied to the NIC's MTU
COUNTERS = "counters"
ADDRESSES = "addresses"
MOUNTS = "mounts"
DAEMONS = "daemons"
ALL = frozenset({NICS, MTUS, COUNTERS, ADDRESSES, MOUNTS, DAEMONS})


def observe(
    host: Host,
    expected: Optional[Expected],
    concerns: Iterable[str] = ALL,
    *,
    timeout: float = 5.0,
    earlier: Optional[dict[str, dict[str, int]]] = None,
) -> Observation:
    """Read ``concerns`` of a node. With an expectation only what it names is read, else everything that is found.

    ``timeout`` is the deadline of one command in seconds; ``earlier`` are the counters of the last reading, for what
    moved.
    """
    wanted = frozenset(concerns)
    trouble: dict[str, str] = {}
    nics = None
    if NICS in wanted:
        try:
            nics = _nics(host, expected, wanted, timeout, trouble)
        except OSError as error:  # one that does not mean "not there"
            trouble[NICS] = f"sysfs cannot be read: {error}"
    addresses = _addresses(host, timeout, trouble) if ADDRESSES in wanted else None
    mounts = _mounts(host, trouble) if MOUNTS in wanted else None
    units = expected.daemons if expected else ("munge", "slurmd", "slurmctld")
    states = _daemons(host, units, timeout, trouble) if DAEMONS in wanted and units else None
    return Observation(nics, addresses, mounts, states, earlier, trouble)


def _nics(
    host: Host, expected: Optional[Expected], wanted: frozenset[str], timeout: float, trouble: dict[str, str]
) -> Optional[dict[str, Nic]]:
    if not host.exists(netdev.PCI):
        trouble[NICS] = f"{netdev.PCI} is not there (is sysfs mounted?)"
        return None
    wants: Mapping[str, Optional[NicWant]] = (
        {nic.pci: nic for nic in expected.nics} if expected else dict.fromkeys(netdev.nic_addresses(host))
    )
    mtus: dict[tuple[str, int], int] = {}
    # Only where a port is expected: InfiniBand and Ethernet alike, but not on a node without RDMA.
    if MTUS in wanted and any(want is None or want.rdma for want in wants.values()):
        result = host.run(["ibv_devinfo"], timeout)
        if result.ok:
            mtus = rdma.parse_devinfo(result.out)
        else:
            trouble[MTUS] = result.failure()
    devices = {name: rdma.netdev_of(host, name) for name in rdma.devices(host)}
    return {pci: _nic(host, pci, want, devices, mtus, COUNTERS in wanted) for pci, want in wants.items()}


def _nic(  # noqa: PLR0917 - what was read once for all NICs
    host: Host,
    pci: str,
    want: Optional[NicWant],
    devices: Mapping[str, str],
    mtus: dict[tuple[str, int], int],
    counters: bool,
) -> Nic:
    pci = netdev.by_position(host.listdir, pci)
    names = netdev.netdevs_of(host, pci)
    device = netdev.read_netdev(host, names[0]) if names else None
    own = host.listdir(f"{netdev.PCI}/{pci}/infiniband")
    if not own and device:
        own = [name for name, under in devices.items() if under == device.name]
    port = None
    if own:
        numbers = rdma.ports_of(host, own[0]) or [1]
        port = rdma.read_port(
            host, own[0], numbers[0], mtus, device.mtu if device else None, until=_looks_for(want), counters=counters
        )
    return Nic(pci, host.exists(f"{netdev.PCI}/{pci}"), device, port)


def _looks_for(want: Optional[NicWant]) -> Optional[Callable[[Gid], bool]]:
    """Return the test at which the reading of a GID table may stop."""
    if want is None or want.rdma is None or not want.address:
        return None
    gid, kind = rdma.address_gid(want.address), want.rdma.gid_type
    return lambda entry: entry.gid == gid and entry.type == kind


def _addresses(host: Host, timeout: float, trouble: dict[str, str]) -> Optional[dict[str, tuple[str, ...]]]:
    result = host.run(["ip", "-j", "addr", "show"], timeout)
    found = netdev.parse_addresses(result.out) if result.ok else None
    if found is None:
        trouble[ADDRESSES] = result.failure() or "the output of ip does not parse"
    return found


def _mounts(host: Host, trouble: dict[str, str]) -> Optional[dict[str, Mount]]:
    text = host.read("/proc/mounts")
    if not text:
        trouble[MOUNTS] = "/proc/mounts cannot be read"
        return None
    return mounts_of.parse_mounts(text)


def _daemons(host: Host, units: Iterable[str], timeout: float, trouble: dict[str, str]) -> Optional[dict[str, str]]:
    names = list(units)
    result = host.run(["systemctl", "is-active", *names], timeout)
    found = daemons_of.parse_is_active(names, result)
    if found is None:
        trouble[DAEMONS] = result.failure() or "systemctl's answer does not parse"
    return found
