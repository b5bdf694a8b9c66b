"""Judge what a cluster file says of lossless RoCE: priority flow control, marking, congestion notices. Pure.

Priority flow control (IEEE 802.1Qbb) pauses one of eight priorities of an Ethernet link. One is enough for RDMA, and
all of them are the old global pause. Hosts and switches have to agree. InfiniBand has credits on every link instead.
"""

from collections.abc import Iterator
from typing import Any, Optional

from weaklink.lint.base import CONTRADICTION, DISCOURAGED, NO_OP, UNIT

Json = dict[str, Any]
Row = tuple[tuple[Any, ...], str, str, str]

_PRIORITIES = 8
_PFC = "IEEE 802.1Qbb, priority-based flow control"
_DSCP = "RFC 2474: the DSCP is the upper six bits of the traffic class; NICs and switches sort by DSCP / 8 by default"
_CNP = "InfiniBand specification, annex A17: congestion notification packets"
_WATCHDOG = "a PFC storm of one NIC can stop a whole fabric; the watchdog drops instead"


def judge_qos(data: Json) -> Iterator[Row]:
    """Yield (path, class, message, source) of every network's and switch's QoS."""
    for name, network in (data.get("networks") or {}).items():
        transport, qos = network.get("transport", "tcp"), network.get("qos")
        path = ("networks", name, "qos")
        if transport == "roce" and qos is None:
            if _in_software(data, name):
                continue
            text = f"{name}: RoCE without QoS: nothing keeps a full switch from dropping what then is sent again"
            yield path, DISCOURAGED, f"{text}; say lossless_priority, dscp, trust, pfc, pfc_watchdog", _PFC
        elif transport == "roce":
            yield from _host(name, network, qos, path)
        elif qos is not None:
            yield path, NO_OP, _not_applicable(name, transport), _PFC
    for name, switch in (data.get("switches") or {}).items():
        network = (data.get("networks") or {}).get(switch.get("network"), {})
        yield from _switch(name, switch, network)


def _in_software(data: Json, network: str) -> bool:
    """Whether all RDMA devices of a network are Soft-RoCE, which knows no priorities."""
    machines = [*(data.get("groups") or {}).values(), *(data.get("hardware") or {}).values()]
    nics = [nic for machine in machines for nic in machine.get("nics") or [] if nic.get("network") == network]
    kinds = {nic["rdma"].get("kind", "hca") for nic in nics if nic.get("rdma")}
    return kinds == {"rxe"}


def _not_applicable(name: str, transport: str) -> str:
    if transport == "infiniband":
        return (
            f"{name}: not applicable on InfiniBand: PFC is of Ethernet, and InfiniBand's links have credits, which "
            "nobody switches on or off; drop qos"
        )
    return f"{name}: QoS for RDMA on a network without RDMA; drop it, or set transport: roce"


def _host(name: str, network: Json, qos: Json, path: tuple[Any, ...]) -> Iterator[Row]:
    yield from _pfc(name, qos, path, qos.get("lossless_priority"))
    yield from _trust(name, network, qos, path)
    yield from _marking(name, qos, path)
    yield from _notices(name, qos, path)
    if qos.get("ecn") is False:
        text = f"{name}: without ECN senders slow down only when PFC stops them, and pauses spread through the fabric"
        yield (*path, "ecn"), DISCOURAGED, text, _CNP


def _pfc(name: str, qos: Json, path: tuple[Any, ...], lossless: Optional[int]) -> Iterator[Row]:
    pfc = qos.get("pfc")
    if pfc is not None and len(set(pfc)) == _PRIORITIES:
        one = 3 if lossless is None else lossless
        text = f"{name}: PFC on all priorities is global pause: one slow receiver stops everything; pause one ({one})"
        yield (*path, "pfc"), CONTRADICTION, text, _PFC
    elif pfc is not None and len(set(pfc)) > 1:
        text = (
            f"{name}: {len(set(pfc))} priorities are paused; each takes headroom from the buffers, and RDMA needs one"
        )
        yield (*path, "pfc"), DISCOURAGED, text, _PFC
    if pfc is not None and lossless is not None and lossless not in pfc:
        text = f"{name}: priority {lossless} is to be lossless, and PFC is on for {', '.join(map(str, pfc)) or 'none'}"
        yield (*path, "pfc"), CONTRADICTION, text, _PFC
    if pfc is None and lossless is None:
        yield path, DISCOURAGED, f"{name}: no priority is lossless; say lossless_priority and pfc (one of them)", _PFC
    if pfc == [] and lossless is None:
        yield (
            (*path, "pfc"),
            DISCOURAGED,
            f"{name}: PFC is on for no priority, so that RDMA packets can be dropped",
            _PFC,
        )
    if not qos.get("pfc_watchdog") and (pfc or lossless is not None):
        yield (*path, "pfc_watchdog"), DISCOURAGED, f"{name}: no PFC watchdog: {_WATCHDOG}; set it", _PFC
    if qos.get("headroom") is False:
        text = f"{name}: without headroom the packets that arrive between a pause and its effect are dropped"
        yield (*path, "headroom"), CONTRADICTION, text, _PFC


