"""cluster.yml as data: hosts, addresses, NICs, mounts, partitions. Pure but for reading the file; controller only.

Host ranges are expanded, addresses computed, contradictions refused with file and line. ``cluster_render`` makes of it
what Ansible, the nodes and the guard read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import netaddr

from weaklink.model.cluster_file import ClusterError, Document, nearest, validate
from weaklink.model.hostlist import expand

__all__ = ["Cluster", "ClusterError", "Group", "Host", "Mount", "Network", "Nic", "load", "parse"]

# An RDMA packet carries up to 96 bytes of headers and checks above its payload (RoCE v2: IP 40, UDP 8, BTH 12 and
# extended headers, ICRC 4), so an active MTU of 4096 needs an interface of at least 4192 bytes.
ROCE_HEADERS = 96
IPV4 = 4
_TAKEN = ("controller", "compute", "all", "ungrouped")  # Ansible groups that hold other hosts


class Network(NamedTuple):
    """A network: addresses, what it is for, MTU of interfaces and of RDMA (bytes), nominal rate (Gb/s)."""

    name: str
    cidr: str
    role: str
    mtu: int
    transport: str
    active_mtu: int | None
    rate_gbps: float | None
    gid_type: str


class Nic(NamedTuple):
    """One port of a host: PCI address, network, address with prefix length, RDMA device (or None), its kind, rail."""

    pci: str
    network: str
    address: str
    rdma_device: str | None
    rdma_kind: str | None
    rail: int

    @property
    def ip(self) -> str:
        """The address without its prefix length."""
        return self.address.partition("/")[0]


class Host(NamedTuple):
    """A machine: name, its group and role, its leaf switch group, its NICs, and what Slurm is told of it."""

    name: str
    group: str
    role: str
    leaf: str
    nics: tuple[Nic, ...]
    cpus: int
    memory_mb: int
    gpus: int

    def nic(self, network: str) -> Nic | None:
        """Return the host's first NIC in ``network``."""
        return next((nic for nic in self.nics if nic.network == network), None)


class Group(NamedTuple):
    """A group of like hosts, in the order of their addresses."""

    name: str
    role: str
    hosts: tuple[str, ...]


class Mount(NamedTuple):
    """A network file system that every compute node mounts."""

    path: str
    server: str
    export: str
    network: str
    transport: str


class Partition(NamedTuple):
    """A Slurm partition."""

    name: str
    hosts: tuple[str, ...]
    default: bool
    max_time: str


class Cluster(NamedTuple):
    """The whole cluster, checked."""

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


DEFAULT_BUDGET = {
    "total_nodes": None,
    "total_fraction": 0.10,
    "check_nodes": None,
    "check_fraction": 0.05,
    "leaf_fraction": 0.25,
    "reserve_fraction": 0.10,
    "window_seconds": 3600,
}
DEFAULT_POLICY = {"nonbatch": "cancel", "health_strikes": 2}
DEFAULT_DEADLINES = {"prolog": 10, "epilog": 60, "health": 50, "check": 5, "slurm": 8}
DEFAULT_SWEEP = {"bw_seconds": 2, "lat_iterations": 200, "min_loss": 0.15, "sigmas": 5, "baseline_sweeps": 3}


