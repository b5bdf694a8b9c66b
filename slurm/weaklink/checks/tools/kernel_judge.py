"""Judge a log: what it says of GPUs, NICs, links, PCI Express and file systems. Pure; shared by dmesg and syslog."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Optional

from weaklink.checks.tools import kernel_rules as rules
from weaklink.checks.tools.base import Context, Judged, close, demand, say
from weaklink.checks.tools.lspci import addresses, pci_key
from weaklink.model.finding import DEGRADED, FAIL, OK, UNKNOWN, Finding, bad_first
from weaklink.observe.tools.kernel_events import Event, Port, Record, Xid

# Facts that nobody knows when the log was not shown: none seen is not none there.
_UNREAD = ("xids", "hardware_xids", "application_xids", "fallen_off_bus", "link_flaps", "soft_lockups", "flaps")


class _At(NamedTuple):
    """A finding and where its reason stands: ``before`` sorts what explains others to the front."""

    before: int
    line: int
    finding: Finding


def judge(tool: str, record: Record, context: Context) -> Judged:
    """Return facts and findings of a log; the first finding of the worst status is the root cause.

    Context: fabric_netdevs, compute_hcas, expected_hcas, profile_devices, max_flaps_per_device, link_state.
    """
    fabric, cards = _ports(context), _cards(context)
    limit = demand(context, "max_flaps_per_device", int)
    link_state = demand(context, "link_state", dict, {})
    lost = _lost(record)
    said: list[_At] = []
    said += _gpus(record, lost)
    said += _nics(record, fabric, cards, link_state)
    said += _links(record, fabric, limit, link_state)
    said += _buses(record, cards)
    said += _storage(record)
    said.sort(key=lambda at: (bad_first(at.finding.status), at.before, at.line))
    findings = [at.finding for at in said] or list(_nothing(tool, record))
    return close(
        tool, _facts(record, lost, fabric, limit), findings, record.troubles, f"{record.messages} messages, no fault"
    )


def _names(context: Context, key: str) -> Any:
    names = demand(context, key, list)
    if names is not None and not all(isinstance(name, str) for name in names):
        raise ValueError(f"context: key {key!r}: found {names!r:.60}, wanted a list of names")
    return names


def _ports(context: Context) -> Any:
    """Names of network devices and HCAs that count, or None where all do."""
    netdevs, hcas = _names(context, "fabric_netdevs"), _names(context, "compute_hcas")
    return None if netdevs is None and hcas is None else [*(netdevs or []), *(hcas or [])]


def _cards(context: Context) -> Optional[set[str]]:
    """PCI addresses of the cards that count, or None where all do."""
    hcas, devices = addresses(context, "expected_hcas"), addresses(context, "profile_devices")
    return None if hcas is None and devices is None else (hcas or set()) | (devices or set())


def _of(cards: Optional[set[str]], address: str) -> bool:
    return cards is None or ":" not in address or pci_key(address) in cards


def _where(event: Event) -> str:
    times = f"{event.times} times, first in " if event.times > 1 else ""
    return f"{times}line {event.first}: {event.text[:160]}"


def _nothing(tool: str, record: Record) -> Iterator[Finding]:
    refused = record.of("refused")
    if refused:
        text = f"{tool}: the log was not shown: {refused[0].text[:120]}; read it as root"
        yield say(rules.READ, tool, UNKNOWN, text, "not-root")
    elif not record.messages or (record.messages <= 2 and record.of("nothing")):  # noqa: PLR2004 - header, no entries
        yield say(rules.READ, tool, UNKNOWN, f"{tool}: the log holds no message; nothing can be said of the node")


def _bus(address: str) -> str:
    """The address of the slot, without the function: Xid lines have none."""
    return address.lower().partition(".")[0]


def _lost(record: Record) -> dict[str, Event]:
    """Lost GPUs by their fullest address, in the order in which they were lost; unnamed ones only when all are."""
    found: dict[str, Event] = {}
    for event in record.of("lost"):
        known = found.get(_bus(event.subject))
        if known is None or ("." in event.subject and "." not in known.subject):
            found[_bus(event.subject)] = event if known is None else event._replace(first=known.first)
    named = {bus: event for bus, event in found.items() if ":" in bus}
    return {event.subject: event for event in (named or found).values()}


def _gpus(record: Record, lost: dict[str, Event]) -> Iterator[_At]:
    for address, event in lost.items():
        text = f"GPU {address} has fallen off the bus, {_where(event)}; power cycle the node, then reseat the GPU"
        yield _At(0, event.first, say(rules.GPU_LOST, address, FAIL, text))
    for event in record.of("api-mismatch"):
        text = f"libraries and kernel module of the NVIDIA driver differ, {_where(event)}; reboot after the upgrade"
        yield _At(0, event.first, say(rules.DRIVER_MATCH, "nvidia", FAIL, text))
    for xid in record.xids:
        if xid.xid not in (rules.LOST_XID, rules.ACTION_XID):
            yield _At(3 if _calm(xid) else 1, xid.first, _xid(xid))
    for event in record.of("recovery"):
        text = (
            f"GPU {event.subject}: the driver wants {event.detail!r}, line {event.first}; do that before its next job"
        )
        yield _At(1, event.first, say(rules.RECOVERY, event.subject, FAIL, text, action=event.detail))
    for event in record.of("reset-required"):
        yield _At(
            2, event.first, say(rules.RECOVERY, event.subject, FAIL, f"{event.subject}: {_where(event)}; reset it")
        )
    for event in record.of("gpu-init"):
        text = f"{event.subject}: the driver could not start it, {_where(event)}; power cycle, then reseat"
        yield _At(2, event.first, say(rules.GPU_INIT, event.subject, FAIL, text))
    for event in record.of("sxid-fatal"):
        text = f"NVSwitch {event.detail} ({event.subject}): fatal error, {_where(event)}; restart the node"
        yield _At(1, event.first, say(rules.NVSWITCH, event.detail, FAIL, text))
    for event in record.of("sxid"):
        text = f"NVSwitch {event.detail} ({event.subject}): non-fatal, {_where(event)}; watch it"
        yield _At(3, event.first, say(rules.NVSWITCH, event.detail, OK, text))


def _calm(xid: Xid) -> bool:
    return xid.xid in rules.NVLINK5 and xid.calm == xid.lines


def _hardware(xid: Xid) -> bool:
    return (xid.xid in rules.HARDWARE or xid.xid == rules.REMAP_XID) and not _calm(xid)


def _xid(xid: Xid) -> Finding:
    name = f"GPU {xid.bdf}: Xid {xid.xid}"
    at = (
        f"{xid.lines} lines from line {xid.first}: {xid.text[:120]}"
        if xid.lines > 1
        else f"line {xid.first}: {xid.text[:120]}"
    )
    if _calm(xid):
        return say(rules.XID, xid.bdf, OK, f"{name} calls itself nonfatal, {at}; watch it", xid=xid.xid)
    if xid.xid in rules.HARDWARE:
        cause, words = rules.HARDWARE[xid.xid]
        return say(rules.XID, xid.bdf, FAIL, f"{name}, {words}, {at}; reset the GPU or reboot", cause, xid=xid.xid)
    if xid.xid == rules.REMAP_XID:
        cause = "page-retirement" if "retire" in xid.text.lower() else "row-remap-pending"
        text = f"{name}: memory is set aside at the next reset, {at}; reset the GPU when it is idle"
        return say(rules.XID, xid.bdf, DEGRADED, text, cause, xid=xid.xid)
    if xid.xid in rules.APPLICATION:
        text = f"{name} comes of a user's program, {at}; tell the owner of the job, leave the node in service"
        return say(rules.XID, xid.bdf, OK, text, "user-application", xid=xid.xid)
    text = f"{name} is of no class known here, {at}; look it up in NVIDIA's list of Xid errors"
    return say(rules.XID, xid.bdf, UNKNOWN, text, "xid-not-classified", xid=xid.xid)


def _counts(netdev: str, fabric: Any) -> bool:
    return fabric is None or not netdev or netdev in fabric


def _nics(record: Record, fabric: Any, cards: Optional[set[str]], link_state: dict[str, Any]) -> Iterator[_At]:
    for event in (event for event in record.of("probe") if _of(cards, event.subject)):
        text = f"NIC {event.subject}: the driver could not start it, {_where(event)}; power cycle, check its firmware"
        yield _At(1, event.first, say(rules.NIC_PROBE, event.subject, FAIL, text))
    for event in record.of("tx-timeout", "health"):
        if not (_counts(event.detail, fabric) and _of(cards, event.subject)):
            continue
        state = link_state.get(event.detail)
        still = f" while its link state is {state}" if state else ""
        text = f"NIC {event.subject} {event.detail}: the driver hangs{still}, {_where(event)}; reboot the node"
        yield _At(1, event.first, say(rules.NIC_HANG, event.subject, FAIL, text, netdev=event.detail))
    known = {event.detail for event in record.of("tx-timeout")}
    for event in record.of("tx-timeout-netdev"):
        if event.subject not in known and _counts(event.subject, fabric):
            text = f"{event.subject}: its transmit queue stands still, {_where(event)}; reboot the node"
            yield _At(1, event.first, say(rules.NIC_HANG, event.subject, FAIL, text))
    for event in record.of("lockup-in-driver"):
        text = f"a CPU is stuck in {event.subject}, {_where(event)}; reboot the node"
        yield _At(2, event.first, say(rules.NIC_HANG, event.subject, FAIL, text))
    yield from _modules(record, cards)


def _modules(record: Record, cards: Optional[set[str]]) -> Iterator[_At]:
    for event in record.of("unplugged"):
        if cards is not None and _of(cards, event.subject):  # an empty cage is no fault where nobody asks for it
            text = f"NIC {event.subject}: its module is unplugged, {_where(event)}; plug it in"
            yield _At(1, event.first, say(rules.LINKS, event.subject, FAIL, text, "link-down"))
    for event in record.of("cable"):
        if not _of(cards, event.subject):
            continue
        text = (
            f"NIC {event.subject}: module or cable error ({event.detail}), {_where(event)}; replace the cable or module"
        )
        yield _At(1, event.first, say(rules.CABLE, event.subject, DEGRADED, text))


def _links(record: Record, fabric: Any, limit: Any, link_state: dict[str, Any]) -> Iterator[_At]:
    for port in record.ports:
        if not _counts(port.device, fabric):
            continue
        state = link_state.get(port.device)
        if port.up is False and state != "up" and _left_down(port, fabric, state):
            status = FAIL if fabric is not None or state is not None else DEGRADED
            text = f"{port.device}: its link is down since line {port.last}; check cable and switch port"
            yield _At(1, port.last, say(rules.LINKS, port.device, status, text, "link-down", losses=port.losses))
        if limit is not None and port.losses > limit:
            text = (
                f"{port.device}: lost its link {port.losses} times, wanted at most {limit}; clean or replace the cable"
            )
            yield _At(2, port.first, say(rules.LINKS, port.device, DEGRADED, text, losses=port.losses, limit=limit))


def _left_down(port: Port, fabric: Any, state: Any) -> bool:
    """A port that was lost for good: wanted by the context, said to be down, or seen up before in the same log."""
    if state is not None or fabric is not None:
        return True
    return port.gains > 0 and port.losses > 0


def _buses(record: Record, cards: Optional[set[str]]) -> Iterator[_At]:
    for event in record.of("aer-fatal", "pci-recovery-failed", "pci-gone"):
        text = f"PCI device {event.subject}: {_where(event)}; power cycle, then reseat the card"
        yield _At(3, event.first, say(rules.PCI, event.subject, FAIL, text))
    for event in record.of("aer-uncorrected"):
        text = f"PCI device {event.subject}: uncorrected error, {_where(event)}; watch it, reseat the card"
        yield _At(3, event.first, say(rules.PCI, event.subject, DEGRADED, text, "pcie-errors"))
    for event in record.of("pcie-limited"):
        if not _of(cards, event.subject):
            continue
        text = f"PCI device {event.subject}: its link is slower than it can be, {_where(event)}; reseat the card"
        yield _At(3, event.first, say(rules.PCIE_LIMIT, event.subject, DEGRADED, text))
    stuck = {event.subject for event in record.of("tx-timeout", "health", "lockup-in-driver", "tx-timeout-netdev")}
    for event in record.of("soft-lockup"):
        if not stuck:
            text = f"a CPU was stuck, {_where(event)}; read the call trace below it"
            yield _At(4, event.first, say(rules.LOCKUP, "CPU", DEGRADED, text))


def _storage(record: Record) -> Iterator[_At]:
    for event in record.of("lnet-start"):
        text = f"LNet does not start on {event.subject}, {_where(event)}; every Lustre mount over it fails"
        yield _At(1, event.first, say(rules.LNET, event.subject, FAIL, text))
    for event in record.of("lustre-lost", "lustre-timeout"):
        back = event.detail == "restored"
        text = f"Lustre peer {event.subject}: {'lost and restored' if back else 'does not answer'}, {_where(event)}"
        yield _At(2, event.first, say(rules.LUSTRE, event.subject, DEGRADED if back else FAIL, f"{text}; lctl ping it"))
    for event in record.of("lustre-evicted"):
        text = f"Lustre server {event.subject} put this client out, {_where(event)}; look at the network to it"
        yield _At(2, event.first, say(rules.LUSTRE, event.subject, DEGRADED, text))
    for event in record.of("nfs"):
        back = event.detail == "OK"
        text = f"NFS server {event.subject}: {'was away for a while' if back else 'does not answer'}, {_where(event)}"
        yield _At(
            2, event.first, say(rules.NFS, event.subject, DEGRADED if back else FAIL, f"{text}; check its network")
        )


def _unique(items: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(items))


def _facts(record: Record, lost: dict[str, Event], fabric: Any, limit: Any) -> dict[str, Any]:
    timeouts = record.of("tx-timeout")
    netdevs = _unique([event.detail for event in timeouts if event.detail])
    netdevs += [event.subject for event in record.of("tx-timeout-netdev") if event.subject not in netdevs]
    over = [
        port.device
        for port in record.ports
        if limit is not None and port.losses > limit and _counts(port.device, fabric)
    ]
    found: dict[str, Any] = {
        "lines": record.lines,
        "driver_version": record.version,
        "xids": [{"bdf": xid.bdf, "xid": xid.xid, "lines": xid.lines} for xid in record.xids],
        "hardware_xids": _unique(xid.xid for xid in record.xids if _hardware(xid)),
        "application_xids": _unique(xid.xid for xid in record.xids if xid.xid in rules.APPLICATION),
        "recovery": {event.subject: event.detail for event in record.of("recovery")},
        "fallen_off_bus": [address for address in lost if ":" in address],
        "sxids": [
            {
                "bdf": event.subject.split()[0],
                "sxid": int(event.subject.split()[1]),
                "fatal": event.kind == "sxid-fatal",
                "lines": event.times,
            }
            for event in record.of("sxid", "sxid-fatal")
        ],
        "tx_timeout": _unique(event.subject for event in timeouts),
        "health": _unique(event.subject for event in record.of("health")),
        "probe_failed": _unique(event.subject for event in record.of("probe")),
        "netdev": netdevs[0] if netdevs else None,
        "soft_lockups": sum(event.times for event in record.of("soft-lockup")),
        "link_flaps": sum(port.losses for port in record.ports),
        "flaps": {port.device: port.losses for port in record.ports if port.losses or port.up is False},
        "over_limit": over,
        "ignored": [port.device for port in record.ports if not _counts(port.device, fabric)],
        "cable_errors": _unique(event.subject for event in record.of("cable")),
        "aer": {
            rank: _unique(event.subject for event in record.of(f"aer-{rank}"))
            for rank in ("fatal", "uncorrected", "corrected")
        },
        "pcie_limited": _unique(event.subject for event in record.of("pcie-limited")),
        "lustre_peers": _unique(event.subject for event in record.of("lustre-lost", "lustre-timeout")),
        "nfs_servers": {event.subject: event.detail for event in record.of("nfs")},
    }
    unread = any(finding.check == rules.READ.name for finding in _nothing("log", record))
    return {**found, **dict.fromkeys(_UNREAD)} if unread else found
