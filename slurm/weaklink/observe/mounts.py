"""Mounts out of /proc/mounts. The mount points themselves are never touched: a dead server would hold us."""

import re

from weaklink.observe.records import Mount

_ESCAPE = re.compile(r"\\([0-7]{3})")
_FIELDS = 4


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)


def parse_mounts(text: str) -> dict[str, Mount]:
    """Return the mounts by mount point; where several lie on one point, the one on top."""
    found: dict[str, Mount] = {}
    for line in text.splitlines():
        parts = line.split(" ")
        if len(parts) < _FIELDS:
            continue
        options = {}
        for word in parts[3].split(","):
            key, _, value = word.partition("=")
            options[key] = _plain(value)
        found[_plain(parts[1])] = Mount(_plain(parts[1]), parts[2], _plain(parts[0]), options)
    return found
