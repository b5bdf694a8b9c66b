"""How the story is told: steps with elapsed time, quoted output, and a moving line while something takes long."""

import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Narrator:
    """Prints for a person; plain lines when the output is no terminal."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._terminal = sys.stdout.isatty()

    @property
    def elapsed(self) -> str:
        """Minutes and seconds since the story began."""
        seconds = int(time.monotonic() - self._begun)
        return f"{seconds // 60:d}:{seconds % 60:02d}"

    def step(self, title: str) -> None:
        """Open a chapter."""
        line = f"[{self.elapsed:>5}] {title}"
        print(f"\n\033[1m{line}\033[0m" if self._terminal else f"\n{line}", flush=True)

    def say(self, text: str) -> None:
        """Say one thing."""
        print(textwrap.fill(text, 110, initial_indent="        ", subsequent_indent="        "), flush=True)

    def show(self, text: str) -> None:
        """Quote what a command printed."""
        for line in text.rstrip().splitlines():
            print(f"        | {line}", flush=True)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Show that ``what`` is going on and how long it has taken."""
        begun = time.monotonic()
        over = threading.Event()

        def tick() -> None:
            while not over.wait(1.0):
                print(f"\r        … {what} ({int(time.monotonic() - begun)} s)\033[K", end="", flush=True)

        ticker = threading.Thread(target=tick, daemon=True)
        if self._terminal:
            ticker.start()
        try:
            yield
        finally:
            over.set()
            if self._terminal:
                ticker.join()
                print("\r\033[K", end="")
            print(f"        {what}: {time.monotonic() - begun:.0f} s", flush=True)
