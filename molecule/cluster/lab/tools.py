"""Running host tools and telling how it goes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TypeVar, cast

from .errors import LabError

T = TypeVar("T")
R = TypeVar("R")


def run(
    argv: Sequence[str],
    *,
    timeout: float = 60.0,
    check: bool = True,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a host tool and return its result with text output.

    ``timeout`` is in seconds. A LabError tells of a missing tool, a time-out or (with ``check``) a non-zero status.
    """
    try:
        result = subprocess.run(
            list(argv),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
            env=env,
        )
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]} is not installed", todo="make bootstrap") from error
    except subprocess.TimeoutExpired as error:
        seen = error.stderr or error.output or b""
        text = seen if isinstance(seen, str) else seen.decode(errors="replace")
        raise LabError(f"{' '.join(argv)}: no end after {timeout:.0f} s", output=text) from error
    if check and result.returncode != 0:
        raise LabError(
            f"{' '.join(argv)} failed", found=f"status {result.returncode}", output=result.stderr or result.stdout
        )
    return result


def parallel(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Apply ``function`` to all items at the same time; return the results in order, raise the first error.

    The threads do not outlive the process: an interrupt ends the wait at once, whatever they are doing.
    """
    outcomes: list[R | BaseException | None] = [None] * len(items)

    def work(index: int) -> None:
        try:
            outcomes[index] = function(items[index])
        except BaseException as error:  # noqa: BLE001 - handed to the caller below
            outcomes[index] = error

    threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(len(items))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return cast("list[R]", outcomes)


class Progress:
    """Tells about long steps: a running clock on a terminal, plain lines elsewhere.

    Calling it prints a line. ``step`` prints the name of a step while it runs and the seconds it took at its end.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._terminal = self._stream.isatty()

    def __call__(self, text: str) -> None:
        """Print one line."""
        self._stream.write(("\r\x1b[K" if self._terminal else "") + text + "\n")
        self._stream.flush()

    @contextlib.contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Show ``text`` while the body runs, then the time it took in seconds."""
        start = time.monotonic()
        done = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(text, start, done), daemon=True)
        if self._terminal:
            ticker.start()
        else:
            self(f"lab: {text} ...")
        outcome = "failed after"
        try:
            yield
            outcome = "done in"
        finally:
            done.set()
            if self._terminal:
                ticker.join()
            self(f"lab: {text}: {outcome} {time.monotonic() - start:.1f} s")

    def _tick(self, text: str, start: float, done: threading.Event) -> None:
        while not done.wait(0.5):
            self._stream.write(f"\r\x1b[Klab: {text} ... {time.monotonic() - start:.0f} s")
            self._stream.flush()


class Silence(Progress):
    """A progress that tells nothing; for use as a library."""

    def __call__(self, text: str) -> None:
        """Print nothing."""

    @contextlib.contextmanager
    def step(self, text: str) -> Iterator[None]:  # noqa: ARG002 - the interface names it
        """Run the body."""
        yield
