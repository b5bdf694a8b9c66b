"""Judge ``scontrol show node``. Pure; see ``slurm_judge``."""

from weaklink.checks.tools import slurm_judge
from weaklink.checks.tools.base import Context, Judged, close
from weaklink.checks.tools.slurm_judge import RULES
from weaklink.observe.tools.scontrol_node import Record

__all__ = ["RULES", "judge"]


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; context: power_saving, comment_prefix."""
    prefix = slurm_judge.prefix_of(context)
    said = list(slurm_judge.findings(record.nodes, prefix))
    if not record.nodes and not record.troubles:
        said.append(slurm_judge.nothing("scontrol", record.error))
    facts = slurm_judge.facts(record.nodes, prefix, unread=not record.nodes)
    return close("slurm", facts, said, record.troubles, slurm_judge.healthy(len(record.nodes)).message)
