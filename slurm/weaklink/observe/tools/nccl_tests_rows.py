"""Rows of nccl-tests' table, read by the names of the table's own header."""

import re
from typing import NamedTuple, Optional, Union

from weaklink.observe.tools.nccl_tests_records import Half, Row
from weaklink.observe.tools.text import Trouble, number

_SIZE = {"size": "size", "bytes": "size"}
_COUNT = {"count", "N"}
_TIME = {"time", "cputime"}
_ERROR = {"error", "res"}
_HEAD = 3  # size, count, type
_MIDDLE = {"redop": "redop", "op": "redop", "root": "root"}
_NAMES = re.compile(r"[#\w%]+")
_TYPE = re.compile(r"[a-z][a-z0-9_]{2,15}\Z")
_ROOT = re.compile(r"-?\d{1,9}\Z")
_BLANK_HALF = re.compile(r"^\s*\d+\s+\d+\s+\S+\s+\S+\s+-?\d+ {30,}\S")
_NUMBERISH = re.compile(r"\d{1,19}\Z")


class Columns(NamedTuple):
    """A table's columns: what stands between type and the halves, names of one half, names behind the halves."""

    middle: tuple[str, ...]
    half: tuple[str, ...]
    behind: tuple[str, ...]
    error: bool


# Without a header: the columns that most versions have, accepted only where the figures agree with each other.
_USUAL = ("time", "algbw", "busbw", "#wrong")


def header(line: str) -> Optional[Columns]:
    """Return the columns when ``line`` is the line of column names, else None."""
    if "busbw" not in line or "algbw" not in line:
        return None
    names = _NAMES.findall(line.lstrip("# \t"))
    if len(names) < _HEAD or names[0] not in _SIZE or names[1] not in _COUNT:
        return None
    starts = [place for place, name in enumerate(names) if name in _TIME]
    if not starts:
        return None
    middle = tuple(_MIDDLE.get(name, name) for name in names[_HEAD : starts[0]])
    length = starts[1] - starts[0] if len(starts) > 1 else len(names) - starts[0]
    half = tuple(names[starts[0] : starts[0] + length])
    behind = tuple(names[starts[-1] + length :])
    return Columns(middle, half, behind, any(name in _ERROR for name in half))


def read(at: int, line: str, columns: Optional[Columns]) -> Union[Row, Trouble, None]:
    """Return the row that ``line`` is; a trouble where it begins like one but is not whole; None for other lines."""
    if not line[:1].isspace() and not line[:1].isdigit():
        return None
    cells = line.split(None, 64)
    if len(cells) < _HEAD or not _NUMBERISH.match(cells[0]) or not _NUMBERISH.match(cells[1]):
        return None
    if not _TYPE.match(cells[2]):
        return None
    row = _by_header(at, line, cells, columns) if columns else _by_agreement(at, cells)
    if row is None:
        return Trouble(at, f"a row of the table that is not whole: {line.strip()[:100]!r}")
    return row


def _by_header(at: int, line: str, cells: list[str], columns: Columns) -> Optional[Row]:
    width = len(columns.half)
    behind = len(columns.behind) + ("timestamp" in columns.behind)  # a date and a time of day
    names = columns.middle
    found = len(cells) - _HEAD - 2 * width - behind
    if found == len(names) - 1 and "redop" in names and "root" in names and _ROOT.match(cells[_HEAD]):
        names = tuple(name for name in names if name != "redop")  # some versions leave the cell blank
    elif found == len(names) - width and _BLANK_HALF.match(line):
        return _only_in_place(at, cells, columns)
    elif found != len(names):
        return None
    start = _HEAD + len(names)
    first = _half(cells[start : start + width], columns.half)
    second = _half(cells[start + width : start + 2 * width], columns.half)
    if first is None or second is None:
        return None
    return _row(at, cells, names, (first, second), _iters(cells, columns))


def _only_in_place(at: int, cells: list[str], columns: Columns) -> Optional[Row]:
    start = _HEAD + len(columns.middle)
    half = _half(cells[start : start + len(columns.half)], columns.half)
    return None if half is None else _row(at, cells, columns.middle, (None, half), _iters(cells, columns))


def _by_agreement(at: int, cells: list[str]) -> Optional[Row]:
    """Read a row whose header is missing: only where size / time is the printed bandwidth in both halves."""
    middle = len(cells) - _HEAD - 2 * len(_USUAL)
    names = {0: (), 1: ("redop",), 2: ("redop", "root")}.get(middle)
    if names is None:
        return None
    start = _HEAD + middle
    halves = [_half(cells[place : place + 4], _USUAL) for place in (start, start + 4)]
    size = float(cells[0])
    for half in halves:
        if half is None or not half.time_us or half.algbw is None:
            return None
        if abs(size / half.time_us / 1e3 - half.algbw) > 0.01 + 0.02 * half.algbw:
            return None
    return _row(at, cells, names, (halves[0], halves[1]), None)


def _row(
    at: int,
    cells: list[str],
    names: tuple[str, ...],
    halves: tuple[Optional[Half], Optional[Half]],
    iters: Optional[int],
) -> Row:
    middle = dict(zip(names, cells[_HEAD:]))
    root = middle.get("root")
    return Row(
        at,
        int(cells[0]),
        int(cells[1]),
        cells[2],
        middle.get("redop"),
        int(root) if root is not None and _ROOT.match(root) else None,
        *halves,
        iters,
    )


def _half(cells: list[str], names: tuple[str, ...]) -> Optional[Half]:
    """Return one half; None where time or bandwidth is no number."""
    found = dict(zip(names, cells))
    time = number(found.get("time", found.get("cputime")))
    algbw, busbw = number(found.get("algbw")), number(found.get("busbw"))
    if time is None or algbw is None or busbw is None:
        return None
    word = found.get("#wrong", found.get("wrong", found.get("error", found.get("res"))))
    wrong = number(word)
    odd = word is not None and wrong is None and word.upper() != "N/A"
    if odd and not word_is_no_number(word):
        return None
    return Half(time, algbw, busbw, wrong, odd, number(found.get("#bitdiff")))


def word_is_no_number(word: Optional[str]) -> bool:
    """Return whether a cell holds what C prints for a value that is no finite number."""
    return (word or "").lower().lstrip("+-") in ("nan", "inf", "nan(ind)", "infinity")


def _iters(cells: list[str], columns: Columns) -> Optional[int]:
    for place, name in enumerate(reversed(columns.behind), 1):
        if name in ("#iters", "iters") and "timestamp" not in columns.behind:
            word = cells[-place]
            return int(word) if _NUMBERISH.match(word) else None
    return None
