"""A text in parts: one part an output, told by the command lines and banners in front of them. One pass."""

import re
from collections.abc import Iterable, Iterator
from typing import Callable, NamedTuple, Optional

from weaklink.explain.commands import Prompt, prompt

HEAD = 65_536
# An output may begin deep in a job's log: so many heads are looked through.
WINDOWS = 64
SAME, OVER, OTHER = "same", "over", "other"
_RULE = re.compile(r"-{15,16}\Z")
_HOSTS = re.compile(r"[A-Za-z0-9][\w.,\[\]-]{0,1000}(?: \(\d+\))?\Z")


class Line(NamedTuple):
    """One line, its number from 1, and the prompt that it is (its text is then empty)."""

    at: int
    text: str
    prompt: Optional[Prompt] = None


def marked(lines: Iterable[str]) -> Iterator[Line]:
    """Yield the lines, those that are prompts or banners (also of ``clush -b`` and ``dshbak``) emptied and marked."""
    hashes = True
    rest = enumerate(lines, 1)
    waiting: list[tuple[int, str]] = []
    while True:
        if waiting:
            at, text = waiting.pop(0)
        else:
            nothing = next(rest, None)
            if nothing is None:
                return
            at, text = nothing
        if _RULE.match(text):
            while len(waiting) < 2:  # noqa: PLR2004 - a banner has three lines
                more = next(rest, None)
                if more is None:
                    break
                waiting.append(more)
            if len(waiting) >= 2 and waiting[1][1] == text and _HOSTS.match(waiting[0][1]):  # noqa: PLR2004 - the same
                yield Line(at, "")
                yield Line(waiting[0][0], "", Prompt(waiting[0][1].split(" ")[0], ""))
                yield Line(waiting[1][0], "")
                del waiting[:2]
                continue
        found = prompt(text, hashes)
        if found is None:
            hashes = hashes and not text.strip()
            yield Line(at, text)
        else:
            hashes = True
            yield Line(at, "", found)


class Parts:
    """The parts of a text, read one after the other.

    ``load`` reads the head of the next part (False at the end); ``lines`` then yields the part's lines, and goes on
    into the parts behind as long as they belong to it. ``over`` holds the lines of parts that were passed over.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._rest = marked(lines)
        self._ahead: Optional[Line] = None
        self._buffer: list[str] = []
        self._passed = 0
        self._windows = 0
        self._open = False
        self._loaded = False
        self._end = 0
        self.over: list[tuple[int, int]] = []
        self.prompt: Optional[Prompt] = None
        self.first = 1

    def load(self) -> bool:
        """Read the head of the next part, unless it has been read already; what is left of the one before is lost."""
        if not self._loaded:
            for _ in self._until_prompt():
                pass
            self._read_head()
        return self._loaded

    @property
    def last(self) -> int:
        """The number of the last line that has been yielded."""
        return self.first - 1 if self._loaded else self._end

    @property
    def short(self) -> bool:
        """Whether the head that has been loaded is the whole part."""
        return not self._open

    @property
    def blank(self) -> bool:
        """Whether nothing is in the head that has been loaded."""
        return not any(text.strip() for text in self._buffer)

    def head(self) -> str:
        """Return the first lines of the part that has been loaded."""
        return "\n".join(self._buffer[self._passed :])

    def onward(self) -> bool:
        """Let ``head`` show what comes next in the part, and drop what lies before the last head; False at the end."""
        if not self._open or self._windows >= WINDOWS:
            return False
        self.first += self._passed
        self._buffer = self._buffer[self._passed :]
        self._passed = len(self._buffer)
        self._windows += 1
        size = 0
        for text in self._stream():
            self._buffer.append(text)
            size += len(text) + 1
            if size > HEAD:
                break
        return len(self._buffer) > self._passed

    def lines(self, belongs: Callable[[], str]) -> Iterator[str]:
        """Yield the lines of the part that has been loaded, and of the parts behind it that belong to it.

        ``belongs`` is asked about each of those once it is loaded: SAME, OVER (pass it over and go on) or OTHER.
        """
        self.over = []
        yield from self._until_prompt()
        while self._ahead is not None:
            self._read_head()
            answer = belongs()
            if answer == OTHER:
                return
            if answer == SAME:
                yield from self._until_prompt()
                continue
            first = self.first
            for _ in self._until_prompt():
                pass
            self.over.append((first, self._end))

    def _read_head(self) -> None:
        self._buffer = []
        self._passed = self._windows = 0
        self.prompt = None
        self._open = True
        size = 0
        blank = True
        while size <= HEAD:
            line = self._ahead or next(self._rest, None)
            self._ahead = None
            if line is None:
                self._open = False
                break
            if line.prompt is not None:
                if not blank:
                    self._ahead = line
                    self._open = False
                    break
                # A command that printed nothing, or a host's banner in front of a command.
                before: Optional[Prompt] = self.prompt
                host = line.prompt.host or (before.host if before is not None else "")
                self.prompt = Prompt(host, line.prompt.command)
            if not self._buffer:
                self.first = line.at
            self._buffer.append(line.text)
            self._end = line.at
            size += len(line.text) + 1
            blank = blank and not line.text.strip()
        self._loaded = bool(self._buffer)

    def _until_prompt(self) -> Iterator[str]:
        self._loaded = False
        yield from self._buffer
        self._buffer = []
        yield from self._stream()

    def _stream(self) -> Iterator[str]:
        while self._open:
            line = next(self._rest, None)
            if line is None:
                self._open = False
            elif line.prompt is not None:
                self._ahead = line
                self._open = False
            else:
                self._end = line.at
                yield line.text
