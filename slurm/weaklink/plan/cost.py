"""What a design costs at given prices, by part, and how that compares with a widely read split of the budget.

Nothing here knows a price: all come from the prices file. Sums are rounded to a hundredth of the currency's unit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from weaklink.plan.design import design as make_design
from weaklink.plan.prices import NetworkPrices, Prices
from weaklink.plan.request import Design, PlanError, Request

# A widely read guide splits a network budget so, in percent; it gives no data for it.
GUIDE_SPLIT = {"compute": 80.0, "storage": 15.0, "management": 5.0}
COMPUTE_PARTS = ("switches", "node_cables", "inter_switch_cables", "modules", "hcas")
_SAME_PERCENT = 2.0  # closer than this to the guide's share is the same


class Side(NamedTuple):
    """A storage or management network as counted: ports, switches, links, and the cost of each part."""

    ports: int
    switches: int
    links: int
    parts: dict[str, float]

    @property
    def total(self) -> float:
        """The sum of the parts."""
        return round(sum(self.parts.values()), 2)


def price(design: Design, prices: Prices) -> dict[str, Any]:
    """Return the cost of a design as the JSON object "cost" of a plan.

    Keys: currency, dated, example; switches, node_cables, inter_switch_cables, modules, hcas and their sum
    compute_total; storage and management (an object with ports, switches, parts, total; null where the prices file has
    no such network); total; per_endpoint and per_gpu (of the compute network alone, which is what published figures
    give); total_per_gpu; split (null where no other network is priced).
    Raises PlanError where a storage or management network does not fit its switches.
    """
    each = prices.compute
    parts = {
        "switches": design.switches * each.switch,
        "node_cables": design.node_links * each.node_cable,
        "inter_switch_cables": design.inter_switch_links * each.inter_switch_cable,
        "modules": design.modules["node"] * each.node_module + design.modules["switch"] * each.switch_module,
        "hcas": hcas(design) * each.hca,
    }
    parts = {name: round(amount, 2) for name, amount in parts.items()}
    compute = round(sum(parts.values()), 2)
    sides = {
        "storage": side_network("storage", design, prices.storage),
        "management": side_network("management", design, prices.management),
    }
    total = round(compute + sum(side.total for side in sides.values() if side), 2)
    return {
        "currency": prices.currency,
        "dated": prices.dated,
        "example": prices.example,
        **parts,
        "compute_total": compute,
        **{name: _side_dict(side) for name, side in sides.items()},
        "total": total,
        "per_endpoint": _each(compute, design.endpoints),
        "per_gpu": _each(compute, design.gpus),
        "total_per_gpu": _each(total, design.gpus),
        "split": split(parts, sides, prices) if any(sides.values()) and total else None,
    }


def hcas(design: Design) -> int:
    """Return the number of HCAs in GPU nodes (one of several ports counts once)."""
    return design.gpus * design.request.hcas_per_gpu


def _each(amount: float, count: int) -> float | None:
    return round(amount / count, 2) if count else None


def _side_dict(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {"ports": side.ports, "switches": side.switches, "links": side.links, **side.parts, "total": side.total}


def side_network(name: str, design: Design, prices: NetworkPrices | None) -> Side | None:
    """Count and price the network ``name`` (storage or management) that ``prices`` describes, for a design."""
    if prices is None:
        return None
    node_ports = design.nodes * prices.ports_per_node
    ports = node_ports + prices.other_ports
    if ports <= prices.radix:
        switches, between = 1, 0
    else:
        tree = _tree(name, design, prices)
        switches, between = tree.switches, tree.inter_switch_links
    links = ports + between
    parts = {
        "switch_cost": switches * prices.switch,
        "nic_cost": node_ports * prices.nic,
        "cable_cost": links * prices.cable,
        "module_cost": 2 * links * prices.module,
    }
    return Side(ports, switches, links, {name: round(amount, 2) for name, amount in parts.items()})


def _tree(name: str, design: Design, prices: NetworkPrices) -> Design:
    request = Request(
        topology="fat-tree",
        nodes=design.nodes,
        gpus_per_node=prices.ports_per_node,
        radix=prices.radix,
        taper=prices.oversubscription,
        extra_endpoints=prices.other_ports,
    )
    try:
        return make_design(request)
    except PlanError as error:
        raise PlanError(f"{name} network of the prices file: {error.key}", error.found, error.wanted) from error


def split(parts: dict[str, float], sides: dict[str, Side | None], prices: Prices) -> dict[str, Any]:
    """Compare the share of each network with the guide's 80/15/5 and say what drives the difference.

    Returns {"percent": {network: share}, "guide": {network: share}, "drivers": [text]}; a network that the prices file
    leaves out has no share.
    """
    amounts = {"compute": sum(parts.values()), **{name: side.total for name, side in sides.items() if side}}
    total = sum(amounts.values())
    percent = {name: round(100 * amount / total, 1) for name, amount in amounts.items()}
    drivers = [_biggest(parts, amounts["compute"])]
    for name, side in sides.items():
        if side is None:
            drivers.append(f"{name} is not in the prices file, so the other shares are too high by its share")
            continue
        drivers.append(_driver(name, side, percent[name], total))
    drivers.append(
        "the shares follow from ports and prices of each network; the guide gives no data for its split, so it is a "
        f"point to compare with, not a target{' (and these prices are an example)' if prices.example else ''}"
    )
    return {"percent": percent, "guide": dict(GUIDE_SPLIT), "drivers": drivers}


def _biggest(parts: dict[str, float], compute: float) -> str:
    if not compute:
        return "compute costs nothing at these prices"
    name, amount = max(parts.items(), key=lambda item: item[1])
    words = name.replace("_", " ").replace("hcas", "HCAs")
    return f"compute is driven by its {words}: {100 * amount / compute:.0f} % of it"


def _driver(name: str, side: Side, share: float, total: float) -> str:
    guide = GUIDE_SPLIT[name]
    if abs(share - guide) < _SAME_PERCENT:
        return f"{name} is near the guide's {guide:.0f} %: {side.ports:,} ports on {side.switches:,} switches"
    way = "below" if share < guide else "above"
    per_port = side.total / side.ports if side.ports else 0.0
    text = f"{name} is {way} the guide's {guide:.0f} %: {side.ports:,} ports at {per_port:,.0f} each"
    if per_port:
        text += f"; {guide:.0f} % of this total would pay for {guide / 100 * total / per_port:,.0f} such ports"
    return text
