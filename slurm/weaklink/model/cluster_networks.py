"""The networks of a cluster file: ranges that do not overlap, MTUs that fit, one gateway, one management network."""

from __future__ import annotations

from typing import Any

import netaddr

from weaklink.model.cluster_file import Document
from weaklink.model.cluster_types import Network
from weaklink.model.mtu import ROCE_HEADERS

# IPoIB puts 4 bytes before each packet; in datagram mode a packet must fit into one RDMA message of the active MTU.
IPOIB_HEADER = 4


def read(document: Document) -> dict[str, Network]:
    """Return the networks by name, in the order of the file."""
    networks: dict[str, Network] = {}
    ranges: dict[str, netaddr.IPNetwork] = {}
    for name, entry in document.data["networks"].items():
        path = ("networks", name)
        if "cidr" in entry:
            ranges[name] = _range(document, path, entry["cidr"])
            for other, taken in ranges.items():
                if other != name and (ranges[name] in taken or taken in ranges[name]):
                    raise document.error(
                        (*path, "cidr"), f"{entry['cidr']}, which overlaps {other} ({taken})", "separate networks"
                    )
        elif entry.get("transport") != "infiniband" and document.data.get("manage") != "guard":
            raise document.error((*path, "cidr"), "nothing", "a network; only InfiniBand without IPoIB needs none")
        networks[name] = _network(document, name, entry, str(ranges.get(name, "")))
    _one_management(document, networks)
    _one_gateway(document, ranges)
    return networks


def _range(document: Document, path: tuple[Any, ...], cidr: str) -> netaddr.IPNetwork:
    try:
        found = netaddr.IPNetwork(cidr)
    except (netaddr.AddrFormatError, ValueError):
        raise document.error((*path, "cidr"), repr(cidr), "a network such as 10.77.0.0/24") from None
    if found.version != 4 or found.ip != found.network:  # noqa: PLR2004 - the version of IP
        raise document.error((*path, "cidr"), cidr, f"an IPv4 network, e.g. {found.cidr}")
    return found


def _network(document: Document, name: str, entry: dict[str, Any], cidr: str) -> Network:
    path = ("networks", name)
    transport = entry.get("transport", "tcp")
    active: int = entry.get("active_mtu", 4096)
    if transport == "roce" and entry["mtu"] < active + ROCE_HEADERS:
        wanted = f"at least {active + ROCE_HEADERS} for an active MTU of {active} (e.g. 4200 or 9000)"
        raise document.error((*path, "mtu"), str(entry["mtu"]), wanted)
    mode = entry.get("ipoib_mode", "datagram")
    if transport == "infiniband":
        _check_ipoib(document, path, entry, mode, active)
    for key, only in (("ipoib_mode", "infiniband"), ("pkey", "infiniband"), ("qos", "roce")):
        if key in entry and transport != only:
            raise document.error((*path, key), f"{key} with transport {transport}", f"{key} with transport {only} only")
    return Network(
        name=name,
        cidr=cidr,
        role=entry["role"],
        mtu=entry["mtu"],
        transport=transport,
        active_mtu=None if transport == "tcp" and "active_mtu" not in entry else active,
        rate_gbps=entry.get("rate_gbps"),
        gid_type=entry.get("gid_type", "RoCE v2" if transport == "roce" else "IB"),
        vlan=entry.get("vlan"),
        gateway=entry.get("gateway", ""),
        rail_subnets=entry.get("rail_subnets", False),
        ipoib_mode=mode,
        pkey=entry.get("pkey", ""),
        qos=entry.get("qos", {}),
    )


def _check_ipoib(document: Document, path: tuple[Any, ...], entry: dict[str, Any], mode: str, active: int) -> None:
    if mode == "connected" and entry.get("enhanced_ipoib", True):
        wanted = "datagram: NICs with enhanced IPoIB (mlx5) have no connected mode; enhanced_ipoib: false if it is off"
        raise document.error((*path, "ipoib_mode"), "connected", wanted)
    most = active - IPOIB_HEADER
    if mode == "datagram" and "cidr" in entry and entry["mtu"] > most:
        raise document.error((*path, "mtu"), str(entry["mtu"]), f"at most {most}: IPoIB in datagram mode")


def _one_management(document: Document, networks: dict[str, Network]) -> None:
    management = [name for name, network in networks.items() if network.role == "management"]
    if len(management) != 1:
        found = f"{len(management)} networks with role management"
        raise document.error(("networks",), found, "exactly one: Slurm and ssh use it")


def _one_gateway(document: Document, ranges: dict[str, netaddr.IPNetwork]) -> None:
    first = ""
    for name, entry in document.data["networks"].items():
        if "gateway" not in entry:
            continue
        path = ("networks", name, "gateway")
        try:
            gateway = netaddr.IPAddress(entry["gateway"])
        except (netaddr.AddrFormatError, ValueError):
            raise document.error(path, repr(entry["gateway"]), "an address such as 10.77.0.254") from None
        inside = name in ranges and gateway in ranges[name]
        if not inside or gateway in (ranges[name].network, ranges[name].broadcast):
            raise document.error(path, str(gateway), f"an address of hosts in {ranges.get(name, 'its cidr')}")
        if first:
            found = f"a second gateway (the first is in {first})"
            raise document.error(path, found, "one network with a gateway: a node has one default route")
        first = name
