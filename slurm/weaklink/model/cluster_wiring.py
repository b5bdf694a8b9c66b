"""The compute network's fabric out of a cluster file: which HCA on which leaf, which leaf on which spine. Pure.

Switches and HCAs have the file's own names; ports are numbered as the planner wires them. What it says of cables is the
intended wiring: compare it with what LLDP or ibnetdiscover see before you believe it of a port.
"""

from __future__ import annotations

from weaklink.model.cluster_types import Cluster, Host, SwitchGroup
from weaklink.model.fabric import Fabric, FabricError
from weaklink.model.topology import HcaName, Names, Shape, build
from weaklink.model.topology.shape import TREE

_TREES = ("single", "fat-tree", "rail", "multi-plane")


def fabric_of(cluster: Cluster) -> Fabric:
    """Return the fabric of the compute network. FabricError (place, found, wanted) where the file does not tell it."""
    network = next((name for name, entry in cluster.networks.items() if entry.role == "compute"), "")
    topology = cluster.fabric["topology"]
    if topology not in _TREES:
        raise FabricError("fabric.topology", topology, f"{', '.join(_TREES)}: other wirings cannot be told from counts")
    tiers = [[g for g in cluster.switches.values() if g.network == network and g.tier == tier] for tier in (1, 2, 3)]
    if not tiers[0]:
        raise FabricError("switches", "none in the compute network", "its leaves: names, tier 1, ports")
    if tiers[2]:
        raise FabricError("switches", "three tiers", "at most two: pods cannot be told from counts; see weaklink plan")
    leaf, spine = _one(tiers[0]), _one(tiers[1]) if tiers[1] else None
    nodes = [(host.name, _hcas(host, network)) for host in cluster.compute]
    nodes = [(name, hcas) for name, hcas in nodes if hcas]
    counts = {len(hcas) for _, hcas in nodes}
    if len(counts) != 1:
        raise FabricError("groups", f"nodes with {sorted(counts)} compute HCAs", "one number of them")
    planes = max(hca.plane for _, hcas in nodes for hca in hcas) + 1
    shape = Shape(
        kind=TREE,
        nodes=len(nodes),
        hcas=counts.pop(),
        radix=leaf.ports,
        down=leaf.ports - leaf.uplinks,
        leaves=_share("leaves", leaf, planes),
        up=leaf.uplinks if spine else 0,
        spines=_share("spines", spine, planes) if spine else 0,
        planes=planes,
        unit=_unit(cluster) if topology == "rail" else 0,
        gbps=cluster.networks[network].rate_gbps or 0.0,
    )
    if shape.spines and shape.up % shape.spines:
        found = f"{shape.up} uplinks of a leaf for {shape.spines} spines"
        raise FabricError(f"switches.{leaf.name}.uplinks", found, "a multiple of the spines: each leaf as many to each")
    switches = {1: leaf.names, **({2: spine.names} if spine else {})}
    return build(shape, Names(nodes, switches))


def _one(groups: list[SwitchGroup]) -> SwitchGroup:
    if len(groups) > 1:
        found = " and ".join(group.name for group in groups)
        raise FabricError("switches", f"{found} in one tier", "one group of switches a tier")
    return groups[0]


def _share(what: str, group: SwitchGroup, planes: int) -> int:
    if len(group.names) % planes:
        raise FabricError(
            f"switches.{group.name}.names", f"{len(group.names)} {what}", f"as many in each of {planes} planes"
        )
    return len(group.names) // planes


def _hcas(host: Host, network: str) -> list[HcaName]:
    return [
        HcaName(nic.rdma_device, nic.rail, nic.plane)
        for nic in host.nics
        if nic.network == network and nic.rdma_device is not None
    ]


def _unit(cluster: Cluster) -> int:
    """Return the nodes of a scalable unit; all but the last must be full, since leaves are counted off by units."""
    sizes: dict[str, int] = {}
    for host in cluster.compute:
        sizes[host.leaf] = sizes.get(host.leaf, 0) + 1
    units = list(sizes.values())
    if any(size != units[0] for size in units[:-1]) or units[-1] > units[0]:
        raise FabricError(
            "groups", f"units of {', '.join(map(str, units))} nodes", "units of one size, the last may be smaller"
        )
    return units[0]
