"""``weaklink explain``: say which tool printed a text, what is wrong, how bad, and what to do. Changes nothing."""

import argparse
import json
import sys
from typing import Any

from weaklink.cli import UsageError
from weaklink.explain import catalogue, context, sources, tools, words
from weaklink.explain.reports import Asked, ContextValueError, Report, explain
from weaklink.model.finding import EXIT_OK, exit_code
from weaklink.model.words import safe


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="weaklink explain", description=__doc__)
    parser.add_argument("files", metavar="FILE", nargs="*", help="an output, a directory, a tar archive, - for stdin")
    parser.add_argument("--tool", metavar="T", help="the tool whose output it is; recognised when absent")
    parser.add_argument("--context", metavar="FILE", help="what is expected: a file with a JSON object")
    parser.add_argument("--list", action="store_true", help="print all tools and their rules instead")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def run(argv: list[str]) -> int:
    """Run the command; return its exit code."""
    args = _parser().parse_args(argv)
    if args.list:
        _print_catalogue(args)
        return EXIT_OK
    if not args.files:
        raise UsageError("no FILE; name an output, a directory, a tar archive, or - for stdin")
    if args.files.count("-") > 1:
        raise UsageError("- (stdin) is named twice; it can be read once")
    reports, single = _explained(args, _asked(args))
    for name, why in tools.BROKEN.items():
        print(f"weaklink explain: the reader {name} cannot be used, please report it ({why})", file=sys.stderr)
    if args.json:
        found = words.as_json(reports) if single else words.all_as_json(reports)
        print(json.dumps(found, allow_nan=False))
    else:
        _print(words.words(reports))
    return exit_code(words.summed(reports)[0])


def _explained(args: argparse.Namespace, asked: Asked) -> tuple[list[Report], bool]:
    """Return what is said of all files, and whether that is one text's answer rather than a collection."""
    reports: list[Report] = []
    single = len(args.files) == 1
    try:
        for name in args.files:
            for text in sources.texts(name):
                single = single and not text.member
                reports += explain(text, asked)
    except sources.SourceError as error:
        raise UsageError(safe(str(error))) from error
    except ContextValueError as error:
        raise UsageError(safe(f"{args.context}: {error}")) from error
    return reports, single and bool(reports)


def _asked(args: argparse.Namespace) -> Asked:
    try:
        tool = None if args.tool is None else tools.resolve(args.tool)
        wanted: dict[str, Any] = {}
        if args.context is not None:
            wanted, warnings = context.read(args.context)
            for warning in warnings:
                print(f"weaklink explain: {safe(warning)}", file=sys.stderr)
    except (tools.UnknownToolError, context.ContextError) as error:
        raise UsageError(safe(str(error))) from error
    return Asked(tool, wanted)


def _print_catalogue(args: argparse.Namespace) -> None:
    if args.files or args.tool or args.context:
        raise UsageError("--list prints all tools and takes neither FILE, --tool nor --context")
    if args.json:
        print(json.dumps(catalogue.catalogue()))
    else:
        _print(catalogue.words())


def _print(lines: Any) -> None:
    """Print lines that a terminal of any encoding can show."""
    encoding = sys.stdout.encoding or "ascii"
    for line in lines:
        print(line.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()
