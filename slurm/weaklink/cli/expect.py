"""``weaklink expect``: what collectives should reach, from conversions, published figures, fits and a step model."""

import sys

HELP = """usage: weaklink expect COMMAND [ARGUMENT…]

commands (each with --help and --json):
  convert      bus bandwidth, algorithm bandwidth and time of a collective, one from another
  check        say which rank count an nccl-tests table really has
  known-good   list bus bandwidths that are known to be good, with their sources
  fit          fit alpha and beta to nccl-tests outputs and predict times
  guide        judge the figures and commands of a widely read guide
  step         model a training step: communication, idle GPUs, what a slow link costs

Needs no cluster. Exit codes: 0 ok, 1 a contradiction was found, 2 usage or input error, 3 cannot be told.
"""
_MODULES = {
    "convert": "weaklink.cli.expect_tables",
    "check": "weaklink.cli.expect_tables",
    "known-good": "weaklink.cli.expect_known",
    "fit": "weaklink.cli.expect_fit",
    "guide": "weaklink.cli.expect_known",
    "step": "weaklink.cli.expect_step",
}


def run(argv: list[str]) -> int:
    """Run the command; return its exit code."""
    from importlib import import_module

    from weaklink.cli import UsageError

    if not argv or argv[0] in ("-h", "--help"):
        print(HELP, end="", file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    if argv[0] not in _MODULES:
        raise UsageError(f"no command {argv[0]!r}; one of: {', '.join(_MODULES)}")
    from weaklink.plan.expect.factors import ExpectError

    try:
        commands: dict[str, object] = import_module(_MODULES[argv[0]]).COMMANDS
        command = commands[argv[0]]
        assert callable(command)  # noqa: S101 - the tables hold functions; this tells the type checker
        return int(command(argv[1:]))
    except ExpectError as error:
        raise UsageError(str(error)) from error
