"""Read ``opensm.conf``: one ``key value`` a line, ``#`` begins a comment, the last of several lines of a key holds.

A value may have quotes and blanks; ``(null)`` is opensm's word for "not set". Syntax by opensm's osm_subnet.c.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.ib_text import bounded
from weaklink.observe.tools.text import Trouble

NAME = "opensm.conf"

_LINE = re.compile(r"\s*([A-Za-z][\w.-]{0,63})(?:[\s:=]+(.*?))?\s*\Z")
_MARKS = re.compile(
    r"^[ \t]*(?:routing_engine|sm_priority|subnet_prefix|sweep_interval|force_link_speed|lmc)\s+\S", re.MULTILINE
)


class Setting(NamedTuple):
    """One line: value None where it says (null) or nothing."""

    line: int
    key: str
    value: Optional[str]


class Settings(NamedTuple):
    """All settings in order."""

    settings: tuple[Setting, ...]
    troubles: tuple[Trouble, ...] = ()
    version: Optional[str] = None

    def value(self, key: str) -> Optional[str]:
        """Return the value that holds: that of the last line of the key."""
        return next((setting.value for setting in reversed(self.settings) if setting.key == key), None)


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is an opensm.conf."""
    found = len(set(_MARKS.findall(head)))
    return 90 if found > 2 else 40 if found else 0  # noqa: PLR2004 - three keys of its own are conclusive


def parse(lines: Iterable[str]) -> Settings:
    """Return all settings; see ``Settings``."""
    settings: list[Setting] = []
    troubles: list[Trouble] = []
    for at, line in bounded(lines):
        text = line.strip()
        if not text or text.startswith(("#", "$ ")) or re.match(r"[=*-]{3}", text):
            continue  # a comment, or the prompt or banner that it was pasted with
        match = _LINE.match(text)
        if match is None:
            troubles.append(Trouble(at, f"no key in {text!r:.80}"))
            continue
        value = (match.group(2) or "").split(" #")[0].strip().strip('"')
        settings.append(Setting(at, match.group(1), None if value in {"", "(null)"} else value))
    if not settings and not troubles:
        troubles.append(Trouble(0, "no setting in it"))
    return Settings(tuple(settings), tuple(troubles))
