"""Judge a perftest run: did RDMA work, and is the average bandwidth (or the message rate) enough."""

from collections.abc import Iterator
from typing import Any, Optional

from weaklink.checks.tools.base import EVERYWHERE, NOTE, Context, Judged, Rule, close, demand, say
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding
from weaklink.observe.tools.perftest import NAME, Record, Row, Run
from weaklink.observe.tools.text import integer

__all__ = ["RULES", "judge"]

RAN = Rule(
    "perftest.ran",
    (
        "test-did-not-run",
        "rdma-retry-exceeded",
        "roce-gid-unreachable",
        "gid-index-wrong",
        "link-down",
        "no-subnet-manager",
        "rdma-work-failed",
    ),
    FAIL,
    NOTE,
    "A failed work request or queue pair is RDMA's failure; a rendezvous over TCP that failed is not.",
    "See the line that is quoted; for retries and unreachable GIDs test the path between the two ports.",
)
BANDWIDTH = Rule(
    "perftest.bandwidth",
    ("bandwidth-below-expected",),
    DEGRADED,
    NOTE,
    "The average (never the peak, which timed runs do not measure) is at least the expected one; 'MB/sec' is 2^20"
    " bytes. Where both sides send, a line rate counts twice for the sum and once for each side's own table; an"
    " expected bandwidth is the sum's, or one side's where the sum is half as much again. The tool's own limits"
    " (--limit_bw, --limit_msgrate) count as well.",
    "Test the pair again, then each end with another partner.",
)
RATE = Rule(
    "perftest.message_rate",
    ("bandwidth-below-expected",),
    DEGRADED,
    NOTE,
    "Small messages are limited by the message rate, so that is what is compared for them: the best one of all sizes"
    " below fraction_applies_from_bytes.",
    "Look at the adapter's PCIe width and at the processor's frequency and NUMA node.",
)
COMPLETE = Rule(
    "perftest.complete",
    ("output-truncated", "test-did-not-run", "nothing-tested"),
    UNKNOWN,
    NOTE,
    "A whole run has a result row and the closing line of dashes; a latency test says nothing about bandwidth.",
    "Get the whole output, or run again.",
)
RULES = (RAN, BANDWIDTH, RATE, COMPLETE)
CONTEXTS = EVERYWHERE