def load(path: str | Path) -> Cluster:
    """Read and check a cluster file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError((str(path), 1), "(file)", str(error), "a readable cluster file in UTF-8") from error
    return parse(str(path), text)


def parse(file: str, text: str) -> Cluster:
    """Return the cluster that ``text`` describes; ``file`` is for messages. Pure."""
    document = Document(file, text)
    validate(document)
    data = document.data
    networks = _networks(document)
    groups, machines = _hosts(document, networks)
    return Cluster(
        name=data["cluster"],
        mode=data.get("mode", "observe"),
        service_user=data.get("service_user", "weaklink"),
        networks=networks,
        groups=groups,
        hosts=machines,
        partitions=_partitions(document, groups),
        mounts=_mounts(document, networks, machines),
        policy={
            **DEFAULT_POLICY,
            **data.get("policy", {}),
            "budget": {**DEFAULT_BUDGET, **data.get("policy", {}).get("budget", {})},
        },
        deadlines={**DEFAULT_DEADLINES, **data.get("deadlines", {})},
        sweep={**DEFAULT_SWEEP, **data.get("sweep", {})},
    )


def _networks(document: Document) -> dict[str, Network]:
    networks: dict[str, Network] = {}
    ranges: dict[str, netaddr.IPNetwork] = {}
    for name, entry in document.data["networks"].items():
        path = ("networks", name)
        try:
            ranges[name] = netaddr.IPNetwork(entry["cidr"])
        except (netaddr.AddrFormatError, ValueError):
            raise document.error((*path, "cidr"), repr(entry["cidr"]), "a network such as 10.77.0.0/24") from None
        if ranges[name].version != IPV4 or ranges[name].ip != ranges[name].network:
            raise document.error((*path, "cidr"), entry["cidr"], f"an IPv4 network, e.g. {ranges[name].cidr}")
        for other, taken in ranges.items():
            if other != name and (ranges[name] in taken or taken in ranges[name]):
                raise document.error(
                    (*path, "cidr"), f"{entry['cidr']}, which overlaps {other} ({taken})", "separate networks"
                )
        transport = entry.get("transport", "tcp")
        active = entry.get("active_mtu", None if transport == "tcp" else 4096)
        if transport == "roce" and entry["mtu"] < active + ROCE_HEADERS:
            wanted = f"at least {active + ROCE_HEADERS} for an active MTU of {active} (e.g. 4200 or 9000)"
            raise document.error((*path, "mtu"), str(entry["mtu"]), wanted)
        gid_type = entry.get("gid_type", "RoCE v2" if transport == "roce" else "IB")
        rate = entry.get("rate_gbps")
        networks[name] = Network(
            name, str(ranges[name]), entry["role"], entry["mtu"], transport, active, rate, gid_type
        )
    management = [name for name, network in networks.items() if network.role == "management"]
    if len(management) != 1:
        found = f"{len(management)} networks with role management"
        raise document.error(("networks",), found, "exactly one: Slurm and ssh use it")
    return networks


def _hosts(document: Document, networks: dict[str, Network]) -> tuple[dict[str, Group], dict[str, Host]]:
    groups: dict[str, Group] = {}
    hosts: dict[str, Host] = {}
    taken: dict[str, str] = {}
    for group, entry in document.data["groups"].items():
        path = ("groups", group)
        if group in _TAKEN and group != entry["role"]:
            raise document.error(path, f"{group!r} as the name of a group of role {entry['role']}", "another name")
        try:
            names = expand(entry["hosts"])
        except ValueError as error:
            raise document.error(
                (*path, "hosts"), f"{entry['hosts']!r}: {error}", "names and ranges such as c[1-3]"
            ) from None
        _check_nics(document, group, entry, networks)
        for index, name in enumerate(names):
            if name in hosts:
                raise document.error(
                    (*path, "hosts"), f"{name} for the second time (also in {hosts[name].group})", "each host once"
                )
            nics = _nics(document, group, networks, index, len(names))
            for nic in nics:
                if nic.ip in taken:
                    found = f"{nic.ip} for {name}, which {taken[nic.ip]} has"
                    raise document.error((*path, "first_address"), found, "a number whose addresses are free")
                taken[nic.ip] = name
            leaf = entry.get("leaf", "leaf1")
            size = (entry.get("cpus", 1), entry.get("memory_mb", 1), entry.get("gpus", 0))
            hosts[name] = Host(name, group, entry["role"], leaf, nics, *size)
        groups[group] = Group(group, entry["role"], tuple(names))
    controllers = [host.name for host in hosts.values() if host.role == "controller"]
    if len(controllers) != 1:
        raise document.error(
            ("groups",), f"{len(controllers)} controller hosts", "exactly one host with role controller"
        )
    return groups, hosts


def _check_nics(document: Document, group: str, entry: dict[str, Any], networks: dict[str, Network]) -> None:
    seen: dict[str, int] = {}
    devices: dict[str, int] = {}
    for index, nic in enumerate(entry["nics"]):
        path = ("groups", group, "nics", index)
        name = nic["network"]
        if name not in networks:
            raise document.error((*path, "network"), repr(name), ", ".join(networks), nearest(name, networks))
        if nic["pci"] in seen:
            raise document.error((*path, "pci"), f"{nic['pci']}, which NIC {seen[nic['pci']]} has", "one network a NIC")
        seen[nic["pci"]] = index
        rdma = nic.get("rdma")
        if rdma and networks[name].transport == "tcp":
            raise document.error(
                (*path, "rdma"), f"RDMA on {name}", f"networks with transport roce or infiniband, not {name}"
            )
        if rdma and rdma["device"] in devices:
            found = f"{rdma['device']}, which NIC {devices[rdma['device']]} has"
            raise document.error((*path, "rdma", "device"), found, "one name a device")
        if rdma:
            devices[rdma["device"]] = index


def _nics(document: Document, group: str, networks: dict[str, Network], index: int, count: int) -> tuple[Nic, ...]:
    """Give host number ``index`` of a group its addresses; several NICs in one network get consecutive ones."""
    entry = document.data["groups"][group]
    result = []
    rails: dict[str, int] = {}
    per_network: dict[str, int] = {}
    for nic in entry["nics"]:
        per_network[nic["network"]] = per_network.get(nic["network"], 0) + 1
    for nic in entry["nics"]:
        network = networks[nic["network"]]
        rail = rails.get(network.name, 0)
        rails[network.name] = rail + 1
        number = entry["first_address"] + index * per_network[network.name] + rail
        cidr = netaddr.IPNetwork(network.cidr)
        if number >= cidr.size - 1:
            found = (
                f"{entry['first_address']}, with which {count} hosts do not fit into {network.name} ({network.cidr})"
            )
            raise document.error(
                ("groups", group, "first_address"), found, f"at most {cidr.size - 2} for the last host"
            )
        rdma = nic.get("rdma") or {}
        address = f"{cidr[number]}/{cidr.prefixlen}"
        result.append(Nic(nic["pci"], network.name, address, rdma.get("device"), rdma.get("kind"), rail))
    return tuple(result)


def _partitions(document: Document, groups: dict[str, Group]) -> dict[str, Partition]:
    partitions = {}
    for name, entry in document.data["partitions"].items():
        hosts: list[str] = []
        for index, group in enumerate(entry["groups"]):
            compute = [known for known, value in groups.items() if value.role == "compute"]
            if group not in compute:
                path = ("partitions", name, "groups", index)
                raise document.error(
                    path, repr(group), f"compute groups: {', '.join(compute)}", nearest(group, compute)
                )
            if group in entry["groups"][:index]:
                raise document.error(("partitions", name, "groups", index), f"{group} twice", "each group once")
            hosts += groups[group].hosts
        partitions[name] = Partition(name, tuple(hosts), entry.get("default", False), entry.get("max_time", "INFINITE"))
    return partitions


def _mounts(document: Document, networks: dict[str, Network], hosts: dict[str, Host]) -> tuple[Mount, ...]:
    mounts: list[Mount] = []
    for index, entry in enumerate(document.data.get("mounts", [])):
        path = ("mounts", index)
        server, network = entry["server"], entry["network"]
        if entry["path"] in {mount.path for mount in mounts}:
            raise document.error((*path, "path"), f"{entry['path']} for the second time", "one file system a path")
        if server not in hosts:
            raise document.error((*path, "server"), repr(server), "a host of this file", nearest(server, hosts))
        if network not in networks:
            raise document.error((*path, "network"), repr(network), ", ".join(networks), nearest(network, networks))
        if hosts[server].nic(network) is None:
            raise document.error((*path, "network"), f"{network}, where {server} has no NIC", f"a network of {server}")
        if entry["transport"] == "rdma" and networks[network].transport == "tcp":
            raise document.error(
                (*path, "transport"), f"rdma over {network}", "a network with transport roce or infiniband"
            )
        mounts.append(Mount(entry["path"], server, entry["export"], network, entry["transport"]))
    return tuple(mounts)
