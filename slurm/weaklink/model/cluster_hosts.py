"""The hosts of a cluster file: ranges expanded, NICs checked, addresses computed, scalable units, blocks and racks."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import netaddr

from weaklink.model.cluster_file import ClusterError, Document
from weaklink.model.cluster_types import Group, Host, Network, Nic
from weaklink.model.hostlist import expand
from weaklink.model.words import nearest

_TAKEN = ("controller", "compute", "storage", "login", "all", "ungrouped")  # Ansible groups that hold other hosts


def settings(document: Document, group: str) -> dict[str, Any]:
    """Return a group's keys with those of its hardware under them."""
    entry = document.data["groups"][group]
    known = document.data.get("hardware", {})
    if "hardware" not in entry:
        return dict(entry)
    if entry["hardware"] not in known:
        found = repr(entry["hardware"])
        allowed = f"hardware: {', '.join(known) or 'none is described'}"
        raise document.error(("groups", group, "hardware"), found, allowed, nearest(entry["hardware"], known))
    return {**known[entry["hardware"]], **entry}


def nics_path(document: Document, group: str) -> tuple[Any, ...]:
    """Return where the NICs of a group are written: in itself, or in its hardware."""
    entry = document.data["groups"][group]
    return ("groups", group, "nics") if "nics" in entry else ("hardware", entry.get("hardware", ""), "nics")


def read(document: Document, networks: dict[str, Network]) -> tuple[dict[str, Group], dict[str, Host]]:
    """Return the groups and the hosts by name, in the order of the file."""
    groups: dict[str, Group] = {}
    hosts: dict[str, Host] = {}
    taken: dict[int, str] = {
        int(netaddr.IPAddress(network.gateway)): f"the gateway of {name}"
        for name, network in networks.items()
        if network.gateway
    }
    addresses = _Addresses(document, networks)
    for group, entry in document.data["groups"].items():
        path = ("groups", group)
        if group in _TAKEN and group != entry["role"]:
            raise document.error(path, f"{group!r} as the name of a group of role {entry['role']}", "another name")
        names = _names(document, path, entry)
        merged = settings(document, group)
        if "nics" not in merged:
            raise document.error((*path, "nics"), "nothing", "a list of NICs, or a hardware that has one")
        ports = _ports(document, group, merged, networks)
        series = addresses.of(group, merged, ports, len(names))
        make = _maker(document, group, merged)
        for index, name in enumerate(names):
            if name in hosts:
                raise document.error(
                    (*path, "hosts"), f"{name} for the second time (also in {hosts[name].group})", "each host once"
                )
            nics = []
            for port, run in zip(ports, series):
                if run is None:
                    nics.append(port)
                    continue
                number = run.first + index * run.step
                nics.append(port._replace(address=_text(number, run.prefix)))
                if number in taken:
                    found = f"{nics[-1].ip} for {name}, which {taken[number]} has"
                    raise document.error((*path, "first_address"), found, "a number whose addresses are free")
                taken[number] = name
            hosts[name] = make(name, index, tuple(nics))
        groups[group] = Group(group, entry["role"], tuple(names), merged)
    _one_controller(document, hosts)
    return groups, hosts


def _names(document: Document, path: tuple[Any, ...], entry: dict[str, Any]) -> list[str]:
    try:
        return expand(entry["hosts"])
    except ValueError as error:
        found = f"{entry['hosts']!r}: {error}"
        raise document.error((*path, "hosts"), found, "names and ranges such as c[1-3]") from None


def _one_controller(document: Document, hosts: dict[str, Host]) -> None:
    count = sum(host.role == "controller" for host in hosts.values())
    if count != 1:
        raise document.error(("groups",), f"{count} controller hosts", "exactly one host with role controller")


