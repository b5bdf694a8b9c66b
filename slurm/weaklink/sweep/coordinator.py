"""Run rounds and put the reports of both ends of each flow together. What runs a round is passed in."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Callable, NamedTuple, Optional

from weaklink.model.measurement import BENCHMARKS, RDMA_FAILED, UNKNOWN_FAILURES, Measurement
from weaklink.model.process import RunResult
from weaklink.model.round import BASE_PORT, EndReport, FlowSpec, RoundSpec, encode, parse_reports
from weaklink.model.site import Hca, Site
from weaklink.sweep.schedule import Flow, Rounds, node_of

# nodes, arguments of weaklink, deadline in seconds
Step = Callable[[Sequence[str], Sequence[str], float], RunResult]
_PORTS_A_FLOW = 4
_PORT_SPAN = 40_000
_SILENT_ROUNDS = 2
# A failure of the other end that explains why this one could not meet it.
_OTHER_END = ("tool-missing", "device-missing", "test-did-not-run")


class DeadlineError(Exception):
    """The sweep's own deadline passed; what was measured until then stays."""


class SilentError(Exception):
    """Nothing came back from several rounds on end: the allocation is gone, or nothing can run in it."""


class Progress(NamedTuple):
    """What is going on, for a person: round ``number`` of ``of`` known so far, and its flows."""

    number: int
    of: int
    flows: Sequence[Flow]
    retest: bool


class Coordinator:
    """Runs rounds one after another through ``step`` until ``deadline`` (on ``clock``, seconds)."""

    def __init__(self, site: Site, step: Step, deadline: float, tell: Callable[[Progress], None]) -> None:
        self.site, self._step, self._deadline, self._tell = site, step, deadline, tell
        self._hcas: dict[str, Hca] = {hca.name: hca for hca in site.hcas()}
        self._management: dict[str, str] = {node.name: node.management for node in site.nodes}
        self.clock: Callable[[], float] = time.monotonic
        self.now: Callable[[], float] = time.time
        self.rounds_run = 0
        self._silent = 0

    def run(self, rounds: Rounds, *, retest: bool = False) -> Iterable[list[Measurement]]:
        """Yield the measurements of each round; DeadlineError when there is no time for the next one.

        SilentError after two rounds from which no node reported at all.
        """
        of = self.rounds_run + len(rounds)
        for flows in rounds:
            spec = self.spec(flows)
            deadline = self.seconds(spec)
            if self.clock() + deadline > self._deadline:
                raise DeadlineError(f"no time left for round {spec.number} of {of}")
            self._tell(Progress(spec.number, of, flows, retest))
            nodes = sorted({node_of(end) for flow in flows for end in flow})
            result = self._step(nodes, ["measure", "round", "--flows", encode(spec)], deadline)
            self.rounds_run += 1
            reports = parse_reports(result.out)
            yield merge(spec, reports, result.failure(), retest=retest, now=self.now())
            self._silent = 0 if reports else self._silent + 1
            if self._silent >= _SILENT_ROUNDS:
                raise SilentError(
                    f"no word from the nodes in {self._silent} rounds: {result.failure() or 'no reports'}"
                )

    def spec(self, flows: Sequence[Flow]) -> RoundSpec:
        """Return the document of the next round with these flows."""
        rules, number = self.site.sweep, self.rounds_run + 1
        specs = []
        for index, flow in enumerate(flows):
            src, dst = self._hcas[flow.src], self._hcas[flow.dst]
            # Neighbouring rounds use other ports, so that a server left over from the last one is never met.
            port = BASE_PORT + (number * 101 + index) * _PORTS_A_FLOW % _PORT_SPAN
            specs.append(
                FlowSpec(index, flow.src, flow.dst, src.address, dst.address, self._management[dst.node], port)
            )
        return RoundSpec(
            number,
            tuple(specs),
            bw_seconds=rules.bw_seconds,
            lat_iterations=rules.lat_iterations,
            setup_seconds=rules.setup_seconds,
        )

    def seconds(self, spec: RoundSpec) -> float:
        """Return the deadline of one round's step: longer than the nodes' own, which end it in an orderly way."""
        own = spec.setup_seconds * len(spec.benchmarks) + spec.bw_seconds + spec.lat_iterations * 0.1
        return 30.0 + 1.5 * own


def merge(
    spec: RoundSpec, reports: Sequence[EndReport], step_failure: str, *, retest: bool, now: float
) -> list[Measurement]:
    """Return one measurement for each flow and benchmark of the round, with what both ends said.

    A flow counts as ``rdma-failed`` only when both ends reported: one that says so while the other end is silent, or
    had no tool or device, could not be measured.
    """
    by_end: Mapping[tuple[int, str, str], EndReport] = {(r.flow, r.benchmark, r.end): r for r in reports}
    found = []
    for flow in spec.flows:
        for benchmark in spec.benchmarks:
            src = by_end.get((flow.id, benchmark, "src"))
            dst = by_end.get((flow.id, benchmark, "dst"))
            failure, detail = _failure(flow, src, dst, step_failure)
            found.append(
                Measurement(
                    flow.src,
                    flow.dst,
                    benchmark,
                    None if failure or src is None else float(src.value),
                    BENCHMARKS[benchmark][1],
                    failure,
                    detail,
                    next((one.shape for one in (src, dst) if one is not None), ""),
                    src.p99_us if src is not None and not failure else None,
                    spec.number,
                    retest,
                    now,
                    {one.end: one.counters for one in (src, dst) if one is not None and one.counters},
                    {**((dst.versions if dst else None) or {}), **((src.versions if src else None) or {})},
                )
            )
    return found


def _failure(flow: FlowSpec, src: Optional[EndReport], dst: Optional[EndReport], step_failure: str) -> tuple[str, str]:
    if src is None:
        who = node_of(flow.src) if dst is not None else f"{node_of(flow.src)} and {node_of(flow.dst)}"
        return "not-reported", f"no word from {who}" + (f" ({step_failure})" if step_failure else "")
    if not src.failure:
        return ("", "") if src.value is not None else ("test-did-not-run", f"{flow.src} gave no figure")
    if dst is None:
        return "not-reported", f"no word from {node_of(flow.dst)}; {flow.src} said {src.failure}: {src.detail}"
    if dst.failure in _OTHER_END:
        return dst.failure, f"{flow.dst}: {dst.detail}"
    if src.failure != RDMA_FAILED and dst.failure == RDMA_FAILED:
        return RDMA_FAILED, dst.detail
    known = src.failure == RDMA_FAILED or src.failure in UNKNOWN_FAILURES
    return (src.failure if known else "test-did-not-run"), src.detail
