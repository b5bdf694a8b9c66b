"""Judge iblinkinfo: links that could be faster or wider, ports down or not configured. Pure."""

from typing import Optional

from weaklink.checks.tools import ib_fabric
from weaklink.checks.tools.base import DRAIN, Context, Judged, Rule, close, demand, say
from weaklink.checks.tools.ib_links import expected_link, port_key, unused_ports
from weaklink.model.finding import DEGRADED, FAIL, Finding
from weaklink.observe.tools.ib_text import LANE_GBPS, Link
from weaklink.observe.tools.iblinkinfo import NAME, LinkInfo, Row

CAPABILITY = Rule(
    f"{NAME}.link_capability",
    ("link-below-capability",),
    DEGRADED,
    DRAIN,
    "The note in the last brackets (Could be ...) compares a link with what both its ends support; where the context "
    "names a link and this one reaches it, the note is no fault.",
    "Reseat or swap the cable; compare both ends with mlxlink.",
)
RATE = Rule(
    f"{NAME}.link_rate",
    ("rate-below-expected",),
    DEGRADED,
    DRAIN,
    "Width and speed of a link that is up must reach those demanded; equal is enough.",
    "Reseat or swap the cable; compare both ends with mlxlink.",
)
STATE = Rule(
    f"{NAME}.port_state",
    ("link-down", "no-subnet-manager", "link-flapping"),
    FAIL,
    DRAIN,
    "A port that is Initialize or Armed waits for the subnet manager. A port that is Down is a fault only where "
    "unused_ports says which may be.",
    "Initialize: ask sminfo for the subnet manager. Down: look at the cable and the far end.",
)
RULES = (*ib_fabric.rules(NAME), STATE, CAPABILITY, RATE)


def judge(record: LinkInfo, context: Context) -> Judged:
    """Return facts rows, active_rows, down_rows, slow (guid, port, peer, hint), and what is wrong."""
    wanted = expected_link(context)
    rate = demand(context, "expected_rate_gbps", float)
    unused = unused_ports(context) if context.get("unused_ports") is not None else None
    findings = ib_fabric.ran(NAME, record.complaints, found=bool(record.rows))
    rows = [row for row in record.rows if port_key(f"{row.guid}/{row.port}") not in (unused or ())]
    findings += [finding for row in rows for finding in _state(row, judged=unused is not None)]
    slow = []
    for row in rows:
        found = _slow(row, wanted, rate)
        if found:
            findings.append(found)
            slow.append({"guid": row.guid, "port": row.port, "peer": row.peer, "hint": row.hint})
    facts = {
        "rows": len(record.rows),
        "active_rows": sum(row.state == "Active" for row in record.rows),
        "down_rows": sum(row.state == "Down" for row in record.rows),
        "slow": slow,
    }
    return close(NAME, facts, findings, record.troubles, f"{NAME}: {len(record.rows)} ports, none slow")


def _where(row: Row) -> str:
    return f"{row.node or row.guid} port {row.port}" + (f" to {row.peer}" if row.peer else "")


def _state(row: Row, *, judged: bool) -> list[Finding]:
    subject = f"{row.guid}/{row.port}"
    found = f"{_where(row)}: {row.state}/{row.phys_state}"
    if row.state == "Down":
        return [say(STATE, subject, FAIL, f"{found}, and not one of unused_ports")] if judged else []
    if row.state == "Active" and (row.phys_state or "").replace(" ", "") == "LinkErrorRecovery":
        return [say(STATE, subject, DEGRADED, f"{found}: the link is recovering from errors", "link-flapping")]
    return [] if row.state == "Active" else [say(STATE, subject, FAIL, found, "no-subnet-manager")]


def _slow(row: Row, wanted: Optional[Link], rate: Optional[float]) -> Optional[Finding]:
    if row.state == "Down":
        return None
    subject = f"{row.guid}/{row.port}"
    has = Link(row.lanes, row.speed) if row.lanes and row.speed in LANE_GBPS else None
    below = False
    if has is not None and wanted is not None:
        below = has.lanes < wanted.lanes or LANE_GBPS[has.speed] < LANE_GBPS[wanted.speed]
    if has is not None and rate is not None:
        below = below or has.gbps < rate
    reaches = has is not None and not below and (wanted is not None or rate is not None)
    if row.hint and not reaches:
        return say(CAPABILITY, subject, DEGRADED, f"{_where(row)}: {row.hint}", hint=row.hint)
    if below:
        return say(RATE, subject, DEGRADED, f"{_where(row)}: {has}, wanted {wanted or f'{rate:g} Gb/s'}")
    return None
