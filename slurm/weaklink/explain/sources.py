"""What a person names (file, ``-``, directory, archive) as a stream of texts. Nothing is unpacked to disk.

Archives are read in one pass. Links, devices and names that lead outside are skipped and named; the number of members
and the bytes they unpack to are bounded.
"""

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import tarfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple, Optional

from weaklink.explain import decode

MAX_MEMBERS = 20_000
MAX_BYTES = 4 * 1024 * 1024 * 1024
_CHUNK = 262_144
_MAGIC = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\x00", "xz"))
_BROKEN = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, OSError)


class SourceError(Exception):
    """Something named cannot be read; the text says what and why."""


class Text(NamedTuple):
    """One text to explain: its name, its lines; ``why`` it has none, where that is so; whether it is of a capture."""

    name: str
    lines: Iterator[str]
    why: Optional[str] = None
    member: bool = False
    # What went wrong while the lines were read, known when they are at their end.
    broken: list[str] = []  # noqa: RUF012 - every text is given its own
    # Whether ``why`` means that something was lost, rather than left out on purpose.
    lost: bool = False


class _Ahead(io.RawIOBase):
    """A stream whose first bytes are known. What breaks it ends it, and is kept, so that nothing before it is lost."""

    def __init__(self, rest: IO[bytes]) -> None:
        super().__init__()
        self._rest: Any = rest
        self.error: Optional[str] = None
        parts: list[bytes] = []
        size = 0
        while size < decode.HEAD:
            data = self._some(decode.HEAD - size)
            if not data:
                break
            parts.append(data)
            size += len(data)
        self.head = self._left = b"".join(parts)

    def _some(self, size: int) -> bytes:
        if self.error is not None:
            return b""
        try:
            data: bytes = self._rest.read1(size)
        except _BROKEN as error:
            self.error = str(error)
            return b""
        return data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._left[: len(buffer)] or self._some(len(buffer))
        self._left = self._left[len(data) :]
        buffer[: len(data)] = data
        return len(data)


def texts(name: str) -> Iterator[Text]:
    """Yield the texts of one thing that a person named. SourceError where it cannot be read at all."""
    if name == "-":
        yield from _stream("stdin", sys.stdin.buffer, member=False)
        return
    try:
        kind = os.stat(name).st_mode  # noqa: PTH116 - node code leaves pathlib alone
        if stat.S_ISDIR(kind):
            yield from _directory(name)
            return
        with open(name, "rb") as file:  # noqa: PTH123 - the same
            yield from _stream(name, file, member=False)
    except OSError as error:
        raise SourceError(f"{name}: {error.strerror or error}; name a file, a directory, an archive or -") from error


def _directory(top: str) -> Iterator[Text]:
    count = 0
    for folder, folders, files in os.walk(top):
        folders.sort()
        for base in sorted(files):
            name = os.path.join(folder, base)  # noqa: PTH118 - node code leaves pathlib alone
            count += 1
            if count > MAX_MEMBERS:
                yield _nothing(name, f"more than {MAX_MEMBERS} files; the rest was not read", lost=True)
                return
            try:
                kind = os.lstat(name).st_mode
                if not stat.S_ISREG(kind):
                    yield _nothing(name, "skipped: a link, device or pipe")
                    continue
                with open(name, "rb") as file:  # noqa: PTH123 - the same
                    yield from _stream(name, file, member=True)
            except OSError as error:
                yield _nothing(name, f"cannot be read: {error.strerror or error}", lost=True)


def _nothing(name: str, why: str, *, lost: bool = False) -> Text:
    return Text(name, iter(()), why, member=True, lost=lost)


def _stream(name: str, stream: IO[bytes], member: bool, depth: int = 0) -> Iterator[Text]:
    ahead = _Ahead(stream)
    head = ahead.head
    whole: Any = io.BufferedReader(ahead, _CHUNK)
    packed = next((kind for mark, kind in _MAGIC if head.startswith(mark)), None)
    if not head and ahead.error is not None:
        yield Text(name, iter(()), f"cannot be unpacked: {ahead.error}", member, lost=True)
    elif packed is not None and depth == 0:
        yield from _stream(name, _unpacked(packed, whole), member, depth + 1)
    elif head[257:262] == b"ustar" and not member:
        yield from _archive(name, whole)
        if ahead.error is not None:
            yield _nothing(name, f"the archive breaks off: {ahead.error}", lost=True)
    else:
        yield _text(name, ahead, whole, member)


def _unpacked(kind: str, stream: IO[bytes]) -> Any:
    """Return a stream of what a packed one holds; it has no file of its own to close."""
    if kind == "gzip":
        return gzip.GzipFile(fileobj=stream)
    return (bz2.BZ2File if kind == "bzip2" else lzma.LZMAFile)(stream)


def _archive(name: str, stream: IO[bytes]) -> Iterator[Text]:
    read = 0
    try:
        # Memory stays bounded: members are dropped from the archive's own list once they are past.
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for count, item in enumerate(archive, 1):
                setattr(archive, "members", [])  # noqa: B010 - its list, though not part of its types
                if count > MAX_MEMBERS:
                    yield _nothing(name, f"more than {MAX_MEMBERS} members; the rest was not read", lost=True)
                    return
                if item.isdir():
                    continue
                inside = f"{name}/{item.name}"
                if not item.isreg():
                    yield _nothing(inside, "skipped: a link, device or pipe")
                    continue
                if item.name.startswith("/") or ".." in item.name.split("/"):
                    yield _nothing(inside, "skipped: its name leads outside of the archive")
                    continue
                read += item.size
                if read > MAX_BYTES:
                    why = f"more than {MAX_BYTES >> 30} GiB in the archive; the rest was not read"
                    yield _nothing(inside, why, lost=True)
                    return
                file = archive.extractfile(item)
                if file is not None:
                    yield from _stream(inside, file, member=True)
    except _BROKEN as error:
        yield _nothing(name, f"the archive breaks off: {error}", lost=True)


def _text(name: str, ahead: _Ahead, stream: IO[bytes], member: bool) -> Text:
    how = decode.coding(ahead.head)
    if how.binary is not None:
        return Text(name, iter(()), f"not a text but {how.binary}", member)
    if not ahead.head.strip(b"\0 \t\r\n"):
        return Text(name, iter(()), "empty: nothing was printed, or it was printed elsewhere", member)
    broken: list[str] = []
    return Text(name, decode.lines(_chunks(stream, ahead, broken), how.name), None, member, broken)


def _chunks(stream: IO[bytes], ahead: _Ahead, broken: list[str]) -> Iterator[bytes]:
    read = 0
    while True:
        data = stream.read(_CHUNK)
        read += len(data)
        if read > MAX_BYTES:
            broken.append(f"more than {MAX_BYTES >> 30} GiB; the rest was not read")
            return
        if not data:
            break
        yield data
    if ahead.error is not None:
        broken.append(f"breaks off after {read} bytes: {ahead.error}")
