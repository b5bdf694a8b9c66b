"""Checks of NICs and their RDMA ports. Pure."""

from collections.abc import Iterator
from typing import Callable, Optional

from weaklink.checks.base import DRAIN, EVERYWHERE, NOTE, UNHURRIED, Check, NotApplicable, Said, say
from weaklink.model.expected import Expected, NicWant, RdmaWant
from weaklink.model.finding import DEGRADED, FAIL, OK, UNKNOWN
from weaklink.observe import node
from weaklink.observe.rdma import address_gid
from weaklink.observe.records import Netdev, Nic, Observation, RdmaPort

_FABRIC_ROLES = frozenset({"compute", "storage"})
_RATE_SLACK = 0.999  # rates are printed with one decimal

PortJudge = Callable[[str, NicWant, RdmaWant, RdmaPort], Said]


def _label(want: NicWant, seen: Optional[Nic]) -> str:
    """Return what an engineer calls the NIC: its RDMA device, found or wanted, else net device, else PCI address."""
    if seen and seen.rdma:
        return seen.rdma.device
    if want.rdma and want.rdma.device:
        return want.rdma.device
    return seen.netdev.name if seen and seen.netdev else want.pci


def _wheres(want: NicWant, seen: Optional[Nic]) -> str:
    device = seen.netdev.name if seen and seen.netdev else "no net device"
    return f"{want.network or want.role or 'NIC'} NIC {want.pci} ({device})"


def _ports(check: str, cause: str, observation: Observation, expected: Expected, judge: PortJudge) -> list[Said]:
    """Judge every port that is there; what could not be read is unknown, what is not expected does not apply."""
    said: list[Said] = []
    for want in expected.nics:
        seen = observation.nics.get(want.pci) if observation.nics is not None else None
        label = _label(want, seen)
        if want.rdma is None:
            said.append(NotApplicable(check, label, f"no RDMA is expected on the {want.network} NIC"))
        elif seen is None:
            why = observation.trouble.get(node.NICS, "the NIC was not read")
            said.append(say(check, cause, label, UNKNOWN, f"{_wheres(want, seen)}: not judged: {why}"))
        elif seen.rdma is None:
            said.append(NotApplicable(check, label, "there is no RDMA device to judge (see rdma.device)"))
        else:
            said.append(judge(label, want, want.rdma, seen.rdma))
    return said


def _device(observation: Observation, expected: Expected) -> list[Said]:
    said: list[Said] = []
    for want in expected.nics:
        seen = observation.nics.get(want.pci) if observation.nics is not None else None
        label, where = _label(want, seen), _wheres(want, seen)
        if want.rdma is None:
            said.append(NotApplicable("rdma.device", label, f"no RDMA is expected on the {want.network} NIC"))
            continue
        if seen is None:
            why = observation.trouble.get(node.NICS, "the NIC was not read")
            status, text = UNKNOWN, f"not judged: {why}"
        elif not seen.present:
            status, text = FAIL, "PCI function is gone, wanted a NIC there; look at dmesg, reseat or replace the card"
        elif seen.rdma is None and want.rdma.kind == "rxe":
            status, text = FAIL, f"no RDMA device, wanted {want.rdma.device}; start its rxe link again"
        elif seen.rdma is None:
            status, text = FAIL, "no RDMA device, wanted one; look at dmesg, reload the driver"
        else:
            status, text = OK, f"RDMA device {seen.rdma.device}"
        said.append(say("rdma.device", "nic-probe-failed", label, status, f"{where}: {text}"))
    return said


def _state(observation: Observation, expected: Expected) -> list[Said]:
    def judge(label: str, want: NicWant, _rdma: RdmaWant, port: RdmaPort) -> Said:
        where = f"{label} port {port.port} ({want.network}, {port.netdev or want.pci})"
        found = f"{port.state}/{port.phys_state}"
        if port.state is None:
            status, text = UNKNOWN, "state cannot be read from sysfs"
        elif port.state == "ACTIVE" and port.phys_state in ("LinkUp", None):
            status, text = OK, found
        elif port.state == "INIT":
            status, text = FAIL, f"state {found}, wanted ACTIVE; no subnet manager has set it up: start one"
        else:
            status, text = FAIL, f"state {found}, wanted ACTIVE/LinkUp; check cable, module and switch port"
        return say("rdma.state", "link-down", label, status, f"{where}: {text}", state=port.state, phys=port.phys_state)

    return _ports("rdma.state", "link-down", observation, expected, judge)


