"""Judge a port's QoS for RoCE: one lossless priority, and the code points that lead to it. Pure.

Sources: IEEE 802.1Qbb (PFC by priority), 802.1Qaz, RFC 2474; a pause of all priorities stops all traffic of the port.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Optional

from weaklink.checks.tools.base import Context, Rule, demand, say
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding
from weaklink.observe.tools.eth_qos import HIGHEST_DSCP, PRIORITIES

DECIDES = (
    "The priority of lossless_priority must have PFC on; rdma_dscp must lead to it, cnp_dscp to another one, and the"
    " port must trust what required_trust names (all else fails); PFC on every priority is degraded."
)
REMEDY = "Set PFC, trust and map as on the other nodes and the switch (mlnx_qos, or dcb pfc, app and apptrust)."
CAUSES = ("qos-not-configured", "qos-misclassified", "global-pause")


class Qos(NamedTuple):
    """What a tool told: None where it did not tell it."""

    pfc: Optional[Mapping[int, bool]]
    dscp_map: Optional[Mapping[int, int]]
    trust: Optional[str]
    prio_buffer: Optional[Mapping[int, int]] = None
    buffers: Optional[Mapping[int, int]] = None


def number(context: Context, key: str, highest: int) -> Optional[int]:
    """Return a whole number 0..highest that the context demands, None where it demands nothing."""
    value = demand(context, key, int)
    if value is not None and not 0 <= value <= highest:
        raise ValueError(f"context: key {key!r}: found {value}, wanted 0 to {highest}")
    found: Optional[int] = value
    return found


def judge_qos(rule: Rule, subject: str, qos: Qos, context: Context) -> Iterator[Finding]:
    """Yield what is wrong with a port's QoS, the root cause first."""
    lossless = number(context, "lossless_priority", PRIORITIES - 1)
    if lossless is not None:
        yield from _pfc(rule, subject, qos, lossless)
    yield from _trust(rule, subject, qos, context)
    point = number(context, "rdma_dscp", HIGHEST_DSCP)
    if point is not None and lossless is not None:
        yield from _rdma(rule, subject, qos, point, lossless)
    notes = number(context, "cnp_dscp", HIGHEST_DSCP)
    if notes is not None and lossless is not None and qos.dscp_map is not None:
        found = qos.dscp_map.get(notes)
        if found is None or found == lossless:
            where = "is not in the map" if found is None else f"leads to the lossless priority {lossless}"
            text = f"{subject}: code point {notes} of congestion notifications {where}; give it a priority of its own"
            yield say(rule, subject, FAIL, text, cause="qos-misclassified", found=found)


def _pfc(rule: Rule, subject: str, qos: Qos, lossless: int) -> Iterator[Finding]:
    if qos.pfc is None or lossless not in qos.pfc:
        text = f"{subject}: the output does not tell whether priority {lossless} has PFC"
        yield say(rule, subject, UNKNOWN, text, cause="output-truncated")
        return
    on = sorted(key for key, value in qos.pfc.items() if value)
    if lossless not in on:
        text = f"{subject}: PFC is on for {on or 'no priority'}, wanted {lossless}"
        yield say(rule, subject, FAIL, text, cause="qos-not-configured", on=on, wanted=lossless)
    elif len(on) == PRIORITIES:
        text = f"{subject}: PFC is on for every priority, wanted {lossless} alone: a pause stops all traffic"
        yield say(rule, subject, DEGRADED, text, cause="global-pause", on=on)
    if lossless in on and qos.buffers and qos.prio_buffer and lossless in qos.prio_buffer:
        buffer = qos.prio_buffer[lossless]
        if qos.buffers.get(buffer) == 0:
            text = f"{subject}: priority {lossless} has PFC but its receive buffer {buffer} has no bytes: no headroom"
            yield say(rule, subject, DEGRADED, text, cause="qos-not-configured", buffer=buffer)


def _trust(rule: Rule, subject: str, qos: Qos, context: Context) -> Iterator[Finding]:
    wanted = demand(context, "required_trust", str)
    if wanted is None:
        return
    if qos.trust is None:
        text = f"{subject}: the output does not tell what the port trusts, wanted {wanted}"
        yield say(rule, subject, UNKNOWN, text, cause="output-truncated")
    elif qos.trust.split()[0].lower() != wanted.lower():
        text = f"{subject}: trusts {qos.trust}, wanted {wanted}: RDMA does not reach its priority"
        yield say(rule, subject, FAIL, text, cause="qos-not-configured", found=qos.trust, wanted=wanted)


def _rdma(rule: Rule, subject: str, qos: Qos, point: int, lossless: int) -> Iterator[Finding]:
    if (qos.trust or "").startswith("pcp") and "dscp" not in (qos.trust or ""):
        text = f"{subject}: trusts {qos.trust}, so code point {point} of RDMA does not lead to priority {lossless}"
        yield say(rule, subject, FAIL, text, cause="qos-misclassified", trust=qos.trust)
        return
    if qos.dscp_map is None:
        text = f"{subject}: the output does not hold the map of code points, wanted {point} to {lossless}"
        yield say(rule, subject, UNKNOWN, text, cause="output-truncated")
        return
    found = qos.dscp_map.get(point)
    if found != lossless:
        where = "is not in the map" if found is None else f"leads to priority {found}"
        text = f"{subject}: code point {point} of RDMA {where}, wanted {lossless}"
        yield say(rule, subject, FAIL, text, cause="qos-misclassified", found=found, wanted=lossless)