def _maker(document: Document, group: str, merged: dict[str, Any]) -> Callable[[str, int, tuple[Nic, ...]], Host]:
    """Return a function (name, index, nics) → Host that knows units, blocks and racks of the group."""
    gpus = merged.get("gpus", 0)
    count, kind = (gpus["count"], gpus.get("type", "")) if isinstance(gpus, dict) else (gpus, "")
    cpus = merged.get("cpus") or _product(merged) or 1
    if "cpus" in merged and _product(merged) not in (0, merged["cpus"]):
        found = f"{merged['cpus']}, and sockets x cores x threads = {_product(merged)}"
        raise document.error(("groups", group, "cpus"), found, "one number of processors")
    compute = [name for name, entry in document.data["groups"].items() if entry["role"] == "compute"]
    prefix = "" if len(compute) == 1 else f"{group}-"

    def part(key: str, word: str, index: int) -> str:
        size = merged.get(key)
        return f"{prefix}{word}{index // size + 1:02d}" if size else ""

    def make(name: str, index: int, nics: tuple[Nic, ...]) -> Host:
        leaf = merged.get("leaf") or part("su_nodes", "su", index) or "leaf1"
        return Host(
            name,
            group,
            merged["role"],
            leaf,
            nics,
            cpus,
            merged.get("memory_mb", 1),
            count,
            kind,
            part("block_nodes", "block", index),
            part("rack_nodes", "rack", index),
        )

    return make


def _product(merged: dict[str, Any]) -> int:
    if "cores" not in merged:
        return 0
    return int(merged.get("sockets", 1) * merged["cores"] * merged.get("threads", 1))


def _ports(document: Document, group: str, merged: dict[str, Any], networks: dict[str, Network]) -> list[Nic]:
    """Return the group's NICs without addresses; refuse what cannot be one machine."""
    base = nics_path(document, group)
    seen: dict[str, int] = {}
    devices: dict[str, int] = {}
    counted: dict[str, int] = {}
    ports: list[Nic] = []
    for index, nic in enumerate(merged["nics"]):
        path = (*base, index)
        name = nic["network"]
        if name not in networks:
            raise document.error((*path, "network"), repr(name), ", ".join(networks), nearest(name, networks))
        where = _where(document, path, nic)
        if where in seen:
            first = merged["nics"][seen[where]]["network"]
            raise _shared_port(document, path, where, (seen[where], networks[first]), networks[name])
        if ports and (ports[0].pci.startswith("#")) != where.startswith("#"):
            wanted = "pci for all NICs of a machine or position for all: mixed, they cannot be told apart"
            raise document.error(path, "pci and position", wanted)
        seen[where] = index
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
        rail = nic.get("rail", counted.get(name, 0))
        counted[name] = counted.get(name, 0) + 1
        device, kind = (rdma["device"], rdma.get("kind", "hca")) if rdma else (None, None)
        ports.append(Nic(where, name, "", device, kind, rail, nic.get("plane", 0)))
    _check_rails(document, base, ports)
    return ports


def _check_rails(document: Document, base: tuple[Any, ...], ports: list[Nic]) -> None:
    """Refuse a machine whose rails have gaps or repeat."""
    found: dict[tuple[str, int], list[int]] = {}
    for port in ports:
        found.setdefault((port.network, port.plane), []).append(port.rail)
    for (network, plane), rails in found.items():
        if sorted(rails) != list(range(len(rails))):
            text = f"rails {', '.join(map(str, sorted(rails)))} in {network}" + (f", plane {plane}" if plane else "")
            raise document.error(base, text, f"each of 0 … {len(rails) - 1} once")


def _where(document: Document, path: tuple[Any, ...], nic: dict[str, Any]) -> str:
    if ("pci" in nic) == ("position" in nic):
        found = "both pci and position" if "pci" in nic else "neither pci nor position"
        raise document.error((*path, "pci"), found, "one of them: pci (0000:18:00.0) or position (from 0)")
    return str(nic["pci"]) if "pci" in nic else f"#{nic['position']}"


