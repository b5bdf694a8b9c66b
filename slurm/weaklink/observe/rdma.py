"""RDMA ports: sysfs for state, rate, GIDs and counters; ``ibv_devinfo`` for the active MTU, which sysfs lacks."""

import re
from collections.abc import Iterator
from typing import Callable, Optional

from weaklink.model.mtu import rdma_mtu
from weaklink.observe.host import Host
from weaklink.observe.records import Gid, RdmaPort

CLASS = "/sys/class/infiniband"
_RATE = re.compile(r"([\d.]+) Gb/sec")
_EMPTY = "0000:0000:0000:0000:0000:0000:0000:0000"


def parse_state(text: Optional[str]) -> Optional[str]:
    """Return ``ACTIVE`` out of sysfs's ``4: ACTIVE``."""
    if not text or ":" not in text:
        return None
    return text.partition(":")[2].strip() or None


def parse_rate(text: Optional[str]) -> Optional[float]:
    """Return Gb/s out of sysfs's ``400 Gb/sec (4X NDR)``."""
    match = _RATE.match(text or "")
    return float(match[1]) if match else None


def parse_devinfo(text: str) -> dict[tuple[str, int], int]:
    """Return the active MTU in bytes by (device, port) out of ``ibv_devinfo``."""
    found: dict[tuple[str, int], int] = {}
    device, port = "", 0
    for line in text.splitlines():
        key, _, value = line.strip().partition(":")
        value = value.strip()
        if key == "hca_id":
            device, port = value, 0
        elif key == "port" and value.isdigit():
            port = int(value)
        elif key == "active_mtu" and device and port:
            words = value.split()
            if words and words[0].isdigit():
                found[device, port] = int(words[0])
    return found


def address_gid(address: str) -> Optional[str]:
    """Return the GID in full form that stands for an IP address ("10.77.1.11", with or without "/24"), or None."""
    plain = address.partition("/")[0]
    parts = plain.split(".")
    if len(parts) == 4 and all(part.isdigit() and int(part) <= 255 for part in parts):  # noqa: PLR2004 - an IPv4 address
        a, b, c, d = (int(part) for part in parts)
        return f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"
    import socket

    try:
        raw = socket.inet_pton(socket.AF_INET6, plain)
    except (OSError, ValueError):
        return None
    return ":".join(raw[index : index + 2].hex() for index in range(0, 16, 2))


def read_gids(host: Host, device: str, port: int) -> Iterator[Gid]:
    """Yield the filled entries of a port's GID table in order of index.

    A table has up to 256 entries, each three files: callers stop at the entry they look for.
    """
    base = f"{CLASS}/{device}/ports/{port}"
    for index in sorted(int(name) for name in host.listdir(f"{base}/gids") if name.isdigit()):
        gid = host.word(f"{base}/gids/{index}")
        if not gid or gid == _EMPTY:
            continue
        kind = host.word(f"{base}/gid_attrs/types/{index}") or ""
        yield Gid(index, gid, kind, host.word(f"{base}/gid_attrs/ndevs/{index}") or "")


def gid_index(host: Host, device: str, address: str, wanted: str, port: int = 1) -> Optional[int]:
    """Return the index of the GID of type ``wanted`` ("RoCE v2") for ``address``, or None when there is none."""
    gid = address_gid(address)
    for entry in read_gids(host, device, port):
        if entry.gid == gid and entry.type == wanted:
            return entry.number
    return None


def read_counters(host: Host, device: str, port: int) -> dict[str, int]:
    """Return the port's counters by name. A counter that a driver does not have is absent: that is no fault."""
    found: dict[str, int] = {}
    for folder in ("counters", "hw_counters"):
        base = f"{CLASS}/{device}/ports/{port}/{folder}"
        for name in host.listdir(base):
            text = host.word(f"{base}/{name}")
            # lifespan is a setting (milliseconds between refreshes), not a counter.
            if name != "lifespan" and text and text.isdigit():
                found.setdefault(name, int(text))
    return found


def devices(host: Host) -> list[str]:
    """Return the RDMA devices by name."""
    return host.listdir(CLASS)


def netdev_of(host: Host, device: str, port: int = 1) -> str:
    """Return the net device under an RDMA device, or an empty string (InfiniBand may have none)."""
    # A software device names its net device itself; for others entry 0 of the GID table does.
    parent = host.word(f"{CLASS}/{device}/parent")
    return parent or host.word(f"{CLASS}/{device}/ports/{port}/gid_attrs/ndevs/0") or ""


def ports_of(host: Host, device: str) -> list[int]:
    """Return a device's port numbers."""
    return sorted(int(name) for name in host.listdir(f"{CLASS}/{device}/ports") if name.isdigit())


def read_port(
    host: Host,
    device: str,
    port: int,
    mtus: dict[tuple[str, int], int],
    netdev_mtu: Optional[int],
    *,
    until: Optional[Callable[[Gid], bool]] = None,
    counters: bool = True,
) -> RdmaPort:
    """Read one port. ``mtus`` is what ibv_devinfo told; ``until`` says at which entry of the GID table to stop."""
    base = f"{CLASS}/{device}/ports/{port}"
    layer = host.word(f"{base}/link_layer")
    mtu, source = mtus.get((device, port)), "ibv_devinfo"
    if mtu is None:
        derived = rdma_mtu(netdev_mtu) if netdev_mtu and layer == "Ethernet" else None
        mtu, source = derived, "the net device's MTU" if derived else ""
    gids = []
    for gid in read_gids(host, device, port):
        gids.append(gid)
        if until is not None and until(gid):
            break
    return RdmaPort(
        device=device,
        port=port,
        netdev=netdev_of(host, device, port),
        state=parse_state(host.word(f"{base}/state")),
        phys_state=parse_state(host.word(f"{base}/phys_state")),
        rate_gbps=parse_rate(host.word(f"{base}/rate")),
        link_layer=layer,
        active_mtu=mtu,
        mtu_source=source,
        gids=tuple(gids),
        counters=read_counters(host, device, port) if counters else {},
    )
