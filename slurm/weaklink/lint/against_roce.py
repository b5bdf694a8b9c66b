"""Hold traffic class, service level, GID index and adaptive routing against a node's facts. Pure.

On RoCE the NIC sorts a packet by its DSCP, the upper six bits of the traffic class byte (RFC 2474), into a priority,
and only one priority is lossless. InfiniBand has service levels instead.
"""

from typing import Optional

from weaklink.lint import selection
from weaklink.lint.base import CONTRADICTION, DISCOURAGED, NO_OP, OK
from weaklink.lint.context import Context
from weaklink.lint.facts import ETHERNET, INFINIBAND, Facts, Gid
from weaklink.lint.parse import Setting
from weaklink.lint.values import Remark, number

_ECN_CAPABLE = 2
_GID_DYNAMIC = (2, 21, 0)


def right_classes(facts: Facts) -> list[int]:
    """Return the traffic classes (ECN bits 0) that reach the lossless priority, the fabric's own first."""
    if facts.rdma_dscp is not None:
        return [facts.rdma_dscp << 2]
    if facts.lossless_priority is None:
        return []
    return [
        dscp << 2 for dscp in range(64) if facts.priority(dscp) == facts.lossless_priority and dscp != facts.cnp_dscp
    ]


def _write(facts: Facts) -> str:
    right = right_classes(facts)
    if not right:
        return "no DSCP reaches it: look at the table"
    named = [value for value in right if value >> 2 == 26] or right  # noqa: PLR2004 - the usual one where it is free to choose
    return f"write {named[0]} or, ECN capable, {named[0] | _ECN_CAPABLE} (DSCP {named[0] >> 2})"


def traffic_class(setting: Setting, context: Context) -> list[Remark]:
    """Hold NCCL_IB_TC or NCCL_IB_FIFO_TC against the lossless priority."""
    facts, value = context.facts, number(setting)
    if facts is None or value is None:
        return []
    if facts.layer() == INFINIBAND:
        return [Remark(NO_OP, "InfiniBand sorts by service level (NCCL_IB_SL), not by traffic class; drop it")]
    if facts.layer() != ETHERNET:
        return []
    if facts.trust == "pcp":
        return [Remark(CONTRADICTION, "ports trust the VLAN's PCP here, so that no DSCP is looked at; trust DSCP")]
    return _class_of(value, facts, setting.name == "NCCL_IB_FIFO_TC")


def _class_of(value: int, facts: Facts, fifo: bool) -> list[Remark]:
    dscp = value >> 2
    priority = facts.priority(dscp)
    how = "by this node's table" if dscp in facts.dscp2prio else "DSCP / 8"
    place = f"{value} is DSCP {dscp}, priority {priority} ({how})"
    if facts.lossless_priority is not None and priority != facts.lossless_priority:
        text = f"{place}; lossless is priority {facts.lossless_priority}, so that these packets can be dropped"
        if facts.rdma_dscp == value:
            text += f"; {value} is the DSCP, and the variable takes the whole byte"
        return [Remark(CONTRADICTION, f"{text}; {_write(facts)}")]
    if facts.cnp_dscp is not None and dscp == facts.cnp_dscp:
        return [Remark(CONTRADICTION, f"{place}; that is the DSCP of congestion notices; {_write(facts)}")]
    listed = dscp in facts.dscp2prio and facts.lossless_priority is not None
    if facts.rdma_dscp is not None and dscp != facts.rdma_dscp and not listed and not fifo:
        return [
            Remark(CONTRADICTION, f"{place}; RDMA is marked DSCP {facts.rdma_dscp} in this fabric; {_write(facts)}")
        ]
    if facts.forced_traffic_class is not None and facts.forced_traffic_class != value:
        text = f"the node forces traffic class {facts.forced_traffic_class} on all RDMA traffic"
        return [Remark(NO_OP, f"{text}; {value} has no effect")]
    if facts.lossless_priority is None and facts.rdma_dscp is None:
        return []
    return [Remark(OK, f"{place}, the lossless one of this fabric")]


def service_level(setting: Setting, context: Context) -> list[Remark]:
    """Hold NCCL_IB_SL against the link layer, and against what a port trusts."""
    facts, value = context.facts, number(setting)
    if facts is None or value is None:
        return []
    if facts.layer() == ETHERNET and value:
        if facts.trust != "pcp":
            text = "on RoCE the service level is the VLAN's priority; ports that trust DSCP do not look at it"
            return [Remark(CONTRADICTION, f"{text}; drop it and set NCCL_IB_TC")]
        if facts.lossless_priority is not None and value != facts.lossless_priority:
            return [Remark(CONTRADICTION, f"becomes PCP {value}; lossless is priority {facts.lossless_priority}")]
    sls = facts.adaptive_routing_sls
    if facts.layer() == INFINIBAND and sls and value not in sls and context.value("NCCL_IB_ADAPTIVE_ROUTING") != "0":
        text = (
            f"service level {value} has no adaptive routing in this fabric (those with it: {', '.join(map(str, sls))})"
        )
        return [Remark(CONTRADICTION, f"{text}; NCCL sends as if it had")]
    return []


