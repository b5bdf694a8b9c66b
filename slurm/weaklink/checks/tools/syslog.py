"""Judge what the log of a system says; see ``kernel_judge``."""

from weaklink.checks.tools import kernel_judge
from weaklink.checks.tools.base import Context, Judged
from weaklink.checks.tools.kernel_rules import RULES
from weaklink.observe.tools.kernel_events import Record

__all__ = ["RULES", "judge"]


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; context: see ``kernel_judge.judge``."""
    return kernel_judge.judge("syslog", record, context)
