"""Judge ``nvidia-smi --query-…= --format=csv``: faults in place of values, rows, pages, ECC, counts. Pure."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Optional

from weaklink.checks.tools import nvidia_common as common
from weaklink.checks.tools.base import TRUNCATED, Context, Judged, close, demand, say
from weaklink.checks.tools.nvidia_memory import MEMORY_RULES, Memory, judge_memory
from weaklink.checks.tools.nvidia_state import STATE_RULES, judge_fabric, judge_recovery
from weaklink.model.finding import DEGRADED, FAIL, OK, UNKNOWN, Finding
from weaklink.observe.tools import nvidia_words as words
from weaklink.observe.tools.nvidia_smi_csv import (
    GPU_QUERY,
    NAME,
    PAGE_QUERY,
    PROCESS_QUERY,
    ROW_QUERY,
    Record,
    Row,
    canonical,
)
from weaklink.observe.tools.text import integer

RULES = (*common.RULES, *MEMORY_RULES, *STATE_RULES)
_OF_GPUS = frozenset({GPU_QUERY, ROW_QUERY})
_YES = {"yes": True, "no": False, "1": True, "0": False, "true": True, "false": False}


def _number(row: Row, *fields: str) -> Optional[int]:
    for field in fields:
        cell = row.cells.get(field)
        if cell is not None:
            word = cell.split(" ")[0] if cell else ""
            return integer(word)
    return None


def _flag(row: Row, field: str) -> Optional[bool]:
    """Return what a yes-or-no field says; a number above 1 counts rows and is a yes."""
    cell = row.cells.get(field, "").strip().lower()
    if cell in _YES:
        return _YES[cell]
    number = integer(cell)
    return number > 0 if number is not None else None


def _total(parts: Iterable[Optional[int]]) -> Optional[int]:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _memory(record: Record) -> list[Memory]:
    pages = [row for row in record.rows if row.kind == PAGE_QUERY]
    return _pages(pages) + [
        Memory(
            row.subject,
            _total([_number(row, "remapped_rows.correctable"), _number(row, "remapped_rows.uncorrectable")]),
            _flag(row, "remapped_rows.pending"),
            _flag(row, "remapped_rows.failure"),
            _number(row, "retired_pages.single_bit_ecc.count"),
            _number(row, "retired_pages.double_bit.count"),
            _flag(row, "retired_pages.pending"),
            _number(row, "ecc.errors.uncorrected.volatile.total", "ecc.errors.uncorrected.volatile.device_memory"),
        )
        for row in record.rows
        if row.kind in _OF_GPUS
    ]


def _pages(rows: list[Row]) -> list[Memory]:
    """Count pages a GPU: a row without an address stands for none."""
    single: Counter[str] = Counter()
    double: Counter[str] = Counter()
    subjects: dict[str, None] = {}
    for row in rows:
        named = row.bus or row.uuid or row.cells.get("serial")
        subject = named or "gpu"
        subjects[subject] = None
        address = row.cells.get("retired_pages.address")
        if address is not None and integer(address) is None:
            continue
        cause = row.cells.get("retired_pages.cause", "").lower()
        if "double" in cause or "dbe" in cause:
            double[subject] += 1
        else:
            single[subject] += 1
    return [Memory(name, None, None, None, single[name], double[name], None, None) for name in subjects]


def _faults(record: Record, required: list[str]) -> tuple[list[Finding], list[Row]]:
    """Return what cells without a value mean: a lost GPU whatever the field, else the required fields (all if none)."""
    found: list[Finding] = []
    bad: list[Row] = []
    for row in record.rows:
        kinds = {field: words.fault(cell) for field, cell in row.cells.items() if cell[:1] == "[" or "!" in cell}
        hits = {field: kind for field, kind in kinds.items() if kind in {words.LOST, words.RESET, words.UNREADABLE}}
        counts = {f: k for f, k in hits.items() if not required or f in required or k != words.UNREADABLE}
        where = f"line {row.line}: {', '.join(hits)}"[:200]
        said = common.broken(row.subject, [kind for kind in counts.values() if kind], where)
        if not said and row.kind in _OF_GPUS:
            said = _lacking(row, required)
        if any(finding.status == FAIL for finding in said):
            bad.append(row)
        elif hits:
            message = f"GPU {row.subject}: no readable value ({where}), in fields that required_fields does not name"
            said.append(say(common.HANDLE, row.subject, OK, message))
        found += said
    return common.lost_first(found), bad


def _states(record: Record) -> list[Finding]:
    """Return what GPUs say of the recovery that they need and of their part in the fabric."""
    found = []
    for row in record.rows:
        action = row.cells.get("gpu_recovery_action", "")
        required = _flag(row, "reset_status.reset_required")
        recommended = _flag(row, "reset_status.drain_and_reset_recommended")
        found += judge_recovery(row.subject, action, required, recommended)
        found += judge_fabric(row.subject, row.cells.get("fabric.state", ""), row.cells.get("fabric.status", ""))
    return found


def _lacking(row: Row, required: list[str]) -> list[Finding]:
    """Return what it means that required fields of a GPU have no value; the tool may not be allowed to read them."""
    lacking = [field for field in required if field in row.cells and not _readable(row.cells[field])]
    if not lacking:
        return []
    message = f"GPU {row.subject}: no value for {', '.join(lacking)} (line {row.line}), which is required"
    if all(words.fault(row.cells[field]) == words.FORBIDDEN for field in lacking):
        return [say(common.RAN, row.subject, UNKNOWN, f"{message}: run it as root", "not-root")]
    return [say(common.HANDLE, row.subject, FAIL, message, "gpu-not-readable")]


def _readable(cell: str) -> bool:
    return bool(cell) and not words.absent(cell) and words.fault(cell) is None


def _links(record: Record) -> tuple[list[Finding], list[str]]:
    """Return what widths of the PCIe links say, and generations of those of busy GPUs."""
    found = []
    narrow = []
    for row in record.rows:
        now, most = _number(row, "pcie.link.width.current"), _number(row, "pcie.link.width.max")
        if now is not None and most is not None and 0 < now < most:
            message = f"GPU {row.subject}: PCIe link is x{now}, it can have x{most}; {common.WIDTH.remedy}"
            found.append(say(common.WIDTH, row.subject, DEGRADED, message, current=now, maximum=most))
            narrow.append(row.subject)
        now, most = _number(row, "pcie.link.gen.current"), _number(row, "pcie.link.gen.max")
        busy = _number(row, "utilization.gpu")
        if busy and now is not None and most is not None and 0 < now < most:
            message = (
                f"GPU {row.subject}: PCIe generation {now} of {most} though it is {busy}% busy; {common.WIDTH.remedy}"
            )
            found.append(say(common.WIDTH, row.subject, DEGRADED, message, current=now, maximum=most))
            narrow.append(row.subject)
    return found, narrow


def _listed(record: Record) -> Optional[int]:
    """Return how many GPUs are listed; None where rows are processes or pages, or none could be read."""
    rows = [row for row in record.rows if row.kind in _OF_GPUS]
    columns = ("pci.bus_id", "uuid", "serial", "index")
    by = next((name for name in columns if rows and all(row.cells.get(name) for row in rows)), None)
    if record.header is None:
        sure = all(row.bus or "index" in row.cells or len(row.cells) == 1 for row in rows)
        return len({row.bus or row.uuid or str(row.line) for row in rows}) or None if sure else None
    return len({row.cells[by] if by else str(row.line) for row in rows}) or None


def _untold(record: Record, required: list[str], context: Context) -> list[Finding]:
    """Return what the output lacks to be judged at all."""
    found = []
    if record.header is not None:
        lacking = [field for field in required if field not in record.header]
        if lacking:
            message = f"the query did not ask for {', '.join(lacking)}, which required_fields names"
            found.append(say(common.RAN, "query", UNKNOWN, message))
    elif record.rows and not any(context.get(key) for key in ("expected_gpus", "expected_bus_ids")):
        message = "no header names the columns, so that their values mean nothing; run it without noheader"
        found.append(say(common.RAN, "query", UNKNOWN, message, TRUNCATED))
    if record.header is not None and not record.rows and not record.notices and record.kind not in _MAY_BE_EMPTY:
        found.append(say(common.RAN, "query", UNKNOWN, "a header and no row of values", TRUNCATED))
    return found


_MAY_BE_EMPTY = frozenset({PROCESS_QUERY, PAGE_QUERY})


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; ``required_fields``, ``expected_gpus`` and ``max_retired_pages`` are demands."""
    required = [canonical(str(field)) for field in demand(context, "required_fields", list, [])]
    faults, bad = _faults(record, required)
    memory = judge_memory(_memory(record), context)
    links, narrow = _links(record)
    listed = _listed(record)
    buses = [row.bus for row in record.rows if row.bus]
    whole = not record.cut
    findings = common.said_by_notices(record.notices, NAME) + faults
    findings += common.counted(listed, buses, record.notices, context, whole=whole)
    states = _states(record)
    failing = {finding.subject for finding in states if finding.status == FAIL}
    bad += [row for row in record.rows if row.subject in failing and row not in bad]
    findings += memory.findings + states + links + _untold(record, required, context)
    none = any(item.kind == words.NO_DEVICES for item in record.notices)
    facts: dict[str, Any] = {
        "gpus": (0 if none else None) if listed is None or not whole else listed,
        "kind": record.kind,
        "bad_gpus": [row.subject for row in bad] + common.lost_named(record.notices),
        "bad_indexes": [row.number for row in bad if row.number is not None] + common.lost_indexes(record.notices),
        "not_applicable_cells": sum(words.absent(cell) for row in record.rows for cell in row.cells.values()),
        "narrow_links": list(dict.fromkeys(narrow)),
        "nvml_library": record.library,
        **memory.facts,
    }
    if record.library or any(item.kind == words.MISMATCH for item in record.notices):
        facts["hardware_fault"] = False
    return close(NAME, facts, findings, record.troubles, "every GPU's values are readable")
