"""A cluster.yml to start from, made of a design: counts and names are right, what only the site knows is marked.

Everything to look at again carries the word PLACEHOLDER; the rest follows from the design. Pure.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple

from weaklink.model.hostlist import expand
from weaklink.model.topology.shape import TREE, HcaName, Names, Shape
from weaklink.plan.request import Design, PlanError

MAX_NODES = 100_000  # names that one host list may hold
MAX_PLANES, MAX_RAILS = 16, 64  # what cluster.schema.json takes
ROCE_MTU, SWITCH_MTU, IPOIB_MTU = 9000, 9216, 4092
_SPARE = 64  # addresses for controllers, storage servers and what comes later
_FIRST = 11  # number of the first compute node in each network


_QOS = (
    "    qos: {trust: dscp, lossless_priority: 3, dscp: 26, cnp_dscp: 48, cnp_priority: 6, pfc: [3],",
    "          pfc_watchdog: true, ecn: true, traffic_class: 106}",
)


class Networks(NamedTuple):
    """The address ranges: management, storage, and compute (None on InfiniBand, which needs no addresses)."""

    management: IPv4Network
    storage: IPv4Network
    compute: IPv4Network | None


def cluster_yml(design: Design, shape: Shape, transport: str) -> str:
    """Return the text of a cluster.yml for ``design``, wired as ``shape``, over ``transport`` (infiniband or roce).

    Raises PlanError where its nodes do not fit one host list or its addresses do not fit 10.0.0.0/8.
    """
    _fits(design, shape)
    hcas = _hcas(shape)
    networks = _networks(design.nodes, len(hcas), transport)
    parts = [
        _head(design, transport),
        _network_part(design, networks, shape.planes),
        _hardware_part(design, hcas),
        _group_part(design, unit_nodes(shape)),
        _fabric_part(design, shape, transport),
        _tail(),
    ]
    return "\n".join(parts)


def _fits(design: Design, shape: Shape) -> None:
    """Refuse what the format of the cluster file cannot say."""
    for key, found, most in (
        ("nodes", design.nodes, MAX_NODES),
        ("planes", design.planes, MAX_PLANES),
        ("gpus_per_node", shape.width, MAX_RAILS),
    ):
        if found > most:
            what = "HCAs of a node in one plane" if key == "gpus_per_node" else key
            raise PlanError(key, f"{found:,}", f"at most {most:,} {what} for a cluster file")


def unit_nodes(shape: Shape) -> int:
    """Return how many nodes in a row share all their leaves, 0 where they do not come in such units."""
    if shape.unit:
        return shape.unit
    if shape.kind == TREE and shape.down % shape.width == 0:
        return shape.down // shape.width
    return 0


def _networks(nodes: int, subnets: int, transport: str) -> Networks:
    """Cut 10.0.0.0/8: management from its start, storage from a quarter, compute from its half."""
    one = _power(nodes + _FIRST + _SPARE)
    compute = one * _power(subnets)
    for wanted, room, start in ((one, 2**22, "10.0.0.0"), (one, 2**22, "10.64.0.0"), (compute, 2**23, "10.128.0.0")):
        if wanted > room and (start != "10.128.0.0" or transport == "roce"):
            raise PlanError("nodes", f"{wanted:,} addresses in a network", f"at most {room:,} from {start}")
    return Networks(
        _range("10.0.0.0", one),
        _range("10.64.0.0", one),
        _range("10.128.0.0", compute) if transport == "roce" else None,
    )


def _power(number: int) -> int:
    """Return the power of two that holds ``number``, at least 2."""
    return 1 << max(1, (number - 1).bit_length())


def _range(start: str, size: int) -> IPv4Network:
    return IPv4Network((IPv4Address(start), 33 - size.bit_length()))


def _hcas(shape: Shape) -> list[HcaName]:
    return [HcaName(f"mlx5_{h}", h // shape.planes, h % shape.planes) for h in range(shape.hcas)]


def fabric_names(design: Design, shape: Shape) -> Names:
    """Return the names that ``cluster_yml`` gives, so that its hosts and switches are those of the cable list."""
    hcas = _hcas(shape)
    return Names(
        nodes=[(name, hcas) for name in expand(names("gpu", design.nodes))],
        switches={tier.number: expand(names(tier.word, tier.size)) for tier in _tiers(design, shape)},
    )


class _Tier(NamedTuple):
    number: int
    word: str
    size: int
    up: int


def _tiers(design: Design, shape: Shape) -> list[_Tier]:
    """The tiers that there are; ``up``: links of a switch to the tier above."""
    if not design.spine:  # what links these switches is no uplink, but for a dragonfly's links to other groups
        return [_Tier(1, "leaf", design.leaf or design.switches, shape.out if shape.groups > 1 else 0)]
    tiers = [_Tier(1, "leaf", design.leaf or 0, shape.up), _Tier(2, "spine", design.spine, shape.out)]
    return [*tiers, _Tier(3, "core", design.core, 0)] if design.core else tiers


def names(word: str, count: int) -> str:
    """Return ``word[001-127]``, as many digits as the last number has; ``word1`` where there is one."""
    return f"{word}1" if count == 1 else f"{word}[{1:0{len(str(count))}}-{count}]"


def _head(design: Design, transport: str) -> str:
    asked = design.request
    return f"""\