def _rate(observation: Observation, expected: Expected) -> list[Said]:
    def judge(label: str, want: NicWant, rdma: RdmaWant, port: RdmaPort) -> Said:
        where = f"{label} port {port.port} ({want.network}, {port.netdev or want.pci})"
        if rdma.rate_gbps is None:
            return NotApplicable("rdma.rate", label, "no rate is expected")
        if port.state not in ("ACTIVE", None):
            return NotApplicable("rdma.rate", label, "a port that is not up has no rate (see rdma.state)")
        found, wanted = port.rate_gbps, rdma.rate_gbps
        if found is None:
            status, text = UNKNOWN, "rate cannot be read from sysfs"
        elif found >= wanted * _RATE_SLACK:
            status, text = OK, f"{found:g} Gb/s"
        else:
            status, text = DEGRADED, f"{found:g} Gb/s, wanted {wanted:g}; reseat the cable, look at both ends' settings"
        evidence = {"found": found, "wanted": wanted}
        return say("rdma.rate", "rate-below-expected", label, status, f"{where}: {text}", **evidence)

    return _ports("rdma.rate", "rate-below-expected", observation, expected, judge)


def _active_mtu(observation: Observation, expected: Expected) -> list[Said]:
    def judge(label: str, want: NicWant, rdma: RdmaWant, port: RdmaPort) -> Said:
        where = f"{label} port {port.port} ({want.network}, {port.netdev or want.pci})"
        if rdma.active_mtu is None:
            return NotApplicable("rdma.active_mtu", label, "no MTU is expected")
        found, wanted = port.active_mtu, rdma.active_mtu
        if found is None:
            why = observation.trouble.get(node.MTUS, "no source tells it")
            status, text = UNKNOWN, f"active MTU not known: {why}"
        elif found >= wanted:
            status, text = OK, f"active MTU {found}"
        else:
            status, text = FAIL, f"active MTU {found}, wanted {wanted}; set the NIC's MTU to {want.mtu or wanted + 104}"
        evidence = {"found": found, "wanted": wanted, "source": port.mtu_source}
        return say("rdma.active_mtu", "mtu-too-small", label, status, f"{where}: {text}", **evidence)

    return _ports("rdma.active_mtu", "mtu-too-small", observation, expected, judge)


def _gid(observation: Observation, expected: Expected) -> list[Said]:
    def judge(label: str, want: NicWant, rdma: RdmaWant, port: RdmaPort) -> Said:
        where = f"{label} port {port.port} ({want.network}, {port.netdev or want.pci})"
        if (port.link_layer or rdma.link_layer) != "Ethernet" or not rdma.gid_type or not want.address:
            return NotApplicable("rdma.gid", label, "GIDs matter on Ethernet, where a type and an address are expected")
        wanted = address_gid(want.address)
        if wanted is None:
            return say("rdma.gid", "gid-index-wrong", label, UNKNOWN, f"{where}: not an address: {want.address[:40]}")
        match = next((gid for gid in port.gids if gid.gid == wanted and gid.type == rdma.gid_type), None)
        evidence = {"wanted": wanted, "type": rdma.gid_type, "table": [list(gid) for gid in port.gids[:16]]}
        if match:
            status, text = OK, f"GID index {match.number} is {rdma.gid_type} for {want.address}"
        elif not port.gids:
            status, text = UNKNOWN, "GID table cannot be read from sysfs"
        else:
            status = FAIL
            text = f"no {rdma.gid_type} GID for {want.address} among {len(port.gids)}; check the NIC's address and mode"
        return say("rdma.gid", "gid-index-wrong", label, status, f"{where}: {text}", **evidence)

    return _ports("rdma.gid", "gid-index-wrong", observation, expected, judge)


