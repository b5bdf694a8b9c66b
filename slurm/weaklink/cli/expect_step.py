"""``weaklink expect step``: a training step's communication, modelled."""

import argparse
from typing import Any

from weaklink.cli import UsageError
from weaklink.cli.expect_input import put
from weaklink.plan.expect.step import (
    ASSUMPTIONS,
    FORMULA,
    Explained,
    Outcome,
    Step,
    compute_seconds,
    fitted,
    run,
    slow_link,
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="weaklink expect step",
        description="Model a data-parallel training step. A model, no measurement; the output names its terms.",
    )
    parser.add_argument("--params", type=float, required=True, help="parameters of the model (175e9)")
    parser.add_argument("--bytes-per-param", type=float, default=2.0, help="bytes of one gradient value (%(default)s)")
    parser.add_argument("--gpus", type=int, required=True, help="all GPUs of the job")
    parser.add_argument("--gpus-per-node", type=int, default=8, help="(%(default)s)")
    parser.add_argument(
        "--model-parallel", type=int, default=1, help="GPUs that share one copy of the model (%(default)s)"
    )
    parser.add_argument("--link-gbps", type=float, required=True, help="rate of one GPU's adapter, Gb/s")
    parser.add_argument("--efficiency", type=float, default=0.9, help="of the link's rate (%(default)s)")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="alpha of the all-reduce (%(default)s)")
    parser.add_argument("--overlap", type=float, default=0.0, help="share of compute that hides communication, 0 to 1")
    parser.add_argument("--compute-ms", type=float, help="compute time of a step")
    parser.add_argument("--mfu", type=float, help="or: share of the peak that compute reaches, with the next two")
    parser.add_argument("--peak-tflops", type=float, help="peak of one GPU")
    parser.add_argument("--tokens", type=float, help="tokens of a step, all GPUs together")
    parser.add_argument("--price", type=float, help="of one GPU for an hour, in any currency")
    parser.add_argument("--slow-link", metavar="GBPS", type=float, help="what one adapter at this rate costs")
    parser.add_argument(
        "--fit",
        metavar="GBPS:SHARE",
        action="append",
        default=[],
        help="explain two measured utilisations (twice: 200:0.55 and 400:0.78); gives compute time and overlap",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def command(argv: list[str]) -> int:
    """Run the command; return its exit code."""
    args = _parser().parse_args(argv)
    points = [_point(text) for text in args.fit]
    step = Step(
        params=args.params,
        bytes_per_param=args.bytes_per_param,
        gpus=args.gpus,
        link_gbps=args.link_gbps,
        compute_s=1.0 if points else _compute(args),
        overlap=args.overlap,
        efficiency=args.efficiency,
        latency_s=args.latency_ms / 1e3,
        gpus_per_node=args.gpus_per_node,
        model_parallel=args.model_parallel,
        price=args.price,
    )
    found: Explained | None = None
    if points:
        if len(points) != 2 or args.compute_ms is not None or args.mfu is not None:  # noqa: PLR2004 - two unknowns
            raise UsageError("--fit: wanted exactly two, and neither --compute-ms nor --mfu beside them")
        if args.latency_ms:
            raise UsageError("--fit: wanted --latency-ms 0; the two utilisations cannot tell a third unknown")
        step, found = fitted(step, (points[0], points[1]))
    outcome = run(step)
    slow = None if args.slow_link is None else slow_link(step, args.slow_link)
    document = _document(step, outcome, slow, found, points)
    if args.json:
        put(document)
    else:
        _print(document)
    return 0


def _point(text: str) -> tuple[float, float]:
    rate, _, share = text.partition(":")
    try:
        return float(rate), float(share)
    except ValueError as error:
        raise UsageError(f"--fit: found {text!r:.60}, wanted GBPS:SHARE such as 200:0.55") from error


def _compute(args: argparse.Namespace) -> float:
    if args.compute_ms is not None:
        if args.mfu is not None:
            raise UsageError("--compute-ms and --mfu: wanted one of them")
        return float(args.compute_ms) / 1e3
    if args.mfu is None or args.peak_tflops is None or args.tokens is None:
        raise UsageError("wanted --compute-ms, or --mfu with --peak-tflops and --tokens, or --fit twice")
    return compute_seconds(args.params, args.tokens, args.gpus, args.peak_tflops, args.mfu)


def _document(
    step: Step,
    outcome: Outcome,
    slow: dict[str, Any] | None,
    found: Explained | None,
    points: list[tuple[float, float]],
) -> dict[str, Any]:
    fit: dict[str, Any] | None = None
    if found is not None:
        fit = {
            "points": [{"gbps": rate, "utilisation": share} for rate, share in sorted(points)],
            "compute_ms": step.compute_s * 1e3,
            "overlap": found.overlap,
            "utilisation_without_overlap": found.plain,
            "modelled": [{"gbps": rate, "utilisation": run(step, rate).utilisation} for rate, _ in sorted(points)],
            "caution": "two unknowns fitted to two figures: it shows that the model can give them, and proves nothing",
        }
    return {
        "model": True,
        "formula": list(FORMULA),
        "assumptions": list(ASSUMPTIONS),
        "inputs": step._asdict(),
        "compute_ms": step.compute_s * 1e3,
        "comm_ms": outcome.comm_s * 1e3,
        "exposed_ms": outcome.exposed_s * 1e3,
        "step_ms": outcome.step_s * 1e3,
        "communication_share": outcome.exposed_s / outcome.step_s,
        "utilisation": outcome.utilisation,
        "idle": outcome.idle,
        "idle_gpu_hours_per_day": step.gpus * 24 * outcome.idle,
        "idle_money_per_day": None if step.price is None else step.gpus * 24 * outcome.idle * step.price,
        "slow_link": slow,
        "fit": fit,
    }


def _print(document: dict[str, Any]) -> None:
    print("A model, no measurement.")
    print(
        f"step {document['step_ms']:.1f} ms = compute {document['compute_ms']:.1f} + exposed communication"
        f" {document['exposed_ms']:.1f} (of {document['comm_ms']:.1f})"
    )
    print(
        f"utilisation {document['utilisation']:.1%}, communication {document['communication_share']:.1%};"
        f" {document['idle_gpu_hours_per_day']:.0f} GPU-hours a day wait" + _money(document["idle_money_per_day"])
    )
    slow = document["slow_link"]
    if slow:
        print(
            f"one link at {slow['gbps']:g} Gb/s: step {slow['step_ms']:.1f} ms ({slow['slowdown']:.2f}x), utilisation"
            f" {slow['utilisation']:.1%}; {slow['lost_gpu_hours_per_day']:.0f} GPU-hours a day lost"
            + _money(slow["lost_money_per_day"])
        )
    fit = document["fit"]
    if fit:
        print(
            f"fitted: compute {fit['compute_ms']:.1f} ms, overlap {fit['overlap']:.3f}; without overlap the faster rate"
            f" would give {fit['utilisation_without_overlap']:.1%}. Caution: {fit['caution']}"
        )
        for item in fit["modelled"]:
            print(f"  {item['gbps']:g} Gb/s: {item['utilisation']:.1%}")
    for line in (*document["formula"], *document["assumptions"]):
        print(f"  {line}")


def _money(value: float | None) -> str:
    return "" if value is None else f", {value:.0f} in money"


COMMANDS = {"step": command}
