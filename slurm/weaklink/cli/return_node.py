"""``weaklink return NODE``: test a node in quarantine and give it back."""

from typing import TYPE_CHECKING

from weaklink.cli.controller import one_node, print_json, with_guard
from weaklink.model.finding import EXIT_OK, exit_code

if TYPE_CHECKING:
    from weaklink.guard.context import Guard

HELP = """usage: weaklink return NODE [--json]

Gives NODE back to users if weaklink drained it (an admin's drain is refused) and it passes its own checks and a sweep
with healthy partners, in a reservation that keeps users away meanwhile. Otherwise it stays drained.
This is the act of a person: it acts in mode observe too.
Exit code 0: in service; 1: refused or failed its tests; 3: could not be tested.
"""


def run(argv: list[str]) -> int:
    """Run the command; see HELP."""
    asked = one_node(argv, HELP)
    if asked is None:
        return EXIT_OK
    name, as_json = asked

    def work(guard: "Guard") -> int:
        from weaklink.guard.collect import collect
        from weaklink.guard.context import sole
        from weaklink.guard.returns import return_node

        collect(guard, guard.slurm.nodes())
        with sole():
            done = return_node(guard, name)
        if as_json:
            print_json(done._asdict())
        else:
            word = {"done": "returned", "nothing-to-do": "nothing to do"}.get(done.state, done.state)
            print(f"{name}: {word}: {done.message}")
            for row in done.measured:
                print(f"  {row['metric']:<10} {row['measured']:g} {row['unit']} (baseline {row['baseline']:g})")
        return exit_code(done.verdict)

    return with_guard(work)
