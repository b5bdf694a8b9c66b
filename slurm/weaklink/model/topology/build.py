"""Every link of a fabric, from its shape. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Optional

from weaklink.model.fabric import Fabric, FabricError, Hca, Node
from weaklink.model.topology.groups import wire_cube, wire_groups
from weaklink.model.topology.shape import (
    DRAGONFLY,
    DRAGONFLY_PLUS,
    HYPERCUBE,
    TREE,
    HcaName,
    Names,
    Shape,
    leaf_of_each,
)
from weaklink.model.topology.tree import wire
from weaklink.model.topology.wiring import Wiring

_WIRES: Mapping[str, Callable[[Wiring, int], list[str]]] = {
    TREE: wire,
    DRAGONFLY: wire_groups,
    DRAGONFLY_PLUS: wire_groups,
    HYPERCUBE: wire_cube,
}


def build(shape: Shape, names: Optional[Names] = None) -> Fabric:
    """Return the fabric of ``shape``, host links first; routing unknown.

    Own ``names`` must name as many nodes, HCAs by plane, and switches as the shape has: FabricError otherwise. A node
    without GPUs gets a name of its own (extra1 …).
    """
    nodes = _named(shape, names)
    wiring = Wiring(shape, names)
    plugged: dict[str, tuple[str, int]] = {}
    for plane in range(shape.planes):
        leaves = _WIRES[shape.kind](wiring, plane)
        used = [0] * len(leaves)
        for end, leaf in zip(_ends(nodes, plane), leaf_of_each(shape, plane)):
            used[leaf] += 1
            plugged[end] = (leaves[leaf], used[leaf])
    wiring.names_left()
    between = wiring.links
    wiring.links = []
    for end, (name, port) in plugged.items():
        wiring.plug(end, name, port)
    return Fabric((_plugged(node, plugged) for node in nodes), wiring.switches, wiring.links + between)


def _ends(nodes: Sequence[Node], plane: int) -> list[str]:
    """The end points of a plane in the order in which ``leaf_of_each`` places them."""
    return [
        f"{node.name}/{hca.name}"
        for node in nodes
        for hca in sorted(node.hcas, key=lambda hca: hca.rail)
        if hca.plane == plane
    ]


def _plugged(node: Node, plugged: Mapping[str, tuple[str, int]]) -> Node:
    hcas = []
    for hca in node.hcas:
        leaf, port = plugged[f"{node.name}/{hca.name}"]
        hcas.append(hca._replace(leaf=leaf, port=port))
    return node._replace(hcas=tuple(hcas))


def _named(shape: Shape, names: Optional[Names]) -> list[Node]:
    if names is None:
        planes = shape.planes
        hcas = tuple(Hca(f"mlx5_{index}", index // planes, index % planes, None, None) for index in range(shape.hcas))
        nodes = [Node(f"n{index + 1}", hcas) for index in range(shape.nodes)]
    else:
        if len(names.nodes) != shape.nodes:
            raise FabricError("names of nodes", str(len(names.nodes)), str(shape.nodes))
        nodes = [Node(name, tuple(_own(shape, name, hcas))) for name, hcas in names.nodes]
    for index in range(shape.extra):
        nodes.append(Node(f"extra{index + 1}", (Hca("mlx5_0", 0, index % shape.planes, None, None),), extra=True))
    return nodes


def _own(shape: Shape, node: str, hcas: Sequence[HcaName]) -> list[Hca]:
    for plane in range(shape.planes):
        rails = [hca.rail for hca in hcas if hca.plane == plane]
        if len(rails) != shape.width or len(set(rails)) != len(rails):
            raise FabricError(
                f"names of {node}", f"HCAs of rails {rails} in plane {plane}", f"{shape.width} of different rails"
            )
    if len(hcas) != shape.hcas:
        raise FabricError(f"names of {node}", f"{len(hcas)} HCAs", f"{shape.hcas}, in planes 0 to {shape.planes - 1}")
    return [Hca(hca.name, hca.rail, hca.plane, None, None) for hca in hcas]
