"""Judge an nccl-tests run: right results, the ranks and the network that were asked for, and enough bandwidth.

A bus bandwidth of one rank is 0 by definition and says nothing. The average mixes small and large messages: it is
compared only where the context says so.
"""

import statistics
from collections.abc import Iterable, Iterator
from typing import Any, Optional

from weaklink.checks.tools.base import EVERYWHERE, NOTE, Context, Judged, Rule, close, demand, say
from weaklink.checks.tools.nccl_tests_reasons import Reason, reason_of
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding
from weaklink.observe.tools.nccl_tests import NAME
from weaklink.observe.tools.nccl_tests_records import Record, Row, Run

__all__ = ["RULES", "judge"]

RESULTS = Rule(
    "nccl.results",
    ("data-corruption",),
    FAIL,
    NOTE,
    "Any value out of bounds is wrong, however fast: the summary's count, '#wrong' above 0, or in versions with an"
    " error column a deviation above that version's own limit (src/common.cu).",
    "Take the nodes of this run out, test them in pairs with validation on, and look for memory and NVLink errors.",
)
RAN = Rule(
    "nccl.ran",
    ("test-did-not-run", "roce-gid-unreachable", "rdma-retry-exceeded", "gpu-missing"),
    FAIL,
    NOTE,
    "The first message that names a reason counts; closed sockets and 'internal error' follow from it.",
    "Look at the host and the device that the first reason names.",
)
RANKS = Rule(
    "nccl.ranks",
    ("gpu-missing", "built-without-mpi", "nothing-tested"),
    FAIL,
    NOTE,
    "The list of ranks is counted; without one the count is 2/(2 - busbw/algbw) of an all-reduce. Several ranks 0 in"
    " one output are programs that know nothing of each other.",
    "Start one process a GPU on every node (srun --ntasks-per-node=8) and build nccl-tests with MPI=1.",
)
NETWORK = Rule(
    "nccl.network",
    ("rdma-not-used",),
    FAIL,
    NOTE,
    "NCCL_DEBUG=INFO names the network of each connection; 'Socket' is TCP.",
    "See NCCL's log for why the HCAs were left out: NCCL_IB_HCA, NCCL_IB_DISABLE, memory lock limits, the container.",
)
BANDWIDTH = Rule(
    "nccl.bandwidth",
    ("bandwidth-below-expected", "nothing-tested"),
    DEGRADED,
    NOTE,
    "The largest size's greater bus bandwidth, or the printed average where asked for, is at least the expected one.",
    "Run `weaklink sweep` over these nodes: it finds which link is slow.",
)
VALIDATION = Rule(
    "nccl.validation",
    ("data-not-validated",),
    UNKNOWN,
    NOTE,
    "Results count as checked when the run says 'validation: 1' and the table holds numbers of wrong values.",
    "Run again with -c 1.",
)
COMPLETE = Rule(
    "nccl.complete",
    ("output-truncated", "test-did-not-run", "nothing-tested"),
    UNKNOWN,
    NOTE,
    "A whole run ends with the out-of-bounds line and the average.",
    "Get the whole output, or run again.",
)
RULES = (RESULTS, RAN, RANKS, NETWORK, BANDWIDTH, VALIDATION, COMPLETE)
CONTEXTS = EVERYWHERE

