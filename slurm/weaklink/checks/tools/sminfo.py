"""Judge sminfo: a master subnet manager answers. Pure."""

from weaklink.checks.tools import ib_fabric
from weaklink.checks.tools.base import NOTE, Context, Judged, Rule, close, say
from weaklink.model.finding import DEGRADED, FAIL, Finding
from weaklink.observe.tools.sminfo import NAME, Manager, Record

MASTER = Rule(
    f"{NAME}.master",
    ("no-subnet-manager",),
    FAIL,
    NOTE,
    "The manager that answers must be MASTER (state 3 of InfiniBand's SMInfo); NOTACT manages nothing.",
    "Start the subnet manager, or give one of several the higher priority (sm_priority in opensm.conf).",
)
RULES = (*ib_fabric.rules(NAME), MASTER)
_NO_ANSWER = "failed: query"


def judge(record: Record, _context: Context) -> Judged:
    """Return facts lid, guid, priority, state of the first manager, the number of them, and what is wrong."""
    first = record.managers[0] if record.managers else Manager(None, "", None, None, None)
    facts = {
        "lid": first.lid,
        "guid": first.guid or None,
        "priority": first.priority,
        "state": first.state,
        "managers": len(record.managers),
    }
    findings: list[Finding] = []
    unanswered = next((said for said in record.complaints if _NO_ANSWER in said.what), None)
    if unanswered and not record.managers:
        text = f"line {unanswered.line}: {unanswered.what}: no subnet manager answers"
        findings.append(say(MASTER, NAME, FAIL, text))
    else:
        findings += ib_fabric.ran(NAME, record.complaints, found=bool(record.managers))
    findings += [found for manager in record.managers for found in _state(manager)]
    return close(NAME, facts, findings, record.troubles, f"the manager at LID {first.lid} is master")


def _state(manager: Manager) -> list[Finding]:
    where = f"LID {manager.lid} ({manager.guid})"
    if manager.state == "NOTACT":
        return [say(MASTER, where, FAIL, f"{where}: NOTACT, wanted MASTER: it manages nothing")]
    if manager.state not in ("MASTER", None):
        return [say(MASTER, where, DEGRADED, f"{where}: {manager.state}, wanted MASTER: who is master?")]
    return []
