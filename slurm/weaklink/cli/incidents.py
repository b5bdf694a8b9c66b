"""``weaklink incidents``: what was found and not acted on, and why."""

from typing import TYPE_CHECKING

from weaklink.cli.controller import options, print_json, with_guard
from weaklink.model.finding import EXIT_FOUND, EXIT_OK

if TYPE_CHECKING:
    from weaklink.guard.context import Guard

HELP = """usage: weaklink incidents [--all] [--json]

Lists open incidents: faults that were found while the drain budget was used up, one for each check, with their nodes.
--all lists closed ones too. Exit code 0 when none is open, 1 otherwise.
"""


def run(argv: list[str]) -> int:
    """Run the command; see HELP."""
    found = options(argv, HELP, ("--json", "--all", "-h", "--help"))
    if "-h" in found or "--help" in found:
        print(HELP, end="")
        return EXIT_OK

    def work(guard: "Guard") -> int:
        from weaklink.guard.collect import collect
        from weaklink.guard.context import stamp
        from weaklink.guard.nodes import table

        collect(guard, guard.slurm.nodes())
        listed = guard.store.incidents(everything="--all" in found)
        if "--json" in found:
            print_json({"incidents": [one._asdict() for one in listed]})
        elif not listed:
            print("no open incidents" if "--all" not in found else "no incidents")
        else:
            heads = ("ID", "OPENED", "CLOSED", "CHECK", "NODES", "MESSAGE")
            cells = [
                (
                    str(one.id),
                    stamp(one.opened),
                    stamp(one.closed) if one.closed else "-",
                    one.check,
                    ",".join(one.nodes),
                    one.message,
                )
                for one in listed
            ]
            print(table(heads, cells))
        return EXIT_FOUND if any(one.closed is None for one in listed) else EXIT_OK

    return with_guard(work)
