"""Judge a netdev's link, firmware and pause settings as ethtool reports them. Pure."""

from collections.abc import Iterator
from typing import Any, Optional

from weaklink.checks.tools.base import DID_NOT_RUN, DRAIN, NOTE, Context, Judged, Rule, close, demand, say
from weaklink.checks.tools.mlx_common import did_not_run, firmware
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding
from weaklink.observe.tools.ethtool import Netdev, Record
from weaklink.observe.tools.mlx_common import plain_number

_SLACK = 0.999

LINK = Rule(
    "ethtool.link",
    ("link-down",),
    FAIL,
    DRAIN,
    "Link detected: no fails, on the netdevs of fabric_netdevs where they are named; source: the kernel's carrier.",
    "Check cable, module and switch port; the tool's word in brackets names the reason.",
)
RATE = Rule(
    "ethtool.rate",
    ("rate-below-expected",),
    DEGRADED,
    DRAIN,
    "A speed below expected_rate_gbps is degraded, equal is enough; 'Unknown!' is no number.",
    "Compare advertised and supported modes of both ends; reseat the cable.",
)
FIRMWARE = Rule(
    "ethtool.firmware",
    ("fw-reset-pending", "fw-version-wrong"),
    FAIL,
    NOTE,
    "The firmware that runs, as the driver reports it, must be that of required_fw.",
    "Burn the wanted image and reset the card.",
)
PAUSE = Rule(
    "ethtool.pause",
    ("global-pause",),
    FAIL,
    NOTE,
    "Pause frames for the whole link, where one priority is to be lossless, fail: the two exclude each other.",
    "ethtool -A NETDEV rx off tx off, then PFC on the lossless priority.",
)
RULES = (LINK, RATE, FIRMWARE, PAUSE)


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; netdevs that ``fabric_netdevs`` does not name are ignored."""
    wanted = demand(context, "fabric_netdevs", list)
    said: list[Finding] = []
    counted = [item for item in record.netdevs if wanted is None or item.name is None or item.name in wanted]
    for item in counted:
        if item.kind == "settings" and record.complaints and item.speed_mbps is None and item.link_detected is None:
            said.append(did_not_run("ethtool", record.complaints, item.name or "netdev"))
        else:
            said += _judge(item, context)
    seen = {item.name for item in record.netdevs}
    if wanted is not None and None not in seen:
        for name in wanted:
            if name not in seen and record.netdevs:
                text = f"{name}: the output does not hold it"
                said.append(say(LINK, str(name), UNKNOWN, text, cause=DID_NOT_RUN))
    if not record.netdevs and record.complaints:
        said.append(did_not_run("ethtool", record.complaints))
    ignored = [item.name for item in record.netdevs if item not in counted]
    return close("ethtool", _facts(record, ignored), said, record.troubles)


def _judge(item: Netdev, context: Context) -> Iterator[Finding]:
    subject = item.name or "netdev"
    if item.kind == "driver":
        if "required_fw" in context:
            yield from firmware(FIRMWARE, subject, burned=None, running=item.firmware, psid=item.psid, context=context)
        return
    if item.kind == "pause":
        if demand(context, "lossless_priority", int) is not None and (item.pause_rx or item.pause_tx):
            yield say(PAUSE, subject, FAIL, f"{subject}: pause of the whole link is on, wanted PFC on one priority")
        return
    if item.link_detected is False:
        why = f" ({item.why_not})" if item.why_not else ""
        yield say(LINK, subject, FAIL, f"{subject}: no link detected{why}, wanted one")
        return
    wanted = demand(context, "expected_rate_gbps", float)
    if wanted is None:
        return
    if item.speed_mbps is None:
        yield say(
            RATE, subject, UNKNOWN, f"{subject}: no speed is known, wanted {wanted:g} Gb/s", cause=_no_number(item)
        )
    elif item.speed_mbps / 1000.0 < wanted * _SLACK:
        text = f"{subject}: {item.speed_mbps / 1000.0:g} Gb/s, wanted {wanted:g} Gb/s"
        yield say(RATE, subject, DEGRADED, text, found=item.speed_mbps / 1000.0, wanted=wanted)


def _no_number(item: Netdev) -> str:
    return "output-truncated" if item.link_detected is None else DID_NOT_RUN


def _rate(item: Netdev) -> Optional[float]:
    """Return the rate in Gb/s; None without a link, where a speed is only the one that was set."""
    if item.speed_mbps is None or item.link_detected is False:
        return None
    return plain_number(item.speed_mbps / 1000.0)


def _facts(record: Record, ignored: list[Optional[str]]) -> dict[str, Any]:
    rows = [
        {
            "netdev": item.name,
            "speed_mbps": item.speed_mbps,
            "rate_gbps": _rate(item),
            "link_detected": item.link_detected,
            "duplex": item.duplex,
            "autoneg": item.autoneg,
            "lanes": item.lanes,
            "driver": item.driver,
            "fw_version": item.firmware,
            "psid": item.psid,
            "bus": item.bus,
            "pause_rx": item.pause_rx,
            "pause_tx": item.pause_tx,
        }
        for item in record.netdevs
    ]
    facts: dict[str, Any] = {"netdevs": len(rows), "ignored": ignored, "errors": list(record.complaints)}
    if not rows:
        facts.update(dict.fromkeys(("netdev", "speed_mbps", "rate_gbps", "link_detected", "duplex")))
    if len(rows) == 1:
        facts.update(rows[0])
    elif rows:
        # Several outputs of one netdev (settings, -i, -a) say one thing each; of several netdevs: by name.
        names = {row["netdev"] for row in rows if row["netdev"]}
        if len(names) <= 1:
            facts.update({key: next((row[key] for row in rows if row[key] is not None), None) for key in rows[0]})
        else:
            keys = ("speed_mbps", "rate_gbps", "link_detected", "duplex")
            facts.update({key: {row["netdev"]: row[key] for row in rows if row["netdev"]} for key in keys})
            facts["netdev"] = [row["netdev"] for row in rows if row["netdev"]]
    return facts
