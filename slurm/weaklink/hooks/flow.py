"""What the hooks share: observe and judge, then act on what may take a node out of service.

A run in which nothing is wrong makes no Slurm call and writes nothing. In mode observe the log says what would have
been done, and that is all. In mode enforce: drain within the budget, keep evidence in a file, leave a digest of it in
the node's Extra.
"""

from collections.abc import Iterable
from typing import Any, Callable, NamedTuple, Optional, Protocol

from weaklink.checks.base import Check
from weaklink.checks.registry import Judgement, judge, needs
from weaklink.hooks.files import Places, log, new_id, now_text, write_evidence
from weaklink.hooks.frame import Clock
from weaklink.model.expected import Expected
from weaklink.model.finding import UNKNOWN, Finding
from weaklink.model.process import ABANDONED, TIMEOUT, Feeder, Runner, RunResult
from weaklink.observe import node as node_reader
from weaklink.observe.host import Host

_RESERVE = 1.0  # seconds kept for writing down what happened


class ToolBox(Protocol):
    """What runs commands (``weaklink.observe.command.Tools``)."""

    def run(self, argv: Any, timeout: float) -> RunResult:
        """Run a command."""

    def feed(self, argv: Any, timeout: float, stdin: str) -> RunResult:
        """Run a command with a standard input."""


def toolbox(tools: Optional[ToolBox]) -> ToolBox:
    """Return ``tools``, or the real ones; their module is imported only when a hook has work to do."""
    if tools is None:
        from weaklink.observe.command import Tools

        return Tools()
    return tools


class Run(NamedTuple):
    """One run of a hook: who, what for, with which files, tools and time."""

    context: str
    expected: Expected
    places: Places
    tools: ToolBox
    root: str
    clock: Clock
    job: str = ""
    user: str = ""

    def note(self, action: str, message: str, *, verdict: str = UNKNOWN, check: str = "", **more: Any) -> None:
        """Write one line to the log."""
        record = {
            "context": self.context,
            "node": self.expected.node,
            "mode": self.expected.mode,
            "verdict": verdict,
            "action": action,
            "check": check,
            "message": message[:1000],
            "job": self.job,
        }
        log(self.places, {**record, **more})


class Acted(NamedTuple):
    """What was done about a node: ``action`` as in the evidence, and the client to go on with (None in mode observe).

    ``evidence`` is the id of the file, empty when none was written; ``said`` is False when the same was said a short
    while ago.
    """

    action: str
    evidence: str
    finding: Finding
    slurm: Optional[Any]
    said: bool


def bounded(run: Runner, clock: Clock) -> Runner:
    """Return a runner whose commands never outlive the hook's own time."""

    def within(argv: Any, timeout: float) -> RunResult:
        left = clock.left() - _RESERVE
        if left <= 0:
            return RunResult(tuple(argv), None, "", "no time left for it", TIMEOUT, 0.0)
        return run(argv, min(timeout, left))

    return within


def bounded_feed(feed: Feeder, clock: Clock) -> Feeder:
    """Return a feeder whose commands never outlive the hook's own time."""

    def within(argv: Any, timeout: float, stdin: str) -> RunResult:
        return bounded(lambda words, seconds: feed(words, seconds, stdin), clock)(argv, timeout)

    return within


def look(run: Run, checks: Iterable[Check], earlier: Optional[dict[str, dict[str, int]]] = None) -> "Seen":
    """Observe what ``checks`` need, and judge it. A tool that does not end is told, whatever was judged without it."""
    chosen = tuple(checks)
    run_bounded = bounded(run.tools.run, run.clock)

    def watched(argv: Any, timeout: float) -> RunResult:
        result = run_bounded(argv, timeout)
        if result.status in (TIMEOUT, ABANDONED) and result.seconds:
            run.note("unknown", result.failure())
        return result

    host = Host(run.root, watched)
    observation = node_reader.observe(
        host, run.expected, needs(chosen), timeout=run.expected.deadline("check"), earlier=earlier
    )
    return Seen(observation, judge(chosen, observation, run.expected))


