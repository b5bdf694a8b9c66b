"""The few numbers that say how a fabric is wired, and which leaf each end point goes to. Pure."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

TREE, DRAGONFLY, DRAGONFLY_PLUS, HYPERCUBE = "tree", "dragonfly", "dragonfly+", "hypercube"


class Shape(NamedTuple):
    """How a fabric is wired; counts are of one plane, all planes are alike.

    A node has ``hcas`` HCAs; HCA h is in plane h % ``planes`` and has rail h // ``planes`` there. ``extra`` single
    end points without GPUs are dealt over the planes. A leaf takes ``down`` end points and has ``up`` links to the
    tier above, to the other switches of its group (dragonfly) or to its neighbours (hypercube).

    tree: ``leaves`` in all, spread over ``groups`` pods; ``spines`` a pod, each with ``out`` links to ``cores``.
    One pod and no cores: two tiers. No spines: one leaf alone. ``unit``: nodes of a scalable unit, whose rail r goes
    to leaf r of the unit; 0 fills leaf after leaf, node by node.
    dragonfly: ``groups`` of ``leaves`` routers with ``out`` links each to other groups. dragonfly+: ``groups`` of
    ``leaves`` and ``spines``, each spine with ``out`` links to other groups. hypercube: 2**up leaves, one a node.
    """

    kind: str
    nodes: int
    hcas: int
    radix: int
    down: int
    leaves: int
    up: int = 0
    spines: int = 0
    out: int = 0
    cores: int = 0
    groups: int = 1
    planes: int = 1
    extra: int = 0
    unit: int = 0
    gbps: float = 400.0

    @property
    def width(self) -> int:
        """HCAs of a node in one plane."""
        return self.hcas // self.planes

    @property
    def all_leaves(self) -> int:
        """Leaves (or routers) of a plane."""
        return self.leaves * (self.groups if self.kind in {DRAGONFLY, DRAGONFLY_PLUS} else 1)

    @property
    def group_out(self) -> int:
        """Links of a group to other groups."""
        return self.out * (self.spines or self.leaves)

    def extra_in(self, plane: int) -> int:
        """End points without GPUs in ``plane``."""
        return self.extra // self.planes + (plane < self.extra % self.planes)

    def endpoints_in(self, plane: int) -> int:
        """End points of ``plane``, those without GPUs among them."""
        return self.nodes * self.width + self.extra_in(plane)

    def pod(self, leaf: int) -> int:
        """The pod of a leaf of a tree: contiguous, as even as can be."""
        return leaf * self.groups // self.leaves

    def pod_leaves(self, pod: int) -> range:
        """The leaves of a pod of a tree."""
        first = -(-pod * self.leaves // self.groups)
        return range(first, -(-(pod + 1) * self.leaves // self.groups))


class HcaName(NamedTuple):
    """An HCA by the name that its node gives it, with its rail and plane."""

    name: str
    rail: int
    plane: int


class Names(NamedTuple):
    """Own names: of the nodes with their HCAs, and of the switches by tier, plane after plane, in wiring order."""

    nodes: Sequence[tuple[str, Sequence[HcaName]]]
    switches: Mapping[int, Sequence[str]] = {}


def leaf_counts(shape: Shape, plane: int) -> list[int]:
    """How many end points each leaf of ``plane`` takes."""
    total, leaves = shape.endpoints_in(plane), shape.all_leaves
    if shape.kind == TREE and shape.unit:
        counts = [0] * leaves
        for unit in range(-(-shape.nodes // shape.unit)):
            held = min(shape.unit, shape.nodes - unit * shape.unit)
            counts[unit * shape.width : (unit + 1) * shape.width] = [held] * shape.width
        for leaf in _free(counts, shape.down, shape.extra_in(plane)):
            counts[leaf] += 1
        return counts
    if shape.kind == TREE:
        full, rest = divmod(total, shape.down)
        return ([shape.down] * full + ([rest] if rest else []) + [0] * leaves)[:leaves]
    if shape.kind == HYPERCUBE:
        extra = shape.extra_in(plane)
        return [shape.width + extra // leaves + (leaf < extra % leaves) for leaf in range(leaves)]
    return [total * (leaf + 1) // leaves - total * leaf // leaves for leaf in range(leaves)]


def leaf_of_each(shape: Shape, plane: int) -> Iterator[int]:
    """The leaf of every end point of ``plane``: node by node, rail by rail, then those without GPUs."""
    width, leaves, total = shape.width, shape.all_leaves, shape.endpoints_in(plane)
    if shape.kind == TREE and shape.unit:
        counts = [0] * leaves
        for node in range(shape.nodes):
            for rail in range(width):
                leaf = node // shape.unit * width + rail
                counts[leaf] += 1
                yield leaf
        yield from _free(counts, shape.down, shape.extra_in(plane))
    elif shape.kind == TREE:
        yield from (end // shape.down for end in range(total))
    elif shape.kind == HYPERCUBE:
        yield from (node for node in range(shape.nodes) for _ in range(width))
        yield from (extra % leaves for extra in range(shape.extra_in(plane)))
    else:
        # The leaf whose share total*leaf//leaves … total*(leaf+1)//leaves holds this end point.
        yield from (-(-(end + 1) * leaves // total) - 1 for end in range(total))


def _free(counts: Sequence[int], down: int, wanted: int) -> Iterator[int]:
    """Leaves for ``wanted`` more end points: each time the emptiest, the first of such."""
    heap = [(count, leaf) for leaf, count in enumerate(counts) if count < down]
    heapq.heapify(heap)
    for _ in range(wanted):
        count, leaf = heap[0]
        yield leaf
        if count + 1 < down:
            heapq.heapreplace(heap, (count + 1, leaf))
        else:
            heapq.heappop(heap)
