"""Judge a list of PCI devices: all there, alive, at full speed, and out of GPUDirect's way. Pure."""

import re
from collections.abc import Iterator
from typing import Any, Optional

from weaklink.checks.tools.base import DRAIN, NOTE, Context, Judged, Rule, close, demand, say
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding, bad_first
from weaklink.observe.tools.lspci import Device, Link, Record

DEAD = Rule(
    "pci.dead",
    ("pci-device-dead",),
    FAIL,
    DRAIN,
    "revision ff or an unknown header type: the device answers every read of its configuration with ones (lspci)",
    "power cycle the node; reseat or replace the card",
)
PRESENT = Rule(
    "pci.present",
    ("gpu-missing", "pci-device-dead"),
    FAIL,
    DRAIN,
    "GPUs listed against expected_gpus; addresses of the profile against those listed",
    "power cycle; reseat the card; look at the BIOS' list of slots",
)
DRIVER = Rule(
    "pci.driver",
    ("nic-probe-failed",),
    FAIL,
    DRAIN,
    "an HCA of expected_hcas without 'Kernel driver in use' where other devices have that line",
    "look for its address in dmesg; check its firmware, power cycle, reseat it",
)
LINK = Rule(
    "pci.link",
    ("pcie-link-limited", "not-root", "test-did-not-run"),
    DEGRADED,
    NOTE,
    "LnkSta against expected_pcie, or else against LnkCap; a GPU's lower speed alone is its idle state, and bridges "
    "with an empty slot do not count",
    "reseat the card; check riser, slot and bifurcation",
)
ACS = Rule(
    "pci.acs",
    ("acs-enabled", "not-root", "test-did-not-run"),
    DEGRADED,
    NOTE,
    "ACSCtl (not ACSCap) of bridges on bare metal with GPUDirect: SrcValid+ or a redirection sends traffic between "
    "GPU and NIC through the root port (NCCL's troubleshooting guide)",
    "switch ACS off in the BIOS, or with setpci on each bridge at boot; read it as root with lspci -vvv",
)
RAN = Rule(
    "pci.ran",
    ("test-did-not-run",),
    UNKNOWN,
    NOTE,
    "a list without a device allows no judgement",
    "run lspci -vvv as root",
)
RULES = (DEAD, PRESENT, DRIVER, LINK, ACS, RAN)

_GPU_CLASSES = frozenset({"0300", "0302", "0380", "1200"})
_GPU_VENDORS = frozenset({"10de", "1002"})
_NIC_CLASSES = frozenset({"0200", "0207", "0280"})
_BRIDGE = "0604"
_HARMFUL = frozenset({"SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"})
_WANTED = re.compile(
    r"\s*(\d{1,4}(?:\.\d{1,3})?)\s*GT/s(?:\s*PCIe)?[\s,]*(?:Width\s*)?x\s*(\d{1,3})\s*\Z", re.IGNORECASE
)


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings.

    Context: expected_gpus, expected_bus_ids, expected_hcas, profile_devices, expected_pcie, gpudirect, virtualized.
    """
    listed = {pci_key(device.address): device for device in record.devices}
    profile = addresses(context, "profile_devices")
    findings: list[Finding] = []
    if not record.devices:
        text = record.failed or "no device is listed"
        findings.append(say(RAN, "lspci", UNKNOWN, f"lspci: {text}; nothing can be said of the devices"))
    else:
        findings += _dead(record, profile)
        findings += _absent(record, context, listed)
        findings += _driverless(record, context)
        findings += _links(record, context, listed, profile)
        findings += _acs(record, context)
    findings.sort(key=lambda finding: bad_first(finding.status))
    facts = {**_facts(record), "bad": _bad(record, findings)}
    return close("pci", facts, findings, record.troubles, f"{len(record.devices)} devices, none is at fault")


def pci_key(address: str) -> str:
    """The same form for 5d:00.0, 0000:5d:00.0 and 00000000:5D:00.0."""
    parts = address.strip().lower().split(":")
    domain, bus = (parts[0], ":".join(parts[1:])) if len(parts) > 2 else ("0", ":".join(parts))  # noqa: PLR2004 - three
    number = int(domain, 16) if re.match(r"[0-9a-f]{1,8}\Z", domain) else 0
    return f"{number:04x}:{bus}"


def addresses(context: Context, key: str) -> Optional[set[str]]:
    """Return the PCI addresses that ``context`` lists at ``key``, in ``pci_key``'s form; None where it lists none."""
    names = demand(context, key, (list, dict))
    if names is None:
        return None
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"context: key {key!r}: found {names!r:.60}, wanted a list of PCI addresses")
    return {pci_key(name) for name in names}


