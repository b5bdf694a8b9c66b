"""The switches of a cluster file against its hosts: ports, rails, planes; and what is allowed but costs speed."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

from weaklink.model.cluster_file import Document
from weaklink.model.cluster_hosts import nics_path
from weaklink.model.cluster_types import Group, Host, Network, Nic, SwitchGroup
from weaklink.model.hostlist import expand
from weaklink.model.words import nearest

# What the field takes as the least for training on large models; slower nodes work and wait.
GBPS_PER_GPU = 400.0


def switches(document: Document, networks: dict[str, Network], hosts: dict[str, Host]) -> dict[str, SwitchGroup]:
    """Return the groups of switches by name."""
    found: dict[str, SwitchGroup] = {}
    named: dict[str, str] = {}
    for name, entry in document.data.get("switches", {}).items():
        path = ("switches", name)
        try:
            names = tuple(expand(entry["names"]))
        except ValueError as error:
            raise document.error(
                (*path, "names"), f"{entry['names']!r}: {error}", "names such as leaf[01-32]"
            ) from None
        for switch in names:
            if switch in named or switch in hosts:
                other = named.get(switch, "the hosts")
                raise document.error((*path, "names"), f"{switch}, which is in {other} too", "each name once")
            named[switch] = name
        network = entry["network"]
        if network not in networks:
            raise document.error((*path, "network"), repr(network), ", ".join(networks), nearest(network, networks))
        uplinks = entry.get("uplinks", _half(document, entry))
        if uplinks > entry["ports"]:
            raise document.error((*path, "uplinks"), str(uplinks), f"at most its {entry['ports']} ports")
        downlinks = entry.get("downlinks")
        if downlinks is not None and downlinks + uplinks > entry["ports"]:
            text = f"{downlinks} beside {uplinks} uplinks"
            raise document.error((*path, "downlinks"), text, f"at most its {entry['ports']} ports in all")
        qos = entry.get("qos", {})
        found[name] = SwitchGroup(
            name, names, network, entry["tier"], entry["ports"], uplinks, entry.get("mtu"), qos, downlinks
        )
    return found


def _half(document: Document, entry: dict[str, Any]) -> int:
    """Return the uplinks of a switch that names none: half of its ports, unless nothing is above it."""
    others = document.data["switches"].values()
    above = any(other["network"] == entry["network"] and other["tier"] > entry["tier"] for other in others)
    return int(entry["ports"]) // 2 if above else 0


def check(
    document: Document,
    networks: dict[str, Network],
    groups: dict[str, Group],
    hosts: dict[str, Host],
    known: dict[str, SwitchGroup],
) -> tuple[str, ...]:
    """Refuse rails that do not match and switches with too few ports; return what is only worth a warning."""
    _check_rails(document, networks, groups, hosts)
    warnings: list[str] = []
    for network in networks.values():
        tiers = _tiers(document, network.name, known)
        if tiers:
            warnings += _check_ports(document, network, tiers, groups, hosts)
    warnings += [text for group in groups.values() for text in _gpu_warnings(networks, group, hosts)]
    return tuple(warnings)


def _compute_ports(host: Host, networks: dict[str, Network]) -> list[Nic]:
    return [nic for nic in host.nics if networks[nic.network].role == "compute" and nic.rdma_device]


def _check_rails(
    document: Document, networks: dict[str, Network], groups: dict[str, Group], hosts: dict[str, Host]
) -> None:
    """Refuse groups of one rail-optimised fabric that have not the same rails."""
    if document.data.get("fabric", {}).get("topology") != "rail":
        return
    first: tuple[str, frozenset[tuple[int, int]]] | None = None
    for group in groups.values():
        ports = _compute_ports(hosts[group.hosts[0]], networks) if group.role == "compute" else []
        found = frozenset((nic.plane, nic.rail) for nic in ports)
        if not found:
            continue
        if first is None:
            first = (group.name, found)
        elif found != first[1]:
            text = f"{len(found)} rails, and {first[0]} has {len(first[1])}"
            raise document.error(
                nics_path(document, group.name), text, "the same rails in all groups of a rail-optimised fabric"
            )


def _tiers(document: Document, network: str, known: dict[str, SwitchGroup]) -> list[list[SwitchGroup]]:
    """Return the switch groups of a network by tier, from the leaves up."""
    tiers = sorted({group.tier for group in known.values() if group.network == network})
    if tiers and tiers != list(range(1, len(tiers) + 1)):
        name = next(group.name for group in known.values() if group.network == network)
        found = f"tiers {', '.join(map(str, tiers))} in {network}"
        raise document.error(("switches", name, "tier"), found, "tier 1 (leaves) and each one above it")
    return [[g for g in known.values() if g.network == network and g.tier == tier] for tier in tiers]


def _check_ports(
    document: Document,
    network: Network,
    tiers: list[list[SwitchGroup]],
    groups: dict[str, Group],
    hosts: dict[str, Host],
) -> list[str]:
    leaves = sum(len(group.names) for group in tiers[0])
    nics = sum(nic.network == network.name for host in hosts.values() for nic in host.nics)
    one = tiers[0][0]
    free = sum(len(group.names) * group.places for group in tiers[0])
    if nics > free:
        found = f"{one.ports} a switch: {free} for hosts on {leaves} switches, with {nics} NICs in {network.name}"
        raise document.error(("switches", one.name, "ports"), found, f"at least {nics} ports for hosts in all")
    if document.data.get("fabric", {}).get("topology") == "rail" and network.role == "compute":
        _check_rail_leaves(document, network, tiers[0], groups, hosts)
    warnings = []
    for below, above in zip(tiers, tiers[1:]):
        up = sum(len(group.names) * group.uplinks for group in below)
        room = sum(len(group.names) * group.places for group in above)
        if up > room:
            found = f"{above[0].ports} a switch: room for {room} links, and {below[0].name} sends {up}"
            raise document.error(
                ("switches", above[0].name, "ports"), found, f"at least {up} ports for links from below"
            )
        count = sum(len(group.names) for group in above)
        # Storage and management are oversubscribed on purpose; the compute network should say so.
        if network.role == "compute" and below is tiers[0] and up and nics > up:
            warnings.append(
                f"{network.name}: {nics} NICs share {up} uplinks to {count} switches, {nics / up:.2g}:1 "
                f"oversubscribed; non-blocking needs {ceil(nics / leaves)} uplinks on each of {leaves} leaves"
            )
    return warnings


def _check_rail_leaves(
    document: Document,
    network: Network,
    leaves: list[SwitchGroup],
    groups: dict[str, Group],
    hosts: dict[str, Host],
) -> None:
    """A unit's rail r goes to one leaf: so many leaves there must be, and so many ports each must have."""
    units: dict[str, int] = {}
    rails = 0
    for group in groups.values():
        if group.role != "compute":
            continue
        rails = max(rails, sum(nic.network == network.name for nic in hosts[group.hosts[0]].nics))
        for name in group.hosts:
            units[hosts[name].leaf] = units.get(hosts[name].leaf, 0) + 1
    have = sum(len(group.names) for group in leaves)
    largest = max(units.values(), default=0)
    room = min(group.places for group in leaves)
    path = ("switches", leaves[0].name)
    if largest > room:
        found = f"{leaves[0].ports} ports, {leaves[0].uplinks} of them uplinks, for a unit of {largest} nodes"
        raise document.error(
            (*path, "ports"), found, f"at least {largest} ports for hosts: a leaf takes one rail of a unit"
        )
    if have != len(units) * rails:
        found = f"{have} leaves for {len(units)} units with {rails} rails"
        raise document.error((*path, "names"), found, f"{len(units) * rails}: a leaf for each rail of each unit")


def _gpu_warnings(networks: dict[str, Network], group: Group, hosts: dict[str, Host]) -> Iterator[str]:
    if group.role != "compute":
        return
    host = hosts[group.hosts[0]]
    ports = _compute_ports(host, networks)
    if not host.gpus:
        return
    if len(ports) < host.gpus:
        yield (
            f"groups.{group.name}: {len(ports)} compute HCAs for {host.gpus} GPUs: GPUs that share an HCA share its "
            "rate; reference designs have one HCA a GPU"
        )
    rates = [networks[nic.network].rate_gbps for nic in ports]
    known = [rate for rate in rates if rate is not None]
    if ports and len(known) == len(rates) and sum(known) / host.gpus < GBPS_PER_GPU:
        yield (
            f"groups.{group.name}: {sum(known) / host.gpus:g} Gb/s a GPU ({len(ports)} HCAs of {known[0]:g} Gb/s for "
            f"{host.gpus} GPUs), under {GBPS_PER_GPU:g}: training of large models will wait for the network"
        )


def settings_of(document: Document) -> dict[str, Any]:
    """Return the section ``fabric`` with its defaults."""
    return {"topology": "single", "planes": 1, **document.data.get("fabric", {})}
