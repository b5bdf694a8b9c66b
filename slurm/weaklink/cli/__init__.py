"""The command line: one sub-command a file, imported only when it runs.

Exit codes everywhere but in hooks: 0 ok, 1 degraded or fail found, 2 usage or input error, 3 unknown.
"""

import sys
from importlib import import_module

# name -> (module, one-line help). A module has run(argv: list[str]) -> int.
COMMANDS = {
    "check": ("weaklink.cli.check", "judge this node against what is expected of it"),
    "observe": ("weaklink.cli.observe", "print what this node looks like, by concern"),
    "apply": ("weaklink.cli.apply", "bring one area of this node to its desired state"),
    "measure": ("weaklink.cli.measure", "run this node's part of a round of tests"),
    "sweep": ("weaklink.cli.sweep", "test every link in rounds and compare with the baseline"),
    "nodes": ("weaklink.cli.nodes", "list nodes, their state, and who drained them"),
    "why": ("weaklink.cli.why", "say why a node is out of service, with the evidence"),
    "return": ("weaklink.cli.return_node", "test a node in quarantine and give it back"),
    "cluster": ("weaklink.cli.cluster", "check a cluster.yml and show what follows from it"),
    "plan": ("weaklink.cli.plan", "size a fabric before buying: switches, cables, cost, advice"),
    "expect": ("weaklink.cli.expect", "say what collectives should reach, and judge figures"),
    "lint": ("weaklink.cli.lint", "judge NCCL settings and the fabric's settings, and say why"),
    "explain": ("weaklink.cli.explain", "say what a tool's output means and what to do"),
    "incidents": ("weaklink.cli.incidents", "list what was found and not acted on, and why"),
}


class UsageError(Exception):
    """Wrong usage or bad input; the text says what, where, found, wanted, what to do (exit 2)."""


def _usage() -> str:
    lines = ["usage: weaklink COMMAND [ARGUMENT…]", "", "commands:"]
    lines += [f"  {name:<10} {text}" for name, (_, text) in COMMANDS.items()]
    lines += ["", "weaklink COMMAND --help tells more of one command."]
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Run one sub-command and return its exit code."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(_usage(), file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    if argv[0] == "--version":
        from weaklink import __version__

        print(f"weaklink {__version__}")
        return 0
    if argv[0] not in COMMANDS:
        print(f"weaklink: no command {argv[0]!r}; one of: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    try:
        return int(import_module(COMMANDS[argv[0]][0]).run(argv[1:]))
    except UsageError as error:
        print(f"weaklink {argv[0]}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0
