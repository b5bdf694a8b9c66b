"""``weaklink sweep run``: test every link in rounds, compare with the baseline, drain the weak link's node."""

from typing import TYPE_CHECKING, Any, Optional

from weaklink.cli import UsageError
from weaklink.cli.controller import options, print_json, with_guard
from weaklink.model.finding import EXIT_OK, exit_code

if TYPE_CHECKING:
    from weaklink.guard.context import Guard

HELP = """usage: weaklink sweep run [--nodes HOSTLIST] [--baseline] [--dry-run] [--json]

Runs ib_write_bw and ib_send_lat between pairs of idle nodes, in rounds inside one Slurm allocation of the service
user, compares with the baseline, tests suspects again with other partners, and drains the node of the weak link (mode
enforce, within the drain budget; mode observe only says so).
  --nodes HOSTLIST  only these nodes (c[1-3],c7); nodes that are busy or drained are left out in any case
  --baseline        take the baseline: run as many sweeps as it lacks, refuse what does not look healthy, judge nothing
  --dry-run         say which rounds would run; allocates nothing
Exit code 0: all well; 1: a weak link or a suspect; 3: could not judge (no baseline, fewer than two nodes, no
allocation).
"""


def run(argv: list[str]) -> int:
    """Run the command; see HELP."""
    found = options(argv, HELP, ("--json", "--baseline", "--dry-run", "-h", "--help"), ("--nodes",))
    if "-h" in found or "--help" in found:
        print(HELP, end="")
        return EXIT_OK
    if found[""] != ["run"]:
        raise UsageError(f"wanted: weaklink sweep run\n{HELP}")
    wanted: Optional[list[str]] = None
    if "--nodes" in found:
        from weaklink.model.hostlist import expand

        try:
            wanted = list(dict.fromkeys(expand(found["--nodes"])))
        except ValueError as error:
            raise UsageError(f"--nodes: {error}") from error

    def work(guard: "Guard") -> int:
        from weaklink.guard.context import sole
        from weaklink.guard.sweeps import run_sweep

        with sole():
            outcome = run_sweep(guard, wanted=wanted, baseline="--baseline" in found, dry_run="--dry-run" in found)
        if "--json" in found:
            print_json(outcome)
        else:
            _print(outcome)
        return exit_code(outcome["verdict"])

    return with_guard(work)


def _print(outcome: dict[str, Any]) -> None:
    print(f"{outcome['verdict']}: {outcome['message']}")
    for name, why in outcome["left_out"].items():
        print(f"  left out   {name}: {why}")
    for one in outcome.get("suspects", ()):
        word = "accused" if one.get("accused") else "suspect"
        print(f"  {word:<10} {one['kind']} {one['id']}: loses {one['loss']:.0%} of {one['metric']} ({one['cause']})")
    for one in outcome["actions"]:
        print(f"  {one['what']:<10} {one['node']}: {one['detail'] or one['message']}")
