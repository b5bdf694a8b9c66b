"""Give a node back: test it in quarantine, and only what weaklink drained.

Quarantine is a reservation ``weaklink-NODE`` for root and the service user: reserve, undrain into it, test, and
either delete the reservation (the node is in service) or drain again with a reason of ours and then delete it. In
this order a node is never open to users untested, whatever dies when: the reservation stands for days, and the next
``return`` of the node finds it, drains the node first, and deletes it. A return is an explicit act of a person: it
acts in mode observe too.
"""

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from weaklink.checks.base import DRAIN
from weaklink.checks.registry import BAD, BY_NAME
from weaklink.guard.context import Guard, owner_of, printable
from weaklink.guard.quarantine import Verdict, passive_check, sweep_check
from weaklink.guard.sweeps import choose
from weaklink.history.store import EvidenceRecord, ReturnRecord
from weaklink.model.finding import FAIL, OK, UNKNOWN
from weaklink.scheduler.budget import Decision
from weaklink.scheduler.ownership import ALREADY_OUT, DRAINED, NOTHING, RELEASED, drain, owned, release
from weaklink.scheduler.text import SlurmError
from weaklink.scheduler.types import NodeInfo

_MINUTES = 7 * 24 * 60
_MAX_PARTNERS = 2
_LIVE_JOBS = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})


class Returned(NamedTuple):
    """What came of a return; ``verdict``: ok (in service), fail (refused, or tested and bad), unknown."""

    node: str
    verdict: str
    state: str
    message: str
    findings: list[dict[str, Any]]
    measured: list[dict[str, Any]]


def reservation_of(node: str) -> str:
    """Return the name of a node's quarantine."""
    return f"weaklink-{node}"


def return_node(guard: Guard, node: str) -> Returned:
    """Return ``node`` to service if it is ours to return and passes its tests. SlurmError and StoreError pass."""
    clean_up(guard, node)
    nodes = guard.slurm.nodes()
    if node not in nodes:
        return _refused(node, UNKNOWN, f"Slurm does not know a node {printable(node, 64)}; weaklink nodes lists them")
    refusal = _refusal(guard, nodes[node])
    if refusal is not None:
        return refusal
    reason = owned(guard.key, node, nodes[node].reason)
    if reason is None:
        return _refused(node, UNKNOWN, "the drain changed while it was read; nothing was done")
    partners = [name for name in choose(guard, nodes, None).nodes if name != node][:_MAX_PARTNERS]
    if not partners:
        return _refused(node, UNKNOWN, "no idle healthy node is free to test against; try again later")
    record = ReturnRecord(
        f"return-{int(time.time())}-{os.urandom(3).hex()}",
        node,
        ",".join(partners),
        reservation_of(node),
        "started",
        reason.check,
        reason.message,
        guard.store.clock(),
        None,
        "",
    )
    guard.store.put_return(record)
    return _in_quarantine(guard, record, partners)


def _refused(node: str, verdict: str, message: str) -> Returned:
    return Returned(node, verdict, "refused", message, [], [])


def _refusal(guard: Guard, info: NodeInfo) -> "Returned | None":
    """Return why the node is not ours to return, or None when it is."""
    node, owner = info.name, owner_of(guard.key, info)
    said = f"{printable(info.reason) or 'no reason'} [{info.reason_user or 'unknown'}@{info.reason_time or 'unknown'}]"
    if owner.who == "":
        return Returned(node, OK, "nothing-to-do", f"{node} is in service: nothing to return", [], [])
    if owner.who == "admin":
        note = f" ({owner.note})" if owner.note else ""
        return _refused(
            node, FAIL, f"{node} was drained by an admin, not by weaklink{note}: {said}; ask them, then undrain it"
        )
    if owner.who == "slurm" or "DOWN" in info.states or "NOT_RESPONDING" in info.states:
        states = "+".join(sorted(info.states))
        return _refused(node, FAIL, f"{node} is {states}, said by Slurm: {said}; bring it up before it can be tested")
    if info.states & _LIVE_JOBS:
        return _refused(node, UNKNOWN, f"jobs still run on {node}; return it when they have ended")
    return None


def _in_quarantine(guard: Guard, record: ReturnRecord, partners: Sequence[str]) -> Returned:
    """Reserve, undrain, test; in service when all passes, else drained again, also when we fail on the way."""
    node = record.node
    verdict = Verdict(UNKNOWN, "the test did not come to an end", [], [])
    try:
        guard.tell(f"{node}: quarantine {record.reservation}")
        guard.slurm.create_reservation(record.reservation, [node], ["root", guard.site.service_user], _MINUTES)
        record = _step(guard, record, "reserved")
        released = release(guard.slurm, guard.key, node)
        if released.what not in (RELEASED, NOTHING):
            verdict = Verdict(UNKNOWN, f"not undrained: {released.what}: {released.detail}", [], [])
        else:
            record = _step(guard, record, "undrained")
            verdict = _tested(guard, record, partners)
            record = _step(guard, record, "tested")
    except SlurmError as error:
        verdict = Verdict(UNKNOWN, f"Slurm: {printable(str(error))}", [], [])
    finally:
        # Also after Ctrl-C or a defect: what was not proven well goes out again before the quarantine opens.
        returned = _conclude(guard, record, verdict)
    return returned