---
# Written by weaklink plan config: {design.topology}, {design.nodes} nodes with {asked.gpus_per_node} GPUs, {transport}.
# A start, not a finished file. Look at each line marked PLACEHOLDER, then run: weaklink lint fabric FILE
format: 1
cluster: cluster1 # PLACEHOLDER: your name for it
manage: all # or guard: leave networks and Slurm as they are, install the guard alone
mode: observe # judge and log, touch nothing; enforce once the findings are ones that you trust
"""


def _network_part(design: Design, networks: Networks, planes: int) -> str:
    rate = f"    rate_gbps: {design.request.rate_gbps:g}"
    lines = [
        "# PLACEHOLDER: all address ranges. They are cut from 10.0.0.0/8, wide enough for the nodes and some more.",
        "networks:",
        f"  management: {{cidr: {networks.management}, role: management, mtu: 1500}}",
    ]
    if networks.compute is None:
        lines += [
            "  compute: # no addresses: RDMA over InfiniBand needs none; add a cidr for IPoIB",
            "    role: compute",
            "    transport: infiniband",
            f"    mtu: {IPOIB_MTU} # of an IPoIB interface",
            "    active_mtu: 4096",
            rate,
        ]
    else:
        lines += [
            "  compute:",
            "    role: compute",
            "    transport: roce",
            f"    cidr: {networks.compute}",
            *(["    rail_subnets: true # one subnet a rail, cut evenly from cidr"] if planes == 1 else []),
            f"    mtu: {ROCE_MTU} # RDMA of 4096 bytes needs at least 4192; the switches must take more than this",
            "    active_mtu: 4096",
            rate,
            "    # PLACEHOLDER: the one lossless priority. Hosts and switches must have the same; DSCP 26 with ECN is",
            "    # traffic class 26 x 4 + 2 = 106.",
            *_QOS,
        ]
    lines += [
        "  # PLACEHOLDER: rate and QoS; where storage does not speak RDMA: transport: tcp, and no rdma on its NICs.",
        "  storage:",
        "    role: storage",
        "    transport: roce",
        f"    cidr: {networks.storage}",
        f"    mtu: {ROCE_MTU}",
        "    active_mtu: 4096",
        "    rate_gbps: 200",
        *_QOS,
    ]
    return "\n".join(lines) + "\n"


def _hardware_part(design: Design, hcas: list[HcaName]) -> str:
    lines = [
        "# PLACEHOLDER: every PCI address, device name, cpus and memory_mb. On a node: lspci -D | grep -i mellanox,",
        "# and weaklink observe --json. Instead of pci a NIC may say position: N, the N-th of the machine from 0.",
        "hardware:",
        "  gpu_node:",
        f"    gpus: {design.request.gpus_per_node}",
        "    cpus: 128 # PLACEHOLDER",
        "    memory_mb: 1000000 # PLACEHOLDER",
        "    nics:",
    ]
    for index, port in enumerate(hcas):
        lines.append(
            f'      - {{network: compute, pci: "{_pci(0x10 + index)}", rail: {port.rail}, '
            f"plane: {port.plane}, rdma: {{device: mlx5_{index}, kind: hca}}}} # PLACEHOLDER"
        )
    last, device = 0x10 + len(hcas), f"mlx5_{len(hcas)}"
    lines += [
        f'      - {{network: storage, pci: "{_pci(last)}", rdma: {{device: {device}, kind: hca}}}} # PLACEHOLDER',
        f'      - {{network: management, pci: "{_pci(last + 1)}"}} # PLACEHOLDER',
    ]
    return "\n".join(lines) + "\n"


def _pci(bus: int) -> str:
    return f"{bus >> 8:04x}:{bus & 0xFF:02x}:00.0"


def _group_part(design: Design, unit: int) -> str:
    share = f"    su_nodes: {unit} # so many nodes in a row share their leaves\n" if unit else ""
    return f"""\
groups:
  controller:
    role: controller
    hosts: ctl1
    first_address: 1
    nics:
      - {{network: management, pci: "0000:01:00.0"}} # PLACEHOLDER
      - {{network: storage, pci: "0000:02:00.0"}} # PLACEHOLDER
  gpu:
    role: compute
    hosts: "{names("gpu", design.nodes)}"
    hardware: gpu_node
    first_address: {_FIRST}
{share}"""


def _fabric_part(design: Design, shape: Shape, transport: str) -> str:
    pods = f", groups: {shape.groups}" if shape.groups > 1 else ""
    lines = [f"fabric: {{topology: {design.topology}, planes: {design.planes}{pods}}}", ""]
    also = ""
    if transport == "roce":
        lines.append("# PLACEHOLDER: mtu and qos as the switches have them; the same priority as on the hosts.")
        also = f",\n    mtu: {SWITCH_MTU}, qos: {{pfc: [3], pfc_watchdog: true, ecn: true, trust: dscp}}"
    lines.append("switches:")
    lines += [
        f'  {tier.word}: {{names: "{names(tier.word, tier.size)}", network: compute, tier: {tier.number}, '
        f"ports: {design.request.radix}, uplinks: {tier.up}{_downlinks(shape, tier)}{also}}}"
        for tier in _tiers(design, shape)
    ]
    return "\n".join(lines) + "\n"


def _downlinks(shape: Shape, tier: _Tier) -> str:
    """A leaf's ports for end points, where they are not all that are no uplinks."""
    return f", downlinks: {shape.down}" if tier.number == 1 and shape.down != shape.radix - tier.up else ""


def _tail() -> str:
    return """\
# PLACEHOLDER: what every compute node mounts; server is a host of this file or an address.
# mounts:
#   - {path: /home, type: nfs, server: 10.64.0.2, export: /home, network: storage, transport: rdma}

slurm: {topology: tree}
partitions:
  main: {groups: [gpu], default: true, max_time: "1-00:00:00"}
"""
