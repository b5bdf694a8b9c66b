"""``weaklink plan cables | fabric | config | prices``: lists and files of one design."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from typing import TextIO

from weaklink.cli.plan_args import Parser, add_shape, add_size, one_of, refused, request
from weaklink.cli.plan_output import Fill, write
from weaklink.model import fabric_file
from weaklink.model.fabric import Fabric
from weaklink.model.topology.build import build
from weaklink.plan import cables, prices
from weaklink.plan.advice import TRANSPORTS
from weaklink.plan.config import cluster_yml, fabric_names
from weaklink.plan.design import design
from weaklink.plan.request import TOPOLOGIES, PlanError
from weaklink.plan.shapes import shape_of

FORMATS = ("csv", "json", "jsonl", "table")


def run(what: str, argv: list[str]) -> int:
    """Run one of the four; return its exit code."""
    args = _parser(what).parse_args(argv)
    made: dict[str, Callable[[argparse.Namespace], Fill]] = {
        "cables": _cables,
        "fabric": _fabric,
        "config": _config,
        "prices": _prices,
    }
    try:
        write(args.out, made[what](args))
    except PlanError as error:
        raise refused(error) from error
    return 0


_ABOUT = {
    "cables": "List every cable of a design: both ends, length class, modules. One row a cable, no port twice.",
    "fabric": "Print a design as a fabric file (JSON) that the sweep, locate and lint commands read.",
    "config": "Write a cluster.yml to start from. Lines to look at are marked PLACEHOLDER.",
    "prices": "Print an example prices file to put your own quotations in.",
}


def _parser(what: str) -> argparse.ArgumentParser:
    parser = Parser(f"weaklink plan {what}", _ABOUT[what])
    add = parser.add_argument
    add("--out", metavar="FILE", help="write to FILE, whole or not at all (stdout)")
    if what == "prices":
        return parser
    add("--topology", metavar="T", type=one_of(TOPOLOGIES), required=True, help=f"one of {', '.join(TOPOLOGIES)}")
    add_size(parser)
    add_shape(parser)
    if what == "cables":
        add(
            "--format",
            metavar="F",
            type=one_of(FORMATS),
            default="csv",
            help="csv, json, jsonl (one object a line) or table (%(default)s)",
        )
    if what == "fabric":
        add("--json", action="store_true", help="JSON, which is what it always is")
    if what == "config":
        add("--transport", metavar="T", type=one_of(TRANSPORTS), default="infiniband", help="infiniband or roce")
    return parser


def _fabric_of(args: argparse.Namespace) -> Fabric:
    asked = request(args, args.topology)
    shape = shape_of(asked)
    return build(shape, fabric_names(design(asked), shape))


def _cables(args: argparse.Namespace) -> Fill:
    listed = cables.cables(_fabric_of(args))
    writer = {"csv": cables.write_csv, "json": _json_array, "jsonl": cables.write_jsonl, "table": cables.write_table}
    return lambda file: writer[args.format](listed, file)


def _json_array(listed: Iterable[cables.Cable], file: TextIO) -> None:
    """Write one JSON array, an object a line, without holding it in memory."""
    before = "[\n"
    for line in listed:
        file.write(before + json.dumps(line._asdict(), separators=(",", ":")))
        before = ",\n"
    file.write("\n]\n" if before == ",\n" else "[]\n")


def _fabric(args: argparse.Namespace) -> Fill:
    fabric = _fabric_of(args)
    return lambda file: fabric_file.write(fabric, file)


def _config(args: argparse.Namespace) -> Fill:
    asked = request(args, args.topology)
    text = cluster_yml(design(asked), shape_of(asked), args.transport)
    return lambda file: file.write(text)


def _prices(_: argparse.Namespace) -> Fill:
    return lambda file: file.write(prices.example_text())
