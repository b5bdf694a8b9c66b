"""Which HCAs explain the deviations of one metric in one sweep. Pure arithmetic, standard library only.

Model of one flow: ``y = common + egress(src) + ingress(dst) + noise``, where y is the natural log of measured over
expected, turned so that lower is worse. Egress and ingress are 0 or negative. ``common`` is what the whole fleet does
today (a busy machine may be five times slower for all flows alike). It is not a median over all flows: with three
nodes a bad one touches four of six flows. Instead each hypothesis (a set of bad HCAs) takes its common mode from the
flows that touch none of them, and the hypothesis that leaves the least unexplained, fewest HCAs first, wins.
"""

import math
from collections.abc import Collection, Sequence
from itertools import combinations
from statistics import fmean, median, stdev
from typing import NamedTuple, Optional

# What a test whose RDMA failed counts as: a hundredth of the expected value.
FAILED_LOG = math.log(0.01)
# Up to this many HCAs all sets of one and two are compared; above it they are found one after another.
EXHAUSTIVE_HCAS = 8
_HUBER = 2.0
_MEDIAN_VARIANCE = 1.3  # variance of a median over that of a mean, for three values and more
_PAIR = 2
_MAD_TO_SIGMA = 1.4826
_LEARNED_WEIGHT = 4.0  # degrees of freedom that the learned noise is worth against what is seen now


class Obs(NamedTuple):
    """One measured deviation: ``y`` as in the module's text; ``retest`` tells a follow-up round."""

    src: str
    dst: str
    y: float
    retest: bool = False


class Noise(NamedTuple):
    """``flow``: standard deviation of one measurement in one sweep; ``path``: how well a path's reference is known."""

    flow: float
    path: float


class Effect(NamedTuple):
    """How far a group of flows lies from the flows that touch no suspect.

    ``delta`` is a difference of logs (negative: worse), ``z`` the same in standard errors, ``partners`` those at the
    other end whose own flows confirm it, ``retested`` those that confirm it in follow-up rounds alone.
    """

    direction: str
    delta: float
    z: float
    flows: int
    partners: tuple[str, ...]
    retested: tuple[str, ...]

    @property
    def loss(self) -> float:
        """Return the lost fraction, 0 to 1."""
        return max(0.0, 1.0 - math.exp(self.delta))


class Fit(NamedTuple):
    """The best hypothesis: ``bad`` HCAs, each with its posterior, ``common`` mode, flows that touch none of them."""

    bad: tuple[str, ...]
    common: float
    probability: dict[str, float]
    clean: tuple[Obs, ...]


def hcas_of(observations: Sequence[Obs]) -> list[str]:
    """Return the names of all HCAs that take part, sorted."""
    return sorted({end for one in observations for end in (one.src, one.dst)})


def fit(observations: Sequence[Obs], noise: Noise) -> Optional[Fit]:
    """Return the best hypothesis, or None when there is none to compare (fewer than three HCAs)."""
    hcas = hcas_of(observations)
    if len(hcas) <= _PAIR:
        return None
    if len(hcas) <= EXHAUSTIVE_HCAS:
        sets = [()] + [one for size in (1, 2) if len(hcas) - size >= _PAIR for one in combinations(hcas, size)]
        return _compare(observations, sets, noise, len(hcas))
    bad = _greedy(observations, noise, len(hcas))
    # The posterior of each found HCA is against the hypothesis without it and with a neighbour in its place.
    return _compare(observations, [bad, *(tuple(b for b in bad if b != one) for one in bad)], noise, len(hcas))


def _compare(observations: Sequence[Obs], sets: Sequence[tuple[str, ...]], noise: Noise, hcas: int) -> Optional[Fit]:
    scored = []
    for one in sets:
        found = _score(observations, frozenset(one), noise)
        if found is not None:
            # log prior odds of one more bad HCA: rare, and as many places to be as there are HCAs
            scored.append((found[0] + len(one) * (3.0 + math.log(hcas)), one, found[1]))
    if not scored:
        return None
    scored.sort(key=lambda entry: (entry[0], len(entry[1]), entry[1]))
    best = scored[0]
    weights = [math.exp(-min(700.0, entry[0] - best[0])) for entry in scored]
    total = sum(weights)
    probability: dict[str, float] = {}
    for weight, (_, one, _) in zip(weights, scored):
        for hca in one:
            probability[hca] = probability.get(hca, 0.0) + weight / total
    clean = tuple(o for o in observations if o.src not in best[1] and o.dst not in best[1])
    return Fit(best[1], best[2], probability, clean)


def _score(observations: Sequence[Obs], bad: Collection[str], noise: Noise) -> Optional[tuple[float, float]]:
    """Return (what stays unexplained, common mode) when ``bad`` are the only bad HCAs; None: no flow without them."""
    clean = [o.y for o in observations if o.src not in bad and o.dst not in bad]
    if not clean:
        return None
    common = median(clean)
    sigma = math.hypot(noise.flow, noise.path)
    egress = {hca: _drop([o.y for o in observations if o.src == hca and o.dst not in bad], common) for hca in bad}
    ingress = {hca: _drop([o.y for o in observations if o.dst == hca and o.src not in bad], common) for hca in bad}
    cost = 0.0
    for one in observations:
        predicted = common + egress.get(one.src, 0.0) + ingress.get(one.dst, 0.0)
        if one.src in bad and one.dst in bad:
            # Two bad ends do not add up in a known way: the worse one decides.
            predicted = common + min(egress[one.src], ingress[one.dst])
        size = abs(one.y - predicted) / sigma
        cost += size * size / 2 if size < _HUBER else _HUBER * size - _HUBER * _HUBER / 2
    return cost, common