def is_gpu(device: Device) -> bool:
    """Tell a GPU for computing from a board's own VGA, an NVSwitch or a GPU's audio function."""
    return device.kind in _GPU_CLASSES and device.vendor in _GPU_VENDORS


def _counts(device: Device, profile: Optional[set[str]]) -> bool:
    return profile is None or pci_key(device.address) in profile


def _dead(record: Record, profile: Optional[set[str]]) -> Iterator[Finding]:
    for device in record.devices:
        if device.dead and _counts(device, profile):
            text = f"{device.address} ({device.name[:60]}) answers with ones only (revision ff); power cycle, reseat it"
            yield say(DEAD, device.address, FAIL, text, revision=device.revision)


def _absent(record: Record, context: Context, listed: dict[str, Device]) -> Iterator[Finding]:
    expected = demand(context, "expected_gpus", int)
    gpus = sum(1 for device in record.devices if is_gpu(device))
    if expected is not None and gpus < expected and not record.troubles:
        text = f"{gpus} GPUs are listed, wanted {expected}; power cycle, reseat what is missing"
        yield say(PRESENT, "gpus", FAIL, text, "gpu-missing", found=gpus, wanted=expected)
    for key, cause in (
        ("expected_bus_ids", "gpu-missing"),
        ("expected_hcas", "pci-device-dead"),
        ("profile_devices", "pci-device-dead"),
        ("expected_pcie", "pci-device-dead"),
    ):
        for address in sorted(addresses(context, key) or ()):
            if address not in listed and not record.troubles:
                yield say(PRESENT, address, FAIL, f"{address} is not listed ({key} names it); reseat it", cause)


def _driverless(record: Record, context: Context) -> Iterator[Finding]:
    """An HCA that is wanted and has no driver, in an output that shows drivers (-k, -v)."""
    wanted = addresses(context, "expected_hcas") or set()
    if record.troubles or not any(device.driver for device in record.devices):
        return
    for device in record.devices:
        if pci_key(device.address) in wanted and device.driver is None and not device.dead:
            text = f"{device.address} ({device.name[:60]}) has no driver; look for 'probe' in dmesg"
            yield say(DRIVER, device.address, FAIL, text)


def _wanted(context: Context) -> dict[str, Link]:
    wanted = {}
    for address, text in demand(context, "expected_pcie", dict, {}).items():
        match = _WANTED.match(text) if isinstance(text, str) else None
        if match is None:
            raise ValueError(f"context: key 'expected_pcie': found {text!r:.60}, wanted e.g. '32.0 GT/s x16'")
        wanted[pci_key(address)] = Link(float(match.group(1)), int(match.group(2)))
    return wanted


def _links(
    record: Record, context: Context, listed: dict[str, Device], profile: Optional[set[str]]
) -> Iterator[Finding]:
    wanted = _wanted(context)
    for address, want in wanted.items():
        device = listed.get(address)
        if device and not device.dead and (profile is None or address in profile):
            yield from _against(device, want)
    for device in record.devices:
        if pci_key(device.address) in wanted or device.dead or not _counts(device, profile):
            continue
        yield from _own(device, named=profile is not None)


