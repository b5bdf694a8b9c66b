"""What all parsers share: lines as a terminal would show them, numbers, trouble by line. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Optional

MAX_LINE = 65_536
MAX_WHOLE = 16 * 1024 * 1024
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_INTEGER = re.compile(r"[+-]?\d{1,40}\Z")
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,40}\Z")
_NUMBER = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?\Z")


class Trouble(NamedTuple):
    """Something that could not be read: the number of its line (from 1; 0 for the text as a whole), and what it is."""

    line: int
    what: str


def clean(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines without line ends, carriage returns, byte order mark, terminal escapes, NULs; long ones cut.

    What a progress display overwrote (text before a lone carriage return) is dropped, as a terminal would show it.
    """
    for at, raw in enumerate(lines):
        line = raw[:MAX_LINE].rstrip("\r\n")
        if at == 0:
            line = line.lstrip("\ufeff")
        if "\r" in line:
            line = line.rpartition("\r")[2]
        if "\x1b" in line:
            line = _ANSI.sub("", line)
        yield line.replace("\0", "") if "\0" in line else line


def whole(lines: Iterable[str], limit: int = MAX_WHOLE) -> tuple[str, Optional[Trouble]]:
    """Return the lines as one text of at most ``limit`` characters, and a trouble when there was more."""
    kept: list[str] = []
    size = 0
    for at, line in enumerate(lines, 1):
        size += len(line) + 1
        if size > limit:
            return "\n".join(kept), Trouble(at, f"more than {limit} characters; the rest was not read")
        kept.append(line)
    return "\n".join(kept), None


def integer(text: Optional[str]) -> Optional[int]:
    """Return a decimal or 0x number, or None for anything else."""
    word = (text or "").strip()
    if _INTEGER.match(word):
        return int(word)
    return int(word, 16) if _HEX.match(word) else None


def number(text: Optional[str]) -> Optional[float]:
    """Return a decimal number (also ``15E-255``), or None for anything else, ``nan`` and ``inf`` included."""
    word = (text or "").strip()
    return float(word) if _NUMBER.match(word) else None
