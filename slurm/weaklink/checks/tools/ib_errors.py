"""Judge error counters of InfiniBand ports: saturated, climbing, flapping, or load alone. Pure."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.checks.tools.base import DRAIN, Context, Rule, demand, say
from weaklink.checks.tools.ib_links import port_key, unused_ports
from weaklink.model.finding import DEGRADED, FAIL, Finding
from weaklink.observe.tools.ib_counters import DATA, DOWNED, PHYSICAL, WAIT, Count, Port

# Errors an hour from which a link is broken, and from which it is suspect. A healthy NDR link counts at most about
# 15 symbol errors an hour (UFM's PDR rule: 2.88 in 12 minutes for a bit error rate of 1e-14).
BROKEN_PER_HOUR = 1000.0
SUSPECT_PER_HOUR = 100.0
FLAPS_PER_HOUR = 10.0
_CONGESTION = frozenset({WAIT, "PortXmitDiscards"})


def rules(tool: str) -> tuple[Rule, Rule]:
    """Return the rules on counters in the name of ``tool``: errors, flaps."""
    return (
        Rule(
            f"{tool}.error_counters",
            ("bad-cable",),
            FAIL,
            DRAIN,
            "A counter of the signal itself (symbol, recovery, receive, integrity, overrun errors) that stands "
            "at its end, or climbs by 1000 an hour or more, means a bad cable; waiting and relay counters never do. "
            "Without the time of the last clearing, 1000 or more is suspect. Widths: IBA PortCounters.",
            "Clean or swap cable and module, clear with perfquery -R, and look again after an hour.",
        ),
        Rule(
            f"{tool}.link_downed",
            ("link-flapping",),
            DEGRADED,
            DRAIN,
            "LinkDownedCounter above the limit given, at its end, or climbing by 10 an hour or more. A node's "
            "reboot counts as one.",
            "Compare with the node's reboots; then swap cable or module.",
        ),
    )


class Counted(NamedTuple):
    """What counters come to: findings, and facts bad_ports, saturated, congestion_only."""

    findings: list[Finding]
    facts: dict[str, Any]


def judge_counters(tool: str, ports: Iterable[Port], context: Context) -> Counted:
    """Judge ports one by one; sums over all ports, management ports and ports called unused do not count."""
    minutes = demand(context, "counters_cleared_minutes_ago", float)
    limit = demand(context, "max_flaps_per_device", float)
    unused = unused_ports(context)
    errors, flaps = rules(tool)
    findings: list[Finding] = []
    bad: list[dict[str, Any]] = []
    saturated: list[str] = []
    congestion: list[str] = []
    for port in ports:
        if port.port is None or port_key(port.name) in unused:
            continue
        saturated += [f"{port.name}/{count.name}" for count in port.counts if count.saturated]
        found = _errors(errors, port, minutes) or _flaps(flaps, port, minutes, limit)
        if found:
            findings.append(found)
            names = [DOWNED] if found.check == flaps.name else list(PHYSICAL)
            counters = [count.name for count in port.counts if count.value and count.known in names]
            bad.append({"guid": port.guid, "port": port.port, "counters": counters})
        elif port.port and _only_load(port):
            congestion.append(port.name)
    findings.sort(key=lambda finding: finding.status != FAIL)
    return Counted(findings, {"bad_ports": bad, "saturated": saturated, "congestion_only": congestion})


def _only_load(port: Port) -> bool:
    names = {count.known for count in port.counts if count.value and count.known not in DATA}
    return WAIT in names and names <= _CONGESTION


def _per_hour(count: Count, minutes: Optional[float]) -> Optional[float]:
    return None if minutes is None or minutes <= 0 else count.value * 60.0 / minutes


def _errors(rule: Rule, port: Port, minutes: Optional[float]) -> Optional[Finding]:
    counts = [count for count in port.counts if count.known in PHYSICAL and count.value]
    if not counts:
        return None
    ended = [count for count in counts if count.saturated]
    rates = [rate for rate in (_per_hour(count, minutes) for count in counts) if rate is not None]
    fastest = max(rates, default=None)
    said = ", ".join(f"{count.name} {count.value}" for count in counts)
    where = f"{port.name} ({port.node})" if port.node != port.guid else port.name
    evidence: dict[str, Any] = {count.name: count.value for count in counts}
    if ended:
        return say(rule, port.name, FAIL, f"{where}: {said}; {ended[0].name} stands at its end", **evidence)
    if fastest is not None and fastest >= BROKEN_PER_HOUR:
        return say(rule, port.name, FAIL, f"{where}: {said}: {fastest:.0f} an hour", **evidence)
    if fastest is not None and fastest >= SUSPECT_PER_HOUR:
        return say(rule, port.name, DEGRADED, f"{where}: {said}: {fastest:.0f} an hour", **evidence)
    if fastest is None and max(count.value for count in counts) >= BROKEN_PER_HOUR:
        return say(rule, port.name, DEGRADED, f"{where}: {said}; unknown since when", **evidence)
    return None


def _flaps(rule: Rule, port: Port, minutes: Optional[float], limit: Optional[float]) -> Optional[Finding]:
    count = next((count for count in port.counts if count.known == DOWNED), None)
    if count is None or not count.value:
        return None
    rate = _per_hour(count, minutes)
    if limit is not None and count.value > limit:
        why = f"more than {limit:g}"
    elif limit is None and count.saturated:
        why = "at its end"
    elif limit is None and rate is not None and rate >= FLAPS_PER_HOUR:
        why = f"{rate:.0f} an hour"
    else:
        return None
    evidence: dict[str, Any] = {count.name: count.value}
    said = f"{port.name} ({port.node}): {count.name} {count.value}, {why}"
    return say(rule, port.name, DEGRADED, said, **evidence)
