"""Network devices: found by PCI address, read from sysfs; addresses from ``ip -j addr``."""

import json
from typing import Callable, Optional

from weaklink.observe.host import Host
from weaklink.observe.records import Netdev

PCI = "/sys/bus/pci/devices"


def netdevs_of(host: Host, pci: str) -> list[str]:
    """Return the net devices of a PCI function, also those of a virtio device on it."""
    base = f"{PCI}/{pci}"
    names = host.listdir(f"{base}/net")
    for name in host.listdir(base):
        if name.startswith("virtio"):
            names += host.listdir(f"{base}/{name}/net")
    return names


def by_position(listdir: Callable[[str], list[str]], place: str) -> str:
    """Return the PCI address of ``place``: itself, or for ``#N`` that of the machine's N-th NIC in PCI order (from 0).

    Functions with a net or RDMA device count, virtual ones do not. A place that is not there stays as it is written.
    """
    if not place.startswith("#"):
        return place
    found = []
    for pci in sorted(listdir(PCI)):
        inside = listdir(f"{PCI}/{pci}")
        nic = "net" in inside or "infiniband" in inside or any(name.startswith("virtio") for name in inside)
        if nic and "physfn" not in inside:
            virtio = [name for name in inside if name.startswith("virtio")]
            if not virtio or any("net" in listdir(f"{PCI}/{pci}/{name}") for name in virtio):
                found.append(pci)
    number = int(place[1:]) if place[1:].isdigit() else len(found)
    return found[number] if number < len(found) else place


def nic_addresses(host: Host) -> list[str]:
    """Return the PCI addresses of all functions with a net device."""
    return [pci for pci in host.listdir(PCI) if netdevs_of(host, pci)]


def read_netdev(host: Host, name: str) -> Netdev:
    """Read one net device."""
    base = f"/sys/class/net/{name}"
    mtu, carrier = host.word(f"{base}/mtu"), host.word(f"{base}/carrier")
    return Netdev(
        name=name,
        mtu=int(mtu) if mtu and mtu.isdigit() else None,
        operstate=host.word(f"{base}/operstate"),
        carrier={"0": False, "1": True}.get(carrier or ""),
    )


def parse_addresses(text: str) -> Optional[dict[str, tuple[str, ...]]]:
    """Return the addresses ("10.77.1.11/24") by net device out of ``ip -j addr show``; None when it does not parse."""
    try:
        links = json.loads(text)
        return {
            str(link["ifname"]): tuple(f"{entry['local']}/{entry['prefixlen']}" for entry in link.get("addr_info", []))
            for link in links
            if link  # older versions print empty objects for what a filter left out
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
