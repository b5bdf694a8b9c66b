"""Judge the interfaces that carry the fabric as ip reports them. Pure."""

from collections.abc import Iterator
from typing import Any

from weaklink.checks.tools.base import DRAIN, Context, Judged, Rule, close, demand, say
from weaklink.checks.tools.mlx_common import did_not_run
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding, bad_first
from weaklink.model.mtu import ROCE_HEADERS
from weaklink.observe.tools.ip_link import Link, Record

LINK = Rule(
    "ip_link.state",
    ("link-down",),
    FAIL,
    DRAIN,
    "Each netdev of fabric_netdevs must be there with LOWER_UP and an operstate of UP (UNKNOWN where the driver tells"
    " none); the flag UP alone is what an administrator set.",
    "ip link set NETDEV up if UP is missing; else check cable, module, switch port and, on InfiniBand, the manager.",
)
MTU = Rule(
    "ip_link.mtu",
    ("mtu-too-small",),
    DEGRADED,
    DRAIN,
    "An Ethernet netdev's MTU must hold expected_active_mtu and 96 bytes of headers; IPoIB's 2044 and 4092 are what its"
    " datagram mode has, and are not judged.",
    "ip link set NETDEV mtu 9000 on the node, and more on the switch.",
)
RULES = (LINK, MTU)


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; interfaces that ``fabric_netdevs`` does not name are ignored."""
    wanted = demand(context, "fabric_netdevs", list, [])
    mtu = demand(context, "expected_active_mtu", int)
    by_name = {link.name: link for link in record.links}
    said: list[Finding] = []
    bad: list[str] = []
    for name in (str(item) for item in wanted):
        link = by_name.get(name)
        if link is None and record.complaints and name not in record.unknown:
            continue  # ip was asked for another interface, or did not run
        if link is None:
            # A cut list may have held it.
            status, cause = (UNKNOWN, "output-truncated") if record.troubles else (FAIL, "link-down")
            said.append(say(LINK, name, status, f"{name}: not in the list of interfaces, wanted there", cause=cause))
            bad += [name] if status == FAIL else []
            continue
        found = list(_state(link))
        if mtu is not None and link.kind in {"ether", None}:
            found += _mtu(link, mtu)
        bad += [name] if any(finding.status != UNKNOWN for finding in found) else []
        said += found
    if record.complaints and not record.links and not said:
        said.append(did_not_run("ip-link", record.complaints))
    said.sort(key=lambda finding: bad_first(finding.status))
    facts: dict[str, Any] = {
        "links": len(record.links),
        "operstate": {link.name: link.operstate for link in record.links},
        "mtu": {link.name: link.mtu for link in record.links},
        "flags": {link.name: list(link.flags) for link in record.links},
        "addresses": {link.name: list(link.addresses) for link in record.links if link.addresses},
        "link_type": {link.name: link.kind for link in record.links},
        "bad": bad,
        "ignored": [link.name for link in record.links if wanted and link.name not in wanted],
    }
    return close("ip-link", facts, said, record.troubles)


def _state(link: Link) -> Iterator[Finding]:
    found = f"operstate {link.operstate}, flags {','.join(link.flags) or 'not printed'}"
    if link.carrier is None and link.operstate is None:
        yield say(LINK, link.name, UNKNOWN, f"{link.name}: no state can be read", cause="output-truncated")
    elif link.flags and "UP" not in link.flags:
        yield say(LINK, link.name, FAIL, f"{link.name}: switched off ({found}), wanted up", flags=list(link.flags))
    elif link.carrier is False or link.operstate not in {"UP", "UNKNOWN", None}:
        yield say(LINK, link.name, FAIL, f"{link.name}: no carrier ({found}), wanted LOWER_UP", flags=list(link.flags))
    elif link.operstate is None:
        yield say(LINK, link.name, UNKNOWN, f"{link.name}: no operstate ({found})", cause="output-truncated")


def _mtu(link: Link, payload: int) -> Iterator[Finding]:
    wanted = payload + ROCE_HEADERS
    if link.mtu is None:
        yield say(MTU, link.name, UNKNOWN, f"{link.name}: no MTU can be read", cause="output-truncated")
    elif link.mtu < wanted:
        text = f"{link.name}: MTU {link.mtu}, wanted at least {wanted} for an RDMA MTU of {payload}"
        yield say(MTU, link.name, DEGRADED, text, found=link.mtu, wanted=wanted)
