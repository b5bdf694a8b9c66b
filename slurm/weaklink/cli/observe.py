"""``weaklink observe``: print what this node looks like, by concern. Judges nothing and changes nothing."""

import argparse
import json

from weaklink.cli import UsageError
from weaklink.model import expected as expected_file
from weaklink.observe import node
from weaklink.observe.host import Host


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="weaklink observe", description=__doc__)
    parser.add_argument(
        "--root", metavar="DIR", default="/", help="read files under DIR instead of / (a captured tree)"
    )
    parser.add_argument("--expected", metavar="FILE", help="read only what this expected.json names")
    parser.add_argument("--concern", action="append", choices=sorted(node.ALL), help="only this; may be repeated")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS", help="of one command (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON in one line (else indented)")
    return parser


def run(argv: list[str]) -> int:
    """Run the command; 0 when everything could be read, 3 when something could not."""
    args = _parser().parse_args(argv)
    if not 0 < args.timeout <= 3600:  # noqa: PLR2004 - an hour is more than anybody waits
        raise UsageError(f"--timeout {args.timeout:g}: wanted seconds between 0 and 3600")
    wanted = None
    if args.expected:
        try:
            wanted = expected_file.read(args.expected)
        except expected_file.ExpectedError as error:
            raise UsageError(str(error)) from error
    seen = node.observe(Host(args.root), wanted, args.concern or node.ALL, timeout=args.timeout)
    print(json.dumps(seen.as_dict(), indent=None if args.json else 2))
    return 3 if seen.trouble else 0
