"""The tests of a node in quarantine: its own checks, and a sweep with healthy partners against the baseline."""

import json
import math
import time
from collections.abc import Sequence
from statistics import median, stdev
from typing import Any, NamedTuple, Optional

from weaklink.guard.context import Guard, printable
from weaklink.guard.sweeps import Sweep, guarded, new_sweep, place_of
from weaklink.model.finding import FAIL, OK, UNKNOWN
from weaklink.model.measurement import BENCHMARKS, RDMA_FAILED, Measurement, Reference, path_of, with_retransmits
from weaklink.scheduler.text import SlurmError
from weaklink.sweep.allocation import Allocation, AllocationError

_PASSES = 2
_MINUTES = 20
_ALONE = 2
# Before anything is known of how the fleet's speed varies from day to day, this is assumed of its log.
_COMMON_SIGMA = 0.05
_PASS_SIGMAS = 3.0
# An explanation this likely keeps a node out; for a return a doubt is enough, for a drain it is not.
_DOUBT = 0.5
_SURE = 0.99


class Verdict(NamedTuple):
    """What the tests say: ok | fail | unknown, a line of text, findings of the checks, measured against baseline."""

    verdict: str
    message: str
    findings: list[dict[str, Any]]
    measured: list[dict[str, Any]]


def passive_check(guard: Guard, node: str, reservation: str) -> Verdict:
    """Run ``weaklink check --json`` on the node inside the quarantine, as the service user."""
    guard.tell(f"{node}: its own checks")
    allocation = Allocation(guard.run, place_of(guard, reservation), [node], _MINUTES)
    try:
        allocation.open()
        result = allocation.step([node], ["check", "--json"], 60.0 + 2 * guard.site.deadlines.get("check", 5.0))
    except AllocationError as error:
        return Verdict(UNKNOWN, printable(str(error)), [], [])
    finally:
        allocation.close()
    findings = parse_check(result.out)
    if findings is None:
        return Verdict(UNKNOWN, f"the checks did not run: {printable(result.failure() or result.out, 160)}", [], [])
    worst = FAIL if any(one["status"] in ("fail", "degraded") for one in findings) else OK
    return Verdict(worst, "", findings, [])


def parse_check(text: str) -> Optional[list[dict[str, Any]]]:
    """Return the findings in the output of ``weaklink check --json``, or None when it is none."""
    start = text.find("{")
    try:
        data = json.loads(text[start:]) if start >= 0 else None
    except ValueError:
        return None
    if not isinstance(data, dict) or not isinstance(data.get("findings"), list):
        return None
    found = []
    for one in data["findings"]:
        if not isinstance(one, dict) or not all(isinstance(one.get(key), str) for key in ("check", "status")):
            return None
        short = {key: printable(one[key]) for key in ("check", "status", "cause", "subject", "message") if key in one}
        found.append({"cause": "", "subject": "", "message": "", **short})
    return found


def sweep_check(guard: Guard, node: str, partners: Sequence[str], reservation: str) -> Verdict:
    """Sweep the node with its partners, twice, and compare with the baseline. The partners are reserved meanwhile."""
    references = guard.store.references()
    if not references:
        return Verdict(UNKNOWN, "there is no baseline to compare with: run weaklink sweep run --baseline", [], [])
    joined = _join(guard, node, partners, reservation)
    if not joined:
        return Verdict(UNKNOWN, f"none of {', '.join(partners)} could be reserved to test against", [], [])
    nodes = [node, *joined]
    allocation = Allocation(guard.run, place_of(guard, reservation), nodes, _MINUTES)
    try:
        job = allocation.open()
        sweep = new_sweep(guard, "return", nodes, job)
        run = Sweep(guard, sweep, nodes, allocation.step, time.monotonic() + 60.0 * _MINUTES - 30.0)

        def work() -> dict[str, Any]:
            for _ in range(_PASSES):
                run.all_pairs()
            result = judge_return(guard, node, run, references)
            if result.verdict == FAIL and not _rdma_failed(run, node):
                guard.tell(f"{node}: {result.message}; measured once more before it is refused")
                result = _second_look(guard, node, run, references)
            return {"verdict": result.verdict, "message": result.message, "measured": result.measured}

        outcome = guarded(guard, sweep, work)
        return Verdict(outcome["verdict"], outcome["message"], [], outcome.get("measured", []))
    except AllocationError as error:
        return Verdict(UNKNOWN, printable(str(error)), [], [])
    finally:
        allocation.close()
        # The partners go back at once; the node's own quarantine stays until the verdict was acted upon.
        _leave(guard, node, reservation)


def _second_look(guard: Guard, node: str, run: Sweep, references: Sequence[Reference]) -> Verdict:
    """Measure again; refused is what fresh measurements doubt too, or what both together leave no doubt of.

    One unlucky pass alone refuses a good node in about one return of a hundred (simulated, noise of 15 %).
    """
    before, run.measured = run.measured, []
    for _ in range(_PASSES):
        run.all_pairs()
    fresh = judge_return(guard, node, run, references)
    if fresh.verdict != OK:
        return fresh
    run.measured = before + run.measured
    return judge_return(guard, node, run, references, doubt=_SURE)


