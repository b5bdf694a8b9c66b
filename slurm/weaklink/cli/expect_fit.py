"""``weaklink expect fit``: alpha and beta of measured collectives, and what they predict."""

import argparse
from typing import Any

from weaklink.cli import UsageError
from weaklink.cli.expect_input import Read, half, plain_size, put, read, warn
from weaklink.cli.expect_tables import judge
from weaklink.plan.expect.factors import size_of
from weaklink.plan.expect.fit import Fit, Point, Prediction, Table, fit, predict


def run(argv: list[str]) -> int:
    """Fit t(S) = alpha + S/beta to nccl-tests outputs, and predict times with an error band."""
    parser = argparse.ArgumentParser(prog="weaklink expect fit", description=run.__doc__)
    parser.add_argument("files", metavar="FILE", nargs="+", help="text or -J files of nccl-tests, one a shape")
    parser.add_argument("--predict", metavar="SIZE", action="append", default=[], help="predict the time of SIZE")
    parser.add_argument("--gpus", type=int, help="predict for this many ranks, between the measured counts")
    parser.add_argument("--min-bytes", metavar="SIZE", help="leave smaller sizes out (default: 1/64 of the largest)")
    parser.add_argument("--collective", help="where the files do not name it")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    least = size_of(args.min_bytes) if args.min_bytes else None
    sizes = [size_of(text) for text in args.predict]
    items = [item for name in args.files for item in read(name, args.collective)]
    fits = [fit(_table(item), least) for item in items]
    predictions = [predict(fits, size, args.gpus) for size in sizes]
    for item in items:
        warn(item.source, item.warnings)
    if args.json:
        put(
            {
                "fits": [
                    {**_fit_document(one), "warnings": list(item.warnings)}
                    for one, item in zip(fits, items, strict=True)
                ],
                "predictions": [_prediction_document(one) for one in predictions],
            }
        )
        return 0
    for one in fits:
        print(_fit_text(one))
    for prediction in predictions:
        print(_prediction_text(prediction))
        warn("note", prediction.notes)
    return 0


def _table(item: Read) -> Table:
    """Return the run as a plain record; the rank count is the listed one, else what the figures tell."""
    verdict = judge(item, None)
    if verdict["verdict"] == "contradiction":
        raise UsageError(f"{item.source}: {verdict['message']}; see `weaklink expect check`")
    ranks = item.run.ranks if item.run.ranks is not None else verdict["found"]
    if ranks is None:
        raise UsageError(f"{item.source}: no list of ranks, and the figures do not tell how many; nothing to fit for")
    if ranks < 2:  # noqa: PLR2004 - one rank has nobody to talk to
        raise UsageError(f"{item.source}: one rank communicates nothing; wanted a run of 2 or more")
    points = tuple(
        Point(float(row.size), time / 1e6)
        for row in item.run.rows
        if (time := half(row).time_us) is not None and time > 0
    )
    hosts = {device.host for device in item.run.devices}
    return Table(item.source, item.collective, ranks, len(hosts) or None, points)


def _fit_document(one: Fit) -> dict[str, Any]:
    table = one.table
    return {
        "source": table.source,
        "collective": table.collective,
        "ranks": table.ranks,
        "nodes": table.nodes,
        "alpha_us": one.alpha * 1e6,
        "alpha_range_us": None if one.alpha_range is None else [alpha * 1e6 for alpha in one.alpha_range],
        "algbw": one.algbw,
        "busbw": one.busbw,
        "band": one.band,
        "band_method": "90 % quantile of leave-one-out relative errors",
        "fitted_bytes": [one.low_bytes, one.high_bytes],
        "rows": one.rows,
        "odd_sizes": list(one.left_out),
    }


def _prediction_document(one: Prediction) -> dict[str, Any]:
    def milliseconds(value: float | None) -> float | None:
        return None if value is None else value * 1e3

    return {
        "size_bytes": one.size_bytes,
        "ranks": one.ranks,
        "ms": one.seconds * 1e3,
        "low_ms": milliseconds(one.low),
        "high_ms": milliseconds(one.high),
        "busbw": one.busbw,
        "notes": list(one.notes),
    }


def _fit_text(one: Fit) -> str:
    band = "no band (two sizes)" if one.band is None else f"+-{one.band:.1%}"
    span = f"{plain_size(one.low_bytes)} to {plain_size(one.high_bytes)}"
    text = (
        f"{one.table.source}: {one.table.collective}, {one.table.ranks} ranks: alpha {one.alpha * 1e3:.3f} ms,"
        f" {one.busbw:.0f} GB/s busbw for large messages, {band}; {one.rows} sizes, {span}"
    )
    if one.left_out:
        text += "; more than 10 % off the line: " + ", ".join(plain_size(size) for size in one.left_out)
    return text


def _prediction_text(one: Prediction) -> str:
    band = "" if one.low is None or one.high is None else f" ({one.low * 1e3:.3f} to {one.high * 1e3:.3f})"
    what = f"{plain_size(one.size_bytes)} over {one.ranks} ranks"
    return f"{what}: {one.seconds * 1e3:.3f} ms{band}, busbw {one.busbw:.0f} GB/s"


COMMANDS = {"fit": run}
