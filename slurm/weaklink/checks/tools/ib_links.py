"""Judge ports of RDMA devices, whichever tool printed them: present, up, configured, fast and wide enough. Pure."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.checks.tools.base import DID_NOT_RUN, DRAIN, NOTE, TRUNCATED, Context, Judged, Rule, close, demand, say
from weaklink.model.finding import DEGRADED, FAIL, OK, UNKNOWN, Finding
from weaklink.observe.tools.ib_ports import Port, Ports
from weaklink.observe.tools.ib_text import LANE_GBPS, Complaint, Link, layer, link, same_guid

NOTHING_TESTED = "nothing-tested"

# What udev and the driver call IPoIB's interfaces: ib0, ibp26s0, ibs2f0.
_IPOIB = re.compile(r"ib(?:\d|[cops]\w*\d)")
_NO_RATE = frozenset({"ibdev2netdev", "rdma"})
_MTU = frozenset({"ibv_devinfo"})
_ACTIVE = frozenset({"active", "port_active"})
_DEFER = frozenset({"active_defer", "port_active_defer"})
_WAITS = frozenset({"initializing", "init", "port_init", "initialize", "armed", "port_armed"})
_DOWN = frozenset({"down", "port_down", "nop", "port_nop"})
_RECOVERY = frozenset({"linkerrorrecovery", "link_error_recovery", "link_error_recover"})


def _demanded(tool: str) -> "tuple[Rule, ...]":
    """Return the rules on what is demanded of a port that is up."""
    return (
        Rule(
            f"{tool}.port_rate",
            ("rate-below-expected", NOTHING_TESTED),
            DEGRADED,
            DRAIN,
            "The rate, width and speed of a port that is up must reach those demanded; equal is enough.",
            "Reseat or swap the cable; compare both ends with mlxlink.",
        ),
        Rule(
            f"{tool}.active_mtu",
            ("mtu-too-small", NOTHING_TESTED),
            DEGRADED,
            DRAIN,
            "The active MTU of a port that is up must reach the one demanded. RoCE takes the largest of 256 to 4096 "
            "that fits in the interface's MTU less 96 bytes of headers (Linux, include/rdma/ib_addr.h).",
            "Raise the interface's MTU (RoCE 4096 needs 4192 or more) and the switch's, or the subnet manager's MTU.",
        ),
        Rule(
            f"{tool}.netdev",
            ("miscabled",),
            FAIL,
            NOTE,
            "Where an interface is demanded for a device, it must be the device's own.",
            "Compare names under /sys/class/infiniband/DEVICE/device/net.",
        ),
    )


def rules(tool: str) -> dict[str, Rule]:
    """Return the rules on ports in the name of ``tool``, by their last word."""
    every = (
        Rule(
            f"{tool}.ran",
            (DID_NOT_RUN, "not-root", "nic-probe-failed"),
            FAIL,
            NOTE,
            "A tool that could not ask says nothing of the devices; where it finds none, those demanded are absent.",
            "Run it again as root on the node itself; look for the driver with lsmod and dmesg.",
        ),
        Rule(
            f"{tool}.device_present",
            ("nic-probe-failed",),
            FAIL,
            DRAIN,
            "Every device of compute_hcas must be listed.",
            "Look for the card in lspci, then for its driver's words in dmesg.",
        ),
        Rule(
            f"{tool}.port_state",
            ("link-down", "no-subnet-manager", "link-flapping", NOTHING_TESTED, TRUNCATED),
            FAIL,
            DRAIN,
            "A port that counts must be Active. Initializing or Armed on InfiniBand: the link works, but no subnet "
            "manager configured it. Rate and LIDs of a port that is down are left over and mean nothing.",
            "Down: look at cable, module and switch port. Initializing: ask sminfo for the subnet manager.",
        ),
        Rule(
            f"{tool}.link_layer",
            ("link-down",),
            FAIL,
            DRAIN,
            "A port that counts must have the link layer demanded; cards of both kinds can be set to the wrong one.",
            "Set LINK_TYPE_P1 with mlxconfig and reset the card.",
        ),
        *_demanded(tool),
    )
    return {rule.name.rpartition(".")[2]: rule for rule in every}


class Demands(NamedTuple):
    """What the context demands of ports; None where nothing is."""

    hcas: Optional[list[str]]
    rate: Optional[float]
    link: Optional[Link]
    mtu: Optional[int]
    layer: Optional[str]
    unused: frozenset[str]
    fabric: Optional[list[str]]
    netdev: dict[str, str]

    @property
    def any(self) -> bool:
        """Whether the context says anything of links at all."""
        return any(item is not None for item in (self.hcas, self.rate, self.link, self.mtu, self.layer, self.fabric))


def names(context: Context, key: str) -> Optional[list[str]]:
    """Return a list of texts out of the context, or None; another kind of value is a ValueError."""
    values = demand(context, key, list)
    if values is not None and not all(isinstance(value, str) for value in values):
        raise ValueError(f"context: key {key!r}: found {values!r:.60}, wanted a list of texts")
    return None if values is None else list(values)


def expected_link(context: Context) -> Optional[Link]:
    """Return the link demanded ("4x HDR"), or None; one that is no link is a ValueError."""
    text = demand(context, "expected_link", str)
    found = link(text)
    if text is not None and found is None:
        raise ValueError(f"context: key 'expected_link': found {text!r:.60}, wanted width and speed as in '4x HDR'")
    return found


def unused_ports(context: Context) -> frozenset[str]:
    """Return the ports that the context calls unused, GUIDs without leading zeros."""
    return frozenset(port_key(name) for name in names(context, "unused_ports") or ())


def port_key(name: str) -> str:
    """Return a port's name with its GUID, if it has one, in one spelling."""
    device, _, port = name.rpartition("/")
    return f"{int(device, 16):#x}/{port}" if same_guid(device, device) else name


