"""Judge sinfo. Pure; see ``slurm_judge``."""

from weaklink.checks.tools import slurm_judge
from weaklink.checks.tools.base import Context, Judged, close, say
from weaklink.checks.tools.slurm_judge import RULES
from weaklink.model.finding import UNKNOWN
from weaklink.observe.tools.sinfo import Record

__all__ = ["RULES", "judge"]


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; context: power_saving, comment_prefix."""
    prefix = slurm_judge.prefix_of(context)
    stateless = bool(record.nodes) and all(node.base is None and not node.flags for node in record.nodes)
    said = list(slurm_judge.findings(record.nodes, prefix, listed_as_out=stateless))
    if record.others:
        text = f"{record.others} nodes are neither allocated nor idle; sinfo -N -l names them and their states"
        said.append(say(slurm_judge.RAN, "sinfo", UNKNOWN, text))
    if not record.nodes and not record.troubles and record.others is None and not record.partitions:
        said.append(slurm_judge.nothing("sinfo", record.error))
    unread = not record.nodes and any(finding.check == slurm_judge.RAN.name for finding in said)
    facts = slurm_judge.facts(record.nodes, prefix, listed_as_out=stateless, unread=unread)
    known = [node.gpus for node in record.nodes if node.gpus is not None]
    facts["gpus_total"] = sum(known) if known and len(known) == len(record.nodes) else None
    facts["partitions"] = record.partitions
    facts["slurm_version"] = record.version
    return close("slurm", facts, said, record.troubles, slurm_judge.healthy(len(record.nodes)).message)
