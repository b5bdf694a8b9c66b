"""Judge ibqueryerrors: bad cables by the counters of the signal, never by its count of "bad nodes". Pure."""

from weaklink.checks.tools import ib_errors, ib_fabric
from weaklink.checks.tools.base import DRAIN, Context, Judged, Rule, close, say
from weaklink.model.finding import DEGRADED, UNKNOWN
from weaklink.observe.tools.ib_counters import DOWNED, PHYSICAL
from weaklink.observe.tools.ibqueryerrors import NAME, Errors

CAPABILITY = Rule(
    f"{NAME}.link_capability",
    ("link-below-capability",),
    DEGRADED,
    DRAIN,
    "With -r the tool notes at a link what both its ends could do (Could be ...).",
    "Reseat or swap the cable; compare both ends with mlxlink.",
)
RULES = (*ib_fabric.rules(NAME), *ib_errors.rules(NAME), CAPABILITY)


def judge(record: Errors, context: Context) -> Judged:
    """Return facts nodes_checked, ports_checked, unreachable, bad_ports, saturated, congestion_only; what is wrong."""
    counted = ib_errors.judge_counters(NAME, record.ports, context)
    findings = ib_fabric.ran(NAME, record.complaints, found=bool(record.ports) or record.nodes_checked is not None)
    findings += counted.findings
    findings += [
        say(CAPABILITY, f"{row.guid}/{row.port}", DEGRADED, f"{row.guid} port {row.port} to {row.peer}: {row.hint}")
        for row in record.links
        if row.hint
    ]
    findings += ib_fabric.answered(NAME, record.unreachable)
    if record.query_failures and not record.unreachable:
        _, answered = ib_fabric.rules(NAME)
        findings.append(say(answered, NAME, UNKNOWN, f"{record.query_failures} queries of counters failed"))
    if record.nodes_checked == 0:
        findings.append(say(ib_fabric.rules(NAME)[0], NAME, UNKNOWN, "no node was checked", "nothing-tested"))
    facts = {
        "nodes_checked": record.nodes_checked,
        "ports_checked": record.ports_checked,
        "unreachable": list(record.unreachable),
        "thresholds": dict(record.thresholds),
        "suppressed": list(record.suppressed),
        **counted.facts,
    }
    hidden = [name for name in (*PHYSICAL, DOWNED) if name in record.suppressed]
    good = f"{NAME}: {record.ports_checked} ports checked, no link errors"
    return close(NAME, facts, findings, record.troubles, good + (f"; {', '.join(hidden)} suppressed" if hidden else ""))