def demands(context: Context) -> Demands:
    """Return what the context demands of ports."""
    netdev = demand(context, "netdev", (dict, str), {})
    hcas = names(context, "compute_hcas")
    if hcas is None and context.get("fabric_netdevs") is None and isinstance(netdev, dict) and netdev:
        hcas = list(netdev)  # they are named, and so they count
    return Demands(
        hcas,
        demand(context, "expected_rate_gbps", float),
        expected_link(context),
        demand(context, "expected_active_mtu", int),
        _layer(demand(context, "link_layer", str)),
        unused_ports(context),
        names(context, "fabric_netdevs"),
        netdev if isinstance(netdev, dict) else {},
    )


def _layer(text: Optional[str]) -> Optional[str]:
    """Return a link layer in the kernel's spelling; RoCE runs on Ethernet."""
    if text is None:
        return None
    found = "Ethernet" if text.lower().startswith("roce") else layer(text)
    if found is None:
        raise ValueError(f"context: key 'link_layer': found {text!r:.40}, wanted InfiniBand or Ethernet")
    return found


def judge_ports(tool: str, record: Ports, context: Context, *, netdev_is_link: bool = False) -> Judged:
    """Judge what a tool printed of ports. ``netdev_is_link``: an interface's (Up) stands for an Ethernet port."""
    wanted = demands(context)
    known = rules(tool)
    counted = [port for port in record.ports if counts(port, wanted)]
    findings = list(ran(known["ran"], record, wanted))
    findings += absent(known["device_present"], record, wanted)
    for port in counted:
        findings += judge_port(known, port, wanted, record.form, netdev_is_link=netdev_is_link)
    findings += _bare(known["port_state"], record, wanted)
    bad = [finding.subject for finding in findings if finding.status in {FAIL, DEGRADED} and finding.subject != tool]
    if (
        not record.ports
        and record.devices
        and (wanted.hcas or wanted.rate or wanted.mtu)
        and not (findings or record.troubles)
    ):
        findings.append(say(known["port_state"], tool, UNKNOWN, f"{tool}: this form lists names alone", NOTHING_TESTED))
    if counted and not findings:
        findings.append(say(known["port_state"], tool, OK, f"{len(counted)} ports that count are as demanded"))
    if record.troubles:
        # What is missing was cut off or could not be read, and that is said below.
        findings = [finding for finding in findings if finding.cause != NOTHING_TESTED]
    facts: dict[str, Any] = {
        "hcas": len(record.devices),
        "bad": list(dict.fromkeys(bad)),
        "ignored": ignored(record, wanted),
        "state": {port.name: port.state for port in record.ports},
        "phys_state": {port.name: port.phys_state for port in record.ports},
    }
    if tool not in _NO_RATE:
        facts["rate_gbps"] = {port.name: rate_of(port) for port in record.ports}
    if tool in _MTU:
        facts["active_mtu"] = {port.name: port.active_mtu for port in record.ports}
    if record.guids:
        facts["guids"] = list(record.guids)
    return close(tool, facts, findings, record.troubles, f"{tool}: nothing is demanded of what it printed")


