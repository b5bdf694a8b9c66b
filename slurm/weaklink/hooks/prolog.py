"""Before a job: a fault that is there now is caught before the job meets it.

Nothing wrong: no Slurm call. A fault that drains: the node is drained within the budget, the job goes back to the queue
(batch) or is cancelled or runs, as the site's policy says (srun, salloc, --no-requeue). Over budget, unsure, or drained
by somebody else: the job runs.

The exit status is 0 also when the job is sent away: a prolog that fails makes Slurm drain the node itself, and for a
job that cannot be requeued slurmd 24.11 reports the failure again and again, which drains a node that was given back.
"""

from typing import TYPE_CHECKING, Any, Callable, NoReturn, Optional

from weaklink.checks.base import PROLOG
from weaklink.checks.registry import in_context
from weaklink.hooks.files import Places
from weaklink.hooks.flow import Acted, Run, ToolBox, act, client, leave_digest, look, say_unknown, toolbox
from weaklink.hooks.frame import OK, Clock
from weaklink.model.expected import Expected

if TYPE_CHECKING:
    from weaklink.scheduler.types import JobInfo

_TOOK = frozenset({"drained", "already-out"})  # the node is out because of us: the job has no business here
_HERE = frozenset({"RUNNING", "CONFIGURING"})  # a job whose prolog runs, that nobody has cancelled or requeued


def work(
    expected: Expected,
    places: Places,
    clock: Clock,
    environ: dict[str, str],
    *,
    tools: "ToolBox | None" = None,
    root: str = "/",
    make_client: Callable[[Run], Any] = client,
) -> int:
    """Check the node for the job that is about to start; always return OK."""
    user = environ.get("SLURM_JOB_USER", "")
    if user and user == expected.service_user:
        return OK  # our own tests must reach a bad node
    run = Run(PROLOG, expected, places, toolbox(tools), root, clock, environ.get("SLURM_JOB_ID", ""), user)
    judgement = look(run, in_context(PROLOG)).judgement
    if not judgement.draining:
        say_unknown(run, judgement)
        return OK
    acted = act(run, judgement, make_client)
    if acted.action in _TOOK:
        _send_away(run, acted)
    if acted.action in ("drained", "over-budget"):
        leave_digest(run, acted)
    return OK


def _send_away(run: Run, acted: Acted) -> None:
    """Take the job off this node: back to the queue if it can be, else as the policy says."""
    from weaklink.scheduler.text import SlurmError

    words = {"verdict": acted.finding.status, "check": acted.finding.check, "evidence": acted.evidence}
    slurm: Any = acted.slurm
    job = _job(run, slurm, words)
    if job is None:
        return
    again = job.batch and job.requeue
    if not again and run.expected.policy.get("nonbatch", "cancel") == "run":
        run.note(
            "job-runs", f"job {job.id} cannot be requeued; it runs on the drained node, as the policy says", **words
        )
        return
    done = "requeued" if again else "cancelled"
    text = f"weaklink: {done}, {run.expected.node} was drained: {acted.finding.message} (evidence {acted.evidence})"
    try:
        slurm.note_job(job.handle, text[:400])
    except SlurmError as error:
        run.note("unknown", f"job {job.id} got no note: {error}", **words)
    # Slurm requeues also a job that its owner has cancelled meanwhile: look once more, as late as can be.
    if _job(run, slurm, words) is None:
        return
    try:
        if again:
            slurm.requeue(job.handle)
        else:
            slurm.cancel(job.handle)
    except SlurmError as error:
        # Another of its nodes may have sent it away a moment ago.
        run.note("unknown", f"job {job.id} was not {done}: {error}", **words)
        return
    run.note(f"job-{done}", f"job {job.id} of {job.user} was {done}", **words)


def _job(run: Run, slurm: Any, words: dict[str, Any]) -> "Optional[JobInfo]":
    """Return the job while it is there to be sent away, else say why not and return None."""
    from weaklink.scheduler.text import SlurmError

    try:
        job: JobInfo = slurm.job(int(run.job))
    except (SlurmError, ValueError) as error:
        run.note("unknown", f"job {run.job[:20]} could not be looked up, it runs: {error}", **words)
        return None
    if job.state not in _HERE:
        run.note("job-gone", f"job {job.id} is {job.state} already; nothing was done to it", **words)
        return None
    return job


def main() -> NoReturn:
    """Run as slurmd's Prolog."""
    from weaklink.hooks.start import hook

    hook(PROLOG, work)
