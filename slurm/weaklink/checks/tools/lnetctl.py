"""Judge lnetctl: LNet up, the wanted network there and up, healthy. Pure."""

from collections.abc import Iterator
from typing import Any, Optional

from weaklink.checks.tools import storage_rules as rules
from weaklink.checks.tools.base import Context, Judged, close, demand, say
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding, bad_first
from weaklink.observe.tools.lnetctl import Error, Interface, Record

RULES = (rules.LNET_UP, rules.LNET_NET, rules.LNET_HEALTH, rules.LNET_PEER, rules.LNET_RAN)
_HEALTHY = 1000  # LNET_MAX_HEALTH_VALUE
_LOOP = "lo"
_DOWN_WORDS = ("network is down", "no such file or directory", "no such device", "modules may not be loaded")


def same_net(name: str) -> str:
    """Return a network's name as LNet compares it: o2ib0 is o2ib."""
    base = name.strip().lower()
    return base[:-1] if base in ("o2ib0", "tcp0", "kfi0", "gni0") else base


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; context: required_net."""
    wanted = demand(context, "required_net", str)
    ours = [item for item in record.interfaces if same_net(item.net) != _LOOP]
    findings = [*_errors(record), *_net(record, ours, wanted), *_states(ours, wanted), *_peers(record)]
    if not (findings or record.nets or record.interfaces or record.peers):
        findings.append(say(rules.LNET_RAN, "lnet", UNKNOWN, "no network and no error is printed; run it as root"))
    findings.sort(key=lambda finding: bad_first(finding.status))
    up = [item.nid for item in ours if item.status == "up"]
    facts: dict[str, Any] = {
        "nets": list(record.nets),
        "nids_up": up,
        "nids_down": [item.nid for item in ours if item.status not in ("up", None)],
        "interfaces": {item.nid: list(item.devices) for item in ours if item.devices},
        "health": {item.nid: item.health for item in ours if item.health is not None},
        "peers": [item.nid for item in record.peers],
        "error": record.errors[0].text if record.errors else None,
    }
    return close("lnet", facts, findings, record.troubles, f"LNet is up on {', '.join(up) or 'lo only'}")


def down(error: Error) -> bool:
    """Tell whether an error means that LNet is not running."""
    return error.number in (-100, 100) or any(word in error.text.lower() for word in _DOWN_WORDS)


def _errors(record: Record) -> Iterator[Finding]:
    for error in record.errors:
        text = error.text.lower()
        if "permission denied" in text or "not permitted" in text:
            yield say(rules.LNET_RAN, "lnet", UNKNOWN, f"{error.text}; run it as root", "not-root")
        elif "ping" in text:
            yield say(rules.LNET_PEER, "peer", FAIL, f"{error.text}; check RDMA to it and its LNet")
        elif down(error):
            yield say(rules.LNET_UP, "lnet", FAIL, f"LNet is down: {error.text}; lnetctl lnet configure --all")
        else:
            yield say(rules.LNET_RAN, "lnet", UNKNOWN, f"lnetctl says {error.text!r} ({error.number}); look into it")


def _net(record: Record, ours: list[Interface], wanted: Optional[str]) -> Iterator[Finding]:
    if wanted is None or record.errors or not (record.nets or ours):
        return
    nets = [same_net(net) for net in record.nets] + [same_net(item.net) for item in ours]
    if same_net(wanted) not in nets and not record.troubles:
        others = [net for net in record.nets if same_net(net) != _LOOP]
        cause = "rdma-not-used" if others else "lnet-down"
        text = (
            f"no network {wanted}, only {', '.join(record.nets)}; add it: lnetctl net add --net {wanted} --if <device>"
        )
        yield say(rules.LNET_NET, wanted, FAIL, text, cause, found=list(record.nets))


def _states(ours: list[Interface], wanted: Optional[str]) -> Iterator[Finding]:
    counted = [item for item in ours if wanted is None or same_net(item.net) == same_net(wanted)]
    for item in counted:
        if item.status not in ("up", None):
            text = f"{item.nid} ({', '.join(item.devices) or item.net}) is {item.status}; check its link, then dmesg"
            yield say(rules.LNET_UP, item.nid, FAIL, text)
        elif item.health is not None and item.health < _HEALTHY:
            text = f"{item.nid}: health {item.health} of {_HEALTHY}; look at dmesg for LNet errors, check the link"
            yield say(rules.LNET_HEALTH, item.nid, DEGRADED, text, health=item.health)


def _peers(record: Record) -> Iterator[Finding]:
    for item in record.peers:
        if item.status == "down":
            yield say(rules.LNET_PEER, item.nid, FAIL, f"peer {item.nid} is down; check RDMA to it and its LNet")
        elif item.health is not None and item.health < _HEALTHY and same_net(item.net) != _LOOP:
            text = f"peer {item.nid}: health {item.health} of {_HEALTHY}; check the link to it"
            yield say(rules.LNET_HEALTH, item.nid, DEGRADED, text, health=item.health)
