"""From a request to a shape: how many switches, wired how. Pure.

Rules: a leaf gives half of its ports (or what the taper allows) to end points. Wiring is even: every leaf has the same
number of links to each spine, which can ask for more spines than their ports alone would.
"""

import math
from typing import NamedTuple

from weaklink.model.topology.shape import DRAGONFLY, DRAGONFLY_PLUS, HYPERCUBE, Shape
from weaklink.plan.published import misprints
from weaklink.plan.request import TOPOLOGIES, TREES, PlanError, Request
from weaklink.plan.wiring_trees import Draft, tree

FEWEST_PORTS = 4
MOST_PORTS = 1024
# What is asked of a taper is a decimal fraction: 1/3 of 96 ports is 32, whatever the floating point says.
_ROUNDING = 1e-9


class Ports(NamedTuple):
    """HCAs of a node (ports, dealt over the planes), end points with GPUs of a node, and a word on planes."""

    hcas: int
    ends: int
    note: str


def shape_of(request: Request) -> Shape:
    """Return the wiring of what is asked for. Raise PlanError when it cannot be."""
    return draft(request).shape


def draft(request: Request) -> Draft:
    """Return the shape with the bare minima and warnings that led to it. Raise PlanError when it cannot be."""
    _check(request)
    ports = ports_of(request)
    if request.topology == "dragonfly":
        found = _dragonfly(request, ports)
    elif request.topology == "dragonfly+":
        found = _dragonfly_plus(request, ports)
    elif request.topology == "hypercube":
        found = _hypercube(request, ports)
    else:
        found = tree(request, ports.hcas)
    warnings = (ports.note, *found.warnings) if ports.note else found.warnings
    return found._replace(warnings=(*warnings, *misprints(request)))


def ports_of(request: Request) -> Ports:
    """Return how a node's end points are dealt over the planes."""
    gpus, planes, each = request.gpus_per_node, request.planes, request.hcas_per_gpu
    if planes == 1 or each > 1:
        hcas = gpus * each
        if hcas % planes:
            raise PlanError("planes", planes, f"a divisor of the {hcas} HCAs of a node")
        return Ports(hcas, hcas, "")
    if gpus % planes and planes % gpus:
        raise PlanError("planes", planes, f"a divisor of the {gpus} GPUs of a node")
    each = request.gpu_planes
    if gpus * each % planes:
        raise PlanError("planes_per_gpu", each, f"as many ports of a node in each of {planes} planes")
    if each == planes:
        note = f"every GPU has a port in each of the {planes} planes: {planes} node links a GPU"
        return Ports(gpus * planes, gpus, f"{note} (--planes-per-gpu 1 puts each into one)")
    if planes == gpus and each == 1:
        return Ports(gpus, gpus, f"each of the {gpus} GPUs of a node is in one plane, its own")
    return Ports(gpus * each, gpus, f"each GPU has a port in {each} of the {planes} planes")


def _check(request: Request) -> None:
    if request.topology not in TOPOLOGIES:
        raise PlanError("topology", repr(request.topology), " | ".join(TOPOLOGIES))
    for key in ("nodes", "gpus_per_node", "planes", "hcas_per_gpu", "spines", "su_nodes", "planes_per_gpu"):
        value = getattr(request, key)
        if value is not None and value < 1:
            raise PlanError(key, value, "a whole number from 1")
    if request.extra_endpoints < 0:
        raise PlanError("extra_endpoints", request.extra_endpoints, "0 or more")
    if not FEWEST_PORTS <= request.radix <= MOST_PORTS or request.radix % 2:
        wanted = f"an even number of ports from {FEWEST_PORTS} to {MOST_PORTS}"
        raise PlanError("radix", request.radix, wanted)
    if not 1 <= request.taper < request.radix:
        raise PlanError("taper", request.taper, f"end points to links, from 1 to less than the {request.radix} ports")
    if not 0 < request.rate_gbps < math.inf:
        raise PlanError("rate_gbps", request.rate_gbps, "a rate above 0")
    _check_topology(request)