def _shared_port(
    document: Document, path: tuple[Any, ...], where: str, first: tuple[int, Network], second: Network
) -> ClusterError:
    key = "position" if where.startswith("#") else "pci"
    number, network = first
    if {network.role, second.role} == {"compute", "storage"}:
        found = f"{where} for {network.name} ({network.role}) and {second.name} ({second.role})"
        allowed = "compute and storage on separate physical ports: checkpoints would slow the all-reduce"
        return document.error((*path, key), found, allowed)
    found = f"{where}, which NIC {number} has (in {network.name})"
    return document.error((*path, key), found, "one network a NIC")


class _Series(NamedTuple):
    """The addresses of one NIC over the hosts of a group, as numbers: first, distance of two hosts, prefix length."""

    first: int
    step: int
    prefix: int


class _Addresses:
    """Computes addresses; networks are parsed once, since a cluster has tens of thousands of NICs."""

    def __init__(self, document: Document, networks: dict[str, Network]) -> None:
        self.document = document
        self.networks = networks
        self.cidrs = {name: netaddr.IPNetwork(network.cidr) for name, network in networks.items() if network.cidr}
        self.rails: dict[str, int] = {}  # rails of each network, over all groups
        self.planes: dict[str, int] = {}
        for group in document.data["groups"]:
            counted: dict[str, int] = {}
            for nic in settings(document, group).get("nics", []):
                name = nic["network"]
                rail = nic.get("rail", counted.get(name, 0))
                counted[name] = counted.get(name, 0) + 1
                self.rails[name] = max(self.rails.get(name, 0), rail + 1)
                self.planes[name] = max(self.planes.get(name, 0), nic.get("plane", 0) + 1)

    def of(self, group: str, merged: dict[str, Any], ports: list[Nic], count: int) -> list[_Series | None]:
        """Return for each NIC of a group of ``count`` hosts how its addresses run, None where it has none."""
        number_of: dict[str, int] = {}
        for port in ports:
            number_of[port.network] = number_of.get(port.network, 0) + 1
        seen: dict[str, int] = {}
        result: list[_Series | None] = []
        for port in ports:
            place = seen.get(port.network, 0)
            seen[port.network] = place + 1
            first = self._first(group, merged, port.network)
            if port.network not in self.cidrs or first is None:
                result.append(None)
                continue
            start, size, prefix = self._subnet(port)
            step = 1
            if not self.networks[port.network].rail_subnets:
                step, first = number_of[port.network], first + place
            if first + (count - 1) * step >= size - 1:
                raise self._too_many(group, port.network, first - place, count, size)
            result.append(_Series(start + first, step, prefix))
        return result

    def _subnet(self, port: Nic) -> tuple[int, int, int]:
        """Return the first address, size and prefix length of the subnet that a NIC is in."""
        cidr = self.cidrs[port.network]
        if not self.networks[port.network].rail_subnets:
            return int(cidr.first), int(cidr.size), int(cidr.prefixlen)
        rails = self.rails[port.network]
        bits = (rails * self.planes[port.network] - 1).bit_length()
        size = int(cidr.size) >> bits
        return int(cidr.first) + size * (port.plane * rails + port.rail), size, int(cidr.prefixlen) + bits

    def _too_many(self, group: str, network: str, first: int, count: int, size: int) -> ClusterError:
        where = f"{network} ({self.networks[network].cidr})"
        if self.networks[network].rail_subnets:
            where = f"a rail's subnet of {where}, {size} addresses"
        found = f"{first}, with which {count} hosts do not fit into {where}"
        path = ("groups", group, "first_address")
        return self.document.error(path, found, f"at most {max(0, size - 2)} for the last host")

    def _first(self, group: str, merged: dict[str, Any], network: str) -> int | None:
        given = merged.get("first_address")
        first = given.get(network) if isinstance(given, dict) else given
        if first is None and network in self.cidrs and self.document.data.get("manage") != "guard":
            found = f"nothing for {network}"
            raise self.document.error(("groups", group, "first_address"), found, "the first host's number in it")
        return first


def _text(number: int, prefix: int) -> str:
    return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}/{prefix}"