def _drop(values: Sequence[float], common: float) -> float:
    return min(0.0, median(values) - common) if values else 0.0


def _greedy(observations: Sequence[Obs], noise: Noise, hcas: int) -> tuple[str, ...]:
    """Find bad HCAs one after another, each time the one that explains most; medians bear a minority of bad flows."""
    left = list(observations)
    bad: list[str] = []
    need = 3.0 + math.log(hcas)
    sigma = math.hypot(noise.flow, noise.path)
    while len(bad) < max(1, hcas // 4) and left:
        common = median(o.y for o in left)
        groups: dict[tuple[str, str], list[float]] = {}
        for one in left:
            groups.setdefault((one.src, "egress"), []).append(one.y)
            groups.setdefault((one.dst, "ingress"), []).append(one.y)
        gain: dict[str, float] = {}
        for (hca, _), values in groups.items():
            drop = _drop(values, common)
            before = sum(_huber((y - common) / sigma) for y in values)
            after = sum(_huber((y - common - drop) / sigma) for y in values)
            gain[hca] = gain.get(hca, 0.0) + before - after
        worst = max(sorted(gain), key=gain.__getitem__)
        if gain[worst] < need:
            break
        bad.append(worst)
        left = [o for o in left if worst not in (o.src, o.dst)]
    return tuple(sorted(bad))


def _huber(size: float) -> float:
    size = abs(size)
    return size * size / 2 if size < _HUBER else _HUBER * size - _HUBER * _HUBER / 2


def effects(observations: Sequence[Obs], fitted: Fit, hca: str, noise: Noise, floor: float) -> list[Effect]:
    """Return the effect of ``hca`` on its egress, its ingress, and both together, the most certain first.

    ``floor`` (a negative log) is the smallest drop that counts; a partner confirms when the median of its own flows
    with the HCA drops by the floor and by twice the noise. Flows between two bad HCAs are left out.
    """
    noise = noise._replace(flow=noise_now(observations, fitted, noise))
    others = set(fitted.bad) - {hca}
    clean = [o for o in observations if o.src not in {hca, *others} and o.dst not in {hca, *others}]
    found = []
    for direction in ("both", "egress", "ingress"):
        mine = [
            o
            for o in observations
            if ((o.src == hca and direction != "ingress") or (o.dst == hca and direction != "egress"))
            and o.src not in others
            and o.dst not in others
        ]
        if not mine or not clean:
            continue
        common = median(o.y for o in clean)
        delta = median(o.y for o in mine) - common
        error = math.sqrt(_variance(mine, noise) + _variance(clean, noise))
        limit = common + min(floor, -2 * noise.flow)
        found.append(
            Effect(
                direction,
                delta,
                -delta / error,
                len(mine),
                _confirming(mine, hca, limit),
                _confirming([o for o in mine if o.retest], hca, limit),
            )
        )
    return sorted(found, key=lambda effect: -effect.z)


def noise_now(observations: Sequence[Obs], fitted: Fit, noise: Noise) -> float:
    """Return the noise of a flow: what was learned or what the fit leaves over now, whichever is more.

    Few sweeps may have taught too little noise, and a busy day has more of it.
    """
    groups: dict[tuple[str, str], list[float]] = {}
    for one in observations:
        ends = (one.src in fitted.bad, one.dst in fitted.bad)
        if not all(ends):
            key = (one.src, "egress") if ends[0] else (one.dst, "ingress") if ends[1] else ("", "clean")
            groups.setdefault(key, []).append(one.y)
    sizes = [abs(y - median(values)) for values in groups.values() for y in values]
    # A stall here and there is no noise of every flow; the bulk of the deviations tells where the tail begins.
    limit = 3.0 * max(noise.flow, _MAD_TO_SIGMA * median(sizes))
    squares = sum(min(size, limit) ** 2 for size in sizes)
    freedom = sum(map(len, groups.values())) - len(groups)
    seen = math.sqrt((squares + _LEARNED_WEIGHT * noise.flow**2) / (freedom + _LEARNED_WEIGHT))
    return max(noise.flow, seen)


def _variance(group: Sequence[Obs], noise: Noise) -> float:
    """Variance of the median of a group: the noise learned or seen in the group, whichever is more."""
    values = [o.y for o in group]
    flow = max(noise.flow, stdev(values)) if len(values) > 1 else noise.flow
    paths = len({(o.src, o.dst) for o in group})
    factor = _MEDIAN_VARIANCE if len(values) > _PAIR else 1.0
    return factor * flow * flow / len(values) + noise.path * noise.path / paths


def _confirming(group: Sequence[Obs], hca: str, limit: float) -> tuple[str, ...]:
    by_partner: dict[str, list[float]] = {}
    for one in group:
        by_partner.setdefault(one.dst if one.src == hca else one.src, []).append(one.y)
    return tuple(sorted(partner for partner, values in by_partner.items() if median(values) <= limit))


def leftovers(fitted: Fit, noise: Noise, floor: float, sigmas: float) -> list[tuple[str, str, float]]:
    """Return pairs of HCAs that no bad HCA explains: (first, second, mean difference of logs), the worst first."""
    by_pair: dict[tuple[str, str], list[float]] = {}
    for one in fitted.clean:
        first, second = sorted((one.src, one.dst))
        by_pair.setdefault((first, second), []).append(one.y - fitted.common)
    found = []
    for (first, second), values in by_pair.items():
        worst = fmean(values)
        error = math.sqrt(noise.flow**2 / len(values) + noise.path**2)
        if len(values) > 1 and worst <= floor and worst <= -sigmas * error and max(values) <= floor:
            found.append((first, second, worst))
    return sorted(found, key=lambda entry: entry[2])
