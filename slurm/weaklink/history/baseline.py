"""Learn what a healthy fleet measures, and refuse to learn from a sweep that does not look healthy. Pure.

All on natural logs. One sweep has a common mode (how fast the machines are that day); what a path adds to it and the
noise of one flow are learned over several sweeps with the common mode removed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple, Optional

from weaklink.model.measurement import BENCHMARKS, RDMA_FAILED, RETRANSMITS, Measurement, Reference, path_of

# A guess at the noise before anything was seen, worth this many degrees of freedom: few sweeps must not look exact.
_PRIOR_SIGMA = 0.10
_PRIOR_WEIGHT = 4.0
# A flow this many times the fleet's median away is an outlier whatever the noise (latencies stray further) …
OUTLIER_FACTOR = {"bandwidth": 3.0, "latency": 5.0}
# … all flows of an HCA, this much worse than all others, make it one …
APART_FACTOR = {"bandwidth": 2.0, "latency": 3.0}
# … and so is, in a quiet fleet, one this many deviations away (but never one closer than twice the smallest loss).
OUTLIER_SIGMAS = 8.0
_MAD_TO_SIGMA = 1.4826
_FEW = 2
_SEPARATION_HCAS = 64
_MANY = 40


class Outlier(NamedTuple):
    """A flow that does not fit the others of its sweep; ``factor`` is measured over the fleet's median."""

    src: str
    dst: str
    benchmark: str
    factor: Optional[float]
    reason: str


def outliers(measurements: Sequence[Measurement], *, min_loss: float) -> list[Outlier]:
    """Return the flows for which a sweep must not become a baseline; empty: the sweep looks healthy.

    Deviations count in both directions: with three nodes a bad one is in most flows, and the good ones look fast.
    """
    found = [
        Outlier(one.src, one.dst, one.benchmark, None, one.failure + (f": {one.detail}" if one.detail else ""))
        for one in measurements
        if one.value is None
    ]
    for (benchmark, _), group in _groups(measurements).items():
        if benchmark == RETRANSMITS:
            continue
        found += _apart(benchmark, group)
        logs = [math.log(value) for one in group if (value := one.value) is not None]
        center = median(logs)
        spread = _MAD_TO_SIGMA * median(abs(y - center) for y in logs)
        limit = math.log(OUTLIER_FACTOR[BENCHMARKS[benchmark][0]])
        if len(logs) >= _MANY:
            # A handful of flows says too little about their own spread.
            limit = min(limit, max(-2 * math.log(1 - min_loss), OUTLIER_SIGMAS * spread))
        for one, y in zip(group, logs):
            if abs(y - center) > limit:
                factor = math.exp(y - center)
                found.append(Outlier(one.src, one.dst, benchmark, factor, f"{factor:.2f} of the fleet's median"))
    return found


def _apart(benchmark: str, group: Sequence[Measurement]) -> list[Outlier]:
    """Return HCAs whose flows (all, or those of one direction) are all far worse than every flow without them."""
    metric, _, better = BENCHMARKS[benchmark]
    sign = 1 if better else -1
    flows = [(one.src, one.dst, sign * math.log(one.value)) for one in group if one.value is not None]
    hcas = sorted({end for src, dst, _ in flows for end in (src, dst)})
    found: list[Outlier] = []
    for hca in hcas if len(hcas) <= _SEPARATION_HCAS else ():
        rest = [y for src, dst, y in flows if hca not in (src, dst)]
        sending = [y for src, _, y in flows if src == hca]
        receiving = [y for _, dst, y in flows if dst == hca]
        # One direction alone may be two flows, which chance puts on one side easily: there the gap must be wider.
        for mine, gap in (
            (sending + receiving, APART_FACTOR[metric]),
            (sending, OUTLIER_FACTOR[metric]),
            (receiving, OUTLIER_FACTOR[metric]),
        ):
            if mine and rest and max(mine) < min(rest) and median(mine) - median(rest) < -math.log(gap):
                factor = math.exp(sign * (median(mine) - median(rest)))
                found.append(Outlier(hca, "", benchmark, factor, f"{factor:.2f} of what the flows without it reach"))
                break
    return found