def _check_topology(request: Request) -> None:
    """Refuse what only other topologies have."""
    if request.planes_per_gpu is not None and request.planes_per_gpu > request.planes:
        raise PlanError("planes_per_gpu", request.planes_per_gpu, f"at most the {request.planes} planes")
    if request.planes_per_gpu is not None and request.hcas_per_gpu > 1:
        raise PlanError(
            "planes_per_gpu", request.planes_per_gpu, "none with several HCAs a GPU: they are dealt in turn"
        )
    if request.topology not in TREES:
        for key, alone in (("planes", 1), ("spines", None)):
            if getattr(request, key) != alone:
                raise PlanError(key, getattr(request, key), f"none with {request.topology}: trees have them")
    if request.topology in {"dragonfly", "hypercube"} and request.taper != 1:
        raise PlanError("taper", request.taper, f"1 with {request.topology}: its links follow from the ports")
    if request.su_nodes is not None and request.topology != "rail":
        raise PlanError("su_nodes", request.su_nodes, "none but with rail")


def _base(request: Request, ports: Ports) -> Shape:
    return Shape(
        DRAGONFLY,
        request.nodes,
        ports.hcas,
        request.radix,
        down=1,
        leaves=1,
        extra=request.extra_endpoints,
        gbps=request.rate_gbps,
    )


def _dragonfly(request: Request, ports: Ports) -> Draft:
    """Return the balanced dragonfly: a = 2p = 2h routers a group, p end points and h global links each, k = 4p - 1."""
    p = (request.radix + 1) // 4
    shape = _base(request, ports)._replace(down=p, leaves=2 * p, up=2 * p - 1, out=p)
    return _grouped(request, shape, 2 * p * p)


def _dragonfly_plus(request: Request, ports: Ports) -> Draft:
    """Return groups of k/2 leaves and k/2 spines; a spine has k/2 global links, or fewer by the taper."""
    half = request.radix // 2
    out = math.ceil(half / request.taper - _ROUNDING)
    shape = _base(request, ports)._replace(kind=DRAGONFLY_PLUS, down=half, leaves=half, up=half, spines=half, out=out)
    return _grouped(request, shape, half * half)


def _grouped(request: Request, shape: Shape, held: int) -> Draft:
    total = shape.endpoints_in(0)
    most = held * (shape.group_out + 1)
    if total > most:
        wanted = f"at most {most} end points in a {request.topology} of {request.radix}-port switches"
        raise PlanError("nodes", f"{request.nodes} ({total} end points)", wanted)
    groups = -(-total // held)
    shape = shape._replace(groups=groups)
    warnings = []
    if groups * held > total:
        free = groups * held - total
        warnings.append(f"groups are built whole: {groups} x {held} end points, {free} ports stay free")
    links = shape.group_out // (groups - 1) if groups > 1 else held
    if links < held:
        warnings.append(
            f"the links of a group hold for traffic that goes to all groups evenly: two groups of {held} end points "
            f"have {links} link{'s' if links > 1 else ''} between them"
        )
    return Draft(shape, most, {}, tuple(warnings))


def _hypercube(request: Request, ports: Ports) -> Draft:
    """Return a router for each node, linked to those whose number differs in one bit."""
    if request.nodes & (request.nodes - 1):
        below = 1 << request.nodes.bit_length() - 1
        raise PlanError("nodes", request.nodes, f"a power of two for a hypercube: {below} or {2 * below}")
    bits = request.nodes.bit_length() - 1
    down = ports.hcas + -(-request.extra_endpoints // request.nodes)
    if down + bits > request.radix:
        found = f"{request.radix} with {down} end points and {bits} links to other routers"
        raise PlanError("radix", found, f"at least {down + bits} ports")
    shape = _base(request, ports)._replace(kind=HYPERCUBE, down=down, leaves=request.nodes, up=bits)
    warnings = (
        f"every node has a router of its own; from half to half there is a link for each {down} end points"
        if bits
        else "a hypercube of one node has no links",
    )
    return Draft(shape, ports.hcas << request.radix - ports.hcas, {}, warnings)
