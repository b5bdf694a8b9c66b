"""Judge ibnetdiscover: links slower or narrower than demanded; ports without a partner are no links. Pure."""

import re
from typing import Any, Optional

from weaklink.checks.tools import ib_fabric
from weaklink.checks.tools.base import DRAIN, Context, Judged, Rule, close, demand, say
from weaklink.checks.tools.ib_links import expected_link, port_key, unused_ports
from weaklink.model.finding import DEGRADED, UNKNOWN, Finding
from weaklink.observe.tools.ib_text import LANE_GBPS, Link
from weaklink.observe.tools.ibnetdiscover import NAME, Net, Row

RATE = Rule(
    f"{NAME}.link_rate",
    ("rate-below-expected", "nothing-tested"),
    DEGRADED,
    DRAIN,
    "Width and speed of a link between two ports must reach those demanded; a port without a partner has neither, "
    "whatever is printed. A speed newer than the tool (???) allows no judgement.",
    "Reseat or swap the cable; compare both ends with mlxlink.",
)
RULES = (*ib_fabric.rules(NAME), RATE)

_ADAPTER = re.compile(r"(?:HCA-?|mlx\d+_|mthca|ib|roce|hfi\d_|bnxt_re|irdma|qedr|cxgb\d_|rxe)[\w.-]*\Z", re.IGNORECASE)
_SHARP = re.compile(r"Aggregation Node\Z", re.IGNORECASE)
# Node descriptions that the card or its driver sets where no host name was: they name a product.
_PRODUCT = re.compile(r"(?:MT\d{4,5}\b|.*\bMellanox Technologies\Z|.*\bConnectX)", re.IGNORECASE)


def judge(record: Net, context: Context) -> Judged:
    """Return facts ca_ports, switch_ports, hosts, sharp_nodes, unconnected, slow_links, and what is wrong.

    A link is printed at both its ends: ``slow_links`` has it once, from the switch's end of a host's link.
    """
    wanted = expected_link(context)
    rate = demand(context, "expected_rate_gbps", float)
    unused = unused_ports(context)
    findings = ib_fabric.ran(NAME, record.complaints, found=bool(record.rows or record.nodes))
    slow: dict[frozenset[tuple[str, int]], dict[str, Any]] = {}
    for row in record.rows:
        if row.far is None or port_key(f"{row.near.guid}/{row.near.port}") in unused:
            continue
        found = _slow(row, wanted, rate)
        ends = frozenset({(row.near.guid, row.near.port), (row.far.guid, row.far.port)})
        if found is None or (ends in slow and row.near.kind != "SW"):
            continue
        if ends not in slow:
            findings.append(found)
        if found.status == DEGRADED and (ends not in slow or slow[ends]["kind"] != "SW"):
            slow[ends] = _fact(row)
    if (wanted or rate) and not record.complaints and not record.troubles and all(r.far is None for r in record.rows):
        findings.append(
            say(RATE, NAME, UNKNOWN, f"{NAME}: no link is printed, {wanted or rate} wanted", "nothing-tested")
        )
    findings += ib_fabric.answered(NAME, record.unreachable)
    facts = _facts(record)
    facts["slow_links"] = [{key: value for key, value in item.items() if key != "kind"} for item in slow.values()]
    return close(NAME, facts, findings, record.troubles, f"{NAME}: {len(record.rows)} ports, no slow link")


def _slow(row: Row, wanted: Optional[Link], rate: Optional[float]) -> Optional[Finding]:
    if (wanted is None and rate is None) or row.far is None:
        return None
    subject = f"{row.near.guid}/{row.near.port}"
    where = f"{row.near.name} port {row.near.port} to {row.far.name} port {row.far.port}"
    if row.lanes is None or row.speed not in LANE_GBPS:
        found = f"{where}: width {row.lanes}, speed {row.speed or 'unknown to this version of the tool'}"
        return say(RATE, subject, UNKNOWN, found, "nothing-tested")
    has = Link(row.lanes, str(row.speed))
    below = wanted is not None and (has.lanes < wanted.lanes or LANE_GBPS[has.speed] < LANE_GBPS[wanted.speed])
    if below or (rate is not None and has.gbps < rate):
        return say(RATE, subject, DEGRADED, f"{where}: {has}, wanted {wanted or f'{rate:g} Gb/s'}")
    return None


def _fact(row: Row) -> dict[str, Any]:
    link = f"{row.lanes}x {row.speed}"
    far = row.far
    peer = {"peer": far.name, "peer_guid": far.guid, "peer_port": far.port} if far else {}
    return {"kind": row.near.kind, "guid": row.near.guid, "port": row.near.port, "link": link, **peer}


def host_of(name: str) -> str:
    """Return the host in an adapter's name: all but a last word that is the adapter's own (HCA-1, mlx5_0, ibp26s0)."""
    words = name.split()
    return " ".join(words[:-1] if len(words) > 1 and _ADAPTER.match(words[-1]) else words)


def _facts(record: Net) -> dict[str, Any]:
    adapters = [row for row in record.rows if row.near.kind == "CA"]
    names = [(row.near.guid, row.near.name) for row in adapters]
    names += [(guid, name) for kind, guid, name in record.nodes if kind == "CA"]
    hosts = [host_of(name) for _, name in names if name and not _SHARP.search(name) and not _PRODUCT.match(name)]
    return {
        "ca_ports": len(adapters),
        "switch_ports": sum(row.near.kind == "SW" for row in record.rows),
        "hosts": list(dict.fromkeys(hosts)),
        "sharp_nodes": len({guid for guid, name in names if _SHARP.search(name)}),
        "unconnected": [{"guid": row.near.guid, "port": row.near.port} for row in record.rows if row.far is None],
    }
