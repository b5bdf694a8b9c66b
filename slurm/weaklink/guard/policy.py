"""From suspects to action: drain under mode and budget, or say what would have been done."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from weaklink.guard.context import Guard
from weaklink.history.store import EvidenceRecord
from weaklink.model.site import ENFORCE
from weaklink.scheduler.ownership import DRAINED, OVER_BUDGET, drain

WOULD_DRAIN = "would-drain"
_CHECKS = {"bandwidth": "sweep.bandwidth", "latency": "sweep.latency", "counters": "sweep.counters"}
_UNITS = {"bandwidth": "Gb/s", "latency": "us", "counters": "retries a packet"}


class Action(NamedTuple):
    """What was done about one suspect: ``what`` is an outcome of ``ownership.drain``, or would-drain."""

    node: str
    check: str
    message: str
    what: str
    detail: str
    token: str


def message_of(suspect: Mapping[str, Any]) -> str:
    """Return one line for the reason of a drain: what, where, found, wanted, what to do."""
    metric = suspect["metric"]
    seen = suspect["evidence"].get(metric, {})
    hca = suspect["id"].rstrip("+-")
    device = hca.partition("/")[2] or "all its HCAs"
    towards = {"both": "to and from", "egress": "to", "ingress": "from"}[suspect["direction"]]
    partners = ", ".join(sorted({one.partition("/")[0] for one in seen.get("partners", ())})[:4])
    if seen.get("measured") is None:
        found = f"RDMA fails ({suspect['cause']})"
    else:
        found = f"{seen['measured']:.3g} of {seen['expected']:.3g} {_UNITS[metric]}"
    look = "see counters, cable and switch port" if metric == "latency" else "check cable and switch port"
    return f"{suspect['node']} {device}: {found} {towards} {partners}; {look}"


def act(guard: Guard, suspects: Sequence[Mapping[str, Any]], sweep: str) -> list[Action]:
    """Drain the nodes of accused suspects (mode enforce, within budget), and record each decision as evidence.

    Slurm is read anew right before each drain (in ``ownership.drain``). In mode observe nothing is touched.
    """
    actions = []
    done: set[str] = set()
    for suspect in suspects:
        node = suspect["node"]
        if not suspect["accused"] or node in done:
            continue
        done.add(node)
        check, message = _CHECKS[suspect["metric"]], message_of(suspect)
        if guard.site.mode == ENFORCE:
            outcome = drain(guard.slurm, guard.key, node, check, message, decide=guard.decide(node, check))
            action = Action(node, check, message, outcome.what, outcome.detail, outcome.token)
        else:
            action = Action(node, check, message, WOULD_DRAIN, f"would have drained {node}", "")
        actions.append(action)
        _record(guard, action, suspect, sweep)
    return actions


def _record(guard: Guard, action: Action, suspect: Mapping[str, Any], sweep: str) -> None:
    guard.store.add_evidence(
        EvidenceRecord(
            f"{sweep}:{action.node}",
            action.node,
            guard.store.clock(),
            "sweep",
            "fail",
            action.what,
            action.check,
            suspect["cause"],
            action.message,
            action.token,
            {"sweep": sweep, "suspect": dict(suspect), "detail": action.detail},
        )
    )
    if action.what == OVER_BUDGET:
        guard.store.note_incident(action.check, suspect["cause"], action.node, f"{action.message} ({action.detail})")
    prefix = "would have drained: " if action.what == WOULD_DRAIN else ""
    guard.log(
        context="sweep",
        node=action.node,
        verdict="fail",
        action=action.what,
        check=action.check,
        message=prefix + action.message,
        detail=action.detail,
        sweep=sweep,
    )
    if action.what == DRAINED:
        guard.tell(f"drained {action.node}: {action.message}")
    elif action.what == WOULD_DRAIN:
        guard.tell(f"would have drained {action.node} (mode observe): {action.message}")
    else:
        guard.tell(f"{action.node} not drained ({action.what}: {action.detail}): {action.message}")
