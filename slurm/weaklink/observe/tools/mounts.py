"""Read mounts: /proc/mounts and /etc/mtab, /proc/self/mountinfo, what ``mount`` and ``findmnt`` print.

The mount points themselves are never touched. proc(5), findmnt(8), mount(8).
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools.storage_mounts import Mount, options_of, plain
from weaklink.observe.tools.text import Trouble, whole

NAME = "mounts"
_PROC = re.compile(r"(\S+) (/\S*|none) (\S+) (\S+) (\d+) (\d+)\s*\Z")
_FSTAB_CUT = re.compile(r"\S+ /\S* \S+ \S*(?: \d*)?\Z")
_INFO = re.compile(r"\d+ \d+ \d+:\d+ \S+ (\S+) (\S+) (?:\S+:\d+ |unbindable )*- (\S+) (\S+) (\S+)\s*\Z")
_MOUNT = re.compile(r"(.+?) on (/.*) type (\S+) \(([^()]*)\)\s*(?:\[.*\])?\Z")
_MOUNT_CUT = re.compile(r".+? on /\S* (?:type \S* ?(?:\([^)]*)?)?\Z")
_TREE = " \t|`│├└─-\\"
_FINDMNT = re.compile(r"\s*TARGET\s+SOURCE\s+FSTYPE\s+OPTIONS\s*\Z")
_LONGEST = 6144  # a path has at most 4096 bytes, options a page
_MOST = 50_000


class Record(NamedTuple):
    """The mounts, in order; where several lie on one point, all are there and the last is on top."""

    mounts: tuple[Mount, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is a list of mounts."""
    lines = [line[:_LONGEST] for line in head[:65_536].splitlines() if line.strip()]
    if not lines:
        return 0
    if lines[0].lstrip().startswith("{"):
        return 90 if '"filesystems"' in head and '"target"' in head else 0
    if any(_FINDMNT.match(line) for line in lines[:5]):
        return 90
    fitting = sum(1 for line in lines if _PROC.match(line) or _INFO.match(line) or _MOUNT.match(line))
    return 90 if fitting * 2 > len(lines) else 40 if fitting else 0


def parse(lines: Iterable[str]) -> Record:
    """Return the mounts; never raises."""
    rest = iter(lines)
    troubles: list[Trouble] = []
    mounts: list[Mount] = []
    columns: Optional[list[int]] = None
    for at, line in enumerate(rest, 1):
        if not line.strip():
            continue
        if not mounts and columns is None and line.lstrip().startswith("{"):
            return _json(line, rest)
        if _FINDMNT.match(line):
            columns = [line.index(word) for word in ("TARGET", "SOURCE", "FSTYPE", "OPTIONS")]
            continue
        found = _columns(line, columns) if columns else _line(line)
        if found is None:
            if len(line) < _LONGEST and (_FSTAB_CUT.match(line) or _MOUNT_CUT.match(line)):
                troubles.append(Trouble(at, f"not a whole mount: {line[:80]!r}"))
        elif len(mounts) >= _MOST:
            troubles.append(Trouble(at, f"more than {_MOST} mounts; the rest was not read"))
            break
        else:
            mounts.append(found)
    return Record(tuple(mounts), None, tuple(troubles[:20]))


def _line(line: str) -> Optional[Mount]:
    match = _PROC.match(line)
    if match:
        return Mount(plain(match[2]), match[3], plain(match[1]), options_of(match[4]))
    match = _INFO.match(line)
    if match:
        return Mount(plain(match[1]), match[3], plain(match[4]), {**options_of(match[2]), **options_of(match[5])})
    match = _MOUNT.match(line) if len(line) < _LONGEST else None
    return Mount(match[2], match[3], match[1], options_of(match[4])) if match else None


def _columns(line: str, columns: list[int]) -> Optional[Mount]:
    """Read a row of findmnt: the options come last, the type before them; blanks part what does not fit its column."""
    cut = [line[a:b].strip() for a, b in zip(columns, [*columns[1:], None])]
    if not all(cut) or any(" " in word for word in cut[1:]):
        cells = line.split()
        if len(cells) < 4:  # noqa: PLR2004 - target, source, type, options
            return None
        cut = [" ".join(cells[:-3]), *cells[-3:]]
    target = cut[0].lstrip(_TREE)
    if not target.startswith("/"):
        return None
    return Mount(plain(target), cut[2], plain(cut[1]), options_of(cut[3]))


def _json(first: str, rest: Iterator[str]) -> Record:
    text, trouble = whole(chain([first], rest))
    troubles = [trouble] if trouble else []
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Record((), None, (*troubles, Trouble(0, f"not whole JSON: {error!s:.80}")))
    found: list[Mount] = []
    waiting: list[Any] = list(data.get("filesystems") or []) if isinstance(data, dict) else []
    while waiting and len(found) < _MOST:
        entry = waiting.pop(0)
        if not isinstance(entry, dict):
            continue
        target, kind = entry.get("target"), entry.get("fstype")
        if isinstance(target, str) and isinstance(kind, str):
            source, options = entry.get("source"), entry.get("options")
            words = options_of(options) if isinstance(options, str) else {}
            found.append(Mount(plain(target), kind, plain(source) if isinstance(source, str) else "", words))
        children = entry.get("children")
        waiting += children if isinstance(children, list) else []
    return Record(tuple(found), None, tuple(troubles))
