"""The lab as numbers and names: nodes, addresses, NICs, interface names. Pure.

Three networks stand for the three of a real cluster. Every node has one NIC in each, at a fixed PCI address, so that
the guest's names are the same everywhere: management enp0s16, compute enp0s17, storage enp0s18.
"""

from __future__ import annotations

from typing import NamedTuple

from .errors import LabError

NAMESPACE = "weaklink-lab"
RUN_DIR = "/run/weaklink-lab"
JUMBO_MTU = 4200  # bytes; the smallest round number over the RoCE MTU 4096 plus its headers
SWITCH_ADDRESS = "10.77.0.254"
MAX_COMPUTE = 8
DEFAULT_COMPUTE = 3


class Network(NamedTuple):
    """One of the lab's networks: its name, bridge, third byte of its addresses, PCI slot of its NICs, MTU in bytes."""

    name: str
    bridge: str
    octet: int
    slot: int
    mtu: int


MANAGEMENT = Network("mgmt", "br-mgmt", 0, 0x10, 1500)
COMPUTE = Network("compute", "br-compute", 1, 0x11, JUMBO_MTU)
STORAGE = Network("storage", "br-storage", 2, 0x12, JUMBO_MTU)
NETWORKS = (MANAGEMENT, COMPUTE, STORAGE)


class Node(NamedTuple):
    """One virtual machine: its host name, its number (last byte of its addresses), memory in MiB, virtual CPUs."""

    name: str
    number: int
    memory: int
    cpus: int

    def address(self, network: Network = MANAGEMENT) -> str:
        """Return the node's IPv4 address in ``network``."""
        return f"10.77.{network.octet}.{self.number}"

    def mac(self, network: Network) -> str:
        """Return the hardware address of the node's NIC in ``network``."""
        return f"52:54:00:{network.octet:02x}:00:{self.number:02x}"

    def tap(self, network: Network) -> str:
        """Return the name of the host's end of the cable: the switch port."""
        return f"t{self.number}-{network.name}"

    @property
    def machine_id(self) -> str:
        """The node's fixed /etc/machine-id: 32 hex digits."""
        return f"{0x77:08x}{self.number:024x}"


def network(name: str) -> Network:
    """Return the network called ``name``; a LabError where there is none."""
    for candidate in NETWORKS:
        if candidate.name == name:
            return candidate
    raise LabError("no such network", found=name, wanted=", ".join(entry.name for entry in NETWORKS))


def parse_compute(text: str | None) -> int:
    """Return the number of compute nodes that LAB_COMPUTE asks for: 1 to 8, 3 where it is unset or empty."""
    if not text:
        return DEFAULT_COMPUTE
    wanted = f"a number from 1 to {MAX_COMPUTE}"
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_COMPUTE:
        raise LabError("LAB_COMPUTE is not usable", found=repr(text), wanted=wanted, todo="e.g. LAB_COMPUTE=3")
    return int(text)


def nodes(compute: int, controller_memory: int = 1280, compute_memory: int = 640) -> tuple[Node, ...]:
    """Return the lab's nodes: the controller and ``compute`` compute nodes; memory in MiB."""
    if not 1 <= compute <= MAX_COMPUTE:
        raise LabError("bad number of compute nodes", found=str(compute), wanted=f"1 to {MAX_COMPUTE}")
    controller = Node("ctl", 1, controller_memory, 1)
    return (controller, *(Node(f"c{i}", 10 + i, compute_memory, 1) for i in range(1, compute + 1)))


def hosts_file() -> str:
    """Return /etc/hosts of every node: the lab's stand-in for DNS, on management addresses."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    lines += [f"{node.address()} {node.name}" for node in nodes(MAX_COMPUTE)]
    return "\n".join(lines) + "\n"
