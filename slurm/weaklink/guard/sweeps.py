"""A whole sweep on the controller: choose nodes, allocate, run rounds, retest, judge, act."""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, NamedTuple, Optional

from weaklink.guard.collect import collect
from weaklink.guard.context import Guard, printable
from weaklink.guard.policy import act
from weaklink.history.baseline import learn, outliers
from weaklink.locate.pairs import Rules, locate
from weaklink.model.finding import DEGRADED, FAIL, OK, UNKNOWN
from weaklink.model.measurement import RDMA_FAILED, Measurement, Reference, with_retransmits
from weaklink.scheduler.types import NodeInfo
from weaklink.sweep.allocation import Allocation, AllocationError, Place
from weaklink.sweep.coordinator import Coordinator, DeadlineError, Progress, SilentError, Step
from weaklink.sweep.schedule import Flow, follow_up, pack, schedule

_BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING", "PLANNED", "REBOOT_REQUESTED", "REBOOT_ISSUED", "BLOCKED"})
_ASIDE = frozenset({"RESERVED", "MAINT", "MAINTENANCE", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN"})
_PAIR = 2
# An explanation this likely is looked at again; a less likely one is not worth the time.
_WORTH_A_RETEST = 0.2
# A new baseline pass that makes one node differ this surely from the passes before is not healthy.
_NOT_HEALTHY = 0.9
_SPARE_PASSES = 2


class Chosen(NamedTuple):
    """Nodes to sweep, and those left out with the reason."""

    nodes: list[str]
    left_out: dict[str, str]


def choose(guard: Guard, nodes: Mapping[str, NodeInfo], wanted: Optional[Sequence[str]]) -> Chosen:
    """Return which nodes can be swept now: known, with an HCA, idle, in service, and not set aside for anything."""
    known = {node.name: node for node in guard.site.nodes}
    chosen, left_out = [], {}
    for name in wanted if wanted is not None else known:
        info = nodes.get(name)
        if name not in known or info is None:
            left_out[name] = "not a compute node of this cluster"
        elif not known[name].hcas:
            left_out[name] = "has no compute HCA"
        elif info.taken or info.out:
            left_out[name] = "out of service: " + (printable(info.reason, 120) or "+".join(sorted(info.states)))
        elif info.states & _ASIDE:
            left_out[name] = "set aside: " + "+".join(sorted(info.states & _ASIDE)).lower()
        elif info.states & _BUSY or "IDLE" not in info.states:
            left_out[name] = "busy: " + "+".join(sorted(info.states)).lower()
        else:
            chosen.append(name)
    return Chosen(chosen, left_out)


def place_of(guard: Guard, reservation: str = "") -> Place:
    """Return where weaklink's own jobs run. In a reservation the partition is Slurm's default."""
    site = guard.site
    return Place(site.service_user, site.account, site.qos, site.partition, reservation)


class Sweep:
    """One sweep over ``nodes``: holds what was measured so far. ``step`` runs one round's srun step."""

    def __init__(self, guard: Guard, sweep: str, nodes: Sequence[str], step: Step, deadline: float) -> None:
        self.guard, self.id = guard, sweep
        self.rails = {hca.name: hca.rail for hca in guard.site.hcas() if hca.node in nodes}
        self.measured: list[Measurement] = []
        self.coordinator = Coordinator(guard.site, step, deadline, self._tell)
        self.seed = guard.seed()

    def _tell(self, progress: Progress) -> None:
        flows = ", ".join(f"{f.src.partition('/')[0]} > {f.dst.partition('/')[0]}" for f in progress.flows[:4])
        more = f" and {len(progress.flows) - 4} more" if len(progress.flows) > 4 else ""  # noqa: PLR2004 - fits a line
        again = "retest " if progress.retest else ""
        self.guard.tell(f"{again}round {progress.number} of {progress.of}: {flows}{more}")

    def measure(self, rounds: Iterable[list[Flow]], *, retest: bool = False) -> None:
        """Run rounds; each is in the store before the next begins.

        Flows of which a tool of ours told nothing, while it told of others, are run once more: tools crash.
        """
        rounds = list(rounds)
        found = self._run(rounds, retest)
        silent = {(one.src, one.dst) for one in found if _untold(one)}
        if silent and len(silent) < sum(len(flows) for flows in rounds):
            again = [[flow for flow in flows if tuple(flow) in silent] for flows in rounds]
            second = [one for one in self._run([flows for flows in again if flows], retest) if not _untold(one)]
            told = {(one.src, one.dst, one.benchmark) for one in second}
            found = [one for one in found if not (_untold(one) and (one.src, one.dst, one.benchmark) in told)] + second
        self.measured += found

    def _run(self, rounds: list[list[Flow]], retest: bool) -> list[Measurement]:
        found: list[Measurement] = []
        for measured in self.coordinator.run(rounds, retest=retest):
            self.guard.store.add_measurements(self.id, measured)
            found += measured
            for one in measured:
                if one.value is None:
                    why = f"{one.failure}: {printable(one.detail, 160)}"
                    self.guard.tell(f"  {one.src} > {one.dst} {one.benchmark}: {why}")
        return found

    def all_pairs(self) -> None:
        """Run the rounds that the schedule gives for these nodes."""
        self.seed += 1
        self.measure(schedule(self.rails, seed=self.seed))

    def judge(self, references: Sequence[Reference]) -> dict[str, Any]:
        """Return the locate output on all that was measured so far."""
        rules = self.guard.site.sweep
        return locate(
            with_retransmits(self.measured),
            references,
            hcas=self.rails,
            rules=Rules(rules.min_loss, rules.sigmas),
        )

    def _doubts(self, result: Mapping[str, Any]) -> tuple[list[str], list[Flow]]:
        """Return the HCAs to test again with other partners, and the flows of pairs that nothing else explains."""
        hcas: set[str] = set()
        flows: list[Flow] = []
        for one in result["suspects"]:
            pair = one["evidence"].get(one["metric"], {}).get("pair")
            if pair:
                flows += [Flow(*pair), Flow(*reversed(pair))]
            elif not one["accused"] and one["node_probability"] >= _WORTH_A_RETEST:
                hcas.update(hca for hca in self.rails if one["id"].rstrip("+-") in (hca, hca.partition("/")[0]))
        return sorted(hcas), flows

    def retest(self, references: Sequence[Reference]) -> dict[str, Any]:
        """Judge; test what is suspect again with other partners until it is accused, cleared, or tried often enough."""
        result = self.judge(references)
        for _ in range(self.guard.site.sweep.retests):
            doubtful, pairs = self._doubts(result)
            if not (doubtful or pairs) or len({hca.partition("/")[0] for hca in self.rails}) <= _PAIR:
                break
            self.guard.tell(f"suspect: {', '.join(doubtful) or 'a pair'}; testing again")
            self.seed += 1
            tried = [Flow(one.src, one.dst) for one in self.measured]
            rounds = follow_up(doubtful, self.rails, tried=tried, seed=self.seed)
            again = {flow for one in rounds for flow in one}
            self.measure([*rounds, *pack([flow for flow in pairs if flow not in again])], retest=True)
            result = self.judge(references)
        return result


def _untold(one: Measurement) -> bool:
    return one.value is None and one.failure != RDMA_FAILED


def verdict_of(result: Mapping[str, Any]) -> str:
    """Return the verdict of a locate output: fail (accused), degraded (suspect), unknown (too little measured), ok."""
    if any(one["accused"] for one in result["suspects"]):
        return FAIL
    if result["suspects"] or result["unexplained"]:
        return DEGRADED
    coverage = result["coverage"]
    return UNKNOWN if coverage["untested"] or not coverage["measured"] else OK


def run_sweep(
    guard: Guard, *, wanted: Optional[Sequence[str]] = None, baseline: bool = False, dry_run: bool = False
) -> dict[str, Any]:
    """Run a sweep and return its outcome (the object of ``weaklink sweep run --json``). SlurmError, StoreError pass.

    Without a baseline nothing is judged: the verdict is unknown. ``baseline`` takes as many passes as the baseline
    lacks.
    """
    nodes = guard.slurm.nodes()
    collect(guard, nodes)
    chosen = choose(guard, nodes, wanted)
    outcome: dict[str, Any] = {"sweep": None, "nodes": chosen.nodes, "left_out": chosen.left_out, "actions": []}
    if len(chosen.nodes) < _PAIR:
        words = "; ".join(f"{name} {why}" for name, why in chosen.left_out.items())
        text = f"{len(chosen.nodes)} usable nodes, at least 2 wanted ({words or 'no compute nodes are known'})"
        return {**outcome, "verdict": UNKNOWN, "message": text}
    rules, references = guard.site.sweep, guard.store.references()
    taught = max((one.sweeps for one in references), default=0)
    outcome["baseline"] = {"sweeps": taught, "of": rules.baseline_sweeps}
    if not baseline and not references:
        text = "no baseline yet, so nothing can be judged: run weaklink sweep run --baseline while the cluster is well"
        return {**outcome, "verdict": UNKNOWN, "message": text}
    if dry_run:
        rails = {hca.name: hca.rail for hca in guard.site.hcas() if hca.node in chosen.nodes}
        rounds = [[list(flow) for flow in one] for one in schedule(rails, seed=0)]
        text = f"would run {len(rounds)} rounds on {', '.join(chosen.nodes)}"
        return {**outcome, "verdict": OK, "message": text, "rounds": rounds}
    passes = max(1, rules.baseline_sweeps - taught) if baseline else 1
    return {**outcome, **_in_allocation(guard, chosen.nodes, passes=passes if baseline else 0)}


def _in_allocation(guard: Guard, nodes: Sequence[str], *, passes: int) -> dict[str, Any]:
    minutes = guard.site.sweep.minutes
    allocation = Allocation(guard.run, place_of(guard), nodes, minutes)
    try:
        try:
            job = allocation.open()
        except AllocationError as error:
            return {"verdict": UNKNOWN, "message": str(error)}
        guard.tell(f"job {job} holds {', '.join(nodes)}")
        deadline = time.monotonic() + 60.0 * minutes - 30.0
        if passes:
            return _take_baseline(guard, nodes, allocation, deadline, passes)
        return _judged_sweep(guard, nodes, allocation, deadline)
    finally:
        # Drains came first: between the end of this job and a drain the node would be free for the next one.
        allocation.close()


def new_sweep(guard: Guard, kind: str, nodes: Sequence[str], job: Optional[int]) -> str:
    """Record a new sweep and return its id. Sweeps that a crash left running are marked so first (the lock is ours)."""
    for old in guard.store.sweeps(state="running"):
        guard.store.end_sweep(old.id, "failed", UNKNOWN, {"message": "ended without a word (crash or kill)"})
    sweep = f"{kind}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"
    guard.store.begin_sweep(sweep, kind, nodes)
    if job is not None:
        guard.store.set_job(sweep, job)
    return sweep


def guarded(guard: Guard, sweep: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do the work of one sweep and record how it ended, also when it did not."""
    try:
        outcome = work()
    except (DeadlineError, SilentError) as error:
        outcome = {"verdict": UNKNOWN, "message": str(error)}
        guard.store.end_sweep(sweep, "failed", UNKNOWN, outcome)
        return outcome
    except KeyboardInterrupt:
        guard.store.end_sweep(sweep, "cancelled", UNKNOWN, {"message": "cancelled"})
        raise
    except Exception as error:
        guard.store.end_sweep(sweep, "failed", UNKNOWN, {"message": f"{type(error).__name__}: {error}"})
        raise
    accepted = bool(outcome.pop("accepted", False))
    guard.store.end_sweep(sweep, "complete", outcome["verdict"], outcome, accepted=accepted)
    return outcome


def _judged_sweep(guard: Guard, nodes: Sequence[str], allocation: Allocation, deadline: float) -> dict[str, Any]:
    sweep = new_sweep(guard, "sweep", nodes, allocation.job)
    run = Sweep(guard, sweep, nodes, allocation.step, deadline)

    def work() -> dict[str, Any]:
        run.all_pairs()
        result = run.retest(guard.store.references())
        actions = act(guard, result["suspects"], sweep)
        verdict = verdict_of(result)
        message = _words(result, verdict)
        return {**result, "verdict": verdict, "message": message, "actions": [one._asdict() for one in actions]}

    outcome = guarded(guard, sweep, work)
    return {**outcome, "sweep": sweep, "measurements": [one.as_line() for one in run.measured]}


def _words(result: Mapping[str, Any], verdict: str) -> str:
    if verdict == OK:
        return f"{result['coverage']['measured']} measurements, nothing below what is usual"
    if verdict == UNKNOWN:
        untested = ", ".join(result["coverage"]["untested"]) or "nothing"
        return f"too little was measured to judge: {untested} untested, unknown {result['coverage']['unknown']}"
    suspects = result["suspects"]
    accused = [one["node"] for one in suspects if one["accused"]]
    if accused:
        return f"the weak link is at {', '.join(accused)}"
    ends = ", ".join(" or ".join([one["id"], *(a["id"] for a in one["alternatives"][:3])]) for one in suspects[:4])
    return f"suspect, not sure enough to blame anybody: {ends}" if ends else "a pair is slow that nothing explains"


def _take_baseline(
    guard: Guard, nodes: Sequence[str], allocation: Allocation, deadline: float, passes: int
) -> dict[str, Any]:
    """Run passes and learn from each that looks healthy; give up when too many do not.

    One stalled test spoils a pass and not the next one; a broken node spoils them all.
    """
    last: dict[str, Any] = {}
    spare, taken = _SPARE_PASSES, 0
    while taken < passes:
        sweep = new_sweep(guard, "baseline", nodes, allocation.job)
        run = Sweep(guard, sweep, nodes, allocation.step, deadline)
        guard.tell(f"baseline pass {taken + 1} of {passes}")

        def work(run: Sweep = run) -> dict[str, Any]:
            run.all_pairs()
            return _accept(guard, run)

        last = {**guarded(guard, sweep, work), "sweep": sweep}
        last["measurements"] = [one.as_line() for one in run.measured]
        if last["verdict"] == OK:
            taken += 1
            guard.store.put_references(learn([with_retransmits(one) for one in guard.store.accepted_sweeps()]))
            continue
        spare -= 1
        if spare < 0:
            break
        guard.tell(f"{last['message']}; trying again")
    taught = max((one.sweeps for one in guard.store.references()), default=0)
    last["baseline"] = {"sweeps": taught, "of": guard.site.sweep.baseline_sweeps}
    if last["verdict"] == OK:
        last["message"] = f"baseline of {taught} sweeps over {len(nodes)} nodes"
    return last


def _accept(guard: Guard, run: Sweep) -> dict[str, Any]:
    odd = outliers(run.measured, min_loss=guard.site.sweep.min_loss)
    if odd:
        words = "; ".join(
            f"{one.src}{' > ' + one.dst if one.dst else ''} {one.benchmark}: {printable(one.reason, 100)}"
            for one in odd[:4]
        )
        text = f"not taken as baseline, this does not look healthy: {words}"
        return {"verdict": UNKNOWN, "message": text, "outliers": [one._asdict() for one in odd]}
    references = guard.store.references()
    result = run.judge(references) if references else {"suspects": []}
    differing = [one["id"] for one in result["suspects"] if one["node_probability"] >= _NOT_HEALTHY]
    if differing:
        names = ", ".join(differing)
        text = f"not taken as baseline: {names} differs from the baseline so far; run weaklink sweep run"
        return {"verdict": UNKNOWN, "message": text, "suspects": result["suspects"]}
    return {"verdict": OK, "message": "taken as baseline", "accepted": True}
