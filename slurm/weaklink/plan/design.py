"""A design: every count of a fabric by formula, without laying a single link. Pure; fast for any size."""

from collections.abc import Iterable, Iterator
from typing import Any

from weaklink.model.topology.groups import global_links, places
from weaklink.model.topology.shape import DRAGONFLY, DRAGONFLY_PLUS, HYPERCUBE, TREE, Shape, leaf_counts
from weaklink.model.topology.wiring import CAGE_PORTS
from weaklink.plan.request import Design, PlanError, Request
from weaklink.plan.shapes import draft, ports_of, shape_of

__all__ = ["Design", "PlanError", "Request", "as_dict", "design", "shape_of"]

Counts = Iterable[tuple[int, int]]  # (end points of a leaf, how many leaves have as many)


def design(request: Request) -> Design:
    """Return the counts of what is asked for. Raise PlanError when it cannot be."""
    found = draft(request)
    shape = found.shape
    links = _links(shape)
    node_links = shape.nodes * shape.hcas + shape.extra
    leaf, spine, core = _switches(shape)
    modules = sum(_switch_modules(shape, plane) for plane in range(shape.planes))
    diameter, mean = _hops(shape)
    return Design(
        request=request,
        topology=request.topology,
        nodes=request.nodes,
        gpus=request.nodes * request.gpus_per_node,
        endpoints=request.nodes * ports_of(request).ends + request.extra_endpoints,
        tiers=1 + bool(spine) + bool(core),
        planes=request.planes,
        leaf=leaf,
        spine=spine or None,
        core=core or None,
        switches=leaf + spine + core,
        node_links=node_links,
        inter_switch_links=sum(links.values()),
        links_by_tier={"node-leaf": node_links, **links},
        modules={"node": node_links, "switch": modules, "twin_port": modules},
        oversubscription=_oversubscription(shape),
        bisection_gbps=sum(_bisection(shape, plane) for plane in range(shape.planes)) * request.rate_gbps,
        diameter=diameter,
        mean_hops=mean,
        max_endpoints=found.most,
        minimum=found.minimum,
        warnings=found.warnings,
    )


def as_dict(found: Design) -> dict[str, Any]:
    """Return the object of ``plan --json``, its cost still null."""
    keys = [key for key in Design._fields if key not in {"request", "warnings"}]
    values = found._asdict()
    return {**{key: values[key] for key in keys}, "cost": None, "warnings": list(found.warnings)}


def _switches(shape: Shape) -> tuple[int, int, int]:
    """Leaves, spines and cores of all planes."""
    leaves, spines = shape.all_leaves, shape.spines * shape.groups
    return leaves * shape.planes, spines * shape.planes, shape.cores * shape.planes


