"""Several topologies for the same size side by side. One that cannot do the size says why and stops nobody else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from weaklink.plan.cost import price
from weaklink.plan.design import as_dict, design
from weaklink.plan.prices import Prices
from weaklink.plan.request import TREES, Design, PlanError, Request

TAPERED = (*TREES, "dragonfly+")  # topologies whose oversubscription can be chosen


class Option(NamedTuple):
    """One topology: its design and cost, or neither and the reason why it cannot be."""

    topology: str
    design: Design | None
    cost: dict[str, Any] | None
    reason: str


def compare(request: Request, topologies: Iterable[str], prices: Prices | None) -> list[Option]:
    """Design each topology for the size of ``request``; what a topology lacks (spines, taper) is not asked. Pure.

    A multi-plane network of one plane is a fat tree, so where no planes are asked for it gets one for each GPU of a
    node: as many ports a GPU as the others have, which keeps the comparison fair.
    Raises PlanError where a storage or management network of the prices file cannot be, which no topology changes.
    """
    return [_option(_asked(request, name), prices) for name in topologies]


def _asked(request: Request, topology: str) -> Request:
    asked = request._replace(
        topology=topology,
        planes=1,
        planes_per_gpu=None,
        spines=request.spines if topology in TREES else None,
        taper=request.taper if topology in TAPERED else 1.0,
        su_nodes=request.su_nodes if topology == "rail" else None,
    )
    if topology != "multi-plane":
        return asked
    if request.planes > 1:
        return asked._replace(planes=request.planes, planes_per_gpu=request.planes_per_gpu)
    return asked._replace(planes=_own_planes(request))


def _own_planes(request: Request) -> int:
    return max(2, request.gpus_per_node * request.hcas_per_gpu)


def _option(request: Request, prices: Prices | None) -> Option:
    try:
        made = design(request)
    except PlanError as error:
        return Option(request.topology, None, None, str(error))
    return Option(request.topology, made, price(made, prices) if prices else None, "")


def as_json(options: Iterable[Option]) -> dict[str, Any]:
    """Return {"options": [plan objects as ``weaklink plan --json`` prints], "cannot": [{"topology", "reason"}]}."""
    able, cannot = [], []
    for option in options:
        if option.design is None:
            cannot.append({"topology": option.topology, "reason": option.reason})
        else:
            able.append({**as_dict(option.design), "cost": option.cost})
    return {"options": able, "cannot": cannot}
