"""Judge the cabling: which switch port each netdev of the fabric sees. Pure."""

from typing import Any, NamedTuple, Optional

from weaklink.checks.tools.base import DID_NOT_RUN, NOTE, Context, Judged, Rule, close, demand, say
from weaklink.checks.tools.mlx_common import did_not_run
from weaklink.model.finding import FAIL, UNKNOWN, Finding
from weaklink.observe.tools.lldpcli_records import Neighbour, Record

CABLING = Rule(
    "lldpcli.cabling",
    ("miscabled",),
    FAIL,
    NOTE,
    "Each netdev of expected must see its switch and port; another one, or none while others see theirs, fails. Source:"
    " LLDP (IEEE 802.1AB) as the switch sends it.",
    "Move the cable to the planned port, or correct the plan.",
)
RULES = (CABLING,)


class _Want(NamedTuple):
    switch: Optional[str]
    port: Optional[str]


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; ``expected`` maps netdevs to ``{switch, port}``."""
    wanted = {str(name): _want(str(name), value) for name, value in demand(context, "expected", dict, {}).items()}
    by_netdev: dict[str, list[Neighbour]] = {}
    for neighbour in record.neighbours:
        by_netdev.setdefault(neighbour.netdev, []).append(neighbour)
    said: list[Finding] = []
    mismatch: list[str] = []
    shown: dict[str, Neighbour] = {name: found[0] for name, found in by_netdev.items()}
    for name, want in wanted.items():
        found = by_netdev.get(name, [])
        match = next((item for item in found if _same(item, want)), None)
        if match is not None:
            shown[name] = match
            continue
        finding = _other(name, want, found, record)
        said.append(finding)
        mismatch += [name] if finding.status == FAIL else []
    if record.complaints and not record.neighbours:
        said = [did_not_run("lldpcli", record.complaints)]
    said.sort(key=lambda finding: finding.status != FAIL)
    facts: dict[str, Any] = {
        "neighbours": {name: {"switch": item.switch, "port": item.port} for name, item in shown.items()},
        "mismatch": mismatch,
        "missing": [name for name in wanted if name not in by_netdev],
        "ignored": [name for name in by_netdev if wanted and name not in wanted],
        "form": record.version,
    }
    return close("lldpcli", facts, said, record.troubles)


def _want(name: str, value: Any) -> _Want:
    if not isinstance(value, dict) or not {"switch", "port"} & set(value):
        raise ValueError(f"context: key 'expected' of {name}: found {value!r:.60}, wanted {{switch, port}}")
    switch, port = value.get("switch"), value.get("port")
    return _Want(None if switch is None else str(switch), None if port is None else str(port))


def _same(found: Neighbour, want: _Want) -> bool:
    switch = want.switch is None or _same_host(found.switch, want.switch)
    # A description is what somebody wrote; it names the port only where the id is no interface name.
    descr = "" if "ifname" in found.ids else found.descr or ""
    names = {name.lower() for name in (*found.ids.values(), descr)}
    return switch and (want.port is None or want.port.lower() in names)


def _same_host(found: Optional[str], wanted: str) -> bool:
    """Tell whether two names are one host's; a name without a domain is the first part of one with it."""
    one, other = (found or "").lower(), wanted.lower()
    if "." not in one or "." not in other:
        one, other = one.partition(".")[0], other.partition(".")[0]
    return bool(one) and one == other


def _other(name: str, want: _Want, found: list[Neighbour], record: Record) -> Finding:
    text = f"{name}: wanted {want.switch} port {want.port}"
    if found:
        item = found[0]
        if item.switch is None or item.port is None:
            return say(CABLING, name, UNKNOWN, f"{text}, found an unnamed neighbour", cause="output-truncated")
        return say(CABLING, name, FAIL, f"{text}, found {item.switch} port {item.port}", found=[item.switch, item.port])
    if record.troubles:
        return say(CABLING, name, UNKNOWN, f"{text}, the output ends before it", cause="output-truncated")
    if not record.neighbours:
        return say(CABLING, name, UNKNOWN, f"{text}, no interface has a neighbour: is LLDP on?", cause=DID_NOT_RUN)
    return say(CABLING, name, FAIL, f"{text}, found no neighbour")
