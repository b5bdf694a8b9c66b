"""Inference of the weak link: who is blamed, who is not, and how often it is wrong at the noise of the lab."""

# ruff: noqa: S311 - seeded simulations, no secrets

import math
import random
from collections.abc import Callable
from typing import Any, Optional

import pytest
from weaklink.history.baseline import learn
from weaklink.locate.pairs import Rules, locate
from weaklink.model.measurement import (
    BANDWIDTH,
    LATENCY,
    Measurement,
    Reference,
)
from weaklink.sweep.schedule import Flow, follow_up, schedule

RULES = Rules(min_loss=0.15, sigmas=5)
Fault = Callable[[str, str, str, random.Random], float]


class Fabric:
    """A fleet that measures: log-normal noise a flow, a common mode a sweep, some stalls, and at most one fault."""

    def __init__(self, seed: int, nodes: int, sigma: float, *, stalls: float = 0.02, common: float = 0.7) -> None:
        self.rng = random.Random(seed)
        names = self.rng.sample([f"{a}{b}" for a in "abcdefgh" for b in range(1, 90)], nodes)
        self.rails = {f"{name}/rxe_compute": 0 for name in names}
        self.sigma, self.stalls, self.common = sigma, stalls, common
        self.bias = {(a, b): self.rng.gauss(0, sigma / 4) for a in self.rails for b in self.rails if a != b}

    def flow(self, flow: Flow, common: float, fault: Optional[Fault], *, retest: bool) -> list[Measurement]:
        rng, found = self.rng, []
        for name, usual, sign in ((BANDWIDTH, 0.5, 1), (LATENCY, 1500.0, -1)):
            y = common + self.bias[flow.src, flow.dst] / 2 + rng.gauss(0, self.sigma)
            if rng.random() < self.stalls:
                y -= rng.uniform(0.5, 2.0)
            value = usual * math.exp(sign * y)
            if fault is not None:
                value = fault(name, flow.src, flow.dst, rng) * value if sign == 1 else value + fault(name, *flow, rng)
            found.append(Measurement(flow.src, flow.dst, name, value, "", shape="s", retest=retest))
        return found

    def sweep(self, fault: Optional[Fault] = None) -> tuple[list[Measurement], float]:
        common = self.rng.gauss(0, self.common)
        rounds = schedule(self.rails, seed=self.rng.getrandbits(32))
        return [m for one in rounds for f in one for m in self.flow(f, common, fault, retest=False)], common

    def references(self, sweeps: int = 3) -> list[Reference]:
        return learn([self.sweep()[0] for _ in range(sweeps)])

    def judged(self, references: list[Reference], fault: Optional[Fault] = None, passes: int = 3) -> dict[str, Any]:
        found, common = self.sweep(fault)
        result = locate(found, references, hcas=self.rails, rules=RULES)
        for _ in range(passes):
            open_ones = [one["id"].rstrip("+-") for one in result["suspects"] if not one["accused"]]
            if not open_ones:
                break
            tried = [Flow(m.src, m.dst) for m in found]
            for one in follow_up(open_ones, self.rails, tried=tried, seed=self.rng.getrandbits(32)):
                found += [m for f in one for m in self.flow(f, common, fault, retest=True)]
            result = locate(found, references, hcas=self.rails, rules=RULES)
        return result


def accused(result: dict[str, Any]) -> list[str]:
    return [one["node"] for one in result["suspects"] if one["accused"]]


def rate(bad: str, fraction: float, direction: str) -> Fault:
    def fault(benchmark: str, src: str, dst: str, rng: random.Random) -> float:
        del rng
        hit = (src == bad and direction != "in") or (dst == bad and direction != "out")
        return (fraction if hit else 1.0) if benchmark == BANDWIDTH else 0.0

    return fault