def _tested(guard: Guard, record: ReturnRecord, partners: Sequence[str]) -> Verdict:
    """Run the passive checks on the node, then sweep it with its partners."""
    passive = passive_check(guard, record.node, record.reservation)
    bad = [one for one in passive.findings if one["status"] in BAD and _drains(one["check"])]
    if bad:
        return passive._replace(verdict=FAIL, message=printable(bad[0]["message"]))
    if passive.verdict == UNKNOWN and not passive.findings:
        return passive
    if record.check in BY_NAME:
        again = [one for one in passive.findings if one["check"] == record.check]
        if not again or any(one["status"] != OK for one in again):
            text = f"{record.check}, for which the node was drained, could not be judged again"
            return passive._replace(verdict=UNKNOWN, message=text)
    swept = sweep_check(guard, record.node, partners, record.reservation)
    return swept._replace(findings=passive.findings)


def _drains(check: str) -> bool:
    return check not in BY_NAME or BY_NAME[check].action == DRAIN


def _step(guard: Guard, record: ReturnRecord, state: str) -> ReturnRecord:
    record = record._replace(state=state)
    guard.store.put_return(record)
    return record


def _conclude(guard: Guard, record: ReturnRecord, verdict: Verdict) -> Returned:
    node = record.node
    message, state, word = verdict.message, "failed", verdict.verdict
    good = verdict.verdict == OK and record.state == "tested"
    try:
        if good:
            # A prolog or health check of the node's own may have found something meanwhile.
            info = guard.slurm.nodes([node])[node]
            good = not info.taken
            message = message if good else f"drained meanwhile: {printable(info.reason)}"
        if not good:
            message, again = _drain_again(guard, record, message)
            word = FAIL if again else word
        if record.state != "started" or record.reservation in guard.slurm.reservations():
            guard.slurm.delete_reservation(record.reservation)
        state = "done" if good else "failed"
    except SlurmError as error:
        # Unfinished on purpose: the reservation still keeps users out, and the next return cleans up.
        text = f"{message}; Slurm: {printable(str(error))}; run weaklink return {node} again to clean up"
        guard.store.put_return(record._replace(detail=text))
        return Returned(node, UNKNOWN, "unfinished", text, verdict.findings, verdict.measured)
    guard.store.put_return(record._replace(state=state, finished=guard.store.clock(), detail=message))
    word = OK if good else (FAIL if word == FAIL else UNKNOWN)
    _remember(guard, record, state, message, verdict._replace(verdict=word))
    if good:
        guard.store.close_incidents(node, f"{node} was tested and returned")
    return Returned(node, word, state, message, verdict.findings, verdict.measured)


def _drain_again(guard: Guard, record: ReturnRecord, why: str) -> tuple[str, bool]:
    """Put the node out again with a reason of ours. It was out before, so the budget has nothing to say.

    Returns a line, and whether the node's own prolog or health check had put it out already: it is bad then.
    """

    def always(_: Mapping[str, NodeInfo]) -> Decision:
        return Decision(True, "it was out before the test", 0, 0)

    message = why if record.state == "tested" else record.message
    out = drain(guard.slurm, guard.key, record.node, record.check, f"return: {message}", decide=always)
    if out.what == DRAINED:
        return f"drained again: {why}", False
    info = guard.slurm.nodes([record.node])[record.node]
    if not info.taken:
        raise SlurmError(f"{record.node} could not be drained again ({out.what}: {out.detail})")
    if out.what == ALREADY_OUT:
        undrained = record.state in ("undrained", "tested")
        return (f"drained by its own check: {printable(info.reason)}" if undrained else why), undrained
    return f"{why}; out of service by {info.reason_user or 'somebody else'}: {printable(info.reason)}", False


def _remember(guard: Guard, record: ReturnRecord, state: str, message: str, tested: Verdict) -> None:
    body = {"findings": tested.findings, "measured": tested.measured, "partners": record.partner}
    guard.store.add_evidence(
        EvidenceRecord(
            record.id,
            record.node,
            guard.store.clock(),
            "return",
            tested.verdict,
            "returned" if state == "done" else "kept-out",
            record.check,
            "healthy" if state == "done" else "return-failed",
            message,
            "",
            body,
        )
    )
    guard.log(
        context="return", node=record.node, verdict=tested.verdict, action=state, check=record.check, message=message
    )


def clean_up(guard: Guard, node: str) -> bool:
    """Finish what a crashed return left: drain the node first, then delete its quarantine. True when there was one."""
    left = guard.store.returns(node, unfinished=True)
    name = reservation_of(node)
    if name not in guard.slurm.reservations():
        for record in left:
            guard.store.put_return(
                record._replace(state="cleaned", finished=guard.store.clock(), detail="never reserved")
            )
        return False
    info = guard.slurm.nodes([node])[node]
    if not info.taken:
        last = left[0] if left else None
        record = last or ReturnRecord("", node, "", name, "", "return", "an earlier return did not end", 0.0, None, "")
        _drain_again(guard, record, "an earlier return did not end")
    guard.slurm.delete_reservation(name)
    for record in left:
        guard.store.put_return(record._replace(state="cleaned", finished=guard.store.clock(), detail="drained again"))
    guard.tell(f"{node}: an earlier return had not ended; the node is drained and its quarantine {name} is gone")
    return True
