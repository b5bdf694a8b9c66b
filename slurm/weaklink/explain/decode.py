"""Bytes to lines: encodings, binary data, lines of any length. One pass, bounded memory."""

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Optional

from weaklink.observe.tools.text import MAX_LINE

HEAD = 65_536
MAX_JSON_LINE = 4 * 1024 * 1024
_PIECE = 32_768
_BINARY = (
    (b"\x7fELF", "a program"),
    (b"PK\x03\x04", "a zip archive (unpack it first)"),
    (b"\x28\xb5\x2f\xfd", "zstd data (unpack it first)"),
    (b"7z\xbc\xaf", "a 7z archive (unpack it first)"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"%PDF-", "a PDF document"),
    (b"SQLite format 3", "a database"),
)
_CONTROL = bytes(range(9)) + bytes(range(14, 27)) + b"\x1c\x1d\x1e\x1f"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|,')


class Coding(NamedTuple):
    """How bytes are to be read; ``binary`` says what they are where they are no text."""

    name: str
    binary: Optional[str]


def coding(head: bytes) -> Coding:
    """Return how the bytes that begin with ``head`` are written: UTF-8, UTF-16 with a mark, else Latin-1."""
    for mark, what in _BINARY:
        if head.startswith(mark):
            return Coding("", what)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Coding("utf-16", None)
    nulls = head.count(0)
    # Logs after a crash hold runs of NULs; text under them is still text.
    if nulls * 3 > len(head):
        return Coding("", "binary data (mostly NULs)")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        control = len(head) - len(head.translate(None, _CONTROL)) - nulls
        return Coding("", "binary data") if control * 20 > len(head) else Coding("latin-1", None)
    return Coding("utf-8", None)


def lines(chunks: Iterable[bytes], name: str) -> Iterator[str]:
    """Yield the lines of bytes in the encoding ``name``, without their ends.

    What cannot be decoded becomes U+FFFD. A line longer than MAX_LINE is cut there, but JSON is broken at commas
    between its tokens instead, where a line's end means nothing.
    """
    decoder = codecs.getincrementaldecoder(name)(errors="replace")
    rest = ""
    cut = False
    begun = json = False
    for chunk in chunks:
        text = rest + decoder.decode(chunk)
        if not begun and text.strip("\ufeff \t\r\n"):
            begun, json = True, text.lstrip("\ufeff \t\r\n")[0] in "{["
        *whole, rest = text.split("\n")
        for line in whole:
            if not cut:
                yield from _pieces(line) if json and len(line) > MAX_LINE else (line,)
            cut = False
        if len(rest) > (MAX_JSON_LINE if json else MAX_LINE):
            if not cut:
                head, rest = _first_pieces(rest) if json else ([rest[:MAX_LINE]], "")
                yield from head
                cut = not json
            else:
                rest = ""
    rest += decoder.decode(b"", final=True)
    if rest and not cut:
        yield from _pieces(rest) if json and len(rest) > MAX_LINE else (rest,)


def _pieces(line: str) -> Iterator[str]:
    """Yield a long line of JSON in pieces that end at commas outside of strings."""
    start = 0
    for token in _TOKEN.finditer(line):
        if token.end() - start > _PIECE and token.group() == ",":
            yield line[start : token.end()]
            start = token.end()
    yield line[start:]


def _first_pieces(line: str) -> tuple[list[str], str]:
    """Return all pieces but the last, and the last."""
    *first, last = _pieces(line)
    return first, (last if len(last) <= MAX_JSON_LINE else "")