class Seen(NamedTuple):
    """An observation and what the checks say of it."""

    observation: Any
    judgement: Judgement


def client(run: Run) -> Any:
    """Return a Slurm client within the hook's time."""
    from weaklink.scheduler.slurm import SlurmClient

    return SlurmClient(
        bounded(run.tools.run, run.clock), run.expected.deadline("slurm"), bounded_feed(run.tools.feed, run.clock)
    )


def say_unknown(run: Run, judgement: Judgement) -> None:
    """Log what could not be judged; nothing else comes of it."""
    for finding in judgement.findings:
        if finding.status == UNKNOWN:
            run.note("unknown", finding.message, check=finding.check)


def act(
    run: Run,
    judgement: Judgement,
    make_client: Callable[[Run], Any] = client,
    *,
    quiet: Callable[[str, str], bool] = lambda _action, _check: False,
) -> Acted:
    """Act on the first of the draining findings (there must be one): drain, or say why not.

    ``quiet(action, check)`` says whether the same has been said lately; then it is not logged again.
    """
    finding = judgement.draining[0]
    if not run.expected.enforce:
        if quiet("would-drain", finding.check):
            return Acted("would-drain", "", finding, None, False)
        bad = [item.as_dict() for item in judgement.draining]
        text = f"would have drained {run.expected.node}: {finding.message}"
        run.note("would-drain", text, verdict=finding.status, check=finding.check, findings=bad)
        return Acted("would-drain", "", finding, None, True)
    from weaklink.scheduler import budget, ownership

    key = ownership.load_key(run.places.key)
    slurm = make_client(run)
    name = run.expected.node

    def decide(nodes: Any) -> budget.Decision:
        view = run.expected.budget_view()
        return budget.decide(nodes, name, finding.check, view, lambda who, text: ownership.owned(key, who, text))

    outcome = ownership.drain(slurm, key, name, finding.check, finding.message, decide=decide)
    if quiet(outcome.what, finding.check):
        return Acted(outcome.what, "", finding, slurm, False)
    evidence = new_id(name)
    run.note(
        outcome.what,
        finding.message,
        verdict=finding.status,
        check=finding.check,
        cause=finding.cause,
        detail=outcome.detail,
        token=outcome.token,
        evidence=evidence,
    )
    write_evidence(run.places, _evidence(run, judgement, evidence, outcome))
    return Acted(outcome.what, evidence, finding, slurm, True)


def _evidence(run: Run, judgement: Judgement, name: str, outcome: Any) -> dict[str, Any]:
    return {
        "format": 1,
        "id": name,
        "node": run.expected.node,
        "time": now_text(),
        "context": run.context,
        "mode": run.expected.mode,
        "verdict": judgement.verdict,
        "action": outcome.what,
        "detail": outcome.detail,
        "token": outcome.token,
        "job": run.job,
        "findings": [finding.as_dict() for finding in judgement.findings],
    }


def leave_digest(run: Run, acted: Acted, action: str = "") -> None:
    """Put a digest of the evidence into the node's Extra, unless somebody else's text stands there."""
    from weaklink.scheduler import digest
    from weaklink.scheduler.text import SlurmError

    if acted.slurm is None:
        return
    name = run.expected.node
    record = {
        "id": acted.evidence,
        "time": now_text(),
        "verdict": acted.finding.status,
        "action": action or acted.action,
        "check": acted.finding.check,
        "cause": acted.finding.cause,
        "message": acted.finding.message,
        "job": run.job,
    }
    try:
        text = digest.merge(acted.slurm.nodes([name])[name].extra, record)
        if text is None:
            run.note(
                "unknown", "the node's Extra holds somebody else's text; no digest was left", evidence=acted.evidence
            )
        else:
            acted.slurm.set_extra(name, text)
    except SlurmError as error:
        run.note("unknown", f"no digest was left in the node's Extra: {error}", evidence=acted.evidence)