def _trust(name: str, network: Json, qos: Json, path: tuple[Any, ...]) -> Iterator[Row]:
    if qos.get("trust") != "pcp":
        return
    if not network.get("vlan"):
        text = f"{name}: ports trust the VLAN's PCP, and frames without a VLAN have none: all land in priority 0"
        yield (*path, "trust"), CONTRADICTION, f"{text}; set trust: dscp, or a vlan", "IEEE 802.1Q"
    else:
        text = f"{name}: the PCP is lost where a packet is routed, the DSCP is not"
        yield (*path, "trust"), DISCOURAGED, f"{text}; set trust: dscp", "IEEE 802.1Q"


def _marking(name: str, qos: Json, path: tuple[Any, ...]) -> Iterator[Row]:
    dscp, lossless, byte = qos.get("dscp"), qos.get("lossless_priority"), qos.get("traffic_class")
    if dscp is not None and lossless is not None and dscp >> 3 != lossless:
        text = f"{name}: DSCP {dscp} is sorted into priority {dscp >> 3} by default, and {lossless} is the lossless one"
        span = f"{lossless * 8} to {lossless * 8 + 7}"
        yield (*path, "dscp"), CONTRADICTION, f"{text}; take a DSCP from {span} (26 is usual for 3)", _DSCP
    if byte is None or dscp is None or byte >> 2 == dscp:
        return
    if byte == dscp:
        text = f"{name}: traffic_class is the whole byte and {byte} is DSCP {byte >> 2}; DSCP {dscp} is {dscp << 2}"
        yield (*path, "traffic_class"), UNIT, f"{text}, or {dscp << 2 | 2} (ECN capable)", _DSCP
    else:
        text = f"{name}: traffic_class {byte} is DSCP {byte >> 2}, and dscp says {dscp}"
        yield (*path, "traffic_class"), CONTRADICTION, f"{text}; write {dscp << 2} or {dscp << 2 | 2}", _DSCP


def _notices(name: str, qos: Json, path: tuple[Any, ...]) -> Iterator[Row]:
    lossless, dscp, priority = qos.get("lossless_priority"), qos.get("cnp_dscp"), qos.get("cnp_priority")
    sorted_into = priority if priority is not None else None if dscp is None else dscp >> 3
    if lossless is not None and sorted_into == lossless:
        key = "cnp_priority" if priority is not None else "cnp_dscp"
        text = f"{name}: congestion notices share priority {lossless} with RDMA, so that a pause holds them back"
        yield (*path, key), CONTRADICTION, f"{text}; give them their own (DSCP 48, priority 6)", _CNP
    elif priority is not None and dscp is not None and dscp >> 3 != priority:
        text = (
            f"{name}: cnp_dscp {dscp} is sorted into priority {dscp >> 3} by default, and cnp_priority says {priority}"
        )
        yield (*path, "cnp_dscp"), CONTRADICTION, text, _DSCP


def _switch(name: str, switch: Json, network: Json) -> Iterator[Row]:
    path, qos, host = ("switches", name, "qos"), switch.get("qos"), network.get("qos")
    transport = network.get("transport", "tcp")
    if transport != "roce":
        if qos is not None:
            yield path, NO_OP, _not_applicable(name, transport), _PFC
        return
    if qos is None:
        if host is not None:
            text = f"{name}: hosts of {switch.get('network')} are lossless, of the switches nothing is said"
            yield path, CONTRADICTION, f"{text}; a fabric is lossless only where every hop is: say qos here", _PFC
        return
    lossless = (host or {}).get("lossless_priority", qos.get("lossless_priority"))
    yield from _pfc(name, qos, path, lossless)
    for key in ("pfc", "trust"):
        wanted = (host or {}).get(key)
        if key == "pfc" and wanted is None and lossless is not None:
            wanted = [lossless]
        if qos.get(key) is not None and wanted is not None and _differ(qos[key], wanted):
            text = f"{name}: {key} {qos[key]} on the switches, {wanted} on the hosts of {switch.get('network')}"
            yield (*path, key), CONTRADICTION, f"{text}; make them equal", _PFC


def _differ(first: Any, second: Any) -> bool:
    if isinstance(first, list) and isinstance(second, list):
        return sorted(first) != sorted(second)
    return bool(first != second)
