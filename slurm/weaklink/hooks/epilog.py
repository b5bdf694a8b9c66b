"""After a job: what the job may have left behind, and the error counters that rose meanwhile. It always exits 0."""

from typing import Any, Callable, NoReturn, Optional

from weaklink.checks.base import EPILOG
from weaklink.checks.registry import in_context
from weaklink.hooks.files import Places
from weaklink.hooks.flow import Run, ToolBox, client, look, toolbox
from weaklink.hooks.frame import OK, Clock
from weaklink.hooks.strikes import earlier_counters, keep_counters, moved, settle
from weaklink.model.expected import Expected
from weaklink.model.finding import DEGRADED


def work(
    expected: Expected,
    places: Places,
    clock: Clock,
    environ: dict[str, str],
    *,
    tools: Optional[ToolBox] = None,
    root: str = "/",
    make_client: Callable[[Run], Any] = client,
) -> int:
    """Check the node after a job; always return OK."""
    user = environ.get("SLURM_JOB_USER", "")
    run = Run(EPILOG, expected, places, toolbox(tools), root, clock, environ.get("SLURM_JOB_ID", ""), user)
    seen = look(run, in_context(EPILOG), earlier_counters(places, root))
    keep_counters(places, root, seen.observation)
    rose = moved(seen.observation)
    if rose:
        text = "; ".join(
            f"{port}: " + ", ".join(f"{k} +{v}" for k, v in sorted(by.items())) for port, by in rose.items()
        )
        run.note("counters", text, verdict=DEGRADED, check="rdma.counters", moved=rose)
    if not user or user != expected.service_user:
        settle(run, seen.judgement, make_client)
    return OK


def main() -> NoReturn:
    """Run as slurmd's Epilog."""
    from weaklink.hooks.start import hook

    hook(EPILOG, work)
