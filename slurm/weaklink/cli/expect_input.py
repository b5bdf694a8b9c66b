"""What the ``weaklink expect`` commands share: nccl-tests files as plain records, sizes, printing."""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from weaklink.cli import UsageError
from weaklink.observe.tools import nccl_tests
from weaklink.observe.tools.nccl_tests_records import Half, Row, Run
from weaklink.observe.tools.text import clean
from weaklink.plan.expect.factors import ExpectError, collective_of

_REDUCING = ("sum", "prod", "max", "min", "avg")
MAX_FILE = 64 * 1024 * 1024


class Read(NamedTuple):
    """One run of a file: where from, which collective (``assumed``: the output does not say), ranks as listed."""

    source: str
    collective: str
    assumed: bool
    run: Run
    warnings: tuple[str, ...]


def read(name: str, collective: str | None) -> list[Read]:
    """Return the runs of an nccl-tests output; UsageError where there is none to use."""
    path = Path(name)
    try:
        if path.stat().st_size > MAX_FILE:
            raise UsageError(f"{name}: more than {MAX_FILE >> 20} MiB, wanted the output of nccl-tests")
        with path.open(encoding="utf-8", errors="replace") as file:
            record = nccl_tests.parse(clean(file))
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from error
    found = [run for run in record.runs if run.rows]
    if not found:
        what = record.troubles[0] if record.troubles else None
        where = f" (line {what.line}: {what.what})" if what else ""
        raise UsageError(f"{name}: no result rows of nccl-tests in it{where}; wanted its text or its -J file")
    warnings = [f"line {trouble.line}: {trouble.what}" for trouble in record.troubles[:5]]
    several = len(found) > 1
    return [
        _one(f"{name}#{place}" if several else name, run, collective, warnings) for place, run in enumerate(found, 1)
    ]


def _one(source: str, run: Run, collective: str | None, warnings: list[str]) -> Read:
    more = list(warnings)
    if not run.complete:
        more.append("the summary is missing: the run did not end, or the output was cut")
    if run.out_of_bounds:
        more.append(f"{run.out_of_bounds} results were wrong: these speeds are of a broken run")
    assumed = False
    if collective is not None:
        name = collective_of(collective)
    elif run.test is not None:
        try:
            name = collective_of(run.test)
        except ExpectError as error:
            raise UsageError(f"{source}: {error}; name it with --collective") from error
    elif run.rows[0].redop in _REDUCING:
        name, assumed = "all_reduce", True
        more.append("the output does not name its collective; taken as all_reduce (--collective says otherwise)")
    else:
        raise UsageError(f"{source}: the output does not name its collective; give --collective")
    return Read(source, name, assumed, run, tuple(more))


def half(row: Row) -> Half:
    """Return the out-of-place half, or the in-place one where that alone was measured."""
    return row.halves[0]


def put(document: dict[str, Any] | list[Any]) -> None:
    """Print JSON on standard output."""
    print(json.dumps(document, allow_nan=False))


def warn(source: str, texts: tuple[str, ...]) -> None:
    """Print warnings on standard error."""
    for text in texts:
        print(f"{source}: {text}", file=sys.stderr)


def plain_size(size: float) -> str:
    """Return 16G, 512M … where it is exact, else the bytes."""
    for unit, bits in (("T", 40), ("G", 30), ("M", 20), ("K", 10)):
        if size >= 1 << bits and size % (1 << bits) == 0:
            return f"{int(size) >> bits}{unit}"
    return f"{size:.0f}"
