"""The ``-J`` file of nccl-tests (JSON_FILE_VERSION 1 to 3).

Booleans are the strings "true" and "false", not-a-number is "nan", a value that was not checked is null. With several
GPUs a process the list of devices holds the first one of each process alone. ``env`` is never kept: it may hold
secrets.
"""

import json
import re
import statistics
from collections.abc import Iterable
from typing import Any, Optional

from weaklink.observe.tools.nccl_tests_records import Config, Device, Half, Record, Row, Run, Said
from weaklink.observe.tools.text import Trouble, integer, number, whole

MAX_ROWS = 20_000
_LIBRARY_OLD = 10_000
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_RESULTS_DEPTH = 2


def parse(lines: Iterable[str]) -> Record:
    """Return what the file holds."""
    text, trouble = whole(lines)
    if trouble is not None:
        return _nothing(trouble)
    troubles: list[Trouble] = []
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        troubles.append(Trouble(getattr(error, "lineno", 0), f"not whole JSON: {error}"[:200]))
        document = _begun(text)
        if document is None:
            return _nothing(troubles[0])
    if not isinstance(document, dict):
        return _nothing(Trouble(0, "no JSON object"))
    config = _object(document.get("config"))
    devices = _devices(config.get("devices"))
    rows = []
    for place, item in enumerate(_list(document.get("results"))[:MAX_ROWS]):
        row = _row(item)
        if row is None:
            troubles.append(Trouble(0, f"results[{place}] has no size, time or bandwidth"))
        else:
            rows.append(row)
    bounds, average = _object(document.get("out_of_bounds")), _object(document.get("average_bus_bandwidth"))
    count, value = _integer(bounds.get("count")), _float(average.get("bandwidth"))
    run = Run(
        headers=1 if config else 0,
        summaries=0 if count is None else 1,
        averages=0 if value is None else 1,
        test=_test(document.get("args")),
        config=_config(config),
        devices=devices,
        rank0_lines=sum(device.rank == 0 for device in devices),
        ranks=_ranks(devices, config),
        rows=tuple(rows),
        out_of_bounds=count,
        out_of_bounds_failed=_true(bounds.get("okay")) is False,
        bitwise_mismatches=_integer(_object(document.get("bitwise_mismatches")).get("count")),
        average=value,
        average_failed=_true(average.get("okay")) is False,
    )
    version = _integer(document.get("version"))
    return Record(
        None if version is None else f"json {version}",
        _library(_integer(document.get("nccl_version"))),
        (run,),
        _errors(document.get("errors")),
        {},
        False,
        tuple(troubles[:50]),
    )


def _nothing(trouble: Trouble) -> Record:
    return Record(None, None, (), (), {}, False, (trouble,))


def _begun(text: str) -> Any:
    """Return what a file that was cut off held up to its last whole part; None where nothing can be told.

    The tool closes the file at its end alone, so that a run that dies leaves an open object. What was not finished is
    left out: nothing is kept below the members of the document and the items of its lists.
    """
    closers: list[str] = []
    good, ends = 0, ""
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in "{[":
            closers.append("}" if word == "{" else "]")
        elif word in "}]":
            if not closers or closers.pop() != word:
                return None
            if 0 < len(closers) <= _RESULTS_DEPTH:
                good, ends = token.end(), "".join(reversed(closers))
    try:
        return json.loads(text[:good] + ends) if good else None
    except (ValueError, RecursionError):
        return None


def _errors(items: Any) -> tuple[Said, ...]:
    """Return the library's last errors; they count only where the run did not end well."""
    words = [item.strip() for item in _list(items) if isinstance(item, str) and item.strip()]
    return tuple(Said(0, "warn", word[:400]) for word in words[:10])


def _row(item: Any) -> Optional[Row]:
    data = _object(item)
    size, count = _integer(data.get("size")), _integer(data.get("count"))
    first, second = _half(data.get("out_of_place")), _half(data.get("in_place"))
    if size is None or count is None or (first is None and second is None):
        return None
    redop = data.get("redop")
    return Row(
        0,
        size,
        count,
        str(data.get("type", "")),
        redop if isinstance(redop, str) else None,
        _integer(data.get("root")),
        first,
        second,
        _integer(data.get("actual_iterations")),
        _medians(data.get("out_of_place_per_iter")) or _medians(data.get("in_place_per_iter")),
    )


def _half(item: Any) -> Optional[Half]:
    data = _object(item)
    time, algbw = _float(data.get("time", data.get("cpu_time"))), _float(data.get("alg_bw"))
    busbw, word = _float(data.get("bus_bw")), data.get("nwrong")
    if time is None or algbw is None or busbw is None:
        return None
    wrong = _float(word)
    odd = word is not None and wrong is None and str(word).upper() != "N/A"
    return Half(time, algbw, busbw, wrong, odd, _float(_object(data.get("bitwise")).get("different_bits")))


def _medians(item: Any) -> tuple[float, ...]:
    """Return each process's median time over the iterations, us: who is slow shows here."""
    medians = []
    for times in _list(_object(item).get("per_process_max_times_us"))[:100_000]:
        values = [value for value in (_float(time) for time in _list(times)[:100_000]) if value is not None]
        if not values:
            return ()
        medians.append(statistics.median(values))
    return tuple(medians)


def _devices(items: Any) -> tuple[Device, ...]:
    found = []
    for item in _list(items):
        data = _object(item)
        rank, device = _integer(data.get("rank")), _integer(data.get("device"))
        host = data.get("hostname")
        if rank is not None and device is not None and isinstance(host, str):
            words = (str(data.get("device_hex", "")), str(data.get("device_info", "")))
            found.append(Device(rank, _integer(data.get("group")), _integer(data.get("pid")), host, device, *words))
    return tuple(found)


def _ranks(devices: tuple[Device, ...], config: dict[str, Any]) -> Optional[int]:
    each = (_integer(config.get("nthreads")) or 1) * (_integer(config.get("ngpus")) or 1)
    ranks = sorted({device.rank for device in devices})
    if not ranks:
        return None
    if len(ranks) > 1 and ranks == list(range(len(ranks))):
        return len(ranks)
    return len(ranks) * each if ranks == [place * each for place in range(len(ranks))] else None


def _config(data: dict[str, Any]) -> Config:
    factor = _integer(data.get("step_factor"))
    return Config(
        _integer(data.get("nthreads")),
        _integer(data.get("ngpus")),
        _integer(data.get("minimum_bytes")),
        _integer(data.get("maximum_bytes")),
        factor if factor is not None else _integer(data.get("step_bytes")),
        factor is not None,
        _integer(data.get("iterations")),
        _integer(data.get("validation")),
    )


def _test(args: Any) -> Optional[str]:
    words = _list(args)
    name = str(words[0]).rpartition("/")[2] if words else ""
    return name[:80] or None


def _library(code: Optional[int]) -> Optional[str]:
    """Return "2.26.2" for NCCL's version code 22602 (before 2.9 the code had one digit less)."""
    if code is None or code <= 0:
        return None
    wide = code >= _LIBRARY_OLD
    major, rest = divmod(code, 10_000 if wide else 1_000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _integer(value: Any) -> Optional[int]:
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value == value and abs(value) < 1e18 and value == int(value) else None  # noqa: PLR0124, PLR2004 - NaN; beyond that floats have no units
    return value if isinstance(value, int) else (integer(value) if isinstance(value, str) else None)


def _float(value: Any) -> Optional[float]:
    if isinstance(value, bool) or value is None:
        return None
    return number(str(value))


def _true(value: Any) -> Optional[bool]:
    return {"true": True, "false": False}.get(str(value).lower())
