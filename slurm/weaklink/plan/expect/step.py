"""A model of one data-parallel training step. It is a model, not a measurement; ASSUMPTIONS say what it leaves out.

S       = params x bytes_per_param / (model_parallel / gpus_per_node if that is above 1)      bytes a node
d       = gpus / model_parallel                                                               ranks of a ring
t_comm  = latency + 2(d-1)/d x S / (gpus_per_node x link x efficiency)
t_step  = t_compute + max(0, t_comm - overlap x t_compute)
utilisation = t_compute / t_step;  idle = 1 - utilisation
"""

from typing import Any, NamedTuple

from weaklink.plan.expect.factors import ExpectError, factor

FORMULA = (
    "t_step = t_compute + max(0, t_comm - overlap x t_compute)",
    "t_comm = latency + 2(d-1)/d x S / (gpus_per_node x link x efficiency), d = gpus / model_parallel",
    "S = params x bytes_per_param / max(1, model_parallel / gpus_per_node)",
    "t_compute = given, or 6 x params x tokens / (gpus x peak x mfu)",
)
ASSUMPTIONS = (
    "one adapter a GPU; a node reduces inside first, so that each adapter moves its share once",
    "gradients go in one synchronous all-reduce a step; the slowest adapter sets its time",
    "tensor, pipeline and expert traffic, stragglers, input and checkpoints are left out",
    "overlap is the share of compute time behind which communication can hide",
    "a slow link slows its node's whole share: nothing is moved to other adapters",
)


class Step(NamedTuple):
    """What the model is given. Rates: link in Gb/s a GPU; times in seconds; price of one GPU for an hour."""

    params: float
    bytes_per_param: float
    gpus: int
    link_gbps: float
    compute_s: float
    overlap: float = 0.0
    efficiency: float = 0.9
    latency_s: float = 0.0
    gpus_per_node: int = 8
    model_parallel: int = 1
    price: float | None = None


class Outcome(NamedTuple):
    """What comes out: seconds and shares (0 to 1)."""

    comm_s: float
    exposed_s: float
    step_s: float
    utilisation: float

    @property
    def idle(self) -> float:
        """The share of the step in which GPUs wait for communication."""
        return 1 - self.utilisation


def _check(step: Step) -> None:
    for name in ("params", "bytes_per_param", "link_gbps", "compute_s"):
        value = getattr(step, name)
        if not 0 < value < float("inf"):
            raise ExpectError(f"{name}: found {value}, wanted more than 0")
    for name, low in (("overlap", 0.0), ("efficiency", 1e-6)):
        value = getattr(step, name)
        if not low <= value <= 1:
            raise ExpectError(f"{name}: found {value}, wanted {'0' if low == 0 else 'more than 0'} to 1")
    if not 0 <= step.latency_s < float("inf"):
        raise ExpectError(f"latency: found {step.latency_s}, wanted 0 or more")
    if step.price is not None and not 0 <= step.price < float("inf"):
        raise ExpectError(f"price: found {step.price}, wanted 0 or more")
    for name in ("gpus", "gpus_per_node", "model_parallel"):
        if getattr(step, name) < 1:
            raise ExpectError(f"{name}: found {getattr(step, name)}, wanted 1 or more")
    if step.gpus % step.model_parallel:
        raise ExpectError(f"model_parallel: found {step.model_parallel}, wanted a divisor of {step.gpus} GPUs")


def compute_seconds(params: float, tokens: float, gpus: int, peak_tflops: float, mfu: float) -> float:
    """Return the time that the arithmetic of a step takes: 6 operations a parameter and token."""
    for name, value in (("params", params), ("tokens", tokens), ("peak-tflops", peak_tflops), ("gpus", gpus)):
        if not 0 < value < float("inf"):
            raise ExpectError(f"{name}: found {value}, wanted more than 0")
    if not 0 < mfu <= 1:
        raise ExpectError(f"mfu: found {mfu}, wanted more than 0 and at most 1")
    return 6 * params * tokens / (gpus * peak_tflops * 1e12 * mfu)


def run(step: Step, link_gbps: float | None = None) -> Outcome:
    """Return the step's times with all links at ``link_gbps`` (as given in ``step`` where None)."""
    _check(step)
    link = step.link_gbps if link_gbps is None else link_gbps
    if not 0 < link < float("inf"):
        raise ExpectError(f"link: found {link}, wanted more than 0 Gb/s")
    buffer = step.params * step.bytes_per_param / max(1.0, step.model_parallel / step.gpus_per_node)
    ring = factor("all_reduce", step.gpus // step.model_parallel)
    rate = step.gpus_per_node * link * 1e9 / 8 * step.efficiency
    comm = step.latency_s + ring * buffer / rate if ring else 0.0
    exposed = max(0.0, comm - step.overlap * step.compute_s)
    total = step.compute_s + exposed
    return Outcome(comm, exposed, total, step.compute_s / total)


def slow_link(step: Step, gbps: float) -> dict[str, Any]:
    """Return what one adapter at ``gbps`` costs the whole job: lost GPU-hours a day, and money given a price."""
    if gbps > step.link_gbps:
        raise ExpectError(f"slow link: found {gbps} Gb/s, wanted at most the healthy {step.link_gbps} Gb/s")
    healthy, slow = run(step), run(step, gbps)
    lost = 1 - healthy.step_s / slow.step_s
    hours = step.gpus * 24 * lost
    return {
        "gbps": gbps,
        "step_ms": slow.step_s * 1e3,
        "slowdown": slow.step_s / healthy.step_s,
        "utilisation": slow.utilisation,
        "lost_gpu_hours_per_day": hours,
        "lost_money_per_day": None if step.price is None else hours * step.price,
    }


class Explained(NamedTuple):
    """Two utilisations at two link rates, explained with two unknowns: that is a fit and no proof.

    ``ratio``: communication over compute time at the first rate; ``overlap`` as above. ``plain``: the utilisation at
    the second rate that follows without any overlap.
    """

    ratio: float
    overlap: float
    plain: float


def explain(first: tuple[float, float], second: tuple[float, float]) -> Explained:
    """Return what (Gb/s, utilisation) at two rates says when communication time goes with 1/rate."""
    (slow, used_slow), (fast, used_fast) = sorted((first, second))
    if not 0 < slow < fast < float("inf"):
        raise ExpectError(f"rates: found {slow} and {fast} Gb/s, wanted two different ones above 0")
    if not 0 < used_slow < used_fast < 1:
        raise ExpectError(
            f"utilisations: found {used_slow} at {slow:g} and {used_fast} at {fast:g} Gb/s, wanted both between 0 and 1"
            " and more at the faster rate"
        )
    wait_slow, wait_fast = 1 / used_slow - 1, 1 / used_fast - 1
    ratio = (wait_slow - wait_fast) / (1 - slow / fast)
    overlap = ratio - wait_slow
    if not 0 <= overlap <= 1:
        raise ExpectError(
            f"the model cannot give these two utilisations: overlap would be {overlap:.3f}, wanted 0 to 1"
        )
    return Explained(ratio, overlap, 1 / (1 + wait_slow * slow / fast))


def fitted(step: Step, points: tuple[tuple[float, float], tuple[float, float]]) -> tuple[Step, Explained]:
    """Return ``step`` with the compute time and the overlap under which it shows the two utilisations."""
    found = explain(*points)
    rate = min(points)[0]
    comm = run(step._replace(overlap=0.0), rate).comm_s
    if comm <= 0:
        raise ExpectError("one rank communicates nothing; no utilisation can be explained")
    return step._replace(compute_s=comm / found.ratio, overlap=found.overlap), found
