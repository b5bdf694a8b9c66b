"""The health check that slurmd runs now and then. It always exits 0: slurmd repeats it until it does.

Runs may overlap when one is slow; only one works, the others leave. It drains after several bad runs in a row. It never
undrains.
"""

from typing import Any, Callable, NoReturn, Optional

from weaklink.checks.base import HEALTH
from weaklink.checks.registry import in_context
from weaklink.hooks.files import Places, lock
from weaklink.hooks.flow import Run, ToolBox, client, look, toolbox
from weaklink.hooks.frame import OK, Clock
from weaklink.hooks.strikes import earlier_counters, keep_counters, note_bad, settle
from weaklink.model.expected import Expected


def work(
    expected: Expected,
    places: Places,
    clock: Clock,
    _environ: dict[str, str],
    *,
    tools: Optional[ToolBox] = None,
    root: str = "/",
    make_client: Callable[[Run], Any] = client,
) -> int:
    """Check the node once; always return OK."""
    run = Run(HEALTH, expected, places, toolbox(tools), root, clock)
    with lock(f"{places.state}/health.lock", wait=False) as mine:
        if not mine:
            run.note("unknown", "the run before this one has not ended yet; this one leaves")
            return OK
        seen = look(run, in_context(HEALTH), earlier_counters(places, root))
        keep_counters(places, root, seen.observation)
        note_bad(run, seen.judgement)
        settle(run, seen.judgement, make_client)
    return OK


def main() -> NoReturn:
    """Run as slurmd's HealthCheckProgram."""
    from weaklink.hooks.start import hook

    hook(HEALTH, work)