def _against(device: Device, want: Link) -> Iterator[Finding]:
    link = device.link
    if link is None or link.speed is None or link.width is None:
        cause = "not-root" if device.denied else "test-did-not-run"
        text = f"{device.address}: its link is not shown, wanted {_words(want)}; run lspci -vvv as root"
        yield say(LINK, device.address, UNKNOWN, text, cause)
    elif link.speed < (want.speed or 0) or link.width < (want.width or 0):
        text = f"{device.address}: PCIe link {_words(link)}, wanted {_words(want)}; reseat it, check riser and slot"
        yield say(LINK, device.address, DEGRADED, text, found=_words(link), wanted=_words(want))


def _own(device: Device, *, named: bool) -> Iterator[Finding]:
    """A link below what its own device can do; a GPU's speed drops when it is idle."""
    if not (named or is_gpu(device) or device.kind in _NIC_CLASSES) or device.kind == _BRIDGE or device.link is None:
        return
    link, can = device.link, device.capable or Link(None, None)
    narrow = link.lower_width or (link.width is not None and link.width < (can.width or 0))
    slow = link.lower_speed or (link.speed is not None and link.speed < (can.speed or 0))
    if link.width == 0 or not (narrow or (slow and not is_gpu(device))):
        return
    text = f"{device.address} ({device.name[:60]}): PCIe link {_words(link)}, it can do {_words(can)}; reseat it"
    yield say(LINK, device.address, DEGRADED, text, found=_words(link))


def _words(link: Link) -> str:
    speed = "?" if link.speed is None else f"{link.speed:.1f}"  # as sysfs and expected_pcie write it
    return f"{speed} GT/s x{'?' if link.width is None else link.width}"


def _bridges(record: Record) -> list[Device]:
    return [device for device in record.devices if device.kind == _BRIDGE]


def _harmful(device: Device) -> bool:
    return bool(device.acs and _HARMFUL & set(device.acs))


def _acs_enabled(record: Record) -> Optional[list[str]]:
    """Bridges with ACS on; None where that cannot be told."""
    bridges = _bridges(record)
    on = [device.address for device in bridges if _harmful(device)]
    if on:
        return on
    hidden = any(device.denied or (device.detail < 2 and not device.dead) for device in bridges)  # noqa: PLR2004 - -vv
    return None if hidden or not bridges else []


def _acs(record: Record, context: Context) -> Iterator[Finding]:
    if not demand(context, "gpudirect", bool) or demand(context, "virtualized", bool):
        return
    on = _acs_enabled(record)
    if on:
        text = (
            f"ACS is on at {len(on)} bridges ({', '.join(on[:4])}); GPUDirect goes through the root port: switch it off"
        )
        yield say(ACS, on[0], DEGRADED, text, bridges=on)
    elif on is None and any(device.denied for device in record.devices):
        text = "the capabilities of bridges are hidden, so ACS may be on or off; run lspci -vvv as root"
        yield say(ACS, "bridges", UNKNOWN, text, "not-root")
    elif on is None:
        yield say(ACS, "bridges", UNKNOWN, "no bridge shows ACSCtl; run lspci -vvv as root", "test-did-not-run")


def _bad(record: Record, findings: list[Finding]) -> list[str]:
    """Addresses of listed devices that are at fault."""
    at_fault = {finding.subject for finding in findings if finding.status in (FAIL, DEGRADED)}
    return [device.address for device in record.devices if device.address in at_fault]


def _facts(record: Record) -> dict[str, Any]:
    devices = record.devices
    lower = [device for device in devices if device.link and (device.link.lower_speed or device.link.lower_width)]
    return {
        "devices": len(devices),
        "gpus": sum(1 for device in devices if is_gpu(device)) if devices else None,
        "nics": sum(1 for device in devices if device.kind in _NIC_CLASSES) if devices else None,
        "dead": [device.address for device in devices if device.dead] if devices else None,
        "bridges": len(_bridges(record)) if devices else None,
        "acs_enabled": _acs_enabled(record),
        "access_denied": sum(1 for device in devices if device.denied),
        "links": {device.address: _words(device.link) for device in devices if device.link},
        "downgraded": [device.address for device in lower],
        "max_read_request": {
            device.address: device.read_request for device in devices if device.read_request is not None
        },
    }
