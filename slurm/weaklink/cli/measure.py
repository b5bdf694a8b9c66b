"""``weaklink measure round``: run this node's ends of the flows of one round; what came of them, one JSON line each."""

import os
import socket
import sys
from threading import Lock
from typing import Optional

HELP = """usage: weaklink measure round --flows DOCUMENT [--node NAME]

Runs this node's ends of a round's flows (as `weaklink sweep` starts it inside its allocation) and prints one JSON line
for each end and benchmark. DOCUMENT is the round as the coordinator wrote it; NAME is taken from SLURMD_NODENAME.
The exit code is 0 when all ends could report, whatever they report.
"""


def _option(argv: list[str], name: str) -> Optional[str]:
    if name in argv:
        at = argv.index(name)
        if at + 1 < len(argv):
            return argv[at + 1]
    return None


def run(argv: list[str]) -> int:
    """Run the command; see HELP."""
    from weaklink.cli import UsageError

    if not argv or argv[0] in ("-h", "--help"):
        print(HELP, end="", file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    text = _option(argv, "--flows")
    if argv[0] != "round" or text is None:
        raise UsageError("wanted: weaklink measure round --flows DOCUMENT (see --help)")
    node = _option(argv, "--node") or os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
    from weaklink.measure.perftest import Bench
    from weaklink.model.round import EndReport, decode
    from weaklink.observe.host import Host

    try:
        spec = decode(text)
    except ValueError as error:
        raise UsageError(f"--flows: {error}") from error
    lock = Lock()

    def emit(report: EndReport) -> None:
        # One write a line: the lines of several tasks meet in one stream.
        with lock:
            sys.stdout.write(report.line() + "\n")
            sys.stdout.flush()

    host = Host()
    Bench(host, host.run).flows(spec, node, emit)
    return 0
