"""Find a NIC by its PCI address, and read what the kernel says of it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from weaklink.apply.host import CommandError, Host
from weaklink.observe.netdev import by_position

_PCI = "/sys/bus/pci/devices"


class Link(NamedTuple):
    """An interface now: name, MTU in bytes, global IPv4 addresses with prefix length, administrative state."""

    netdev: str
    mtu: int
    addresses: tuple[str, ...]
    up: bool


def netdev(host: Host, pci: str) -> str:
    """Return the interface of the NIC at ``pci`` ("0000:00:11.0"), empty where there is none.

    An Ethernet driver puts it right below the PCI device, virtio one level deeper.
    """
    base = f"{_PCI}/{pci}"
    for folder in (f"{base}/net", *(f"{base}/{name}/net" for name in host.list(base) if name.startswith("virtio"))):
        names = host.list(folder)
        if names:
            return names[0]
    return ""


def placed(host: Host, desired: dict[str, Any]) -> dict[str, Any]:
    """Return ``desired`` with the PCI addresses of NICs that it names by position (``#3``)."""

    def resolve(entry: Any) -> Any:
        if isinstance(entry, str):
            return by_position(host.list, entry)
        return {**entry, "pci": by_position(host.list, entry["pci"])} if "pci" in entry else entry

    found = dict(desired)
    for key in ("links", "nics", "pci"):
        if key in desired:
            found[key] = [resolve(entry) for entry in desired[key]]
    return found


def links(host: Host) -> dict[str, Link]:
    """Return every interface by name."""
    try:
        rows: list[dict[str, Any]] = json.loads(host.must("ip", "-json", "address", "show"))
    except ValueError as error:
        raise CommandError(f"ip -json address show: no JSON ({error})") from error
    found = {}
    for row in rows:
        if not row.get("ifname"):
            continue
        addresses = tuple(
            f"{address['local']}/{address['prefixlen']}"
            for address in row.get("addr_info", [])
            if address.get("family") == "inet" and address.get("scope") == "global"
        )
        found[row["ifname"]] = Link(row["ifname"], int(row.get("mtu", 0)), addresses, "UP" in row.get("flags", []))
    return found
