"""``weaklink expect known-good`` and ``weaklink expect guide``."""

import argparse

from weaklink.cli import UsageError
from weaklink.cli.expect_input import put
from weaklink.plan.expect import guide as the_guide
from weaklink.plan.expect.known_good import PRIMARY, find, systems


def known_good(argv: list[str]) -> int:
    """List bandwidths that are known to be good."""
    parser = argparse.ArgumentParser(prog="weaklink expect known-good", description=known_good.__doc__)
    parser.add_argument("--system", help="only systems whose name holds this word")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    rows = find(args.system)
    if not rows:
        raise UsageError(f"--system: nothing about {args.system!r}; known are: {', '.join(systems())}")
    if args.json:
        put({"known_good": [row._asdict() for row in rows]})
        return 0
    for row in rows:
        value = f"{row.low:g}" if row.low == row.high else f"{row.low:g}-{row.high:g}"
        ranks = f"{row.ranks} ranks" if row.ranks else ""
        source = row.source if row.evidence == PRIMARY else f"({row.evidence})"
        print(f"{row.system:<24} {ranks:<11} {row.size:<15} {value:>9} {row.unit:<10} {row.kind:<10} {source}")
        if row.note:
            print(f"{'':<24} {row.note}")
    print("all_reduce unless noted; thresholds are limits that others accept by, not what a system reaches")
    return 0


def guide(argv: list[str]) -> int:
    """Judge the all-reduce figures and the test commands of a widely read guide."""
    parser = argparse.ArgumentParser(prog="weaklink expect guide", description=guide.__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    claims = [claim.as_dict() for claim in the_guide.CLAIMS]
    if args.json:
        put({"claims": claims, "commands": [command._asdict() for command in the_guide.COMMANDS]})
        return 0
    print("In brackets: 1 GB read as 2^30 bytes. Share: of 400 GB/s, a node's 8 x 400 Gb/s.")
    for item in claims:
        print(f"\n{item['claim']}")
        print(
            f"  algbw {item['algbw']} ({item['algbw_if_gib']}) GB/s,"
            f" busbw {item['busbw']} ({item['busbw_if_gib']}) GB/s"
        )
        print(f"  share {item['share_of_node']:.2f} ({item['share_of_node_if_gib']:.2f})")
        print(f"  {item['verdict']}: {item['reason']}")
    for command in the_guide.COMMANDS:
        print(f"\n{command.part}\n  {'wrong' if command.wrong else 'right'}: {command.problem}\n  use: {command.right}")
    return 0


COMMANDS = {"known-good": known_good, "guide": guide}