def _counters(observation: Observation, expected: Expected) -> list[Said]:
    def judge(label: str, want: NicWant, _rdma: RdmaWant, port: RdmaPort) -> Said:
        now = port.counters.get("link_downed")
        if now is None:
            return NotApplicable("rdma.counters", label, "this device does not count link_downed")
        if observation.earlier is None:
            return say("rdma.counters", "link-flapping", label, UNKNOWN, f"{label}: earlier counters could not be read")
        before = observation.earlier.get(f"{port.device}/{port.port}", {}).get("link_downed")
        if before is None:
            return NotApplicable("rdma.counters", label, "first reading; nothing to compare with")
        moved = now - before  # less than before: the device was made anew
        where = f"{label} port {port.port} ({want.network}, {port.netdev or want.pci})"
        if moved > 0:
            text = f"link went down {moved} times since the last reading, wanted 0; watch it, check cable and module"
            status = DEGRADED
        else:
            status, text = OK, "link has stayed up since the last reading"
        return say("rdma.counters", "link-flapping", label, status, f"{where}: {text}", moved=moved, total=now)

    return _ports("rdma.counters", "link-flapping", observation, expected, judge)


def _netdevs(expected: Expected, observation: Observation) -> Iterator[tuple[NicWant, Optional[Nic], Optional[Netdev]]]:
    for want in expected.nics:
        seen = observation.nics.get(want.pci) if observation.nics is not None else None
        yield want, seen, seen.netdev if seen else None


def _net_mtu(observation: Observation, expected: Expected) -> list[Said]:
    said: list[Said] = []
    for want, seen, device in _netdevs(expected, observation):
        label = device.name if device else want.pci
        if want.mtu is None or not (want.rdma or want.role in _FABRIC_ROLES):
            said.append(NotApplicable("net.mtu", label, "no MTU is expected of a NIC that carries no fabric traffic"))
            continue
        if seen is not None and device is None:
            said.append(NotApplicable("net.mtu", label, "there is no net device to judge (see rdma.device)"))
            continue
        found = device.mtu if device else None
        if found is None:
            why = observation.trouble.get(node.NICS, "the MTU cannot be read from sysfs")
            status, text = UNKNOWN, f"not judged: {why}"
        elif found >= want.mtu:
            status, text = OK, f"MTU {found}"
        else:
            status, text = FAIL, f"MTU {found}, wanted {want.mtu}; run site.yml, or ip link set {label} mtu {want.mtu}"
        message = f"{label} ({want.network}, {want.pci}): {text}"
        said.append(say("net.mtu", "mtu-too-small", label, status, message, found=found, wanted=want.mtu))
    return said


def _net_address(observation: Observation, expected: Expected) -> list[Said]:
    said: list[Said] = []
    for want, _, device in _netdevs(expected, observation):
        label = device.name if device else want.pci
        if not want.address:
            said.append(NotApplicable("net.address", label, "no address is expected"))
            continue
        found = (observation.addresses or {}).get(label) if device else None
        if observation.addresses is None or observation.nics is None:
            why = observation.trouble.get(node.ADDRESSES) or observation.trouble.get(node.NICS) or "not read"
            status, text = UNKNOWN, f"not judged: {why}"
        elif found is not None and want.address in found:
            status, text = OK, want.address
        else:
            status = FAIL
            text = f"address {', '.join(found or ()) or 'none'}, wanted {want.address}; run site.yml on this node"
        message = f"{label} ({want.network}, {want.pci}): {text}"
        said.append(say("net.address", "config", label, status, message, found=list(found or ()), wanted=want.address))
    return said


_NICS = frozenset({node.NICS})
_PORT = "the link: cable, module, switch port, then the driver's messages in dmesg"

CHECKS = (
    Check("rdma.device", "nic-probe-failed", DRAIN, EVERYWHERE, _NICS, "dmesg; the driver; reseat the card", _device),
    Check("rdma.state", "link-down", DRAIN, EVERYWHERE, _NICS, _PORT, _state),
    Check("net.mtu", "mtu-too-small", DRAIN, EVERYWHERE, _NICS, "run site.yml on the node", _net_mtu),
    Check("rdma.active_mtu", "mtu-too-small", DRAIN, EVERYWHERE, _NICS | {node.MTUS}, "set the NIC's MTU", _active_mtu),
    Check("rdma.gid", "gid-index-wrong", DRAIN, EVERYWHERE, _NICS, "the NIC's address; RoCE mode", _gid),
    Check("rdma.rate", "rate-below-expected", DRAIN, EVERYWHERE, _NICS, _PORT, _rate),
    Check("net.address", "config", NOTE, UNHURRIED, _NICS | {node.ADDRESSES}, "run site.yml on the node", _net_address),
    Check("rdma.counters", "link-flapping", NOTE, UNHURRIED, _NICS | {node.COUNTERS}, _PORT, _counters),
)
