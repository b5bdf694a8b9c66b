"""Why is a node out of service? From Slurm and the store alone: the node itself is not asked, it may be dead."""

from collections.abc import Mapping
from typing import Any, Optional

from weaklink.guard.context import Guard, Owner, owner_of, printable, stamp
from weaklink.history.store import EvidenceRecord
from weaklink.scheduler.types import NodeInfo

_HISTORY = 8
_NOTABLE = 3.0  # standard errors


def explain(guard: Guard, info: NodeInfo) -> dict[str, Any]:
    """Return everything about one node as an object (that of ``weaklink why --json``)."""
    owner = owner_of(guard.key, info)
    history = guard.store.evidence(info.name, limit=_HISTORY)
    evidence = _matching(owner, history)
    suspect = (evidence.body.get("suspect") if evidence else None) or {}
    return {
        "node": info.name,
        "state": "+".join(sorted(info.states)),
        "in_service": owner.who == "",
        "by": owner.who,
        "note": owner.note,
        "reason": info.reason,
        "user": info.reason_user,
        "since": info.reason_time,
        "check": owner.check or (evidence.check if evidence else ""),
        "token": owner.token,
        "cause": evidence.cause if evidence else "",
        "message": evidence.message if evidence else "",
        "evidence": _evidence(evidence) if evidence else None,
        "suspect": suspect or None,
        "counters": _counters(guard, evidence, info.name),
        "history": [_evidence(one) for one in history],
        "incidents": [
            {"id": one.id, "check": one.check, "message": one.message, "opened": one.opened}
            for one in guard.store.incidents()
            if info.name in one.nodes
        ],
        "next": _next(owner, info, evidence),
    }


def _matching(owner: Owner, history: list[EvidenceRecord]) -> Optional[EvidenceRecord]:
    """Return the evidence behind the drain that stands: by its token, else by its check, else the latest bad one."""
    if owner.who == "":
        return None
    if owner.token:
        for one in history:
            if one.token == owner.token:
                return one
    if owner.check:
        for one in history:
            if one.check == owner.check and one.source != "return":
                return one
    bad = [one for one in history if one.verdict in ("fail", "degraded")]
    return bad[0] if bad and owner.who != "admin" else None


def _evidence(one: EvidenceRecord) -> dict[str, Any]:
    fields = one._asdict()
    del fields["body"]
    return fields


def _counters(guard: Guard, evidence: Optional[EvidenceRecord], node: str) -> dict[str, int]:
    """Return what the node's hardware counters moved by during the sweep behind the evidence, summed over its flows."""
    sweep = evidence.body.get("sweep") if evidence else None
    if not isinstance(sweep, str):
        return {}
    found: dict[str, int] = {}
    for one in guard.store.measurements(sweep):
        for end, hca in (("src", one.src), ("dst", one.dst)):
            if hca.partition("/")[0] == node:
                for name, value in one.counters.get(end, {}).items():
                    found[name] = found.get(name, 0) + int(value)
    return dict(sorted(found.items()))


def _next(owner: Owner, info: NodeInfo, evidence: Optional[EvidenceRecord]) -> str:
    if owner.who == "":
        return "nothing: the node is in service"
    if owner.who == "admin":
        return f"ask {info.reason_user or 'whoever drained it'}; weaklink never touches this drain"
    if owner.who == "slurm":
        look = "see slurmd and the machine itself (is it up? journalctl -u slurmd)"
        return f"{look}, then scontrol update nodename={info.name} state=resume"
    if evidence is not None and evidence.check.startswith("sweep."):
        repair = "reseat or replace cable and module, look at the switch port's counters, then the NIC"
    else:
        repair = "repair what the message names"
    return f"{repair}; then weaklink return {info.name} tests it in quarantine and gives it back"


def text(found: Mapping[str, Any]) -> str:
    """Return the explanation for a person."""
    if found["in_service"]:
        lines = [f"{found['node']} is in service ({found['state']})"]
    else:
        who = {"weaklink": "weaklink", "admin": f"an admin ({found['user'] or 'unknown'})", "slurm": "Slurm itself"}[
            found["by"]
        ]
        lines = [
            f"{found['node']} is out of service ({found['state']}), taken out by {who} at {found['since'] or 'unknown'}"
        ]
        lines.append(f"  reason     {printable(found['reason']) or 'none given'}")
    if found["note"]:
        lines.append(f"  note       {found['note']}")
    if found["message"]:
        lines.append(f"  found      {printable(found['message'])}")
    lines += _measured_lines(found["suspect"] or {})
    if found["counters"]:
        moved = ", ".join(f"{name} +{value}" for name, value in found["counters"].items())
        lines.append(f"  counters   {printable(moved, 600)}")
    lines += [
        f"  incident   {one['id']}: {one['check']}: {printable(one['message'], 160)}" for one in found["incidents"]
    ]
    for one in found["history"]:
        lines.append(
            f"  history    {stamp(one['time'])} {one['action']} {one['check']}: {printable(one['message'], 120)}"
        )
    lines.append(f"  next       {found['next']}")
    return "\n".join(lines)


def _measured_lines(suspect: Mapping[str, Any]) -> list[str]:
    lines = []
    for metric, seen in suspect.get("evidence", {}).items():
        if "expected" not in seen:
            continue
        partners = ", ".join(one.partition("/")[0] for one in seen.get("partners", ())) or "no partner"
        retested = ", ".join(one.partition("/")[0] for one in seen.get("confirmed_in_retest", ())) or "no partner"
        value = "failed" if seen["measured"] is None else f"{seen['measured']:g}"
        if seen["z"] < _NOTABLE and not seen.get("partners"):
            usual = f"{seen['expected']:g} {seen['unit']} expected now"
            lines.append(f"  measured   {metric} {value} against {usual}: as usual")
            continue
        lines.append(
            f"  measured   {metric} {value} against {seen['expected']:g} {seen['unit']} expected now "
            f"(baseline {seen['baseline']:g}); {seen['z']:g} sigma; "
            f"confirmed by {partners}, in the retest by {retested}"
        )
    others = [f"{one['kind']} {one['id']} {one['probability']:.0%}" for one in suspect.get("alternatives", ())]
    if suspect:
        likeliest = f"{suspect['kind']} {suspect['id']} {suspect['probability']:.0%}"
        lines.append(f"  place      {likeliest}; or {', '.join(others) or 'nothing else'}")
    return lines