def _links(shape: Shape) -> dict[str, int]:
    """Links between switches, of all planes, by tier."""
    planes = shape.planes
    if shape.kind == HYPERCUBE:
        return {"cube": shape.leaves * shape.up // 2}
    if shape.kind == DRAGONFLY:
        return {"group-local": shape.groups * shape.leaves * shape.up // 2, "global": global_links(shape)}
    if shape.kind == DRAGONFLY_PLUS:
        return {"leaf-spine": shape.all_leaves * shape.up, "global": global_links(shape)}
    found = {}
    if shape.spines:
        found["leaf-spine"] = planes * shape.leaves * shape.up
    if shape.cores:
        found["spine-core"] = planes * shape.groups * shape.spines * shape.out
    return found


def _oversubscription(shape: Shape) -> float:
    if shape.kind == HYPERCUBE:
        return float(max(shape.down, 1)) if shape.up else 1.0
    if shape.kind == TREE:
        fullest = max(leaf_counts(shape, 0))
        return max(1.0, fullest / shape.up) if shape.spines else 1.0
    return max(1.0, shape.down * shape.leaves / shape.group_out) if shape.groups > 1 else 1.0


def _switch_modules(shape: Shape, plane: int) -> int:
    """Cages with a module in the switches of ``plane``: a cage is used as soon as one of its ports is."""
    leaf_first = shape.down + 1
    if shape.kind == TREE:
        counts: Counts = ((count, 1) for count in leaf_counts(shape, plane))
    elif shape.kind == HYPERCUBE:
        counts = ((shape.width + size, leaves) for size, leaves in _spread(shape.extra, shape.leaves))
    else:
        counts = _spread(shape.endpoints_in(plane), shape.all_leaves)
    # An odd sum of places leaves the last place of every group free.
    free = shape.groups * shape.group_out - 2 * global_links(shape) if shape.kind != TREE else 0
    beyond = (shape.out if shape.groups > 1 else 0) if shape.kind == DRAGONFLY else 0
    found = sum(_cages((1, ends), (leaf_first, shape.up + beyond)) * leaves for ends, leaves in counts)
    if shape.kind == DRAGONFLY or not shape.spines:
        return found
    wide = shape.up // shape.spines
    reserved = -(-shape.leaves // (shape.groups if shape.kind == TREE else 1)) * wide
    if shape.kind == DRAGONFLY_PLUS:
        out = shape.out if shape.groups > 1 else 0
        whole = _cages((1, reserved), (reserved + 1, out))
        last = _cages((1, reserved), (reserved + 1, out - 1)) if free and out else whole
        return found + shape.groups * ((shape.spines - 1) * whole + last)
    for pod in range(shape.groups):
        below = len(shape.pod_leaves(pod)) * wide
        found += shape.spines * _cages((1, below), (reserved + 1, shape.out))
    return found + shape.cores * _cages((1, shape.groups * shape.spines * shape.out // max(1, shape.cores)))


def _cages(*ranges: tuple[int, int]) -> int:
    """Cages touched by ranges of ports (first port, how many), in order and apart."""
    found = last = 0
    for first, count in ranges:
        if count > 0:
            begin = max((first - 1) // CAGE_PORTS + 1, last + 1)
            last = (first + count - 2) // CAGE_PORTS + 1
            found += max(0, last - begin + 1)
    return found


def _spread(total: int, parts: int) -> Iterator[tuple[int, int]]:
    """``total`` in ``parts`` as even as can be: (size, how many of it)."""
    size, more = divmod(total, parts)
    yield size, parts - more
    yield size + 1, more


def _bisection(shape: Shape, plane: int) -> int:
    """Links' worth of traffic from one half of a plane's end points to the other.

    Trees: the first half of the end points in leaf order to the rest. Groups and cubes: as near to half as whole groups
    allow, the first against the rest; within the group if there is only one.
    """
    total = shape.endpoints_in(plane)
    if shape.kind == HYPERCUBE:
        return min(total // 2, shape.leaves // 2 if shape.up else total // 2)
    if shape.kind == TREE or (shape.groups == 1 and shape.spines):
        return _star(leaf_counts(shape, plane), shape.up)
    if shape.groups == 1:
        return min(total // 2, (shape.leaves // 2) ** 2)
    first = shape.groups // 2
    rest = shape.groups - first
    even, left = divmod(shape.group_out, shape.groups - 1)
    pairs = left // 2
    ring = pairs * (pairs + 1) + (first if left % 2 and first == rest else 0)
    here = total * first * shape.leaves // shape.all_leaves
    return min(here, total - here, even * first * rest + ring)


def _star(counts: list[int], up: int) -> int:
    """Most flow from the first half of the end points to the rest, over ``up`` links of each leaf."""
    half = sum(counts) // 2
    leaving = entering = within = seen = 0
    for count in counts:
        first = min(count, max(0, half - seen))
        rest = count - first
        seen += count
        both = min(first, rest)
        within += both
        leaving += min(up, first - both)
        entering += min(up, rest - both)
    return within + min(leaving, entering)


def _hops(shape: Shape) -> tuple[int, float]:
    """Links between switches from one end point's switch to another's: most, and mean over pairs of switches."""
    if shape.kind == HYPERCUBE:
        return shape.up, shape.up / 2 * shape.leaves / (shape.leaves - 1) if shape.up else 0.0
    if shape.kind == TREE:
        if not shape.cores:
            return (2, 2.0) if shape.spines else (0, 0.0)
        inside = sum(len(shape.pod_leaves(pod)) ** 2 for pod in range(shape.groups)) - shape.leaves
        return 4, 4 - 2 * inside / (shape.leaves * (shape.leaves - 1))
    members, total = shape.leaves, shape.all_leaves
    near, diameter = (2, 3) if shape.spines else (1, 3)
    if shape.groups == 1:
        return near, float(near)
    between = members * members * 3 * (shape.groups - 1) if shape.spines else _between_groups(shape)
    return diameter, (members * (members - 1) * near + between) / (members * (total - 1))


def _between_groups(shape: Shape) -> int:
    """Sum of hops from the routers of one group to those of all others, one global link a way."""
    found = 0
    for distance in range(1, shape.groups):
        here = [place // shape.out for place in places(shape, distance)]
        there = [place // shape.out for place in places(shape, shape.groups - distance)]
        direct, starts, stops = len(set(zip(here, there))), len(set(here)), len(set(there))
        # 3 hops, one less where the source has a link, one less where the destination has; 1 where they share it.
        some = starts * shape.leaves + stops * shape.leaves - starts * stops
        found += 3 * shape.leaves**2 - some - direct
    return found