# Limits of the versions with an error column (largest deviation), by type; whole numbers have to be exact.
_LIMITS = {"half": 1e-2, "bfloat16": 1e-2, "bf16": 1e-2, "float": 1e-5, "double": 1e-12}
_MIN_RATIO = 0.01
_WANTED = ("largest_size", "average")
_RDMA = ("ib", "infiniband", "roce", "rocev2", "rdma")


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; ``context`` keys: see RULES and ``_demands``."""
    wanted = _demands(context)
    reason = reason_of(record, wanted["transport"]) if _stopped(record) else None
    facts = _facts(record, reason, wanted)
    findings = list(_findings(record, wanted, reason))
    return close(NAME, facts, findings, record.troubles, _good(facts))


def _demands(context: Context) -> dict[str, Any]:
    compare = demand(context, "compare", str, "largest_size")
    if compare not in _WANTED:
        raise ValueError(f"context: key 'compare': found {compare!r:.60}, wanted one of {', '.join(_WANTED)}")
    return {
        "ranks": demand(context, "expected_ranks", int),
        "busbw": demand(context, "expected_busbw_gbps", float),
        "compare": compare,
        "validation": demand(context, "require_validation", bool, default=False),
        "rdma": demand(context, "require_rdma", bool, default=False),
        "transport": demand(context, "transport", str, ""),
    }


def _findings(record: Record, wanted: dict[str, Any], reason: Optional[Reason]) -> Iterator[Finding]:
    yield from _corruption(record)
    if reason is not None and reason.status == FAIL:
        yield say(RAN, reason.host or NAME, FAIL, reason.message, reason.cause, line=reason.line)
    alone = _alone(record, wanted["ranks"])
    if alone:
        yield alone
    else:
        yield from _rank_counts(record, wanted["ranks"])
    if wanted["rdma"]:
        yield from _network(record)
    elif wanted["transport"].lower() in _RDMA and "Socket" in record.networks:
        yield say(NETWORK, NAME, FAIL, f"NCCL used TCP sockets, not {wanted['transport']}")
    if reason is not None and reason.status == UNKNOWN:
        yield say(RAN, reason.host or NAME, UNKNOWN, reason.message, reason.cause, line=reason.line)
    yield from _completeness(record, explained=reason is not None or alone is not None)
    if not alone:
        for run in record.runs:
            yield from _bandwidth(run, wanted)
    if wanted["validation"] and record.rows and validated(record) is not True:
        yield say(VALIDATION, NAME, UNKNOWN, "the results were not checked (-c 0), and a check is demanded")


def bad_rows(run: Run) -> list[Row]:
    """Return the rows whose results are wrong."""
    found = []
    for row in run.rows:
        limit = _LIMITS.get(row.type, 0.0) if run.old_error_column else 0.0
        if any(half.odd or (half.wrong is not None and half.wrong > limit) for half in row.halves):
            found.append(row)
    return found


def _corruption(record: Record) -> Iterator[Finding]:
    for run in record.runs:
        rows = bad_rows(run)
        count = run.out_of_bounds or 0
        # Where an old version's summary says 0, its own limit was not crossed: rounding.
        settled = run.old_error_column and run.complete and not run.out_of_bounds_failed
        if count or run.out_of_bounds_failed or (rows and not settled):
            sizes = ", ".join(str(row.size) for row in rows[:8])
            where = f" at {sizes} bytes" if sizes else ""
            yield say(RESULTS, run.test or NAME, FAIL, f"wrong results{where}; out of bounds: {count or 'no summary'}")
        elif run.bitwise_mismatches:
            text = f"{run.bitwise_mismatches} sizes gave other bits when repeated"
            yield say(RESULTS, run.test or NAME, DEGRADED, text)


def _stopped(record: Record) -> bool:
    return not record.runs or any(not run.complete or not run.rows for run in record.runs)


def ranks_by_ratio(run: Run) -> Optional[int]:
    """Return the ranks that an all-reduce's figures stand for, from its largest size, or None.

    busbw/algbw is 2(n-1)/n; so n = 2/(2 - ratio). Two printed decimals make it a count only while 2 - ratio is well
    above their error.
    """
    if not run.rows or "all_reduce" not in (run.test or "all_reduce"):
        return None
    row = max(run.rows, key=lambda item: item.size)
    if row.redop in (None, "none"):
        return None
    for half in row.halves:
        if half.algbw and half.busbw:
            ratio = half.busbw / half.algbw
            error = 0.005 * (1 + ratio) / half.algbw
            gap = 2 - ratio
            if gap > _MIN_RATIO / 2 and error < gap * gap / 4:
                count = 2 / gap
                return round(count) if abs(count - round(count)) <= max(0.05, 2 * error / gap**2 * 1.5) else None
    return None


def _alone(record: Record, expected: Optional[int]) -> Optional[Finding]:
    """Return the finding that several programs each ran alone, or one of many; None otherwise."""
    zeros = sum(run.rank0_lines for run in record.runs)
    counts = {run.ranks for run in record.runs}
    each = next(iter(counts)) if len(counts) == 1 else None
    mixed = any(run.rank0_lines > 1 and run.headers > 1 for run in record.runs)
    split = each is not None and expected is not None and zeros > 1 and each < expected == each * zeros
    single = each == 1 and expected is not None and expected > 1
    if not (mixed or split or single):
        return None
    text = (
        f"{zeros} rank 0 in one output: separate runs of {each or '?'} ranks each, not one of {expected or 'all'};"
        " built without MPI. Bandwidth says nothing"
    )
    return say(RANKS, NAME, UNKNOWN, text, "built-without-mpi")


def _rank_counts(record: Record, expected: Optional[int]) -> Iterator[Finding]:
    for run in record.runs:
        found = run.ranks if run.ranks is not None else ranks_by_ratio(run)
        if expected is None or found is None or found == expected:
            continue
        name = run.test or NAME
        if found < expected:
            yield say(RANKS, name, FAIL, f"{found} ranks took part, expected {expected}", "gpu-missing")
        else:
            yield say(RANKS, name, UNKNOWN, f"{found} ranks, expected {expected}: another test", "nothing-tested")


def _network(record: Record) -> Iterator[Finding]:
    names = record.networks
    if "Socket" in names:
        yield say(NETWORK, NAME, FAIL, "NCCL used TCP sockets, not RDMA", networks=dict(names))
    elif not set(names) - {"no IB device"}:
        if names:
            yield say(NETWORK, NAME, FAIL, "NCCL found no RDMA device")
        else:
            text = "the log does not say which network was used; run with NCCL_DEBUG=INFO"
            yield say(NETWORK, NAME, UNKNOWN, text, "nothing-tested")


def _completeness(record: Record, *, explained: bool) -> Iterator[Finding]:
    if not record.runs:
        if not explained and not record.troubles:
            yield say(COMPLETE, NAME, UNKNOWN, "no run of nccl-tests in this text", "test-did-not-run")
        return
    for run in record.runs:
        name = run.test or NAME
        if run.complete and not run.rows:
            yield say(COMPLETE, name, UNKNOWN, "the run ended without a single row", "nothing-tested")
        elif not run.complete and not explained:
            last = f"last whole row: line {run.rows[-1].line}" if run.rows else "no whole row"
            yield say(COMPLETE, name, UNKNOWN, f"the summary is missing; {last}", "output-truncated")


def largest_size_busbw(run: Run) -> Optional[float]:
    """Return the bus bandwidth of the largest size, GB/s; of several cycles the worst."""
    top = max((row.size for row in run.rows), default=None)
    return min((row.busbw for row in run.rows if row.size == top and row.busbw is not None), default=None)


def _reached(run: Run) -> bool:
    """Whether the table goes up to the largest size that was asked for."""
    config = run.config
    if not run.rows or config.max_bytes is None or not config.step:
        return False
    top = max(row.size for row in run.rows)
    following = top * config.step if config.step_is_factor else top + config.step
    return following > config.max_bytes


def _bandwidth(run: Run, wanted: dict[str, Any]) -> Iterator[Finding]:
    name = run.test or NAME
    if run.average_failed:
        yield say(BANDWIDTH, name, DEGRADED, f"the tool's own limit is missed: average {run.average} GB/s")
    expected = wanted["busbw"]
    if expected is None or not (run.complete or (wanted["compare"] == "largest_size" and _reached(run))):
        return
    if run.ranks == 1:
        if expected > 0:
            text = "with one rank the bus bandwidth is 0 by definition; nothing was tested"
            yield say(BANDWIDTH, name, UNKNOWN, text, "nothing-tested")
        return
    average = wanted["compare"] == "average"
    found = run.average if average else largest_size_busbw(run)
    if found is not None and found < expected:
        what = "average" if average else "largest size"
        text = f"bus bandwidth ({what}) {found:g} GB/s, expected at least {expected:g} GB/s"
        yield say(BANDWIDTH, name, DEGRADED, text, found=found, expected=expected)


def validated(record: Record) -> Optional[bool]:
    """Return whether the results of all rows' sizes were checked; None where there are none."""
    found = [
        run.config.validation != 0
        and any(half.odd or half.wrong is not None for row in run.rows for half in row.halves)
        for run in record.runs
        if run.rows
    ]
    return all(found) if found else None


