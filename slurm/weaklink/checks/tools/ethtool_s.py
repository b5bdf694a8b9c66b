"""Judge a netdev's counters, from one reading or from what they moved between two. Pure.

What a counter says: kernel documentation of mlx5's ethtool counters. Counters since boot say nothing about now: errors
are judged by what moved, unless they are saturated.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Optional

from weaklink.checks.tools.base import DID_NOT_RUN, DRAIN, NOTE, Context, Judged, Rule, close, demand, say
from weaklink.checks.tools.eth_qos import number
from weaklink.checks.tools.mlx_common import did_not_run
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding, bad_first, worst
from weaklink.observe.tools.ethtool_s import Record, Snapshot

_HOURLY = 1000.0
_SATURATED = frozenset({2**32 - 1, 2**64 - 1, 2**63 - 1})
_SHARE = 0.5  # of the bytes that moved: an RDMA test outweighs all else on the port
_TEST_BYTES = 10_000_000  # less is chatter (ARP, LLDP, ssh), not a test
_STALLED = 30  # percent of the last second; mlx5 counts an event above it

_BYTES = re.compile(r"([rt])x_(?:prio|priority_|pri)(\d)_bytes\Z|([rt])x_bytes_pri(\d)\Z")
_PAUSE = re.compile(
    r"[rt]x_(?:prio|priority_)(\d)_(?:pause|xoff|xoff_tx|xoff_rx)\Z|[rt]x_pfc_ena_frames_pri(\d)\Z|[rt]x_pfc_frames_pri(\d)\Z"
)
_GLOBAL = re.compile(
    r"[rt]x_(?:global_pause|pause_frames|pause|flow_control_xoff|pause_ctrl_phy|link_xoff)(?:\.nic)?\Z"
)
_STORM = re.compile(r"[rt]x_pause_storm_(?:warning|error)_events\Z")
_PHYSICAL = re.compile(
    r"rx_(?:symbol_err_phy|pcs_symbol_err_phy|crc_errors_phy|in_range_len_errors_phy|crc_errors|fcs_errors)\Z"
)
_STALLS = re.compile(r"outbound_pci_(?:stalled_(?:rd|wr)_events|buffer_overflow)\Z")
_DROPS = re.compile(r"[rt]x_prio(\d)_(?:discards|buf_discard|cong_discard)\Z")

CLASS = Rule(
    "ethtool_s.class",
    ("qos-misclassified",),
    FAIL,
    DRAIN,
    "Between two readings around an RDMA test, most bytes must have moved in lossless_priority; with one reading, bytes"
    " in other priorities and none ever in that one fail.",
    "Check trust, the DSCP map and the traffic class that the application sets (NCCL_IB_TC, perftest --tclass).",
)
PAUSES = Rule(
    "ethtool_s.pause",
    ("global-pause", "qos-misclassified"),
    FAIL,
    DRAIN,
    "Pause frames above max_pause_frames_per_s, or a pause storm, are degraded; pauses of the whole link where one"
    " priority is to be lossless fail, pauses of another priority are degraded.",
    "Look for the slow receiver; set PFC on the lossless priority alone, on both ends.",
)
PHYSICAL = Rule(
    "ethtool_s.physical",
    ("bad-cable",),
    FAIL,
    DRAIN,
    "Symbol or CRC errors of the physical layer that climb by a thousand an hour, or are saturated, fail; slower ones"
    " are degraded. Bits that FEC corrected are no errors.",
    "Clean and reseat; swap the cable, then the module.",
)
FLAPS = Rule(
    "ethtool_s.flaps",
    ("link-flapping",),
    DEGRADED,
    NOTE,
    "link_down_events_phy above max_flaps_per_device is degraded.",
    "Watch it; check cable and module.",
)
STALLS = Rule(
    "ethtool_s.pci_stalls",
    ("pcie-link-limited",),
    DEGRADED,
    NOTE,
    "The NIC waits for PCIe: stall events or overflows between two readings, or 30 % of the last second, are degraded.",
    "Check PCIe width and speed, MaxReadReq, relaxed ordering, IOMMU and the GPU's place.",
)
DROPS = Rule(
    "ethtool_s.drops",
    ("qos-not-configured",),
    DEGRADED,
    DRAIN,
    "Frames of the lossless priority that were dropped between two readings are degraded.",
    "Check PFC on both ends and the headroom of the receive buffer.",
)
RULES = (CLASS, PAUSES, PHYSICAL, FLAPS, STALLS, DROPS)


class _Moved(NamedTuple):
    """What to judge: counters' moves and seconds between two readings, or None and the last reading alone."""

    delta: Optional[Mapping[str, int]]
    last: Mapping[str, int]
    seconds: Optional[float]
    subject: str


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; ``seconds`` lie between the first and the last snapshot of each netdev.

    The facts are those of the netdev with the worst finding. Netdevs that ``fabric_netdevs`` does not name are ignored.
    """
    wanted = demand(context, "fabric_netdevs", list)
    names = list(dict.fromkeys(item.netdev for item in record.snapshots))
    counted = [name for name in names if wanted is None or name is None or name in wanted]
    judged = []
    for name in counted:
        snapshots = [item for item in record.snapshots if item.netdev == name]
        found = _netdev(snapshots, context)
        judged.append((_facts(snapshots, found[0]), found[1]))
    said = [finding for _, found in judged for finding in found]
    if names and None not in names:
        lacks = [str(name) for name in wanted or () if name not in names]
        said += [say(CLASS, name, UNKNOWN, f"{name}: the output does not hold it", cause=DID_NOT_RUN) for name in lacks]
    if not record.snapshots and record.complaints:
        said.append(did_not_run("ethtool-S", record.complaints))
    said.sort(key=lambda finding: bad_first(finding.status))
    judged.sort(key=lambda pair: bad_first(worst(finding.status for finding in pair[1])))
    facts: dict[str, Any] = {"ignored": [name for name in names if name not in counted]}
    facts.update(judged[0][0] if judged else {"snapshots": 0})
    return close("ethtool-S", facts, said, record.troubles)


def _netdev(snapshots: list[Snapshot], context: Context) -> tuple[_Moved, list[Finding]]:
    """Return what moved on one netdev, and what is wrong with it."""
    lossless = number(context, "lossless_priority", 7)
    seconds = demand(context, "seconds", float)
    limit = demand(context, "max_pause_frames_per_s", float)
    flaps = demand(context, "max_flaps_per_device", int)
    if seconds is not None and seconds <= 0:
        raise ValueError(f"context: key 'seconds': found {seconds}, wanted more than 0")
    first, last = snapshots[0], snapshots[-1]
    delta = {key: last.counters[key] - value for key, value in first.counters.items() if key in last.counters}
    moved = _Moved(delta if len(snapshots) > 1 else None, last.counters, seconds, last.netdev or "netdev")
    said = list(_class(moved, lossless, paired_wanted="snapshots" in context, pauses_wanted=limit is not None))
    said += _pauses(moved, lossless, limit)
    said += _physical(moved, demand(context, "counters_cleared_minutes_ago", float))
    if flaps is not None:
        said += _flaps(moved, flaps)
    said += _stalls(moved)
    said += _drops(moved, lossless)
    return moved, said


def _back(moved: _Moved, names: list[str]) -> list[str]:
    """Return the counters that went backwards: reset between the readings, or cut in the last one."""
    return [name for name in names if moved.delta is not None and moved.delta.get(name, 0) < 0]


def _class(moved: _Moved, lossless: Optional[int], *, paired_wanted: bool, pauses_wanted: bool) -> Iterator[Finding]:
    if lossless is None:
        return
    values = moved.delta if moved.delta is not None else moved.last
    by_priority: dict[int, int] = {}
    for name, value in values.items():
        match = _BYTES.match(name)
        if match:
            key = int(match.group(2) or match.group(4))
            by_priority[key] = by_priority.get(key, 0) + value
    if pauses_wanted and sum(by_priority.values()) < _TEST_BYTES:
        return  # the readings are for the pauses: no bytes by priority, or an idle port, are no finding
    if not by_priority and any(_PAUSE.match(name) or _GLOBAL.match(name) for name in values):
        return  # pauses come behind the bytes: somebody filtered the output for them
    back = _back(moved, [name for name in values if _BYTES.match(name)])
    lacks = ""
    if moved.delta is None and paired_wanted:
        lacks = "one reading alone, wanted one before and one after the test"
    elif lossless not in by_priority:
        lacks = f"the output holds no bytes of priority {lossless}"
    elif back:
        lacks = f"{back[0]} went back; the counters were reset, or the text is cut"
    if lacks:
        yield say(CLASS, moved.subject, UNKNOWN, f"{moved.subject}: {lacks}", cause="output-truncated")
    else:
        yield from _shares(moved, by_priority, lossless)


def _shares(moved: _Moved, by_priority: Mapping[int, int], lossless: int) -> Iterator[Finding]:
    total, mine = sum(by_priority.values()), by_priority[lossless]
    most = max(by_priority, key=lambda key: by_priority[key])
    evidence: dict[str, Any] = {"bytes": {str(key): value for key, value in sorted(by_priority.items())}}
    if moved.delta is None:
        if mine == 0 and total >= _TEST_BYTES:
            text = f"{moved.subject}: no byte ever in priority {lossless}; {by_priority[most]} in priority {most}"
            yield say(CLASS, moved.subject, FAIL, text, **evidence)
    elif total < _TEST_BYTES:
        text = f"{moved.subject}: {total} bytes moved between the readings: no test was running"
        yield say(CLASS, moved.subject, UNKNOWN, text, cause="nothing-tested", **evidence)
    elif mine < total * _SHARE:
        text = f"{moved.subject}: {mine} of {total} bytes moved in priority {lossless}, {by_priority[most]} in {most}"
        yield say(CLASS, moved.subject, FAIL, text, **evidence)


def _pauses(moved: _Moved, lossless: Optional[int], limit: Optional[float]) -> Iterator[Finding]:
    values = moved.delta if moved.delta is not None else moved.last
    whole = {name: value for name, value in values.items() if _GLOBAL.match(name) and value > 0}
    own = {name: value for name, value in values.items() if _PAUSE.match(name) and value > 0}
    if limit is not None:
        yield from _pause_rate(moved, {**whole, **own}, limit)
    storms: dict[str, Any] = {name: value for name, value in values.items() if _STORM.match(name) and value > 0}
    if storms:
        words = ", ".join(f"{name} {value}" for name, value in storms.items())
        yield say(PAUSES, moved.subject, DEGRADED, f"{moved.subject}: pause storm: {words}", **storms)
    if lossless is None or limit is not None:
        return
    # pause_ctrl_phy counts PFC frames too, so it says nothing about which kind they are.
    real: dict[str, Any] = {name: value for name, value in whole.items() if not name.endswith("_ctrl_phy")}
    if real:
        words = ", ".join(f"{name} {value}" for name, value in real.items())
        text = f"{moved.subject}: pauses of the whole link ({words}), wanted PFC on priority {lossless} alone"
        yield say(PAUSES, moved.subject, FAIL, text, **real)
    other: dict[str, Any] = {name: value for name, value in own.items() if _priority(name) != lossless}
    if other:
        words = ", ".join(f"{name} {value}" for name, value in other.items())
        text = f"{moved.subject}: pauses of another priority than {lossless}: {words}"
        yield say(PAUSES, moved.subject, DEGRADED, text, cause="qos-misclassified", **other)


def _pause_rate(moved: _Moved, counts: Mapping[str, int], limit: float) -> Iterator[Finding]:
    if moved.delta is None or moved.seconds is None:
        lacks = "a second reading" if moved.delta is None else "the seconds between the readings"
        text = f"{moved.subject}: pause frames a second need {lacks}"
        yield say(PAUSES, moved.subject, UNKNOWN, text, cause=DID_NOT_RUN)
        return
    names = [name for name in moved.delta if _GLOBAL.match(name) or _PAUSE.match(name)]
    back = _back(moved, names)
    if not names or back:
        text = f"{moved.subject}: {back[0] + ' went back' if back else 'the output holds no pause frames'}"
        yield say(PAUSES, moved.subject, UNKNOWN, text, cause="output-truncated")
        return
    rates = {name: round(value / moved.seconds, 3) for name, value in counts.items()}
    high: dict[str, Any] = {name: rate for name, rate in rates.items() if rate > limit}
    if high:
        words = ", ".join(f"{name} {rate:g}/s" for name, rate in sorted(high.items(), key=lambda pair: -pair[1]))
        text = f"{moved.subject}: pause frames above {limit:g}/s: {words}"
        yield say(PAUSES, moved.subject, DEGRADED, text, **high)


def _priority(name: str) -> Optional[int]:
    match = _PAUSE.match(name)
    digit = next((group for group in match.groups() if group), None) if match else None
    return None if digit is None else int(digit)


def _physical(moved: _Moved, minutes: Optional[float]) -> Iterator[Finding]:
    """Yield errors of the physical layer; one reading counts where it is known since when (``minutes`` ago)."""
    if moved.delta is None and minutes:
        moved = moved._replace(delta=moved.last, seconds=minutes * 60.0)
    for name, value in moved.last.items():
        if _PHYSICAL.match(name) and value in _SATURATED:
            yield say(PHYSICAL, moved.subject, FAIL, f"{moved.subject}: {name} is saturated at {value}", value=value)
    for name, value in (moved.delta or {}).items():
        if not _PHYSICAL.match(name) or value <= 0:
            continue
        hourly = value * 3600.0 / moved.seconds if moved.seconds else None
        status = FAIL if hourly is not None and hourly >= _HOURLY else DEGRADED
        rate = "" if hourly is None else f", {hourly:.0f} an hour"
        text = f"{moved.subject}: {name} moved by {value}{rate}, wanted 0"
        yield say(PHYSICAL, moved.subject, status, text, moved=value, hourly=hourly)


def _flaps(moved: _Moved, allowed: int) -> Iterator[Finding]:
    values = moved.delta if moved.delta is not None else moved.last
    count = values.get("link_down_events_phy")
    if count is not None and count > allowed:
        yield say(
            FLAPS, moved.subject, DEGRADED, f"{moved.subject}: the link went down {count} times, allowed {allowed}"
        )


def _stalls(moved: _Moved) -> Iterator[Finding]:
    counts: dict[str, Any] = {
        name: value for name, value in (moved.delta or {}).items() if _STALLS.match(name) and value > 0
    }
    for name in ("outbound_pci_stalled_wr", "outbound_pci_stalled_rd"):
        if moved.last.get(name, 0) >= _STALLED:
            counts[name] = moved.last[name]
    if counts:
        words = ", ".join(f"{name} {value}" for name, value in counts.items())
        yield say(STALLS, moved.subject, DEGRADED, f"{moved.subject}: the NIC waits for PCIe: {words}", **counts)


def _drops(moved: _Moved, lossless: Optional[int]) -> Iterator[Finding]:
    for name, value in (moved.delta or {}).items():
        match = _DROPS.match(name)
        if match and value > 0 and lossless is not None and int(match.group(1)) == lossless:
            text = f"{moved.subject}: {name} moved by {value}: the lossless priority loses frames"
            yield say(DROPS, moved.subject, DEGRADED, text, moved=value)


def _facts(snapshots: list[Snapshot], moved: _Moved) -> dict[str, Any]:
    facts: dict[str, Any] = {"snapshots": len(snapshots), "netdev": snapshots[-1].netdev}
    if moved.delta is not None:
        facts["delta"] = dict(moved.delta)
        if moved.seconds:
            pauses = {name: value for name, value in moved.delta.items() if _GLOBAL.match(name) or _PAUSE.match(name)}
            facts["pause_frames_per_s"] = {name: value / moved.seconds for name, value in pauses.items()}
    else:
        facts["counters"] = dict(moved.last)
    corrected, bits = moved.last.get("rx_corrected_bits_phy"), moved.last.get("rx_bits_phy")
    if moved.delta is not None:
        corrected, bits = moved.delta.get("rx_corrected_bits_phy"), moved.delta.get("rx_bits_phy")
    if corrected is not None and bits:
        facts["corrected_bit_rate"] = corrected / bits
    return facts
