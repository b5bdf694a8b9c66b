"""Fat trees of one, two and three tiers: every leaf has as many links to each spine of its pod as any other."""

from weaklink.model.topology.shape import Shape
from weaklink.model.topology.wiring import Wiring


def wire(wiring: Wiring, plane: int) -> list[str]:
    """Lay the switches and their links of one plane; return the leaves.

    Port order: a leaf has its end points first, then its uplinks, spine after spine; a spine its leaves, then its
    cores. Spine number s of every pod shares the cores of column s, so that two pods are joined evenly through any.
    """
    shape = wiring.shape
    tiered = bool(shape.cores)
    leaves = [
        wiring.switch(f"leaf{leaf + 1}", 1, plane, shape.pod(leaf) if tiered else None) for leaf in range(shape.leaves)
    ]
    if not shape.spines:
        return leaves
    wide = shape.up // shape.spines
    column = shape.cores // shape.spines
    spines = [
        [
            wiring.switch(f"spine{pod * shape.spines + spine + 1}", 2, plane, pod if tiered else None)
            for spine in range(shape.spines)
        ]
        for pod in range(shape.groups)
    ]
    cores = wiring.row("core", shape.cores, 3, plane)
    for pod in range(shape.groups):
        members = shape.pod_leaves(pod)
        for place, leaf in enumerate(members):
            for spine, name in enumerate(spines[pod]):
                wiring.bundle(leaves[leaf], shape.down + spine * wide + 1, name, place * wide + 1, wide)
        for spine, name in enumerate(spines[pod]):
            _to_cores(wiring, name, cores[spine * column : (spine + 1) * column], pod)
    return leaves


def _to_cores(wiring: Wiring, spine: str, cores: list[str], pod: int) -> None:
    """Spread the uplinks of one spine over its column of cores."""
    if not cores:
        return
    shape: Shape = wiring.shape
    wide = shape.out // len(cores)
    first = -(-shape.leaves // shape.groups) * (shape.up // shape.spines) + 1
    for index, core in enumerate(cores):
        wiring.bundle(spine, first + index * wide, core, pod * wide + 1, wide)
