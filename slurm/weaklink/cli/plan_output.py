"""Write a result whole or not at all: beside its place first, then renamed."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from weaklink.cli import UsageError

Fill = Callable[[TextIO], object]  # writes the result; bytes go to the stream's buffer


def write(path: str | None, fill: Fill) -> None:
    """Let ``fill`` write to a file, or to stdout where there is no path.

    A regular file appears at once when all is written; on any error nothing of it is left and what was there before
    stays. A device or a pipe is written straight. Raises UsageError with the path and the system's words.
    """
    if path is None:
        _to_stdout(fill)
        return
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            _straight(target, fill)
        else:
            _by_rename(target, fill)
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{path}: not written: {words}; wanted a file that can be written, with room for it; no half of it is left"
        ) from error


def _to_stdout(fill: Fill) -> None:
    try:
        fill(sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        raise  # the reader has seen enough, which is no error
    except OSError as error:
        with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())  # else Python tries once more when it ends
        raise UsageError(f"standard output: not written whole: {error.strerror or error}") from error


def _straight(target: Path, fill: Fill) -> None:
    _fill(os.open(target, os.O_WRONLY), fill)


def _by_rename(target: Path, fill: Fill) -> None:
    beside = target.with_name(f".{target.name[:200]}.{os.getpid()}.tmp")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        if target.exists():
            os.fchmod(handle, stat.S_IMODE(target.stat().st_mode))
        _fill(handle, fill, sync=True)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _fill(handle: int, fill: Fill, *, sync: bool = False) -> None:
    """Run ``fill`` on an open descriptor and close it."""
    with os.fdopen(handle, "wb") as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="\n", write_through=True)
        fill(text)
        text.flush()
        if sync:
            os.fsync(handle)