def counts(port: Port, wanted: Demands) -> bool:
    """Tell whether a port is one that the context is concerned with."""
    if port.name in wanted.unused or (port.guid and port_key(f"{port.guid}/{port.port}") in wanted.unused):
        return False
    if wanted.hcas is not None:
        return port.device in wanted.hcas or port.name in wanted.hcas
    if wanted.fabric is not None and port.netdev is not None:
        return port.netdev in wanted.fabric
    return wanted.fabric is None


def ignored(record: Ports, wanted: Demands) -> list[str]:
    """Return the devices of which no port counts."""
    if wanted.hcas is None and wanted.fabric is None and not wanted.unused:
        return []
    used = {port.device for port in record.ports if counts(port, wanted)}
    return [device for device in record.devices if device not in used and device not in (wanted.hcas or ())]


def ran(rule: Rule, record: Ports, wanted: Demands) -> list[Finding]:
    """Return what the tool's own complaints come to when it printed no device, or nobody named those that count."""
    # With its devices printed and named, a complaint is about something else, or shows as an absent device.
    if not record.complaints or record.guids or (record.devices and wanted.hcas is not None):
        return []
    return [_complaint(rule, record.complaints[0], wanted)]


def _complaint(rule: Rule, said: Complaint, wanted: Demands) -> Finding:
    tool = rule.name.partition(".")[0]
    message = f"line {said.line}: {said.what}"
    if said.kind == "no-device" and wanted.hcas:
        return say(rule, tool, FAIL, f"{message}; {', '.join(wanted.hcas)} demanded", "nic-probe-failed")
    if said.kind == "not-root":
        return say(rule, tool, UNKNOWN, message, "not-root")
    return say(rule, tool, UNKNOWN, message, DID_NOT_RUN)


def absent(rule: Rule, record: Ports, wanted: Demands) -> list[Finding]:
    """Return a finding for each demanded device that is not listed; a text that was cut allows none."""
    if not record.devices or record.troubles:
        return []
    missing = [name for name in wanted.hcas or () if name.partition("/")[0] not in record.devices]
    said = [say(rule, name, FAIL, f"{name}: not listed, though it is one of compute_hcas") for name in missing]
    if wanted.fabric is not None and wanted.hcas is None and any(port.netdev for port in record.ports):
        listed = {port.netdev for port in record.ports}
        said += [
            say(rule, name, FAIL, f"{name}: no RDMA device belongs to this interface")
            for name in wanted.fabric
            if name not in listed
        ]
    return said


def _bare(rule: Rule, record: Ports, wanted: Demands) -> list[Finding]:
    """Return a finding for each demanded device that is listed without ports, while others have theirs."""
    having = {port.device for port in record.ports}
    named = dict.fromkeys(name.partition("/")[0] for name in wanted.hcas or ())
    bare = [name for name in named if having and name in record.devices and name not in having]
    return [say(rule, name, UNKNOWN, f"{name}: none of its ports is printed", NOTHING_TESTED) for name in bare]


def rate_of(port: Port) -> Optional[float]:
    """Return a port's rate in Gb/s, or None: that of a port that is down is a filler."""
    if (port.state or "").lower() in _DOWN:
        return None
    if port.rate_gbps is None and port.lanes and port.speed in LANE_GBPS:
        return Link(port.lanes, str(port.speed)).gbps
    return port.rate_gbps


