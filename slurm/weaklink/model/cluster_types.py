"""The records that a cluster file becomes: networks, hosts and their NICs, switches, mounts, partitions. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple


class Network(NamedTuple):
    """A network: addresses (empty where its NICs have none), what it is for, MTU of interfaces and of RDMA (bytes).

    ``rate_gbps`` is one port's nominal rate; ``rail_subnets`` gives each rail a subnet of its own; ``qos`` is kept as
    written (RoCE only).
    """

    name: str
    cidr: str
    role: str
    mtu: int
    transport: str
    active_mtu: int | None
    rate_gbps: float | None
    gid_type: str
    vlan: int | None = None
    gateway: str = ""
    rail_subnets: bool = False
    ipoib_mode: str = "datagram"
    pkey: str = ""
    qos: dict[str, Any] = {}  # noqa: RUF012 - never written to


class Nic(NamedTuple):
    """One port of a host: where it is, network, address with prefix length, RDMA device (or None), its kind, rail.

    ``pci`` is a PCI address, or ``#N`` for the machine's N-th NIC in PCI order (from 0). ``address`` is empty on a
    network without addresses.
    """

    pci: str
    network: str
    address: str
    rdma_device: str | None
    rdma_kind: str | None
    rail: int
    plane: int = 0

    @property
    def ip(self) -> str:
        """The address without its prefix length."""
        return self.address.partition("/")[0]


class Host(NamedTuple):
    """A machine: name, group and role, its leaf group, its NICs, and what Slurm is told of it.

    ``leaf`` names the nodes that share their leaf switches (a scalable unit of a rail-optimised fabric), ``block``
    those that share an NVLink domain (empty: none), ``rack`` the rack (empty: not said).
    """

    name: str
    group: str
    role: str
    leaf: str
    nics: tuple[Nic, ...]
    cpus: int
    memory_mb: int
    gpus: int
    gpu_type: str = ""
    block: str = ""
    rack: str = ""

    def nic(self, network: str) -> Nic | None:
        """Return the host's first NIC in ``network``."""
        return next((nic for nic in self.nics if nic.network == network), None)


class Group(NamedTuple):
    """A group of like hosts, in the order of their addresses; ``settings`` are the keys of its hardware and its own."""

    name: str
    role: str
    hosts: tuple[str, ...]
    settings: dict[str, Any] = {}  # noqa: RUF012 - never written to


class SwitchGroup(NamedTuple):
    """Like switches: their network, tier (1 = leaf), ports, ports that lead to the next tier, MTU (bytes).

    ``downlinks``: ports for what is below; None: all that are no uplinks.
    """

    name: str
    names: tuple[str, ...]
    network: str
    tier: int
    ports: int
    uplinks: int
    mtu: int | None
    qos: dict[str, Any] = {}  # noqa: RUF012 - never written to
    downlinks: int | None = None

    @property
    def places(self) -> int:
        """Ports for what is below, at most."""
        return self.ports - self.uplinks if self.downlinks is None else self.downlinks


class Mount(NamedTuple):
    """A network file system that compute and login nodes mount.

    ``server`` is a host of the file or an address (empty where the source names none), ``source`` and ``options`` what
    mount(8) is told, but for the address of a server that is a host of the file. ``transport``: rdma | tcp.
    """

    path: str
    server: str
    export: str
    network: str
    transport: str
    type: str = "nfs"
    options: str = ""


class Partition(NamedTuple):
    """A Slurm partition; ``options`` are further keys of its line, as Slurm spells them."""

    name: str
    hosts: tuple[str, ...]
    default: bool
    max_time: str
    options: dict[str, str] = {}  # noqa: RUF012 - never written to


class Cluster(NamedTuple):
    """The whole cluster, checked. ``warnings`` are what is allowed and costs something."""

    name: str
    mode: str
    service_user: str
    networks: dict[str, Network]
    groups: dict[str, Group]
    hosts: dict[str, Host]
    partitions: dict[str, Partition]
    mounts: tuple[Mount, ...]
    policy: dict[str, Any]
    deadlines: dict[str, float]
    sweep: dict[str, Any]
    manage: str = "all"
    switches: dict[str, SwitchGroup] = {}  # noqa: RUF012 - never written to
    fabric: dict[str, Any] = {}  # noqa: RUF012 - never written to
    slurm: dict[str, Any] = {}  # noqa: RUF012 - never written to
    expected: dict[str, Any] = {}  # noqa: RUF012 - never written to
    warnings: tuple[str, ...] = ()

    @property
    def controller(self) -> Host:
        """The host that runs slurmctld and the guard."""
        return next(host for host in self.hosts.values() if host.role == "controller")

    @property
    def compute(self) -> list[Host]:
        """The hosts that run jobs."""
        return [host for host in self.hosts.values() if host.role == "compute"]

    @property
    def management(self) -> str:
        """The name of the management network."""
        return next(name for name, network in self.networks.items() if network.role == "management")
