"""Judge lctl: LNet up, the wanted network among the NIDs, peers that answer. Pure."""

from collections.abc import Iterator
from typing import Any

from weaklink.checks.tools import storage_rules as rules
from weaklink.checks.tools.base import Context, Judged, close, demand, say
from weaklink.checks.tools.lnetctl import same_net
from weaklink.model.finding import FAIL, UNKNOWN, Finding
from weaklink.observe.tools.lctl import Error, Record

RULES = (rules.LNET_UP, rules.LNET_NET, rules.LNET_PEER, rules.LNET_RAN)
_DENIED = ("permission denied", "not permitted")
_LOOP = "0@lo"


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; context: required_net, command (what was run, as text)."""
    wanted = demand(context, "required_net", str)
    command = demand(context, "command", str, "")
    nids = [nid for nid in record.nids if nid != _LOOP]
    findings = list(_errors(record))
    if not findings and wanted is not None and nids and "ping" not in command and not record.troubles:
        nets = {same_net(nid.rpartition("@")[2]) for nid in nids}
        if same_net(wanted) not in nets:
            text = f"no NID on {wanted}, only {', '.join(nids)}; lnetctl net add --net {wanted} --if <device>"
            findings.append(say(rules.LNET_NET, wanted, FAIL, text, "rdma-not-used", found=nids))
    for device in record.devices:
        if device.state != "UP" and not findings:
            text = f"{device.type} {device.name} is {device.state}, not UP; it may still be set up: look again"
            findings.append(say(rules.LNET_RAN, device.name, UNKNOWN, text))
    if not findings and not (record.nids or record.devices):
        findings.append(say(rules.LNET_RAN, "lnet", UNKNOWN, "lctl printed no NID and no error; is LNet configured?"))
    facts: dict[str, Any] = {
        "nids": nids,
        "error": _words(record),
        "error_number": next((error.number for error in record.errors if error.number is not None), None),
        "unreachable": [error.peer for error in record.errors if error.peer],
        "devices": len(record.devices),
    }
    return close("lnet", facts, findings, record.troubles, f"LNet answers: {', '.join(nids) or 'devices are up'}")


def _words(record: Record) -> Any:
    """The error of the call, not that of what it met on the way ("LNet stack down" precedes it in newer ones)."""
    numbered = [error for error in record.errors if error.number is not None or error.peer]
    return (numbered or list(record.errors))[0].text if record.errors else None


def _errors(record: Record) -> Iterator[Finding]:
    ordered: list[Error] = sorted(record.errors, key=lambda error: error.peer is not None)
    for error in ordered:
        if any(word in error.text.lower() for word in _DENIED):
            yield say(rules.LNET_RAN, "lnet", UNKNOWN, f"{error.printed}; run it as root", "not-root")
        elif error.peer:
            text = f"{error.peer} does not answer: {error.text}; check RDMA to it (ping, rping) and its LNet"
            yield say(rules.LNET_PEER, error.peer, FAIL, text)
        else:
            yield say(rules.LNET_UP, "lnet", FAIL, f"LNet is down: {error.printed}; load its modules, start it")
