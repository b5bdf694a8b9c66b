"""How many leaves, spines and cores a fat tree has, so that every leaf is wired evenly. Pure.

Two tiers while a spine can reach every leaf: the fewest spines S that divide the uplinks u of a leaf and have the ports
for u/S links to each leaf. Else three tiers: pods wired that way within half of a spine's ports, and above them one
column of cores for spine number s of all pods, with the same rule.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple, NoReturn, Optional

from weaklink.model.topology.shape import TREE, Shape, leaf_counts
from weaklink.plan.request import PlanError, Request

_ROUNDING = 1e-9
MOST_TIERS = 3


class Draft(NamedTuple):
    """A shape, how many end points its like could hold at most, bare minima by tier, warnings."""

    shape: Shape
    most: int
    minimum: dict[str, int]
    warnings: tuple[str, ...]


class Leaf(NamedTuple):
    """What a leaf has: places for end points, links it needs upwards, most links it can have."""

    down: int
    need: int
    most: int


def tree(request: Request, hcas: int) -> Draft:
    """Return the shape of a fat tree, rail-optimised or not, in as many planes as asked for."""
    planes = request.planes
    base = Shape(
        TREE,
        request.nodes,
        hcas,
        request.radix,
        down=1,
        leaves=1,
        planes=planes,
        extra=request.extra_endpoints,
        gbps=request.rate_gbps,
    )
    down = min(int(request.radix * request.taper / (1 + request.taper) + _ROUNDING), request.radix - 1)
    shape = _leaves(request, base._replace(down=down))
    if shape.leaves > request.radix * (request.radix // 2):
        _too_many(request, shape)
    fullest = max(leaf_counts(shape, 0))
    need = max(1, math.ceil(fullest / request.taper - _ROUNDING))
    leaf = Leaf(shape.down, need, request.radix - shape.down)
    if leaf.need > leaf.most:
        wanted = f"fewer: {leaf.most} of {request.radix} ports left for links up are too few at {request.taper:g}:1"
        raise PlanError("su_nodes", request.su_nodes, wanted)
    if request.spines is not None:
        return _forced(request, shape, leaf)
    if shape.leaves == 1:
        return Draft(shape, _most(shape, request, 1), {}, ())
    two = _two(request, shape, leaf)
    return two if two is not None else _three(request, shape, leaf)


def _leaves(request: Request, shape: Shape) -> Shape:
    """Add the leaves: filled one after the other, or one for each rail of a scalable unit."""
    total = shape.endpoints_in(0)
    if request.topology != "rail":
        return shape._replace(leaves=-(-total // shape.down))
    unit = request.su_nodes if request.su_nodes is not None else shape.down
    if unit >= request.radix:
        raise PlanError("su_nodes", unit, f"less than the {request.radix} ports of a leaf")
    down = max(unit, shape.down) if request.su_nodes else shape.down
    leaves = -(-shape.nodes // unit) * shape.width
    lacking = total - leaves * down
    return shape._replace(unit=unit, down=down, leaves=leaves + max(0, -(-lacking // down)))


def _most(shape: Shape, request: Request, tiers: int) -> int:
    """Return how many end points the like of ``shape`` holds: planes' worth, or one plane's if a GPU is in each."""
    leaves = request.radix * (request.radix // 2 if tiers == MOST_TIERS else 1)
    # Whole units; what is left of the leaves takes end points without GPUs.
    over = leaves % shape.width if shape.unit else 0
    extra = shape.extra_in(0)
    held = (shape.unit or shape.down) * (leaves - over)
    held = request.radix if tiers == 1 else held + min(extra, shape.down * leaves - held)
    each = request.gpu_planes
    return held * request.planes if each == 1 else (held - extra) * request.planes // each + shape.extra


def _divisors(number: int) -> Iterator[int]:
    return (candidate for candidate in range(1, number + 1) if number % candidate == 0)


def _fewest(links: int, sharers: int, ports: int) -> Optional[int]:
    """Return the fewest switches that ``sharers`` switches of ``links`` links each reach evenly, ``ports`` each."""
    return next((count for count in _divisors(links) if links // count * sharers <= ports), None)


def _two(request: Request, shape: Shape, leaf: Leaf) -> Optional[Draft]:
    found = [
        (spines, up)
        for up in range(leaf.need, leaf.most + 1)
        if (spines := _fewest(up, shape.leaves, shape.radix)) is not None
    ]
    if not found:
        return None
    spines, up = min(found)
    bare = -(-shape.leaves * leaf.need // shape.radix)
    minimum, warnings = _bare(("spine", spines * shape.planes, bare * shape.planes))
    if shape.endpoints_in(0) <= shape.radix:
        warnings += (f"one switch of {shape.radix} ports takes all end points of a plane without a spine",)
    return Draft(shape._replace(spines=spines, up=up), _most(shape, request, 2), minimum, warnings)


def _bare(*tiers: tuple[str, int, int]) -> tuple[dict[str, int], tuple[str, ...]]:
    minimum = {name: bare for name, built, bare in tiers if built > bare}
    warnings = tuple(
        f"even wiring asks for {built} {name} switches where {bare} have the ports"
        for name, built, bare in tiers
        if built > bare
    )
    return minimum, warnings


def _three(request: Request, shape: Shape, leaf: Leaf) -> Draft:
    """Choose the pods with the fewest switches above the leaves; of equal ones the fewest pods."""
    half = shape.radix // 2
    found = []
    for up in range(leaf.need, leaf.most + 1):
        for pods in range(-(-shape.leaves // half), min(shape.radix, shape.leaves) + 1):
            members = -(-shape.leaves // pods)
            spines = _fewest(up, members, half)
            if spines is None:
                continue
            out = up // spines * members
            column = _fewest(out, pods, shape.radix)
            if column is not None:
                found.append((spines * (pods + column), pods, up, spines, out, spines * column))
    if not found:
        _too_many(request, shape)
    _, pods, up, spines, out, cores = min(found)
    links = shape.leaves * leaf.need
    minimum, warnings = _bare(
        ("spine", spines * pods * shape.planes, -(-links // half) * shape.planes),
        ("core", cores * shape.planes, -(-links // shape.radix) * shape.planes),
    )
    built = shape._replace(spines=spines, up=up, groups=pods, out=out, cores=cores)
    return Draft(built, _most(shape, request, MOST_TIERS), minimum, warnings)


def _forced(request: Request, shape: Shape, leaf: Leaf) -> Draft:
    """Wire two tiers to the spines asked for, as evenly as their ports and the leaves' links allow."""
    asked = request.spines or 0
    if asked % shape.planes:
        raise PlanError("spines", asked, f"a multiple of the {shape.planes} planes")
    spines = asked // shape.planes
    free = _two(request, shape, leaf) if shape.leaves > 1 else None
    if shape.leaves > shape.radix:
        three = _three(request, shape, leaf)
        if three.shape.spines * three.shape.groups == spines:
            return three
        wanted = (
            f"none: {shape.leaves} leaves of {shape.down} end points a plane are more than a spine's {shape.radix} "
            "ports, so that two tiers can't be (a leaf needs as many ports for links up as for end points: one with "
            "all its ports taken by end points has no link at all)"
        )
        raise PlanError("spines", asked, wanted)
    if spines > leaf.most:
        wanted = f"at most {leaf.most * shape.planes}: a leaf has {leaf.most} links up in each of {shape.planes} planes"
        raise PlanError("spines", asked, wanted)
    wide = min(leaf.most // spines, shape.radix // shape.leaves, -(-leaf.need // spines))
    up = wide * spines
    warnings: tuple[str, ...] = ()
    if up < leaf.need and free is not None:
        fullest = max(leaf_counts(shape, 0))
        links = f"{up} links up for {fullest} end points of a leaf: {fullest / up:.3g}:1 oversubscribed"
        better = f"{free.shape.spines * shape.planes} spines make it {fullest / free.shape.up:.3g}:1"
        warnings = (
            f"{asked} spines leave {links}; {better}",
            f"a leaf needs ports for both: one of only {fullest} ports would have none left for links up",
        )
    return Draft(shape._replace(spines=spines, up=up), _most(shape, request, 2), {}, warnings)


def _too_many(request: Request, shape: Shape) -> NoReturn:
    most = _most(shape, request, MOST_TIERS)
    total = request.nodes * request.gpus_per_node * request.hcas_per_gpu + request.extra_endpoints
    wanted = f"at most {most} end points in {MOST_TIERS} tiers of {request.radix}-port switches"
    raise PlanError("nodes", f"{request.nodes} ({total} end points)", wanted)
