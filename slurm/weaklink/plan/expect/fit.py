"""t(S) = alpha + S/beta of a collective: a robust fit to measured times, and what it predicts with an error band.

Weighting: by 1/t, between least squares (only the largest sizes would count) and relative errors (the smallest would
decide alpha): a run's errors have a part that grows with the time and one that does not. Huber's weights on the
relative errors keep one odd row from bending the line. Sizes below ``min_bytes`` follow other protocols of the library
and are left out: by default all below 1/64 of the largest. Error band: every row is predicted from the others (leave
one out); the band is the 90 % quantile of those relative errors, and at least the rounding of the printed time. Two
rows fit exactly and have no band; one row cannot be fitted. Between two measured rank counts alpha is interpolated both
linearly and in log n, and the band spans both. Nothing is predicted beyond the measured rank counts.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from weaklink.plan.expect.factors import GIGA, ExpectError, factor

SPAN = 64
QUANTILE = 0.9
HUBER = 2.5
ROUNDS = 50
FLOOR = 0.002
SCALE = 0.01  # runs differ by about a percent; less is not worth weighing down
SETTLED = 1e-9
ENOUGH = 3


class Point(NamedTuple):
    """One measured operation."""

    size_bytes: float
    seconds: float


class Table(NamedTuple):
    """What one run measured: where it stands, the collective, how many ranks, its rows."""

    source: str
    collective: str
    ranks: int
    nodes: int | None
    points: tuple[Point, ...]


class Fit(NamedTuple):
    """alpha in seconds; beta in bytes/s; band: relative (None: cannot be known); the range of sizes it stands on.

    ``alpha_range``: alpha with each row left out in turn, which shows how well it is known; None with two rows.
    """

    table: Table
    alpha: float
    beta: float
    band: float | None
    low_bytes: float
    high_bytes: float
    rows: int
    left_out: tuple[float, ...]
    alpha_range: tuple[float, float] | None

    @property
    def algbw(self) -> float:
        """The algorithm bandwidth that large messages approach, GB/s."""
        return self.beta / GIGA

    @property
    def busbw(self) -> float:
        """The bus bandwidth that large messages approach, GB/s."""
        return self.algbw * factor(self.table.collective, self.table.ranks)

    def seconds(self, size_bytes: float) -> float:
        """Return the time of ``size_bytes``."""
        return self.alpha + size_bytes / self.beta


class Prediction(NamedTuple):
    """A time in seconds between ``low`` and ``high`` (None: no band), and what to know about it."""

    size_bytes: float
    ranks: int
    seconds: float
    low: float | None
    high: float | None
    busbw: float
    notes: tuple[str, ...]


def fit(table: Table, min_bytes: float | None = None) -> Fit:
    """Return the fit of one table; ExpectError where it cannot be made."""
    if not table.points:
        raise ExpectError(f"{table.source}: no rows with a size and a time, nothing to fit")
    largest = max(point.size_bytes for point in table.points)
    lowest = min_bytes if min_bytes is not None else largest / SPAN
    used = _merge([point for point in table.points if point.size_bytes >= lowest and point.seconds > 0])
    if len(used) < 2:  # noqa: PLR2004 - a line has two unknowns
        raise ExpectError(
            f"{table.source}: {len(used)} size(s) of at least {lowest:.0f} bytes, wanted 2 or more: one size cannot"
            " tell alpha from beta; run with -b 256M -e 16G -f 2"
        )
    alpha, slope = _line(used)
    others = _others(used)
    return Fit(
        table=table,
        alpha=alpha,
        beta=1 / slope,
        band=_band(used, others),
        low_bytes=used[0].size_bytes,
        high_bytes=used[-1].size_bytes,
        rows=len(used),
        left_out=_odd(used, alpha, slope),
        alpha_range=None if others is None else (min(others)[0], max(others)[0]),
    )


def _merge(points: Sequence[Point]) -> list[Point]:
    """Return one point a size, sorted: the median of repeated ones."""
    times: dict[float, list[float]] = {}
    for point in points:
        times.setdefault(point.size_bytes, []).append(point.seconds)
    return [Point(size, sorted(found)[len(found) // 2]) for size, found in sorted(times.items())]


def _line(points: Sequence[Point]) -> tuple[float, float]:
    """Return alpha >= 0 and the slope > 0 that fit best; a row weighs by its time, outliers less."""
    weights = [point.seconds for point in points]
    alpha, slope = _weighted(points, weights)
    for _ in range(ROUNDS):
        residuals = [(alpha + slope * point.size_bytes) / point.seconds - 1 for point in points]
        scale = max(1.4826 * sorted(abs(item) for item in residuals)[len(residuals) // 2], SCALE)
        weights = [
            point.seconds * (min(1.0, HUBER * scale / abs(item)) if item else 1.0)
            for point, item in zip(points, residuals, strict=True)
        ]
        before = (alpha, slope)
        alpha, slope = _weighted(points, weights)
        if abs(alpha - before[0]) <= SETTLED * before[0] and abs(slope - before[1]) <= SETTLED * slope:
            break
    return alpha, slope


def _weighted(points: Sequence[Point], weights: Sequence[float]) -> tuple[float, float]:
    """Solve min sum w ((a + b S)/t - 1)^2; a negative alpha becomes 0, a slope that is not positive is an error."""
    x = [1 / point.seconds for point in points]
    y = [point.size_bytes / point.seconds for point in points]
    xx = sum(w * a * a for w, a in zip(weights, x, strict=True))
    yy = sum(w * b * b for w, b in zip(weights, y, strict=True))
    xy = sum(w * a * b for w, a, b in zip(weights, x, y, strict=True))
    sx = sum(w * a for w, a in zip(weights, x, strict=True))
    sy = sum(w * b for w, b in zip(weights, y, strict=True))
    determinant = xx * yy - xy * xy
    if determinant > 1e-12 * xx * yy:
        alpha, slope = (sx * yy - sy * xy) / determinant, (sy * xx - sx * xy) / determinant
        if alpha >= 0 and slope > 0:
            return alpha, slope
        if slope <= 0:
            raise ExpectError("time does not grow with size in these rows: no alpha and beta can be fitted")
    return 0.0, sy / yy


def _others(points: Sequence[Point]) -> list[tuple[float, float]] | None:
    """Return alpha and slope with each point left out in turn; None where that leaves too little."""
    if len(points) < ENOUGH:
        return None
    try:
        return [_line([*points[:place], *points[place + 1 :]]) for place in range(len(points))]
    except ExpectError:
        return None


def _band(points: Sequence[Point], others: Sequence[tuple[float, float]] | None) -> float | None:
    if others is None:
        return None
    errors = sorted(
        abs((alpha + slope * point.size_bytes) / point.seconds - 1)
        for point, (alpha, slope) in zip(points, others, strict=True)
    )
    return max(errors[min(len(errors) - 1, math.ceil(QUANTILE * len(errors)) - 1)], FLOOR)


def _odd(points: Sequence[Point], alpha: float, slope: float) -> tuple[float, ...]:
    """Return the sizes whose time is far from the line: more than 10 %."""
    far = 0.1
    return tuple(
        point.size_bytes for point in points if abs((alpha + slope * point.size_bytes) / point.seconds - 1) > far
    )


def predict(fits: Sequence[Fit], size_bytes: float, ranks: int | None = None) -> Prediction:
    """Return the time of ``size_bytes`` over ``ranks`` ranks (may be left out where one count was measured)."""
    by_ranks = {item.table.ranks: item for item in sorted(fits, key=lambda item: item.table.ranks)}
    if len(by_ranks) != len(fits):
        raise ExpectError("two files have the same number of ranks; predict from one of them")
    if len({item.table.collective for item in fits}) > 1:
        raise ExpectError("the files are of different collectives; predict from one kind")
    counts = list(by_ranks)
    wanted = ranks if ranks is not None else (counts[0] if len(counts) == 1 else None)
    if wanted is None:
        raise ExpectError(f"ranks: not given, wanted one between {counts[0]} and {counts[-1]} (--gpus)")
    if not counts[0] <= wanted <= counts[-1]:
        raise ExpectError(
            f"ranks: found {wanted}, measured are {', '.join(map(str, counts))}; nothing is predicted beyond them"
        )
    if wanted in by_ranks:
        return _one(by_ranks[wanted], size_bytes)
    below = max(count for count in counts if count < wanted)
    above = min(count for count in counts if count > wanted)
    return _between(by_ranks[below], by_ranks[above], wanted, size_bytes)


def _notes(item: Fit, size_bytes: float) -> tuple[str, ...]:
    notes = []
    if not item.low_bytes <= size_bytes <= item.high_bytes:
        notes.append(
            f"{size_bytes:.0f} bytes lie outside the fitted {item.low_bytes:.0f} to {item.high_bytes:.0f}: the band"
            " does not cover what other protocols or sizes do"
        )
    if item.band is None:
        notes.append(f"{item.table.source}: two sizes fit exactly, no error band can be given")
    return tuple(notes)


def _one(item: Fit, size_bytes: float) -> Prediction:
    seconds = item.seconds(size_bytes)
    busbw = size_bytes / seconds / GIGA * factor(item.table.collective, item.table.ranks)
    low = None if item.band is None else seconds * (1 - item.band)
    high = None if item.band is None else seconds * (1 + item.band)
    return Prediction(size_bytes, item.table.ranks, seconds, low, high, busbw, _notes(item, size_bytes))


def _between(first: Fit, second: Fit, ranks: int, size_bytes: float) -> Prediction:
    one, two = first.table.ranks, second.table.ranks
    linear = (ranks - one) / (two - one)
    logarithmic = math.log(ranks / one) / math.log(two / one)
    share = factor(first.table.collective, ranks)
    times = []
    for part in (linear, logarithmic):
        alpha = first.alpha + part * (second.alpha - first.alpha)
        busbw = first.busbw + part * (second.busbw - first.busbw)
        times.append(alpha + size_bytes * share / (busbw * GIGA))
    seconds = sum(times) / 2
    notes = (
        f"interpolated between {one} and {two} ranks",
        *dict.fromkeys(_notes(first, size_bytes) + _notes(second, size_bytes)),
    )
    low = high = None
    if first.band is not None and second.band is not None:
        band = max(first.band, second.band)
        low, high = min(times) * (1 - band), max(times) * (1 + band)
    return Prediction(size_bytes, ranks, seconds, low, high, size_bytes / seconds / GIGA * share, notes)
