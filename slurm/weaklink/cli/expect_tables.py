"""``weaklink expect convert`` and ``weaklink expect check``."""

import argparse
from typing import Any

from weaklink.cli import UsageError
from weaklink.cli.expect_input import Read, plain_size, put, read, warn
from weaklink.model.finding import EXIT_FOUND, EXIT_OK, EXIT_UNKNOWN
from weaklink.plan.expect.factors import (
    GIGA,
    ExpectError,
    Ratio,
    collective_of,
    factor,
    from_busbw,
    from_time,
    ranks_from,
    size_of,
)


def convert(argv: list[str]) -> int:
    """Convert between time and bandwidths."""
    parser = argparse.ArgumentParser(prog="weaklink expect convert", description=convert.__doc__)
    parser.add_argument("--collective", default="all_reduce", help="all_reduce, all_gather, … (%(default)s)")
    parser.add_argument("--gpus", type=int, required=True, help="number of ranks")
    parser.add_argument("--size", required=True, help="total bytes: 1G (x1024), 1GB (x1000)")
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--ms", type=float, help="time in milliseconds")
    given.add_argument("--busbw", type=float, help="bus bandwidth, GB/s")
    given.add_argument("--algbw", type=float, help="algorithm bandwidth, GB/s")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    name, size = collective_of(args.collective), size_of(args.size)
    if args.busbw is not None:
        speed = from_busbw(name, args.gpus, size, args.busbw)
    elif args.algbw is not None:
        if not 0 < args.algbw < float("inf"):
            raise ExpectError(f"algbw: found {args.algbw}, wanted more than 0")
        speed = from_time(name, args.gpus, size, size / args.algbw / GIGA)
    else:
        speed = from_time(name, args.gpus, size, args.ms / 1e3)
    document = {
        "collective": name,
        "ranks": args.gpus,
        "factor": factor(name, args.gpus),
        "size_bytes": speed.size_bytes,
        "ms": speed.seconds * 1e3,
        "algbw": speed.algbw,
        "busbw": speed.busbw,
    }
    if args.json:
        put(document)
    else:
        print(
            f"{name}, {args.gpus} ranks, {plain_size(size)}: {speed.seconds * 1e3:.4g} ms,"
            f" algbw {speed.algbw:.2f} GB/s, busbw {speed.busbw:.2f} GB/s (factor {document['factor']:.5f})"
        )
    return EXIT_OK


def check(argv: list[str]) -> int:
    """Say which rank count a table of nccl-tests really has: busbw/algbw tells it."""
    parser = argparse.ArgumentParser(prog="weaklink expect check", description=check.__doc__)
    parser.add_argument("file", metavar="FILE", help="text or -J file of nccl-tests")
    parser.add_argument("--ranks", type=int, help="the count that is stated, instead of the file's list of ranks")
    parser.add_argument("--collective", help="where the file does not name it")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    if args.ranks is not None and args.ranks < 1:
        raise UsageError(f"--ranks: found {args.ranks}, wanted 1 or more")
    tables, code = [], EXIT_OK
    for item in read(args.file, args.collective):
        table = judge(item, args.ranks)
        tables.append(table)
        code = _worse(code, table["verdict"])
        warn(item.source, item.warnings)
        if not args.json:
            print(f"{item.source}: {table['message']}")
    if args.json:
        put({"tables": tables})
    return code


def _worse(code: int, verdict: str) -> int:
    order = (EXIT_OK, EXIT_UNKNOWN, EXIT_FOUND)
    found = {"consistent": EXIT_OK, "contradiction": EXIT_FOUND}.get(verdict, EXIT_UNKNOWN)
    return max(code, found, key=order.index)


def judge(item: Read, stated: int | None) -> dict[str, Any]:
    """Return one table's verdict: consistent, contradiction or unknown, and the counts that its figures allow."""
    halves = [half for row in item.run.rows for half in row.halves]
    figures = [(half.algbw, half.busbw) for half in halves if half.algbw is not None and half.busbw is not None]
    found = ranks_from(item.collective, figures)
    says = stated if stated is not None else item.run.ranks
    verdict, message = _verdict(found, says, item.collective)
    return {
        "source": item.source,
        "collective": item.collective,
        "stated": says,
        "found": found.exact if found else None,
        "low": found.low if found else None,
        "high": found.high if found else None,
        "verdict": verdict,
        "message": message,
        "warnings": list(item.warnings),
    }


def _verdict(found: Ratio | None, says: int | None, collective: str) -> tuple[str, str]:
    if found is None:
        return "unknown", f"busbw/algbw of {collective} tells no rank count (no usable row, or the factor is 1)"
    if found.high is not None and found.low > found.high:
        return "contradiction", "no rank count fits all rows: they are of different runs, or not of this collective"
    span = str(found.exact) if found.exact else f"{found.low} to {found.high or 'any number'}"
    if says is None:
        return "unknown", f"the figures are of {span} ranks; the file states none"
    if found.allows(says):
        return "consistent", f"the figures are of {span} ranks, stated are {says}"
    return "contradiction", f"the figures are of {span} ranks, but {says} are stated"


COMMANDS = {"convert": convert, "check": check}