_FAR_ABOVE = 1.5
# Words of weaklink.observe.perftest that are told apart there and have one name here.
_CAUSES = {
    "rendezvous-failed": "test-did-not-run",
    "nic-probe-failed": "test-did-not-run",
    "rdma-rnr-exceeded": "rdma-retry-exceeded",
}


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; context: expected_bw_gbps, or line_rate_gbps and min_fraction (with
    fraction_applies_from_bytes and min_msg_rate_mpps)."""  # noqa: D205, D209 - one sentence
    wanted = {
        "bw": demand(context, "expected_bw_gbps", float),
        "line": demand(context, "line_rate_gbps", float),
        "fraction": demand(context, "min_fraction", float),
        "from": demand(context, "fraction_applies_from_bytes", int, 0),
        "rate": demand(context, "min_msg_rate_mpps", float),
    }
    findings = list(_findings(record, wanted))
    facts = _facts(record)
    good = f"{facts['test']}: {facts['bw_average_gbps'] or facts['lat_typical_us']}"
    return close(NAME, facts, findings, record.troubles, good)


def _findings(record: Record, wanted: dict[str, Any]) -> Iterator[Finding]:
    if record.failure is not None:
        status, cause, line = record.failure
        cause = _CAUSES.get(cause, cause)
        if cause == "roce-gid-unreachable" and record.runs and _key(record.runs[-1], "link type") == "IB":
            cause = "link-down"
        yield say(RAN, _subject(record.runs[-1]) if record.runs else NAME, status, line, cause)
    if record.below_limit is not None:
        yield say(BANDWIDTH, _subject(record.runs[-1]) if record.runs else NAME, DEGRADED, record.below_limit)
    rows = [row for run in record.runs for row in run.rows]
    for run in record.runs:
        if not (run.empty and rows):
            yield from _judge_run(run, wanted, explained=record.failure is not None)
    if not record.runs and record.failure is None and not record.troubles:
        text = "the tool printed nothing" if record.blank else "no perftest result in this text"
        yield say(COMPLETE, NAME, UNKNOWN, text, "test-did-not-run")
    asked = wanted["bw"] is not None or (wanted["line"] is not None and wanted["fraction"] is not None)
    if asked and rows and not any(row.gbps is not None for row in rows):
        text = "no bandwidth in this output, and one is expected"
        yield say(COMPLETE, _subject(record.runs[-1]), UNKNOWN, text, "nothing-tested")


def _judge_run(run: Run, wanted: dict[str, Any], *, explained: bool) -> Iterator[Finding]:
    subject = _subject(run)
    for row in run.rows:
        yield from _judge_row(run, row, wanted, subject)
    yield from _judge_rate(run, wanted, subject)
    measured = any(row.gbps is not None or row.lat_avg_us is not None or row.lat_us is not None for row in run.rows)
    if run.empty and not explained:
        yield say(COMPLETE, subject, UNKNOWN, "a table without a row: the side that only receives", "nothing-tested")
    elif run.closed and run.rows and not measured:
        yield say(COMPLETE, subject, UNKNOWN, "the result row holds no figure above 0", "nothing-tested")
    elif not explained and not (run.closed and measured):
        what = "no result row with a figure" if not measured else "the closing line is missing"
        yield say(COMPLETE, subject, UNKNOWN, what, "output-truncated")


def _judge_row(run: Run, row: Row, wanted: dict[str, Any], subject: str) -> Iterator[Finding]:
    if row.gbps is None:
        return
    last = row is run.rows[-1]
    limit: Optional[float] = None
    if wanted["bw"] is not None:
        # Of a table of one direction the sum, which stands before it, is what is expected.
        limit = _expected(run, row.gbps, wanted["bw"]) if last and not run.side else None
    elif wanted["line"] is not None and wanted["fraction"] is not None and row.bytes >= wanted["from"]:
        # Of a sweep over sizes without a lower bound only the largest one can fill the line.
        limit = wanted["line"] * wanted["fraction"] * (2 if run.bidirectional and not run.side else 1)
        limit = limit if last or wanted["from"] else None
    if limit is not None and row.gbps < limit * (1 - 1e-9):
        side = f"{run.side} side: " if run.side else ""
        text = f"{side}{row.gbps:.2f} Gb/s average at {row.bytes} bytes, expected at least {limit:g} Gb/s"
        yield say(BANDWIDTH, subject, DEGRADED, text, found=row.gbps, expected=limit)


def _expected(run: Run, found: float, expected: float) -> float:
    """Return the expected sum: where both sides send, a sum far above what is expected shows that one was meant."""
    return expected * 2 if run.bidirectional and found >= _FAR_ABOVE * expected else expected


def _judge_rate(run: Run, wanted: dict[str, Any], subject: str) -> Iterator[Finding]:
    if wanted["rate"] is None or run.side:
        return
    small = [row for row in run.rows if not wanted["from"] or row.bytes < wanted["from"]]
    rated = [(row.msg_rate_mpps, row) for row in small if row.msg_rate_mpps is not None]
    if not rated:
        return
    rate, best = max(rated, key=lambda pair: pair[0])
    if rate < wanted["rate"]:
        text = f"{rate:g} million messages/s at {best.bytes} bytes, expected at least {wanted['rate']:g}"
        yield say(RATE, subject, DEGRADED, text, found=rate, expected=wanted["rate"])


def _subject(run: Run) -> str:
    return _key(run, "device") or run.test or NAME


def _key(run: Run, name: str) -> Optional[str]:
    return run.keys.get(name)


def _facts(record: Record) -> dict[str, Any]:
    whole = [run for run in record.runs if not run.side] or list(record.runs)
    both = [run for run in whole if not run.empty] or whole
    run = both[-1] if both else Run(None, {}, (), closed=False)
    row = run.rows[-1] if run.rows else None
    rows = run.rows
    facts: dict[str, Any] = {
        "runs": len(both),
        "rows": sum(len(item.rows) for item in record.runs),
        "test": run.test,
        "bidirectional": run.bidirectional if record.runs else None,
        "device": _key(run, "device"),
        "link_type": _key(run, "link type"),
        "mtu": integer((_key(run, "mtu") or "").partition("[")[0]),
        "gid_index": integer(_key(run, "gid index")),
        "qps": integer(_key(run, "number of qps")),
        "bytes": row.bytes if row else None,
        "iterations": row.iterations if row else None,
        "bw_average_gbps": _round(row.gbps if row else None),
        "bw_peak_gbps": _round(row.peak_gbps if row else None),
        "msg_rate_mpps": row.msg_rate_mpps if row else None,
        "max_bw_average_gbps": _round(max((item.gbps for item in rows if item.gbps is not None), default=None)),
        "lat_min_us": row.lat_min_us if row else None,
        "lat_max_us": row.lat_max_us if row else None,
        "lat_typical_us": row.lat_us if row else None,
        "lat_avg_us": row.lat_avg_us if row else None,
        "lat_p99_us": row.p99_us if row else None,
    }
    if row is not None and row.gbps is not None:
        facts["bw_peak_valid"] = row.peak_gbps is not None
    return facts


def _round(value: Optional[float]) -> Optional[float]:
    return None if value is None else round(value, 4)
