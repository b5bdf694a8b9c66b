"""``weaklink plan``: count, price and compare networks before one is bought. Needs no cluster and changes nothing.

weaklink plan --topology T --nodes N --gpus-per-node G --radix K …     one design
weaklink plan --compare all --nodes … [--png FILE]                     topologies side by side
weaklink plan --advice --nodes …                                       what to buy, with sources
weaklink plan cables | fabric | config …                               lists and files of one design
weaklink plan prices                                                   an example prices file to start from
"""

from __future__ import annotations

import argparse
import json
import sys

from weaklink.cli import UsageError, plan_print
from weaklink.cli.plan_args import Parser, add_shape, add_size, one_of, refused, request, topologies
from weaklink.cli.plan_output import write
from weaklink.plan import advice, compare, cost, prices
from weaklink.plan.design import as_dict, design
from weaklink.plan.request import TOPOLOGIES, PlanError

LISTS = ("cables", "fabric", "config", "prices")


def run(argv: list[str]) -> int:
    """Run the command; return its exit code."""
    if argv and argv[0] in LISTS:
        from weaklink.cli import plan_lists

        return plan_lists.run(argv[0], argv[1:])
    args = _parser().parse_args(argv)
    chosen = [name for name in ("topology", "compare", "advice") if getattr(args, name)]
    if len(chosen) != 1:
        found = " and ".join(f"--{name}" for name in chosen) or "none of them"
        raise UsageError(f"found {found}; wanted one of --topology, --compare, --advice, or one of {', '.join(LISTS)}")
    _refuse_what_would_be_ignored(args)
    try:
        return {"topology": _one, "compare": _several, "advice": _advise}[chosen[0]](args)
    except PlanError as error:
        raise refused(error) from error
    except prices.PricesError as error:
        raise UsageError(str(error)) from error


def _refuse_what_would_be_ignored(args: argparse.Namespace) -> None:
    for option, needs in (("png", "compare"), ("transport", "advice")):
        if getattr(args, option) and not getattr(args, needs):
            raise UsageError(f"--{option} without --{needs}; it belongs to --{needs} alone")
    for option, unset in (
        ("prices", None),
        ("spines", None),
        ("su_nodes", None),
        ("planes", 1),
        ("planes_per_gpu", None),
        ("taper", 1.0),
    ):
        if args.advice and getattr(args, option) != unset:
            name = option.replace("_", "-")
            raise UsageError(f"--{name} with --advice, which does not depend on it; leave it out")


def _parser() -> argparse.ArgumentParser:
    parser = Parser("weaklink plan", __doc__ or "")
    add = parser.add_argument
    add("--topology", metavar="T", type=one_of(TOPOLOGIES), help=f"one of {', '.join(TOPOLOGIES)}")
    add("--compare", metavar="T1,T2,…", type=topologies, help="compare these topologies, or all")
    add("--advice", action="store_true", help="say what to buy for this size, and why")
    add_size(parser)
    add_shape(parser)
    add("--prices", metavar="FILE", help="what the parts cost (weaklink plan prices prints an example)")
    add("--png", metavar="FILE", help="draw the comparison")
    add("--transport", metavar="infiniband|roce", type=one_of(advice.TRANSPORTS), help="advice for this one alone")
    add("--json", action="store_true", help="print JSON")
    return parser


def _one(args: argparse.Namespace) -> int:
    quoted = prices.load(args.prices) if args.prices else None
    made = design(request(args, args.topology))
    money = cost.price(made, quoted) if quoted else None
    _show(json.dumps({**as_dict(made), "cost": money}) if args.json else plan_print.plan(made, money))
    return 0


def _show(text: str) -> None:
    write(None, lambda file: file.write(text + "\n"))


def _several(args: argparse.Namespace) -> int:
    quoted = prices.load(args.prices) if args.prices else None
    options = compare.compare(request(args, args.compare[0]), args.compare, quoted)
    _show(json.dumps(compare.as_json(options)) if args.json else plan_print.comparison(options))
    if args.png:
        _draw(args, options)
    if all(option.design is None for option in options):
        raise UsageError("none of these topologies can do this size; the reasons are listed")
    return 0


def _draw(args: argparse.Namespace, options: list[compare.Option]) -> None:
    try:
        from weaklink.plan.picture import draw
    except ImportError as error:
        raise UsageError(f"--png needs matplotlib ({error}); install weaklink's controller extra") from error
    gpus = args.nodes * args.gpus_per_node
    title = f"Networks for {args.nodes:,} nodes, {gpus:,} GPUs, on {args.radix}-port switches"
    try:
        picture = draw(options, title)
    except ValueError as error:
        raise UsageError(f"--png: {error}") from error
    write(args.png, lambda file: file.buffer.write(picture))
    print(f"written: {args.png}", file=sys.stderr)


def _advise(args: argparse.Namespace) -> int:
    size = advice.Size(args.nodes, args.gpus_per_node, args.radix, args.hcas_per_gpu, args.extra_endpoints)
    lines = advice.advise(size, args.transport)
    listed = {"advice": [advice.as_dict(line) for line in lines], "evidence": advice.EVIDENCE}
    _show(json.dumps(listed) if args.json else plan_print.advice(lines))
    return 0
