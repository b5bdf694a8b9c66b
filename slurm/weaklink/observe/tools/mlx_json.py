"""JSON documents inside a tool's output: one, several after one another, or behind lines of text. Pure."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from weaklink.observe.tools.mlx_common import note
from weaklink.observe.tools.text import Trouble, whole

_DEPTH = 200
_AHEAD = 40
_PIECE = 200
_BEGINS = re.compile(r"\s{0,40}(?:\{\s{0,8}(?:\"|\}|\Z)|\[\s{0,8}(?:[\[{\]]|\Z))")


class Documents(NamedTuple):
    """The JSON documents of a text, and what of it could not be read."""

    found: tuple[Any, ...]
    troubles: tuple[Trouble, ...]


def peek(lines: Iterable[str]) -> tuple[str, Iterator[str]]:
    """Return the line that tells the form of the text, and all lines once more.

    That is the first one that begins a JSON document, among the first few (a warning may stand before it); where none
    does, the first that is not blank, or an empty text.
    """
    ahead: list[str] = []
    rest = iter(lines)
    for line in rest:
        ahead.append(line)
        if _BEGINS.match(line):
            return line, itertools.chain(ahead, rest)
        if len(ahead) >= _AHEAD:
            break
    first = next((line for line in ahead if line.strip()), "")
    return first, itertools.chain(ahead, rest)


def looks_json(head: str) -> bool:
    """Tell whether a text, warnings before it aside, begins as JSON does."""
    head = head.lstrip("\ufeff")
    return any(_BEGINS.match(line) for line in head.split("\n", _AHEAD)[:_AHEAD])


def documents(lines: Iterable[str]) -> Documents:
    """Return all documents (objects, lists) that start at a line's beginning; other lines between them are skipped."""
    text, trouble = whole(lines)
    troubles = [trouble] if trouble else []
    found: list[Any] = []
    decoder = json.JSONDecoder()
    at = 0
    while True:
        at = _start(text, at)
        if at >= len(text):
            break
        if _too_deep(text, at):
            note(troubles, text.count("\n", 0, at) + 1, f"JSON nested more than {_DEPTH} deep")
            break
        try:
            document, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            where = getattr(error, "pos", at)
            note(troubles, text.count("\n", 0, where) + 1, f"the JSON is not whole: {error}"[:200])
            break
        found.append(document)
    return Documents(tuple(found), tuple(troubles))


def _start(text: str, at: int) -> int:
    """Return where the next document begins: the first line, or rest of one, that begins as JSON does."""
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        piece = text[at : min(end, at + _PIECE)]
        if _BEGINS.match(piece):
            return at + len(piece) - len(piece.lstrip())
        at = end + 1
    return at


def _too_deep(text: str, at: int) -> bool:
    """Tell whether so many brackets open that the decoder would run out of stack (strings counted too: rare)."""
    depth = 0
    for letter in text[at : at + 1_000_000]:
        if letter in "[{":
            depth += 1
            if depth > _DEPTH:
                return True
        elif letter in "]}":
            depth -= 1
            if depth == 0:
                return False
    return False


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a document that is one object or a list of them."""
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield item
