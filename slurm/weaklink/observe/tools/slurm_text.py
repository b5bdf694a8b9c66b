r"""Slurm's configuration syntax: comments, continuations, ``Key=Value`` pairs, host lists with underscores. Pure.

slurm.conf(5): keys in any case, ``#`` begins a comment unless written ``\#``, a line ending in ``\`` goes on, values
with blanks stand in double quotes.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Optional

from weaklink.model.hostlist import expand

_PAIR = re.compile(r'(?<![\w.])([A-Za-z][\w.]{0,60})\s*(\+?)=\s*("[^"]*"|\S*)')
_COMMENT = re.compile(r"(?<!\\)#.*")
_UNDERSCORE = ".-."  # no host name holds this; hostlist.expand knows no underscores, Slurm does
_MOST_LINES = 500


class Line(NamedTuple):
    """A logical line: its number, the pairs in order, what is left over, whether the file ends within it."""

    number: int
    pairs: tuple[tuple[str, str], ...]
    rest: str
    include: str
    open: bool


def logical(lines: Iterable[str]) -> Iterator[Line]:
    """Yield the logical lines that say something."""
    held: list[str] = []
    waiting: Optional[tuple[int, str]] = None
    begun = 0
    number = 0
    for number, raw in enumerate(lines, 1):
        line = _COMMENT.sub("", raw).rstrip()
        begun = begun or number
        if line.endswith("\\") and len(held) < _MOST_LINES:
            held.append(line[:-1])
            continue
        if waiting:
            yield from _said(*waiting, left_open=False)
        waiting = (begun, "".join([*held, line]))
        held, begun = [], 0
    if waiting:
        yield from _said(*waiting, left_open=not held and _looks_cut(waiting[1]))
    if held:
        yield from _said(begun, "".join(held), left_open=True)


def _looks_cut(text: str) -> bool:
    """Tell whether the last line of a file cannot be whole: a bracket is open, or its first word has no ``=``."""
    return text.count("[") > text.count("]") or ("=" not in text and " " not in text.strip() and bool(text.strip()))


def _said(number: int, text: str, *, left_open: bool) -> Iterator[Line]:
    text = text.strip()
    if not text:
        return
    word, _, path = text.partition(" ")
    if word.lower() == "include" and path.strip():
        yield Line(number, (), "", path.strip(), left_open)
        return
    pairs = tuple((match[1], match[3].strip('"')) for match in _PAIR.finditer(text))
    yield Line(number, pairs, _PAIR.sub("", text).strip(), "", left_open)


def hosts(text: str) -> list[str]:
    """Return the names of a host list, which may have underscores. ValueError says what is wrong."""
    return [name.replace(_UNDERSCORE, "_") for name in expand(text.replace("_", _UNDERSCORE))]


def distance(first: str, second: str) -> int:
    """Return how many letters must change, appear or go to make one word the other (at most 3 is of interest)."""
    if abs(len(first) - len(second)) > 2:  # noqa: PLR2004 - no typing error any more
        return 3
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(second, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != other))
    return row[-1]
