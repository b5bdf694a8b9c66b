"""Judge ``nvidia-smi nvlink``: links that are down or slower than their peers, error counters, GPUs. Pure."""

from collections import Counter
from typing import Any, Optional

from weaklink.checks.tools import nvidia_common as common
from weaklink.checks.tools.base import DRAIN, NOTE, TRUNCATED, Context, Judged, Rule, close, demand, say
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding
from weaklink.observe.tools.nvidia_smi_nvlink import NAME, Gpu, Record

LINKS = Rule(
    "gpu.nvlinks",
    ("nvlink-down",),
    FAIL,
    DRAIN,
    "Fewer links are active than expected_links (fail); without it, fewer than the other GPUs of the node (degraded).",
    "Drain the node; see the fabric manager's log; reset the GPUs, reseat or replace the board or bridge.",
)
SPEED = Rule(
    "gpu.nvlink_speed",
    ("rate-below-expected",),
    DEGRADED,
    NOTE,
    "A link is slower than most links of the node.",
    "Reset the GPUs so that the links train anew.",
)
ERRORS = Rule(
    "gpu.nvlink_errors",
    ("nvlink-fatal", "nvlink-down"),
    FAIL,
    DRAIN,
    "A counter of failed recoveries is above 0 or a counter is saturated (fail); links had to recover (degraded). "
    "Replays and corrected errors alone are normal.",
    "Look for Xid 74 and 144 to 150 in the kernel log; reset the GPUs; replace the board if it comes back.",
)
RULES = (*common.RULES, LINKS, SPEED, ERRORS)
_SATURATED = frozenset({0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF})
_SLOWER = 0.99


def _active(gpu: Gpu, *, status: bool) -> Optional[int]:
    """Return how many links are up, None where the output does not tell; 0 where all are said to be inactive."""
    if gpu.all_down:
        return 0
    if not gpu.links:
        return 0 if gpu.unsupported else None
    if status:
        told = [link for link in gpu.links.values() if link.up is not None]
        return sum(bool(link.up) for link in told) if told else None
    return len(gpu.links)


def _down(gpu: Gpu) -> str:
    numbers = [str(link.number) for link in gpu.links.values() if link.up is False]
    return f" (inactive: {', '.join(numbers)})" if numbers else f" ({gpu.message})" if gpu.message else ""


def _counts(active: dict[int, Optional[int]], record: Record, context: Context) -> list[Finding]:
    wanted = demand(context, "expected_links", int)
    cut = {record.gpus[-1].place} if record.gpus and (record.troubles or _ends_early(record, wanted)) else set()
    most = max((number for number in active.values() if number is not None), default=0)
    found = []
    for gpu in record.gpus:
        number = active[gpu.place]
        seen_down = gpu.all_down or any(link.up is False for link in gpu.links.values())
        if number is None or (gpu.place in cut and not seen_down):
            continue
        if wanted is not None and number < wanted:
            message = f"GPU {gpu.place}: {number} of {wanted} NVLinks are active{_down(gpu)}; {LINKS.remedy}"
            found.append(say(LINKS, str(gpu.place), FAIL, message, active=number, wanted=wanted))
        elif wanted is None and number < most:
            message = (
                f"GPU {gpu.place}: {number} NVLinks are active, another GPU has {most}{_down(gpu)}; {LINKS.remedy}"
            )
            found.append(say(LINKS, str(gpu.place), DEGRADED, message, active=number, most=most))
    return found


def _ends_early(record: Record, wanted: Optional[int]) -> bool:
    """Tell whether the last GPU's links stop before ``wanted``, with no word of links that are down, as a cut does."""
    if not record.gpus or wanted is None:
        return False
    last = record.gpus[-1]
    told_down = last.all_down or last.unsupported or any(link.up is False for link in last.links.values())
    alike = any(len(gpu.links) == len(last.links) for gpu in record.gpus[:-1])
    return not told_down and not alike and 0 < len(last.links) < wanted and max(last.links) == len(last.links) - 1


def _speeds(record: Record) -> list[Finding]:
    speeds = [(gpu.place, link) for gpu in record.gpus for link in gpu.links.values() if link.up and link.speed]
    if not speeds:
        return []
    usual = Counter(link.speed or 0.0 for _, link in speeds).most_common(1)[0][0]
    found = []
    for index, link in speeds:
        speed = link.speed or 0.0
        if speed < usual * _SLOWER:
            message = f"GPU {index}: link {link.number} runs at {speed} GB/s, most run at {usual} GB/s; {SPEED.remedy}"
            found.append(say(SPEED, f"{index}/{link.number}", DEGRADED, message, speed=speed, usual=usual))
    return found


def _errors(record: Record) -> list[Finding]:
    worst: list[Finding] = []
    mild: list[Finding] = []
    for gpu in record.gpus:
        for link in gpu.links.values():
            for name, count in link.counters.items():
                low, where = name.lower(), f"GPU {gpu.place}: link {link.number}: {name} is {count}"
                subject = f"{gpu.place}/{link.number}"
                if count in _SATURATED:
                    message = f"{where}, its highest value; {ERRORS.remedy}"
                    worst.append(say(ERRORS, subject, FAIL, message, counter=name, count=count))
                elif count and "recovery failed" in low:
                    worst.append(say(ERRORS, subject, FAIL, f"{where}; {ERRORS.remedy}", counter=name, count=count))
                elif count and "recovery" in low:
                    message = f"{where}; {ERRORS.remedy}"
                    mild.append(say(ERRORS, subject, DEGRADED, message, "nvlink-down", counter=name, count=count))
    return worst + mild


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; ``expected_gpus`` and ``expected_links`` (a GPU) are demands."""
    active = {gpu.place: _active(gpu, status=record.status) for gpu in record.gpus}
    found = common.said_by_notices(record.notices, NAME)
    listed = len(record.gpus) if record.gpus else None
    early = _ends_early(record, demand(context, "expected_links", int))
    whole = not record.troubles and not early
    found += common.counted(listed, [], record.notices, {**context, "expected_bus_ids": None}, whole=whole)
    links = _counts(active, record, context)
    found += links + _errors(record) + _speeds(record)
    told = [number for number in active.values() if number is not None]
    if demand(context, "expected_links", int) and record.gpus and not told and not record.troubles:
        found.append(say(common.RAN, "links", UNKNOWN, "the output does not tell which links are active"))
    if early and not record.troubles:
        message = f"GPU {record.gpus[-1].place}: the output ends after {len(record.gpus[-1].links)} of its links"
        found.append(say(common.RAN, "links", UNKNOWN, message, TRUNCATED))
    errors = {
        f"{gpu.place}/{link.number}": {name: count for name, count in link.counters.items() if count}
        for gpu in record.gpus
        for link in gpu.links.values()
        if any(link.counters.values())
    }
    facts: dict[str, Any] = {
        "gpus": listed if whole else None,
        "active_links": {str(index): number for index, number in active.items()},
        "inactive_links": {
            str(gpu.place): [link.number for link in gpu.links.values() if link.up is False] for gpu in record.gpus
        },
        "bad_gpus": [int(finding.subject) for finding in links],
        "link_speed_gb_per_s": {
            str(gpu.place): min((link.speed for link in gpu.links.values() if link.up and link.speed), default=None)
            for gpu in record.gpus
        },
        "errors": errors,
    }
    return close(NAME, facts, found, record.troubles, "every NVLink that is expected is active")
