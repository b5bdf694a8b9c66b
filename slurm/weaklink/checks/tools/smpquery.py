"""Judge smpquery: the state, width, speed and MTU of the ports asked. Pure."""

from typing import Any, Optional

from weaklink.checks.tools import ib_fabric
from weaklink.checks.tools.base import Context, Judged, close, demand, say
from weaklink.checks.tools.ib_links import expected_link, port_key, unused_ports
from weaklink.checks.tools.ib_links import rules as link_rules
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding
from weaklink.observe.tools.ib_text import LANE_GBPS, Link, is_guid
from weaklink.observe.tools.smpquery import NAME, Answers, Block, lid_of
from weaklink.observe.tools.text import integer

_PORT = link_rules(NAME)
RULES = (*ib_fabric.rules(NAME), _PORT["port_state"], _PORT["port_rate"], _PORT["active_mtu"])


def judge(record: Answers, context: Context) -> Judged:
    """Return facts lid, ports; state, phys_state, link, mtu by ``<lid or route>/<port>``; and what is wrong."""
    findings = ib_fabric.ran(NAME, record.complaints, found=bool(record.blocks or record.descriptions))
    ports = [block for block in record.blocks if block.kind == "Port info"]
    unused = unused_ports(context)
    for block in ports:
        if port_key(name_of(block)) not in unused:
            findings += _judge(block, context)
    if record.troubles:
        # What is missing was cut off or could not be read, and that is said at the end.
        findings = [finding for finding in findings if finding.cause != "nothing-tested"]
    node = next((block.values for block in record.blocks if block.kind == "Node info"), {})
    facts: dict[str, Any] = {
        "lid": lid_of(ports[0]) if ports else next((block.where.lid for block in record.blocks), None),
        "ports": len(ports),
        "bad": list(dict.fromkeys(said.subject for said in findings if said.status in {FAIL, DEGRADED})),
        "state": {name_of(block): block.values.get("LinkState") for block in ports},
        "phys_state": {name_of(block): block.values.get("PhysLinkState") for block in ports},
        "link": {name_of(block): str(block.link()) if block.link() else None for block in ports},
        "mtu": {name_of(block): integer(block.values.get("NeighborMTU")) for block in ports},
        "node_type": node.get("NodeType"),
        "num_ports": integer(node.get("NumPorts")),
        "guid": node.get("Guid") if is_guid(node.get("Guid", "")) else None,
        "description": record.descriptions[0] if record.descriptions else None,
    }
    return close(NAME, facts, findings, record.troubles, f"{NAME}: nothing is wrong in what was asked")


def name_of(block: Block) -> str:
    """Return ``<lid or route>/<port>``."""
    return f"{block.where.node}/{block.where.port if block.where.port is not None else block.values.get('LocalPort')}"


def _judge(block: Block, context: Context) -> list[Finding]:
    name, state = name_of(block), block.values.get("LinkState")
    found = f"{name}: {state}/{block.values.get('PhysLinkState')}"
    rule = _PORT["port_state"]
    if state == "Down":
        if any(context.get(key) is not None for key in ("expected_link", "expected_rate_gbps", "unused_ports")):
            return [say(rule, name, FAIL, f"{found}, wanted Active")]
        return [say(rule, name, UNKNOWN, f"{found}; nobody said whether it is used: name unused_ports", "link-down")]
    if state in {"Initialize", "Armed"}:
        return [say(rule, name, FAIL, f"{found}, wanted Active", "no-subnet-manager")]
    if state != "Active":
        return [say(rule, name, UNKNOWN, f"{name}: its state could not be read", "output-truncated")]
    return [*_rate(block, name, context), *_mtu(block, name, demand(context, "expected_active_mtu", int))]


def _rate(block: Block, name: str, context: Context) -> list[Finding]:
    wanted, rate = expected_link(context), demand(context, "expected_rate_gbps", float)
    if wanted is None and rate is None:
        return []
    has = block.link()
    if not isinstance(has, Link):
        return [say(_PORT["port_rate"], name, UNKNOWN, f"{name}: no active width and speed", "nothing-tested")]
    below = wanted is not None and (has.lanes < wanted.lanes or LANE_GBPS[has.speed] < LANE_GBPS[wanted.speed])
    if below or (rate is not None and has.gbps < rate):
        return [say(_PORT["port_rate"], name, DEGRADED, f"{name}: {has}, wanted {wanted or f'{rate:g} Gb/s'}")]
    return []


def _mtu(block: Block, name: str, wanted: Optional[int]) -> list[Finding]:
    mtu = integer(block.values.get("NeighborMTU"))
    if wanted is None or mtu is None or mtu >= wanted:
        return []
    return [say(_PORT["active_mtu"], name, DEGRADED, f"{name}: MTU {mtu}, wanted {wanted}", mtu=mtu)]
