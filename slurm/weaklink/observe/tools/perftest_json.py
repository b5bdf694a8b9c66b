"""The file of perftest's ``--out_json``.

It does not name its unit: the message rate, which has none, tells which it is. Before 23.07 most words had no quotes
and a comma stood behind the last key, so that no JSON parser reads it; one key stands on each line in all versions.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Optional

from weaklink.observe.tools.perftest_records import MIB_GBPS, Record, Row, Run
from weaklink.observe.tools.text import Trouble, integer, number, whole

MAX_KEPT = 200
_AGREE = 0.02
_OPEN = re.compile(r'^\s*"?(\w+)"?\s*:\s*([{\[])\s*$')
_CLOSE = re.compile(r"^\s*[}\]]\s*,?\s*$")
_PAIR = re.compile(r'^\s*"?([A-Za-z][\w. ]{0,60}?)"?\s*:\s*(?:"([^"]*)"|([^",{}\[\]]*?))\s*,?\s*$')


def parse(first: list[str], rest: Iterable[str]) -> Record:
    """Return what the file holds; ``first`` are its lines that have been read already."""

    def lines() -> Iterable[str]:
        yield from first
        yield from rest

    text, trouble = whole(lines())
    if trouble is not None:
        return Record(None, (), None, (trouble,), False)
    troubles: list[Trouble] = []
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        document, closed = _by_lines(text)
        if not closed:
            where = getattr(error, "lineno", 0)
            troubles.append(Trouble(where, f"not whole JSON: {error}"[:200]))
    info = document.get("test_info") if isinstance(document, dict) else None
    results = document.get("results") if isinstance(document, dict) else None
    info = info if isinstance(info, dict) else {}
    rows = []
    for item in results if isinstance(results, list) else [results]:
        row = _row(item) if isinstance(item, dict) else None
        if row is not None:
            rows.append(row)
        elif not troubles:
            troubles.append(Trouble(0, "a result without size, or with a bandwidth whose unit cannot be told"))
    if not info and not rows:
        return Record(None, (), None, tuple(troubles[:MAX_KEPT]), False)
    keys = {str(key).replace("_", " ").lower(): str(value) for key, value in info.items()}
    run = Run(_title(info), keys, tuple(rows), closed=True)
    return Record(None, (run,), None, tuple(troubles[:MAX_KEPT]), False)


def _by_lines(text: str) -> tuple[dict[str, Any], bool]:
    """Return the sections of a file without quotes, and whether it was whole; a section counts once it is closed."""
    document: dict[str, Any] = {}
    section: Optional[str] = None
    values: dict[str, str] = {}
    opened, closed = False, False
    for line in text.split("\n"):
        start, pair = _OPEN.match(line), _PAIR.match(line)
        if not line.strip():
            continue
        if closed:
            return document, False
        if not opened:
            opened = line.strip() == "{"
            if not opened:
                return {}, False
        elif start and section is None:
            section, values = start.group(1), {}
        elif _CLOSE.match(line):
            closed = section is None
            if section is not None:
                document[section] = values
                section = None
        elif pair and section is not None and len(values) < MAX_KEPT:
            values[pair.group(1).strip()] = pair.group(2) if pair.group(2) is not None else pair.group(3)
        else:
            return document, False
    return document, closed


def _title(info: dict[str, Any]) -> Optional[str]:
    """Return "RDMA_Write BW" for "RDMA_Write_BW_Test"."""
    title = re.sub(r"_Test_*\Z", "", str(info.get("test", "")).strip())
    for word in ("Bidirectional", "Post_List", "BW", "Latency"):
        title = title.replace(f"_{word}", f" {word.replace('_', ' ')}")
    return title or None


def _row(item: dict[str, Any]) -> Optional[Row]:
    size = integer(str(item.get("MsgSize")))
    if size is None:
        return None
    rate, average = _positive(item.get("MsgRate")), _positive(item.get("BW_average"))
    unit = _unit(size, rate, average)
    if average is not None and unit is None:
        return None
    peak = _positive(item.get("BW_peak"))
    return Row(
        0,
        size,
        integer(str(item.get("n_iterations"))),
        None if average is None or unit is None else average * unit,
        None if peak is None or unit is None else peak * unit,
        rate,
        _positive(item.get("t_typical")),
        _positive(item.get("t_min")),
        _positive(item.get("t_max")),
        _positive(item.get("t_avg")),
        _positive(item.get("percentile_99")),
        _positive(item.get("percentile_99.9")),
    )


def _unit(size: int, rate: Optional[float], average: Optional[float]) -> Optional[float]:
    """Return Gb/s for one of the file's unit, from rate x size = bandwidth; None where neither unit agrees."""
    if rate is None or average is None:
        return None
    truth = rate * size * 8 / 1e3
    for unit in (1.0, MIB_GBPS):
        # The figures have six and two decimals; a slow path leaves few digits.
        error = unit * 0.006 + size * 8e-3 * 6e-7
        if abs(average * unit - truth) <= _AGREE * truth + error:
            return unit
    return None


def _positive(value: Any) -> Optional[float]:
    found = None if isinstance(value, bool) or value is None else number(str(value))
    return found if found is not None and found > 0 else None
