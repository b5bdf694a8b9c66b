"""Judge nodes as Slurm shows them: which cannot run jobs, and why. Pure; shared by scontrol-node and sinfo."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Optional

from weaklink.checks.tools.base import DRAIN, NOTE, Context, Rule, demand, say
from weaklink.model.finding import FAIL, OK, UNKNOWN, Finding
from weaklink.observe.tools.slurm_nodes import Node

STATE = Rule(
    "slurm.node_state",
    ("node-drained", "node-not-responding", "realmemory-too-high", "gpu-missing", "state-unknown"),
    FAIL,
    DRAIN,
    "base state and flags: DOWN, FAIL, a node that does not respond, or DRAIN for a fault; reserved, planned, in "
    "maintenance, powered down and waiting for a reboot are healthy (scontrol(1), sinfo(1))",
    "scontrol show node NAME for the reason; look at slurmd's log there; never undrain what somebody else drained",
)
RAN = Rule(
    "slurm.ran",
    ("test-did-not-run",),
    UNKNOWN,
    NOTE,
    "an output without a node allows no judgement: the controller was away, or the name is unknown",
    "ask again; a failed look-up never means 'not drained'",
)
RULES = (STATE, RAN)

_POWER = frozenset({"POWERED_DOWN", "POWER", "POWERING_UP", "POWERING_DOWN", "POWER_DOWN", "POWER_UP", "POWER_SAVE"})
_REBOOT = frozenset({"REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED"})
_DRAINED = frozenset({"DRAIN", "DRAINED", "DRAINING"})
_PLANNED = re.compile(
    r"\b(?:maint(?:enance)?|re-?boot(?:ing)?|upgrad\w{0,4}|updat\w{0,4}|re-?imag\w{0,4}|re-?install\w{0,4}|patch\w{0,4}"
    r"|planned|scheduled)\b",
    re.IGNORECASE,
)
_FAULT = re.compile(
    r"fail|err|fault|bad|broken|dead|down\b|lost|hang|hung|xid|ecc|flap|not respond|time[- ]?out|unexpected|low "
    r"|missing|rma\b|replac|repair|defect|degrad|corrupt|reseat",
    re.IGNORECASE,
)
# Reasons that the controller itself writes, and what they mean.
_OWN = (
    (re.compile(r"^Not responding", re.IGNORECASE), "node-not-responding"),
    (re.compile(r"^Low RealMemory", re.IGNORECASE), "realmemory-too-high"),
    (re.compile(r"gres/gpu count (?:reported lower|too low)", re.IGNORECASE), "gpu-missing"),
)


def prefix_of(context: Context) -> Optional[str]:
    """Return how our own reasons and comments begin; power_saving is checked for its type here, too."""
    demand(context, "power_saving", bool)
    found: Optional[str] = demand(context, "comment_prefix", str)
    return found


def unusable(node: Node, *, listed_as_out: bool = False) -> bool:
    """Tell whether a node is out for a fault. ``listed_as_out``: the list holds only nodes that are out (sinfo -R)."""
    flags = set(node.flags)
    if node.base is None and not flags:
        return listed_as_out and not _only_planned(node)
    if node.base == "FUTURE":
        return False
    if "REBOOT_ISSUED" in flags and not flags & {"FAIL", "INVALID_REG"}:
        return False  # the controller sets DOWN and NOT_RESPONDING itself until the node is back or its time is over
    if node.base in ("DOWN", "ERROR") or flags & {"FAIL", "INVALID_REG"}:
        return not (node.base == "DOWN" and flags & _POWER and not node.reason and not flags & _DRAINED)
    if "NOT_RESPONDING" in flags and not flags & (_POWER | _REBOOT | {"MAINTENANCE"}):
        return True
    drained = flags & _DRAINED and not flags & (_REBOOT | {"MAINTENANCE"})
    return bool(drained) and not _only_planned(node)


def _only_planned(node: Node) -> bool:
    reason = node.reason or ""
    return bool(_PLANNED.search(reason)) and not _FAULT.search(reason)


def cause_of(node: Node) -> str:
    """Return the cause: what the controller itself found, or else that somebody drained it."""
    if node.reason_by in (None, "slurm", "root", "SlurmUser"):
        for pattern, cause in _OWN:
            if pattern.search(node.reason or ""):
                return cause
    return "node-not-responding" if "NOT_RESPONDING" in node.flags else "node-drained"


def findings(nodes: Iterable[Node], prefix: Optional[str], *, listed_as_out: bool = False) -> Iterator[Finding]:
    """Yield what is wrong with nodes, in their order."""
    for node in nodes:
        state = "+".join([node.base or "?", *node.flags])
        if unusable(node, listed_as_out=listed_as_out):
            why = f": {node.reason}" if node.reason else ", without a reason"
            by = f" (by {node.reason_by} at {node.reason_at})" if node.reason_by else ""
            whose = ", our own" if ours(node, prefix) else ""
            text = f"{node.name} is {state}{why[:200]}{by}{whose}; look at slurmd there, repair it, then undrain it"
            yield say(STATE, node.name, FAIL, text, cause_of(node), state=state, reason=node.reason)
        elif node.base == "UNKNOWN" or (node.base is None and not listed_as_out):
            text = f"{node.name} is {state}: the controller does not know it yet; ask again in a minute"
            yield say(STATE, node.name, UNKNOWN, text, "state-unknown")


def ours(node: Node, prefix: Optional[str]) -> bool:
    """Tell whether the reason or comment is our own."""
    return bool(prefix) and any((text or "").startswith(prefix or "") for text in (node.reason, node.comment))


def facts(
    nodes: Iterable[Node], prefix: Optional[str], *, listed_as_out: bool = False, unread: bool = False
) -> dict[str, Any]:
    """Return the facts of nodes. ``unread``: the question was not answered, so that none unusable is not known."""
    kept = list(nodes)
    return {
        "nodes": {node.name: _fact(node) for node in kept},
        "unusable": None if unread else [node.name for node in kept if unusable(node, listed_as_out=listed_as_out)],
        "gpus": {node.name: node.gpus for node in kept if node.gpus is not None},
        "ours": [node.name for node in kept if ours(node, prefix)],
    }


def _fact(node: Node) -> dict[str, Any]:
    fact: dict[str, Any] = {"base": node.base, "flags": list(node.flags)}
    for key in ("reason", "reason_by", "reason_at", "comment", "extra", "memory_mb"):
        value = getattr(node, key)
        if value is not None:
            fact[key] = value
    return fact


def nothing(tool: str, error: Optional[str]) -> Finding:
    """Return the finding of an output without nodes."""
    text = error or "no node is listed"
    return say(RAN, tool, UNKNOWN, f"{tool}: {text}; nothing can be said of the nodes, ask again", "test-did-not-run")


def healthy(count: int) -> Finding:
    """Return the ok of a list of nodes."""
    return say(STATE, "nodes", OK, f"{count} nodes, none is out for a fault")