def judge_port(
    known: dict[str, Rule], port: Port, wanted: Demands, form: str, *, netdev_is_link: bool
) -> Iterable[Finding]:
    """Yield what is wrong with one port that counts."""
    state = (port.state or "").lower()
    rule = known["port_state"]
    ethernet = (port.link_layer or wanted.layer) == "Ethernet"
    found = f"{port.name}: state {port.state}, physical state {port.phys_state}"
    expected = wanted.netdev.get(port.device)
    if expected is not None and port.netdev is not None and port.netdev != expected:
        yield say(known["netdev"], port.name, FAIL, f"{port.name}: interface {port.netdev}, wanted {expected}")
    if state in _DOWN:
        status = FAIL if wanted.any else UNKNOWN
        why = "wanted Active" if wanted.any else "nobody said whether it is used: name compute_hcas or unused_ports"
        yield say(rule, port.name, status, f"{found}; {why}", "link-down", state=port.state, phys_state=port.phys_state)
    elif state in _WAITS:
        cause = "link-down" if ethernet else "no-subnet-manager"
        yield say(rule, port.name, FAIL, f"{found}, wanted Active", cause, state=port.state)
    elif state in _DEFER or (port.phys_state or "").replace(" ", "_").lower() in _RECOVERY:
        yield say(rule, port.name, DEGRADED, f"{found}: the link is recovering from errors", "link-flapping")
    elif state in _ACTIVE:
        yield from _judge_up(known, port, wanted)
        if netdev_is_link and port.netdev_up is False and port.netdev in (wanted.fabric or ()):
            yield say(rule, port.name, FAIL, f"{port.name}: interface {port.netdev} is down, wanted up", "link-down")
    elif netdev_is_link and form == "plain":
        yield from _judge_netdev(rule, port, wanted)
    else:
        yield say(rule, port.name, UNKNOWN, f"{port.name}: its state could not be read", TRUNCATED)


def _judge_netdev(rule: Rule, port: Port, wanted: Demands) -> Iterable[Finding]:
    if port.netdev_up or not wanted.any:
        return
    said = f"{port.name}: interface {port.netdev} is down"
    ipoib = wanted.layer == "InfiniBand" or (wanted.layer is None and bool(_IPOIB.match(port.netdev or "")))
    if ipoib and port.netdev not in (wanted.fabric or ()):
        yield say(
            rule, port.name, UNKNOWN, f"{said}; that is IPoIB, the port's own state is not printed", NOTHING_TESTED
        )
    else:
        yield say(rule, port.name, FAIL, f"{said}, wanted up", "link-down")


def _judge_up(known: dict[str, Rule], port: Port, wanted: Demands) -> Iterable[Finding]:
    if wanted.layer and port.link_layer and port.link_layer != wanted.layer:
        found = f"{port.name}: link layer {port.link_layer}, wanted {wanted.layer}"
        yield say(known["link_layer"], port.name, FAIL, found)
    tool = known["port_rate"].name.partition(".")[0]
    if tool not in _NO_RATE:
        yield from _judge_rate(known["port_rate"], port, wanted)
    if wanted.mtu is not None and tool in _MTU:
        if port.active_mtu is None:
            yield say(known["active_mtu"], port.name, UNKNOWN, f"{port.name}: no active MTU is printed", NOTHING_TESTED)
        elif port.active_mtu < wanted.mtu:
            found = f"{port.name}: active MTU {port.active_mtu}, wanted {wanted.mtu}"
            yield say(known["active_mtu"], port.name, DEGRADED, found, active_mtu=port.active_mtu)


def _judge_rate(rule: Rule, port: Port, wanted: Demands) -> Iterable[Finding]:
    rate = rate_of(port)
    least = wanted.rate
    if wanted.link is not None:
        if port.lanes and port.speed in LANE_GBPS:
            has = Link(port.lanes, str(port.speed))
            if has.lanes < wanted.link.lanes or LANE_GBPS[has.speed] < LANE_GBPS[wanted.link.speed]:
                yield say(rule, port.name, DEGRADED, f"{port.name}: {has}, wanted {wanted.link}", rate_gbps=rate)
                return
        least = max(least or 0.0, wanted.link.gbps)
    if least is None:
        return
    if rate is None:
        yield say(rule, port.name, UNKNOWN, f"{port.name}: no rate is printed; {least:g} Gb/s wanted", NOTHING_TESTED)
    elif rate < least:
        yield say(rule, port.name, DEGRADED, f"{port.name}: {rate:g} Gb/s, wanted {least:g}", rate_gbps=rate)


def picked(tool: str, *words: str) -> tuple[Rule, ...]:
    """Return those rules of a tool that its output can decide."""
    known = rules(tool)
    return tuple(known[word] for word in words)
