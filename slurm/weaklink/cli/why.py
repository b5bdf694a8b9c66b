"""``weaklink why NODE``: why a node is out of service, with the evidence. Works when the node is dead."""

from typing import TYPE_CHECKING

from weaklink.cli import UsageError
from weaklink.cli.controller import one_node, print_json, with_guard
from weaklink.model.finding import EXIT_FOUND, EXIT_OK

if TYPE_CHECKING:
    from weaklink.guard.context import Guard

HELP = """usage: weaklink why NODE [--json]

Says who took NODE out of service and why: the reason word for word, measured against baseline, counters, what else it
could be, its history, and what to do next. Exit code 0 when the node is in service, 1 when it is out.
"""


def run(argv: list[str]) -> int:
    """Run the command; see HELP."""
    asked = one_node(argv, HELP)
    if asked is None:
        return EXIT_OK
    name, as_json = asked

    def work(guard: "Guard") -> int:
        from weaklink.guard.collect import collect
        from weaklink.guard.why import explain, text

        nodes = guard.slurm.nodes()
        if name not in nodes:
            raise UsageError(f"Slurm does not know a node {name[:64]!r}; weaklink nodes lists them")
        collect(guard, nodes)
        said = explain(guard, nodes[name])
        if as_json:
            print_json(said)
        else:
            print(text(said))
        return EXIT_OK if said["in_service"] else EXIT_FOUND

    return with_guard(work)