def _facts(record: Record, reason: Optional[Reason], wanted: dict[str, Any]) -> dict[str, Any]:
    runs, rows = record.runs, record.rows
    hosts = {device.host for run in runs for device in run.devices}
    averages = [run.average for run in runs if run.average is not None]
    old = any(run.old_error_column for run in runs)
    counted = [half.wrong for row in rows for half in row.halves if half.wrong is not None]
    facts: dict[str, Any] = {
        "test": _same(run.test for run in runs),
        "version": record.version,
        "nccl_version": record.library,
        "runs": len(runs),
        "rows": len(rows),
        "ranks": _same(run.ranks for run in runs),
        "ranks_by_ratio": _same(ranks_by_ratio(run) for run in runs),
        "nodes": len(hosts) or None,
        "rank0_lines": sum(run.rank0_lines for run in runs),
        "avg_busbw_gbps": min(averages, default=None),
        "max_busbw_gbps": max((row.busbw for row in rows if row.busbw is not None), default=None),
        "largest_size_busbw_gbps": min(
            (value for value in map(largest_size_busbw, runs) if value is not None), default=None
        ),
        "wrong_total": int(sum(counted)) if counted and not old else None,
        "out_of_bounds": _sum(run.out_of_bounds for run in runs),
        "bad_sizes": sorted({row.size for run in runs for row in bad_rows(run)}),
        "validated": validated(record),
        "iters": _same(_iters(run) for run in runs),
        "networks": dict(record.networks),
        "gdr": record.gdr if record.networks else None,
    }
    if rows:
        facts["error_column"] = "max_deviation" if old else "wrong_values"
    if wanted["ranks"] is not None:
        facts["expected_ranks"] = wanted["ranks"]
    facts.update(_straggler(rows))
    warn = next((said for said in record.said if said.kind == "warn"), None)
    if warn is not None:
        facts["first_warn"] = warn.text
        facts["host"], facts["local_devices"] = warn.host, [] if warn.device is None else [warn.device]
    if reason is not None and reason.host:
        facts["host"], facts["local_devices"] = reason.host, list(reason.devices)
    return facts


def _iters(run: Run) -> Optional[int]:
    column = [row.iters for row in run.rows if row.iters is not None]
    return column[-1] if column else run.config.iters


def _straggler(rows: Iterable[Row]) -> dict[str, Any]:
    """Return which process was slowest at the largest size with per-process times (-I 1), and by how much."""
    timed = [row for row in rows if len(row.process_medians_us) > 1]
    if not timed:
        return {}
    times = max(timed, key=lambda row: row.size).process_medians_us
    slowest = max(range(len(times)), key=times.__getitem__)
    middle = statistics.median(times)
    return {"slowest_process": slowest, "slowest_process_ratio": round(times[slowest] / middle, 3) if middle else None}


def _same(values: Iterable[Any]) -> Any:
    """Return the one value that all runs have, or None."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _sum(values: Iterable[Optional[int]]) -> Optional[int]:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _good(facts: dict[str, Any]) -> str:
    return f"{facts['rows']} sizes, largest {facts['largest_size_busbw_gbps']} GB/s bus bandwidth, no wrong results"
