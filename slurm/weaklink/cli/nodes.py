"""``weaklink nodes``: every node, its state, and who took it out."""

from typing import TYPE_CHECKING

from weaklink.cli.controller import options, print_json, with_guard
from weaklink.model.finding import EXIT_OK

if TYPE_CHECKING:
    from weaklink.guard.context import Guard

HELP = """usage: weaklink nodes [--json]

Lists the nodes with their state in Slurm, and for those out of service who took them out (weaklink, an admin, Slurm).
"""


def run(argv: list[str]) -> int:
    """Run the command; see HELP."""
    found = options(argv, HELP, ("--json", "-h", "--help"))
    if "-h" in found or "--help" in found:
        print(HELP, end="")
        return EXIT_OK

    def work(guard: "Guard") -> int:
        from weaklink.guard.collect import collect
        from weaklink.guard.nodes import rows, table

        nodes = guard.slurm.nodes()
        collect(guard, nodes)
        lines = rows(guard, nodes)
        if "--json" in found:
            print_json({"nodes": lines})
        else:
            heads = ("NODE", "STATE", "BY", "SINCE", "REASON")
            cells = [(one["node"], one["state"], one["by"] or "-", one["since"] or "-", _reason(one)) for one in lines]
            print(table(heads, cells))
        return EXIT_OK

    return with_guard(work)


def _reason(row: dict[str, str]) -> str:
    return " ".join(part for part in (row["reason"], f"({row['note']})" if row["note"] else "") if part) or "-"
