"""Judge perfquery: the counters of one port, or of all ports of a switch. Pure."""

from collections.abc import Iterable
from typing import Any

from weaklink.checks.tools import ib_errors, ib_fabric
from weaklink.checks.tools.base import Context, Judged, close, demand, say
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN
from weaklink.observe.tools.ib_counters import PHYSICAL, Count, Port
from weaklink.observe.tools.perfquery import NAME, Perf

RULES = (*ib_fabric.rules(NAME), *ib_errors.rules(NAME))


def judge(record: Perf, context: Context) -> Judged:
    """Return facts lid, ports (how many), bad (``<lid>/<port>``), counters, saturated, and what is wrong.

    A port printed twice is judged once: a 64-bit counter goes before the one that stops early, the later before the
    earlier; with ``seconds`` between two prints of one form, their difference counts. The sum over all ports (-a,
    port 255) is judged where nothing else is printed; it can't name the port, and a sum at its end need not mean a
    single link, so that it is degraded at most.
    """
    seconds = demand(context, "seconds", float)
    ports = _merged(record)
    single = [port for port in ports if port.port is not None]
    sums = [port._replace(port=255) for port in ports if port.port is None]
    counted = ib_errors.judge_counters(NAME, single or sums, context)
    climbed = _differences(record) if seconds else []
    if seconds and climbed:
        during = {**context, "counters_cleared_minutes_ago": seconds / 60}
        counted = ib_errors.judge_counters(NAME, climbed, during)
    findings = counted.findings
    if not single:
        findings = [finding._replace(status=DEGRADED) if finding.status == FAIL else finding for finding in findings]
    findings = ib_fabric.ran(NAME, record.complaints, found=bool(record.ports)) + findings
    if (
        record.ports
        and not record.troubles
        and not any(port.value(name) is not None for port in ports for name in PHYSICAL)
    ):
        # The 64-bit form of older cards, and those of lanes and service levels, hold no counter of errors at all.
        ran, _ = ib_fabric.rules(NAME)
        findings.append(say(ran, NAME, UNKNOWN, f"{NAME}: no counter of link errors is printed", "nothing-tested"))
    facts: dict[str, Any] = {
        "lid": record.lid,
        "ports": len(single or sums),
        "bad": [f"{port['guid']}/{port['port']}" for port in counted.facts["bad_ports"]],
        "counters": {port.name: {count.name: count.value for count in port.counts} for port in ports},
        **counted.facts,
    }
    return close(NAME, facts, findings, record.troubles, f"{NAME}: no link errors in what was asked")


def _merged(record: Perf) -> list[Port]:
    """Return each port once, with the best count of each counter."""
    ports: dict[str, Port] = {}
    for port in record.ports:
        known = ports.get(port.name)
        ports[port.name] = port if known is None else known._replace(counts=_best((*known.counts, *port.counts)))
    return list(ports.values())


def _best(counts: Iterable[Count]) -> tuple[Count, ...]:
    best: dict[str, Count] = {}
    for count in counts:
        known = best.get(count.known)
        if known is None or count.wide >= known.wide:
            best[count.known] = count
    return tuple(best.values())


def _differences(record: Perf) -> list[Port]:
    """Return what single ports counted between their first and their last print of one form."""
    first: dict[tuple[str, str], Port] = {}
    climbed: dict[tuple[str, str], Port] = {}
    for form, port in zip(record.forms, record.ports):
        start = first.setdefault((form, port.name), port)
        if start is not port and port.port is not None:
            before = {count.name: count.value for count in start.counts}
            # A counter that was cleared in between starts again.
            counts = (
                count if count.saturated else count._replace(value=max(0, count.value - before.get(count.name, 0)))
                for count in port.counts
            )
            climbed[form, port.name] = port._replace(counts=tuple(counts))
    return list(climbed.values())
