"""Judge a GID table: which index a RoCE v2 connection must use on each device, and whether it is configured. Pure."""

from typing import Any, Optional

from weaklink.checks.tools.base import DID_NOT_RUN, NOTE, Context, Judged, Rule, close, demand, say
from weaklink.checks.tools.ib_links import names
from weaklink.model.finding import FAIL, OK, UNKNOWN, Finding
from weaklink.observe.tools.show_gids import NAME, Gid, Gids

INDEX = Rule(
    f"{NAME}.gid_index",
    ("gid-index-wrong",),
    FAIL,
    NOTE,
    "The right entry is RoCE v2, of the IP version and on the network interface demanded; the lowest index of several. "
    "The order of the table is an accident: no index is right everywhere (NCCL's troubleshooting page, 2.21 on).",
    "Leave NCCL_IB_GID_INDEX unset (NCCL 2.21 or later) or set the index found here; give the interface its address.",
)
RAN = Rule(
    f"{NAME}.ran",
    (DID_NOT_RUN, "not-root", "nothing-tested"),
    UNKNOWN,
    NOTE,
    "Without a table nothing is judged.",
    "Run show_gids on the node itself, or list /sys/class/infiniband/*/ports/*/gid_attrs.",
)
RULES = (INDEX, RAN)

_IPV6 = 6


def judge(record: Gids, context: Context) -> Judged:
    """Return facts gids_found and gid_index by device (the index to use, or None), and what is wrong."""
    netdev = demand(context, "netdev", (dict, str), {})
    version = demand(context, "ip_version", (int, str))
    wanted = None if version is None else int(str(version).lower().replace("ipv", "")[-1:] or 0)
    if wanted not in {None, 4, 6}:
        raise ValueError(f"context: key 'ip_version': found {version!r:.20}, wanted 4 or 6")
    configured = demand(context, "configured_gid_index", (int, dict))
    devices = names(context, "compute_hcas")
    if devices is None:
        devices = (
            list(netdev) if isinstance(netdev, dict) and netdev else list(dict.fromkeys(g.device for g in record.gids))
        )
    findings = [
        say(
            RAN, NAME, UNKNOWN, f"line {said.line}: {said.what}", "not-root" if said.kind == "not-root" else DID_NOT_RUN
        )
        for said in record.complaints[:1]
        if not record.gids
    ]
    index: dict[str, Optional[int]] = {}
    demanded = wanted is not None or bool(netdev) or configured is not None
    for device in devices:
        interface = netdev.get(device) if isinstance(netdev, dict) else netdev
        fitting = _fitting(record, device, interface, wanted)
        index[device] = fitting[0].slot if fitting else None
        use = configured.get(device) if isinstance(configured, dict) else configured
        if demanded and not record.troubles and (record.gids or record.found == 0):
            asked = "RoCE v2" + (f", IPv{wanted}" if wanted else "") + (f", on {interface}" if interface else "")
            findings += _judge(record, device, fitting, use, asked)
    if record.found == 0 and not findings:
        findings.append(say(RAN, NAME, UNKNOWN, "no GID is in the table", "nothing-tested"))
    facts: dict[str, Any] = {
        "gids_found": record.found,
        "gid_index": index,
        "bad": [finding.subject for finding in findings if finding.status == FAIL],
    }
    return close(NAME, facts, findings, record.troubles, f"{NAME}: nothing is demanded of the table")


def _fitting(record: Gids, device: str, interface: Optional[str], wanted: Optional[int]) -> list[Gid]:
    """Return the entries that a RoCE v2 connection may use, the best first."""
    entries = [
        gid
        for gid in record.gids
        if gid.device == device
        and gid.roce == 2  # noqa: PLR2004 - RoCE v2
        and (interface is None or gid.netdev == interface)
        and (wanted is None or gid.version == wanted)
    ]
    return sorted(entries, key=lambda gid: (gid.version == _IPV6, gid.link_local, gid.port, gid.slot))


def _judge(record: Gids, device: str, fitting: list[Gid], use: Optional[int], asked: str) -> list[Finding]:
    if not fitting:
        return [say(INDEX, device, FAIL, f"{device}: no entry is {asked}", gid_index=None)]
    right = fitting[0].slot
    if use is None:
        return [say(INDEX, device, OK, f"{device}: index {right} is {asked}", gid_index=right)]
    if use in {gid.slot for gid in fitting}:
        return [say(INDEX, device, OK, f"{device}: the configured index {use} is {asked}", gid_index=right)]
    entry = next((gid for gid in record.gids if gid.device == device and gid.slot == use), None)
    found = f"RoCE v{entry.roce}, {entry.ip}, on {entry.netdev}" if entry else "not in the table"
    return [say(INDEX, device, FAIL, f"{device}: index {use} is {found}; wanted {right}: {asked}", gid_index=right)]
