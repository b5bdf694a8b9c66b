"""What judgements over the fabric share: tools that could not ask, nodes that did not answer. Pure."""

from collections.abc import Iterable

from weaklink.checks.tools.base import DID_NOT_RUN, NOTE, Rule, say
from weaklink.model.finding import FAIL, UNKNOWN, Finding
from weaklink.observe.tools.ib_text import Complaint

_MAX_NODES = 20


def rules(tool: str) -> tuple[Rule, Rule]:
    """Return the rules in the name of ``tool``: whether it ran, whether all nodes answered."""
    return (
        Rule(
            f"{tool}.ran",
            (DID_NOT_RUN, "not-root", "no-subnet-manager", "nothing-tested"),
            FAIL,
            NOTE,
            "The tool's own words, for its return code is 0 with nodes missing. Without an answer from the subnet "
            "manager no job connects either.",
            "Run it as root on a node with an active port; ask sminfo for the subnet manager.",
        ),
        Rule(
            f"{tool}.all_answered",
            ("node-not-responding",),
            UNKNOWN,
            NOTE,
            "A node that did not answer was not judged, whatever the Summary says.",
            "Ask the node itself with ibstat; run the tool again with a longer timeout (-t).",
        ),
    )


def ran(tool: str, complaints: Iterable[Complaint], *, found: bool) -> list[Finding]:
    """Return what the first complaint comes to; with something ``found``, only a missing subnet manager counts."""
    rule, _ = rules(tool)
    for said in complaints:
        message = f"line {said.line}: {said.what}"
        if said.kind == "no-sm":
            return [say(rule, tool, FAIL, message, "no-subnet-manager")]
        if not found:
            return [say(rule, tool, UNKNOWN, message, "not-root" if said.kind == "not-root" else DID_NOT_RUN)]
    return []


def answered(tool: str, unreachable: Iterable[str]) -> list[Finding]:
    """Return a finding for each node that did not answer, 20 at most."""
    _, rule = rules(tool)
    return [say(rule, node, UNKNOWN, f"{node}: did not answer") for node in list(unreachable)[:_MAX_NODES]]