def _join(guard: Guard, node: str, partners: Sequence[str], reservation: str) -> list[str]:
    """Reserve as many partners as are free: all, else the first that is."""
    for names in [list(partners), *([name] for name in partners if len(partners) > 1)]:
        try:
            guard.slurm.update_reservation(reservation, nodes=[node, *names])
        except SlurmError as error:
            guard.tell(f"{', '.join(names)} cannot be reserved: {printable(str(error), 120)}")
            continue
        return names
    return []


def _leave(guard: Guard, node: str, reservation: str) -> None:
    try:
        guard.slurm.update_reservation(reservation, nodes=[node])
    except SlurmError as error:
        guard.tell(f"{reservation} could not be narrowed to {node}: {printable(str(error), 120)}")


def judge_return(
    guard: Guard, node: str, run: Sweep, references: Sequence[Reference], *, doubt: float = _DOUBT
) -> Verdict:
    """Judge a node by its flows with its partners.

    With two partners their own flows tell how fast the fleet is now, and the node must not be a likely explanation of
    anything. With one, the pair is compared with the baseline as it is, and what the fleet's speed is known to vary
    is allowed for. ``doubt`` is the probability from which an explanation counts.
    """
    table = [_row(one, with_retransmits(run.measured), node) for one in references]
    measured = [row for row in table if row is not None]
    mine = _of_node(run, node)
    failed = _rdma_failed(run, node)
    if failed:
        one = failed[0]
        return Verdict(FAIL, f"{one.src} > {one.dst} {one.benchmark}: {printable(one.detail, 120)}", [], measured)
    missing = [one for one in mine if one.value is None]
    if missing or not mine:
        words = f"{missing[0].failure}: {printable(missing[0].detail, 120)}" if missing else "nothing was measured"
        return Verdict(UNKNOWN, words, [], measured)
    if len({hca.partition("/")[0] for hca in run.rails}) > _ALONE:
        for suspect in run.judge(references)["suspects"]:
            named = {suspect["node"], *(one["id"].partition("/")[0] for one in suspect["alternatives"])}
            if node in named and suspect["node_probability"] >= doubt:
                lost = f"{suspect['loss']:.0%} of its {suspect['metric']}"
                return Verdict(FAIL, f"{suspect['id']} still loses {lost} ({suspect['cause']})", [], measured)
        return Verdict(OK, f"{len(mine)} measurements as usual", [], measured)
    for reference, row in zip(references, table):
        if row is not None and row["log"] < -_allowed(guard, reference, row["flows"]):
            name = BENCHMARKS[reference.benchmark][0]
            text = f"{name} {row['measured']:g} {row['unit']} against a baseline of {row['baseline']:g}"
            return Verdict(FAIL, f"{text}; with one partner alone the partner may be meant", [], measured)
    return Verdict(OK, f"{len(mine)} measurements as usual", [], measured)


def _of_node(run: Sweep, node: str) -> list[Measurement]:
    return [one for one in run.measured if node in (one.src.partition("/")[0], one.dst.partition("/")[0])]


def _rdma_failed(run: Sweep, node: str) -> list[Measurement]:
    return [one for one in _of_node(run, node) if one.failure == RDMA_FAILED]


def _row(reference: Reference, measurements: Sequence[Measurement], node: str) -> Optional[dict[str, Any]]:
    """Return measured against baseline on one benchmark, as medians over the node's flows; "log" < 0 is worse."""
    metric, unit, better = BENCHMARKS[reference.benchmark]
    values, base = [], []
    for one in measurements:
        if one.benchmark != reference.benchmark or one.shape != reference.shape or one.value is None:
            continue
        if node in (one.src.partition("/")[0], one.dst.partition("/")[0]):
            values.append(math.log(one.value))
            base.append(reference.center + reference.offsets.get(path_of(one.src, one.dst), 0.0))
    if not values:
        return None
    log = median(v - b for v, b in zip(values, base)) * (1 if better else -1)
    return {
        "metric": metric,
        "measured": float(f"{math.exp(median(values)):.4g}"),
        "baseline": float(f"{math.exp(median(base)):.4g}"),
        "unit": unit,
        "flows": len(values),
        "log": round(log, 4),
    }


def _allowed(guard: Guard, reference: Reference, flows: int) -> float:
    """Return how far below the baseline a pair may lie when nothing tells how fast the fleet is now."""
    error = math.sqrt(reference.sigma**2 / flows + reference.offset_sd**2 + _common_sigma(guard, reference) ** 2)
    return max(-math.log(1 - guard.site.sweep.min_loss), _PASS_SIGMAS * error)


def _common_sigma(guard: Guard, reference: Reference) -> float:
    """Return how much the fleet's speed varied from sweep to sweep, as a standard deviation of logs."""
    speeds = []
    for one in guard.store.sweeps(state="complete"):
        if one.accepted:
            same = [m for m in with_retransmits(guard.store.measurements(one.id)) if m.benchmark == reference.benchmark]
            logs = [math.log(m.value) for m in same if m.value is not None]
            speeds += [median(logs) - reference.center] if logs else []
        elif isinstance(one.result.get("common_mode"), dict) and reference.benchmark in one.result["common_mode"]:
            speeds.append(math.log(one.result["common_mode"][reference.benchmark]))
    if len(speeds) < _ALONE:
        return max(_COMMON_SIGMA, reference.sigma)
    # Around the baseline, not around their own mean: a lasting shift is part of what may be met.
    spread = max(stdev(speeds), math.sqrt(sum(s * s for s in speeds) / len(speeds)))
    return max(_COMMON_SIGMA, spread)