def adaptive_routing(setting: Setting, context: Context) -> list[Remark]:
    """Hold NCCL_IB_ADAPTIVE_ROUTING against the link layer and the fabric."""
    facts, value = context.facts, number(setting)
    if facts is None or value not in (0, 1) or not facts.layer():
        return []
    infiniband = facts.layer() == INFINIBAND
    if value == 1 and facts.adaptive_routing is False:
        return [
            Remark(CONTRADICTION, "this fabric has no adaptive routing; out of order arrival costs and gains nothing")
        ]
    if value == int(infiniband):
        return [Remark(NO_OP, f"{value} is the default on {'InfiniBand' if infiniband else 'RoCE'}")]
    if value == 1:
        return [Remark(OK, "right where switches and NICs route RoCE adaptively")]
    if facts.adaptive_routing:
        return [Remark(DISCOURAGED, "this fabric routes adaptively, and NCCL then does not use it")]
    return [Remark(OK, "keeps traffic on one path")]


def gid_index(setting: Setting, context: Context) -> list[Remark]:
    """Hold NCCL_IB_GID_INDEX against the GID tables."""
    facts, index = context.facts, number(setting)
    if facts is None or index is None or index < 0:
        return []
    if facts.layer() == INFINIBAND:
        return [Remark(CONTRADICTION, "the GID index is for RoCE; on InfiniBand drop it")]
    chosen = selection.parse(context.value("NCCL_IB_HCA") or "")
    wrong, right = [], {}
    for name, table in facts.gids.items():
        if (name in facts.hcas and facts.hcas[name].role != "compute") or not chosen.selects(name):
            continue
        row = next((gid for gid in table if gid.number == index), None)
        good = [gid.number for gid in table if _usable(gid, name, facts)]
        right[name] = good
        if index not in good:
            wrong.append(f"{name}: {_row(row)}, right: {', '.join(map(str, good)) or 'none'}")
    if wrong:
        return [
            Remark(
                CONTRADICTION, f"index {index} is wrong on {len(wrong)} of {len(right)} HCAs ({'; '.join(wrong[:4])})"
            )
        ]
    if right and tuple(context.at) < _GID_DYNAMIC:
        return [Remark(OK, f"index {index} is RoCE v2 with an IPv4 address on all {len(right)} HCAs")]
    return []


def _usable(gid: Gid, hca: str, facts: Facts) -> bool:
    """Whether a row is RoCE v2 with a routable IPv4 address on the HCA's own interface."""
    netdev = facts.hcas[hca].netdev if hca in facts.hcas else ""
    version2 = gid.type.lower().replace(" ", "").replace("_", "") in ("rocev2", "v2")
    return version2 and _ipv4(gid.address) and (not netdev or not gid.netdev or gid.netdev == netdev)


def _ipv4(address: str) -> bool:
    plain = address.partition("/")[0].lower()
    if plain.count(".") == 3 and ":" not in plain:  # noqa: PLR2004 - dots of an IPv4 address
        return not plain.startswith("169.254.")
    return plain.startswith(("::ffff:", "0000:0000:0000:0000:0000:ffff:"))


def _row(row: Optional[Gid]) -> str:
    return "no such row" if row is None else f"{row.type or 'unknown type'} {row.address or 'without an address'}"


def missing(context: Context) -> list[tuple[str, Optional[str], Remark]]:
    """Return (variable, None, remark) for what RoCE needs and is not set."""
    facts = context.facts
    found: list[tuple[str, Optional[str], Remark]] = []
    if facts is None or facts.layer() != ETHERNET or facts.trust == "pcp" or facts.lossless_priority is None:
        return found
    marked = "NCCL_IB_TC" in context.winners or facts.forced_traffic_class is not None
    if not marked and facts.priority(0) != facts.lossless_priority:
        text = f"not set: NCCL sends with DSCP 0, priority {facts.priority(0)}; lossless is {facts.lossless_priority}"
        found.append(("NCCL_IB_TC", None, Remark(CONTRADICTION, f"{text}; {_write(facts)}")))
    if "NCCL_IB_GID_INDEX" not in context.winners and tuple(context.at) < _GID_DYNAMIC:
        text = f"not set: NCCL {context.at} takes index 0 on RoCE, which is no RoCE v2 address; set it from show_gids"
        found.append(("NCCL_IB_GID_INDEX", None, Remark(CONTRADICTION, text)))
    return found