def loss(bad: str, fraction: float) -> Fault:
    def fault(benchmark: str, src: str, dst: str, rng: random.Random) -> float:
        if benchmark == LATENCY:
            return rng.choice([0.0, 0.0, 40.0]) if bad in (src, dst) else 0.0
        strength = fraction if src == bad else math.sqrt(fraction)
        return strength * math.exp(rng.gauss(0, 0.4)) if bad in (src, dst) else 1.0

    return fault


def delay(bad: str, extra_us: float) -> Fault:
    def fault(benchmark: str, src: str, dst: str, rng: random.Random) -> float:
        del rng
        return 1.0 if benchmark == BANDWIDTH else (extra_us if bad in (src, dst) else 0.0)

    return fault


def curve(nodes: int, sigma: float, make: Callable[[str], Fault], trials: int, seed: int) -> tuple[float, int]:
    """Return (share of sweeps that accuse the bad node, number that accuse another one)."""
    right = wrong = 0
    for trial in range(trials):
        fabric = Fabric(seed * 100003 + trial, nodes, sigma)
        bad = fabric.rng.choice(sorted(fabric.rails))
        names = accused(fabric.judged(fabric.references(), make(bad)))
        right += bad.partition("/")[0] in names
        wrong += any(name != bad.partition("/")[0] for name in names)
    return right / trials, wrong


@pytest.mark.parametrize(
    ("nodes", "sigma", "sweeps"), [(3, 0.3, 2000), (3, 0.45, 1000), (4, 0.3, 500), (16, 0.02, 150)]
)
def test_healthy_sweeps_accuse_nobody(nodes: int, sigma: float, sweeps: int) -> None:
    false = 0
    fabric = Fabric(1, nodes, sigma)
    references: list[Reference] = []
    for number in range(sweeps):
        if number % 50 == 0:
            fabric = Fabric(7000 + number, nodes, sigma)
            references = fabric.references()
        false += bool(accused(fabric.judged(references)))
    print(f"\n{sweeps} healthy sweeps of {nodes} nodes at {sigma:.0%} noise: {false} accuse somebody")
    assert false == 0


LAB = [
    ("rate 2 %", lambda bad: rate(bad, 0.02, "both"), 0.99),
    ("rate 10 %", lambda bad: rate(bad, 0.10, "both"), 0.97),
    ("rate 20 %", lambda bad: rate(bad, 0.20, "both"), 0.80),
    ("rate 2 % out", lambda bad: rate(bad, 0.02, "out"), 0.99),
    ("rate 10 % out", lambda bad: rate(bad, 0.10, "out"), 0.95),
    ("rate 20 % in", lambda bad: rate(bad, 0.20, "in"), 0.70),
    ("loss to 3 %", lambda bad: loss(bad, 0.03), 0.90),
    ("loss to 15 %", lambda bad: loss(bad, 0.15), 0.50),
    ("delay 10 ms", lambda bad: delay(bad, 10_000.0), 0.80),
    ("delay 40 ms", lambda bad: delay(bad, 40_000.0), 0.97),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "make", "wanted"), LAB, ids=[one[0] for one in LAB])
def test_detection_in_the_lab(name: str, make: Callable[[str], Fault], wanted: float) -> None:
    found, wrong = curve(3, 0.3, make, 100, seed=11)
    print(f"\n3 nodes, 30 % noise, {name}: accused {found:.0%}, wrong {wrong}")
    assert wrong == 0
    assert found >= wanted


@pytest.mark.thorough
@pytest.mark.parametrize(("left", "wanted"), [(0.95, 0.0), (0.85, 0.0), (0.80, 0.9), (0.5, 1.0)])
def test_detection_with_sixteen_quiet_nodes(left: float, wanted: float) -> None:
    found, wrong = curve(16, 0.02, lambda bad: rate(bad, left, "both"), 15, seed=5)
    print(f"\n16 nodes, 2 % noise, rate {left:.0%}: accused {found:.0%}, wrong {wrong}")
    assert wrong == 0
    assert found >= wanted
    if left == 0.95:
        assert found == 0.0  # a loss under min_loss drains nobody
