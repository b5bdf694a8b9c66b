"""Dragonfly, dragonfly+ and hypercube: switches linked to their like.

Every two groups have the same number of links, or one more. A group's places for links to other groups are numbered;
place n belongs to router (or spine) n // out. What is left after the same number to each other group goes to the
nearest groups on both sides of a ring of all groups, so that every place is used.
"""

from collections.abc import Iterator

from weaklink.model.topology.shape import DRAGONFLY_PLUS, Shape
from weaklink.model.topology.wiring import Wiring


def places(shape: Shape, distance: int) -> Iterator[int]:
    """Places of a group whose links go to the group ``distance`` further round the ring (1 … groups - 1)."""
    others = shape.groups - 1
    even, left = divmod(shape.group_out, others)
    for copy in range(even):
        yield copy * others + distance - 1
    pairs = left // 2
    if distance <= pairs:
        yield even * others + 2 * (distance - 1)
    elif shape.groups - distance <= pairs:
        yield even * others + 2 * (shape.groups - distance - 1) + 1
    elif left % 2 and 2 * distance == shape.groups:
        yield even * others + left - 1


def global_links(shape: Shape) -> int:
    """Links between groups of one plane: all places, but for one that an odd sum leaves over in every group."""
    if shape.groups == 1:
        return 0
    return shape.groups * sum(1 for distance in range(1, shape.groups) for _ in places(shape, distance)) // 2


def wire_groups(wiring: Wiring, plane: int) -> list[str]:
    """Lay a dragonfly or dragonfly+ plane; return the switches that take end points, group after group."""
    shape = wiring.shape
    plus = shape.kind == DRAGONFLY_PLUS
    taking: list[str] = []
    reaching: list[list[str]] = []
    for group in range(shape.groups):
        word = f"g{group + 1}-{'leaf' if plus else 'router'}"
        leaves = wiring.row(word, shape.leaves, 1, plane, group)
        taking += leaves
        if plus:
            spines = wiring.row(f"g{group + 1}-spine", shape.spines, 2, plane, group)
            wide = shape.up // shape.spines
            for index, leaf in enumerate(leaves):
                for spine, name in enumerate(spines):
                    wiring.bundle(leaf, shape.down + spine * wide + 1, name, index * wide + 1, wide)
            reaching.append(spines)
        else:
            for index, one in enumerate(leaves):
                for other in range(index + 1, shape.leaves):
                    wiring.join(one, shape.down + other, leaves[other], shape.down + index + 1)
            reaching.append(leaves)
    _between(wiring, reaching)
    return taking


def _between(wiring: Wiring, reaching: list[list[str]]) -> None:
    shape = wiring.shape
    first = shape.leaves * (shape.up // shape.spines) if shape.spines else shape.down + shape.up
    for group in range(shape.groups):
        for other in range(group + 1, shape.groups):
            distance = other - group
            pairs = zip(places(shape, distance), places(shape, shape.groups - distance))
            for here, there in pairs:
                wiring.join(
                    reaching[group][here // shape.out],
                    first + here % shape.out + 1,
                    reaching[other][there // shape.out],
                    first + there % shape.out + 1,
                )


def wire_cube(wiring: Wiring, plane: int) -> list[str]:
    """Lay a hypercube: one router a node, linked to those whose number differs in one bit; return the routers."""
    shape = wiring.shape
    routers = wiring.row("router", shape.leaves, 1, plane)
    for index, router in enumerate(routers):
        for bit in range(shape.up):
            other = index ^ 1 << bit
            if index < other:
                port = shape.down + bit + 1
                wiring.join(router, port, routers[other], port)
    return routers
