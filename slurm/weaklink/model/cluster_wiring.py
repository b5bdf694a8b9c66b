"""The compute network's fabric out of a cluster file: which HCA on which leaf, which leaf on which spine. Pure.

Switches and HCAs have the file's own names; ports are numbered as the planner wires them. What it says of cables is the
intended wiring: compare it with what LLDP or ibnetdiscover see before you believe it of a port.
"""

from __future__ import annotations

from collections.abc import Sequence

from weaklink.model.cluster_types import Cluster, Host, SwitchGroup
from weaklink.model.fabric import Fabric, FabricError
from weaklink.model.topology import HcaName, Names, Shape, build
from weaklink.model.topology.shape import DRAGONFLY, DRAGONFLY_PLUS, HYPERCUBE, TREE

_KINDS = {"dragonfly": DRAGONFLY, "dragonfly+": DRAGONFLY_PLUS, "hypercube": HYPERCUBE}


def fabric_of(cluster: Cluster) -> Fabric:
    """Return the fabric of the compute network. FabricError (place, found, wanted) where the file does not tell it."""
    network = next((name for name, entry in cluster.networks.items() if entry.role == "compute"), "")
    tiers = _tiers(cluster, network)
    nodes = [(host.name, _hcas(host, network)) for host in cluster.compute]
    nodes = [(name, hcas) for name, hcas in nodes if hcas]
    counts = {len(hcas) for _, hcas in nodes}
    if len(counts) != 1:
        raise FabricError("groups", f"nodes with {sorted(counts)} compute HCAs", "one number of them")
    leaf = tiers[0]
    planes = max(hca.plane for _, hcas in nodes for hca in hcas) + 1
    kind = _KINDS.get(cluster.fabric["topology"], TREE)
    base = Shape(
        kind=kind,
        nodes=len(nodes),
        hcas=counts.pop(),
        radix=leaf.ports,
        down=leaf.places,
        leaves=_share(leaf, planes, "planes"),
        groups=cluster.fabric.get("groups", 1),
        planes=planes,
        gbps=cluster.networks[network].rate_gbps or 0.0,
    )
    if kind == HYPERCUBE:
        shape = _cube(base, leaf)
    elif kind == TREE:
        unit = _unit(cluster) if cluster.fabric["topology"] == "rail" else 0
        shape = _tree(base._replace(unit=unit), tiers)
    else:
        shape = _groups(base, tiers)
    return build(shape, Names(nodes, {tier: group.names for tier, group in enumerate(tiers, 1)}))


def _tiers(cluster: Cluster, network: str) -> list[SwitchGroup]:
    """Return the group of switches of each tier, from the leaves up."""
    found = []
    for tier in (1, 2, 3):
        groups = [group for group in cluster.switches.values() if group.network == network and group.tier == tier]
        if len(groups) > 1:
            names = " and ".join(group.name for group in groups)
            raise FabricError("switches", f"{names} in one tier", "one group of switches a tier")
        found += groups
    if not found:
        raise FabricError("switches", "none in the compute network", "its leaves: names, tier 1, ports")
    return found


def _share(group: SwitchGroup, parts: int, what: str) -> int:
    if len(group.names) % parts:
        raise FabricError(
            f"switches.{group.name}.names", f"{len(group.names)} switches", f"as many in each of {parts} {what}"
        )
    return len(group.names) // parts


def _tree(base: Shape, tiers: Sequence[SwitchGroup]) -> Shape:
    """Two tiers are one pod; three need the number of pods."""
    if len(tiers) == 1:
        return base._replace(groups=1)
    leaf, spine = tiers[0], tiers[1]
    pods = base.groups if len(tiers) > 2 else 1  # noqa: PLR2004 - leaves and spines alone
    if len(tiers) > 2 and pods == 1:  # noqa: PLR2004 - leaves and spines alone
        raise FabricError("fabric.groups", "three tiers in one pod", "how many pods share the leaves and spines evenly")
    if pods > base.leaves:
        raise FabricError("fabric.groups", f"{pods} pods of {base.leaves} leaves", "at most a pod for each leaf")
    shape = base._replace(groups=pods, up=leaf.uplinks, spines=_share(spine, base.planes * pods, "pods of all planes"))
    _evenly(leaf, shape.spines, "spines")
    below = -(-shape.leaves // pods) * (shape.up // shape.spines)
    if len(tiers) > 2:  # noqa: PLR2004 - leaves and spines alone
        core = tiers[2]
        column = _share(core, base.planes * shape.spines, "columns, one for each spine of a pod")
        shape = shape._replace(out=spine.uplinks, cores=column * shape.spines)
        _evenly(spine, column, "cores of its column")
        _fits(core, pods * (spine.uplinks // column))
    _fits(spine, below + shape.out)
    return shape


def _groups(base: Shape, tiers: Sequence[SwitchGroup]) -> Shape:
    """A dragonfly's routers and a dragonfly+'s spines say by ``uplinks`` how many links each has to other groups."""
    leaf = tiers[0]
    shape = base._replace(leaves=_share(leaf, base.planes * base.groups, "groups of all planes"))
    if shape.kind == DRAGONFLY:
        shape = shape._replace(up=shape.leaves - 1, out=leaf.uplinks)
        reaching, near = leaf, shape.up
        down = leaf.downlinks if leaf.downlinks is not None else leaf.ports - shape.up - shape.out
        _fits(leaf, max(down, 1) + shape.up + shape.out)
        shape = shape._replace(down=down)
    else:
        if len(tiers) == 1:
            raise FabricError("switches", "one tier", "leaves and spines of a dragonfly+")
        reaching = tiers[1]
        spines = _share(reaching, base.planes * base.groups, "groups of all planes")
        shape = shape._replace(up=leaf.uplinks, spines=spines, out=reaching.uplinks)
        _evenly(leaf, spines, "spines of its group")
        near = shape.leaves * (shape.up // spines)
    _fits(reaching, near + shape.out)
    if shape.group_out < shape.groups - 1:
        found = f"{shape.group_out} links of a group to {shape.groups - 1} others"
        raise FabricError(f"switches.{reaching.name}.uplinks", found, "a link to each other group")
    _room(shape, leaf)
    return shape


def _cube(base: Shape, leaf: SwitchGroup) -> Shape:
    bits = base.leaves.bit_length() - 1
    if 1 << bits != base.leaves or base.leaves != base.nodes:
        found = f"{base.leaves} routers for {base.nodes} nodes"
        raise FabricError(f"switches.{leaf.name}.names", found, "a power of two of nodes, and a router for each")
    down = leaf.downlinks if leaf.downlinks is not None else leaf.ports - bits
    _fits(leaf, max(down, base.width) + bits)
    return base._replace(up=bits, down=max(down, base.width), groups=1)


def _evenly(group: SwitchGroup, above: int, what: str) -> None:
    if group.uplinks % above or not group.uplinks:
        found = f"{group.uplinks} uplinks of a {group.name} for {above} {what}"
        raise FabricError(f"switches.{group.name}.uplinks", found, "a multiple: as many links to each")


def _fits(group: SwitchGroup, used: int) -> None:
    if used > group.ports:
        raise FabricError(
            f"switches.{group.name}.ports", f"{group.ports} a switch", f"at least the {used} that are used"
        )


def _room(shape: Shape, leaf: SwitchGroup) -> None:
    ends = -(-shape.endpoints_in(0) // shape.all_leaves)
    if ends > shape.down:
        found = f"{shape.down} ports of a switch for end points"
        raise FabricError(f"switches.{leaf.name}.downlinks", found, f"at least {ends}: they are spread evenly")


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