def learn(sweeps: Iterable[Sequence[Measurement]]) -> list[Reference]:
    """Return one reference for each benchmark and shape in the given healthy sweeps; none without measurements."""
    by_key: dict[tuple[str, str], list[dict[str, float]]] = {}
    for sweep in sweeps:
        for key, group in _groups(sweep).items():
            values: dict[str, list[float]] = {}
            for one in group:
                if one.value is not None:
                    values.setdefault(path_of(one.src, one.dst), []).append(math.log(one.value))
            by_key.setdefault(key, []).append({path: fmean(logs) for path, logs in values.items()})
    return [_reference(key, tables) for key, tables in sorted(by_key.items())]


def _groups(measurements: Iterable[Measurement]) -> dict[tuple[str, str], list[Measurement]]:
    found: dict[tuple[str, str], list[Measurement]] = {}
    for one in measurements:
        if one.value is not None and one.value > 0 and one.failure != RDMA_FAILED and one.benchmark in BENCHMARKS:
            found.setdefault((one.benchmark, one.shape), []).append(one)
    return found


def _reference(key: tuple[str, str], tables: Sequence[Mapping[str, float]]) -> Reference:
    """Two-way fit (sweep + path) by alternating means; paths shrunk by how much of their spread is noise."""
    paths = sorted({path for table in tables for path in table})
    offsets = dict.fromkeys(paths, 0.0)
    centers = [median(table.values()) for table in tables]
    for _ in range(20):
        for path in paths:
            offsets[path] = fmean(t[path] - c for t, c in zip(tables, centers) if path in t)
        shift = fmean(offsets.values())
        offsets = {path: value - shift for path, value in offsets.items()}
        centers = [fmean(y - offsets[path] for path, y in table.items()) for table in tables]
    residuals = [y - c - offsets[path] for table, c in zip(tables, centers) for path, y in table.items()]
    freedom = len(residuals) - len(paths) - len(tables) + 1
    spread = fmean(value * value for value in offsets.values())
    if len(tables) < _FEW:
        # No repetition: noise and paths cannot be told apart. All of the spread is noise and no path is known.
        sigma = _shrunk(spread * len(paths), len(paths) - 1)
        offsets, offset_sd = {}, sigma
    else:
        sigma = _shrunk(_clipped_squares(residuals), freedom)
        error = sigma * sigma / len(tables)
        real = max(0.0, spread - error)
        weight = real / (real + error) if real + error > 0 else 0.0
        offsets = {path: value * weight for path, value in offsets.items()}
        offset_sd = math.sqrt(weight * error)
    unit = BENCHMARKS[key[0]][1]
    return Reference(key[0], key[1], unit, median(centers), sigma, len(tables), offsets, offset_sd)


def _shrunk(squares: float, freedom: int) -> float:
    """Return a cautious sigma: the prior joins in, and what few values leave open goes on top (one standard error)."""
    freedom = max(0, freedom)
    sigma = math.sqrt((squares + _PRIOR_WEIGHT * _PRIOR_SIGMA**2) / (freedom + _PRIOR_WEIGHT))
    return sigma * (1.0 + 1.0 / math.sqrt(2.0 * (freedom + _PRIOR_WEIGHT)))


def _clipped_squares(residuals: Sequence[float]) -> float:
    """Sum of squares with rare stalls cut back to three deviations; with few values all count as they are."""
    if len(residuals) < _MANY:
        return sum(r * r for r in residuals)
    limit = 3.0 * _MAD_TO_SIGMA * median(abs(r) for r in residuals)
    return sum(min(abs(r), limit) ** 2 for r in residuals)
