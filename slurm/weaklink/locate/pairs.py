"""From the measurements of one sweep and the references to suspects, in the form of ``weaklink locate``. Pure.

What end points alone can show is blamed: an HCA with its cable and switch port. Nobody is accused unless
(1) the loss is at least ``min_loss`` and at least ``sigmas`` standard errors of the learned noise,
(2) at least two partners confirm it, each by its own flows, and again in follow-up rounds, and
(3) no other explanation keeps more than 5 % probability.
What the data cannot tell apart is one suspect with alternatives, and nobody is accused.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple, Optional

from weaklink.locate.fit import FAILED_LOG, Effect, Fit, Noise, Obs, effects, fit, hcas_of, leftovers
from weaklink.model.measurement import BENCHMARKS, RDMA_FAILED, Measurement, Reference, path_of

SURE = 0.95
PARTNERS = 2
# Nothing is quieter than this, however few sweeps taught it: clocks, buffers and start-up always move a little.
NOISE_FLOOR = 0.01
_PAIR = 2
# Where the fault of an HCA's only link sits when nothing tells: expert guess, no data; cables and optics fail most.
_PLACES_BOTH = (("hca", 0.4), ("cable", 0.35), ("link", 0.25))
_PLACES_ONE_WAY = (("link", 0.45), ("cable", 0.3), ("hca", 0.25))


class Rules(NamedTuple):
    """When a loss counts: a fraction of the expected value, and standard errors of the noise."""

    min_loss: float = 0.15
    sigmas: float = 5.0


class _Metric(NamedTuple):
    reference: Reference
    noise: Noise
    observations: list[Obs]
    values: dict[Obs, Measurement]
    fitted: Optional[Fit]


def locate(
    measurements: Sequence[Measurement],
    references: Iterable[Reference],
    *,
    hcas: Iterable[str],
    rules: Rules,
) -> dict[str, Any]:
    """Return ``{"suspects", "coverage", "rounds_used", "unexplained", "cleared", "common_mode"}``.

    ``hcas`` are all HCAs of the fleet (for coverage, and to tell one HCA from a whole node). Each suspect has, over
    what FORMATS names, ``node``, ``direction`` (both | egress | ingress), ``accused`` (may be drained), ``retested``,
    ``cause``.
    """
    fleet = sorted(set(hcas))
    metrics = [found for found in (_metric(measurements, one) for one in references) if found is not None]
    by_hca: dict[str, list[tuple[_Metric, Effect]]] = {}
    floor = math.log(1.0 - rules.min_loss)
    for metric in metrics:
        if metric.fitted is None:
            continue
        for hca in metric.fitted.bad:
            for effect in effects(metric.observations, metric.fitted, hca, metric.noise, floor)[:1]:
                by_hca.setdefault(hca, []).append((metric, effect))
    suspects = [_suspect(hca, found, metrics, rules) for hca, found in by_hca.items()]
    cleared = [one["id"].rstrip("+-") for one in suspects if one["cleared"]]
    suspects = _promote([one for one in suspects if not one["cleared"]], fleet)
    suspects += _inseparable(metrics, rules)
    suspects.sort(key=lambda one: (not one["accused"], -one["probability"], one["id"]))
    return {
        "suspects": suspects,
        "coverage": _coverage(measurements, fleet),
        "rounds_used": len({(one.round, one.retest) for one in measurements}),
        "unexplained": _unexplained(metrics, rules),
        "cleared": cleared,
        "common_mode": {m.reference.benchmark: _factor(m) for m in metrics if m.fitted is not None},
    }


def _metric(measurements: Sequence[Measurement], reference: Reference) -> Optional[_Metric]:
    better = BENCHMARKS[reference.benchmark][2]
    observations: list[Obs] = []
    values: dict[Obs, Measurement] = {}
    failed: list[Measurement] = []
    for one in measurements:
        if one.benchmark != reference.benchmark or one.shape != reference.shape:
            continue
        if one.value is not None and one.value > 0:
            expected = reference.center + reference.offsets.get(path_of(one.src, one.dst), 0.0)
            y = (math.log(one.value) - expected) * (1 if better else -1)
            # The last digits keep equal figures of one path apart, so that each keeps its own measurement.
            observation = Obs(one.src, one.dst, y + 1e-12 * len(observations), one.retest)
            observations.append(observation)
            values[observation] = one
        elif one.failure == RDMA_FAILED:
            failed.append(one)
    if not observations:
        return None
    # A failed test counts as a hundredth of what the better quarter of the fleet does now.
    now = sorted(o.y for o in observations)[(3 * len(observations)) // 4]
    for one in failed:
        observation = Obs(one.src, one.dst, now + FAILED_LOG + 1e-12 * len(observations), one.retest)
        observations.append(observation)
        values[observation] = one
    noise = Noise(max(reference.sigma, NOISE_FLOOR), reference.offset_sd)
    return _Metric(reference, noise, observations, values, fit(observations, noise))


def _suspect(hca: str, found: list[tuple[_Metric, Effect]], metrics: Sequence[_Metric], rules: Rules) -> dict[str, Any]:
    """Return the suspect for one HCA from its effects on all metrics."""
    performance = [(m, e) for m, e in found if BENCHMARKS[m.reference.benchmark][0] != "counters"]
    counters = [(m, e) for m, e in found if BENCHMARKS[m.reference.benchmark][0] == "counters"]
    backed = any(e.z >= rules.sigmas for _, e in counters)
    accused = [
        (m, e)
        for m, e in performance
        if e.loss >= rules.min_loss
        and e.z >= (rules.sigmas / 2 if backed else rules.sigmas)
        and len(e.partners) >= PARTNERS
        and len(e.retested) >= PARTNERS
        and _probability(m, hca) >= SURE
    ]
    metric, effect = max(accused or performance or counters, key=lambda entry: entry[1].z)
    direction = effect.direction if BENCHMARKS[metric.reference.benchmark][0] != "latency" else "both"
    places = _PLACES_BOTH if direction == "both" else _PLACES_ONE_WAY
    sure = _probability(metric, hca)
    names = {"hca": hca, "cable": hca, "link": hca + {"both": "", "egress": "+", "ingress": "-"}[direction]}
    kind = places[0][0]
    others = [
        {"kind": "hca", "id": other, "probability": round(p, 4)}
        for other, p in (metric.fitted.probability.items() if metric.fitted else ())
        if other not in {hca, *(metric.fitted.bad if metric.fitted else ())} and p >= 0.01  # noqa: PLR2004 - a per cent
    ]
    return {
        "kind": kind,
        "id": names[kind],
        "node": hca.partition("/")[0],
        "probability": round(sure * places[0][1], 4),
        "node_probability": round(sure, 4),
        "loss": round(effect.loss, 4),
        "metric": BENCHMARKS[metric.reference.benchmark][0],
        "direction": direction,
        "accused": bool(accused),
        "retested": len(effect.retested) >= PARTNERS,
        "cleared": not accused and _cleared(hca, found, rules),
        "cause": _cause(metric, effect, hca),
        "evidence": {
            BENCHMARKS[m.reference.benchmark][0]: _evidence(m, e, hca) for m, e in _with_all(hca, found, metrics, rules)
        },
        "alternatives": [
            *({"kind": k, "id": names[k], "probability": round(sure * p, 4)} for k, p in places[1:]),
            *others,
        ],
    }


def _cleared(hca: str, found: list[tuple[_Metric, Effect]], rules: Rules) -> bool:
    """Return whether follow-up rounds took the suspicion away: they were run, and too few partners confirmed it."""
    again = any(o.retest and hca in (o.src, o.dst) for m, _ in found for o in m.observations)
    return again and all(e.z < rules.sigmas and len(e.retested) < PARTNERS for _, e in found)


def _with_all(
    hca: str, found: list[tuple[_Metric, Effect]], metrics: Sequence[_Metric], rules: Rules
) -> list[tuple[_Metric, Effect]]:
    """Add what the metrics that did not find the HCA bad say about it; the reader wants to see them too."""
    seen = {m.reference.benchmark for m, _ in found}
    more = list(found)
    for metric in metrics:
        if metric.fitted is not None and metric.reference.benchmark not in seen:
            all_effects = effects(metric.observations, metric.fitted, hca, metric.noise, math.log(1 - rules.min_loss))
            more += [(metric, effect) for effect in all_effects if effect.direction == "both"]
    return more


def _probability(metric: _Metric, hca: str) -> float:
    return 0.0 if metric.fitted is None else metric.fitted.probability.get(hca, 0.0)


def _touching(metric: _Metric, effect: Effect, hca: str) -> list[Obs]:
    return [
        o
        for o in metric.observations
        if (o.src == hca and effect.direction != "ingress") or (o.dst == hca and effect.direction != "egress")
    ]


def _cause(metric: _Metric, effect: Effect, hca: str) -> str:
    failures = [metric.values[o] for o in _touching(metric, effect, hca) if metric.values[o].value is None]
    if failures and len(failures) * 2 >= effect.flows:
        return failures[0].detail.partition(":")[0] or RDMA_FAILED
    words = {"bandwidth": "bandwidth-below-expected", "latency": "latency-above-expected"}
    return words.get(BENCHMARKS[metric.reference.benchmark][0], "bad-cable")


def _evidence(metric: _Metric, effect: Effect, hca: str) -> dict[str, Any]:
    """Return measured, expected today, and baseline, in the metric's unit, as medians over the flows concerned."""
    flows = [metric.values[o] for o in _touching(metric, effect, hca)]
    sign = 1 if BENCHMARKS[metric.reference.benchmark][2] else -1
    common = sign * (metric.fitted.common if metric.fitted else 0.0)
    base = [math.exp(metric.reference.center + metric.reference.offsets.get(path_of(f.src, f.dst), 0.0)) for f in flows]
    measured = [f.value for f in flows if f.value is not None]
    return {
        "measured": _rounded(median(measured)) if measured else None,
        "failed": sum(f.failure == RDMA_FAILED for f in flows),
        "expected": _rounded(median(base) * math.exp(common)) if base else None,
        "baseline": _rounded(median(base)) if base else None,
        "unit": metric.reference.unit,
        "loss": round(effect.loss, 4),
        "z": round(effect.z, 2),
        "noise": round(metric.noise.flow, 4),
        "flows": effect.flows,
        "direction": effect.direction,
        "partners": list(effect.partners),
        "confirmed_in_retest": list(effect.retested),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _promote(suspects: list[dict[str, Any]], fleet: Sequence[str]) -> list[dict[str, Any]]:
    """Make one suspect of kind node when all HCAs (two or more) of a node are suspects."""
    of_node: dict[str, list[str]] = {}
    for hca in fleet:
        of_node.setdefault(hca.partition("/")[0], []).append(hca)
    found = []
    by_node: dict[str, list[dict[str, Any]]] = {}
    for one in suspects:
        by_node.setdefault(one["node"], []).append(one)
    for node, mine in by_node.items():
        if len(mine) < _PAIR or len(mine) < len(of_node.get(node, ())):
            found += mine
            continue
        worst = max(mine, key=lambda one: (one["accused"], one["loss"]))
        found.append(
            {
                **worst,
                "kind": "node",
                "id": node,
                "probability": min(one["node_probability"] for one in mine),
                "accused": any(one["accused"] for one in mine),
                "alternatives": [],
            }
        )
    return found


def _inseparable(metrics: Sequence[_Metric], rules: Rules) -> list[dict[str, Any]]:
    """Return suspects that name two ends: with two HCAs in all, and pairs that no single HCA explains."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    floor = math.log(1.0 - rules.min_loss)
    for metric in metrics:
        name = BENCHMARKS[metric.reference.benchmark][0]
        if metric.fitted is None and len(hcas_of(metric.observations)) == _PAIR:
            first, second = hcas_of(metric.observations)
            values = [o.y for o in metric.observations]
            error = math.sqrt(metric.noise.flow**2 / len(values) + metric.noise.path**2)
            middle = median(values)
            pairs = [(first, second, middle)] if middle <= min(floor, -rules.sigmas * error) else []
        elif metric.fitted is not None:
            pairs = leftovers(metric.fitted, metric.noise, floor, rules.sigmas)
        else:
            pairs = []
        for first, second, delta in pairs:
            if name != "counters":
                found.setdefault((first, second), _two_ends(first, second, 1.0 - math.exp(delta), name, metric))
    return list(found.values())


def _two_ends(first: str, second: str, loss: float, metric_name: str, metric: _Metric) -> dict[str, Any]:
    return {
        "kind": "hca",
        "id": first,
        "node": first.partition("/")[0],
        "probability": 0.5,
        "node_probability": 0.5,
        "loss": round(loss, 4),
        "metric": metric_name,
        "direction": "both",
        "accused": False,
        "retested": any(o.retest for o in metric.observations if {o.src, o.dst} == {first, second}),
        "cause": "latency-above-expected" if metric_name == "latency" else "bandwidth-below-expected",
        "evidence": {
            metric_name: {"pair": [first, second], "loss": round(loss, 4), "note": "one pair alone: either end"}
        },
        "alternatives": [{"kind": "hca", "id": second, "probability": 0.5}],
    }


def _unexplained(metrics: Sequence[_Metric], rules: Rules) -> list[dict[str, Any]]:
    """Return single pairs that are slow without any bad HCA, and metrics on which all flows failed."""
    found = []
    floor = math.log(1.0 - rules.min_loss)
    for metric in metrics:
        if metric.fitted is not None:
            for first, second, delta in leftovers(metric.fitted, metric.noise, floor, rules.sigmas):
                found.append(
                    {
                        "src": first,
                        "dst": second,
                        "metric": BENCHMARKS[metric.reference.benchmark][0],
                        "loss": round(1.0 - math.exp(delta), 4),
                    }
                )
    return found


def _factor(metric: _Metric) -> float:
    """Return how the fleet does today, as a factor on the metric's values (1.0: as at baseline time)."""
    sign = 1 if BENCHMARKS[metric.reference.benchmark][2] else -1
    return _rounded(math.exp(sign * metric.fitted.common)) if metric.fitted else 1.0


def _coverage(measurements: Sequence[Measurement], fleet: Sequence[str]) -> dict[str, Any]:
    run = [one for one in measurements if one.unit != "per packet"]
    tested = {end for one in run if one.value is not None or one.failure == RDMA_FAILED for end in (one.src, one.dst)}
    counted: dict[str, int] = {}
    for one in run:
        if one.value is None and one.failure != RDMA_FAILED:
            counted[one.failure or "unknown"] = counted.get(one.failure or "unknown", 0) + 1
    return {
        "hcas": len(fleet),
        "tested": len(tested & set(fleet)),
        "untested": sorted(set(fleet) - tested),
        "measured": sum(one.value is not None for one in run),
        "failed": sum(one.value is None and one.failure == RDMA_FAILED for one in run),
        "unknown": counted,
    }
