"""Read nfsstat: ``-m`` (mounts with their flags) and ``-c``/``-r``/``-s`` (counters), of nfs-utils.

Old nfsstat prints ``authrefrsh`` for what it later spells the same; percentages stand behind counts and are no counts.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.storage_mounts import Mount, options_of, plain
from weaklink.observe.tools.text import Trouble, integer

NAME = "nfsstat"
_FROM = re.compile(r"(/.*) from (\S.*?)\s*\Z")
_FLAGS = re.compile(r"\s*Flags:\s*(\S+)")
_TITLE = re.compile(
    r"(Client|Server) (rpc stats|rpc|packet stats|nfs v(?:2|3|4(?:\.\d)?)(?: servop| operations)?)(?: stats)?:?\s*\Z",
    re.IGNORECASE,
)
_NAMES = re.compile(r"[a-z_][\w]*(?:\s+[a-z_][\w]*)*\s*\Z")
_COUNTS = re.compile(r"\d+(?:\s+\d+%?)*\s*\Z")


class Record(NamedTuple):
    """Mounts of -m; counters of -c by section (``client rpc``) and name; ``version`` of NFS as the sections name it."""

    mounts: tuple[Mount, ...]
    counters: dict[str, dict[str, int]]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is nfsstat's."""
    lines = head[:65_536].splitlines()
    if any(_FROM.match(a) and _FLAGS.match(b) for a, b in zip(lines, lines[1:])):
        return 92
    return 90 if any(_TITLE.match(line) for line in lines) else 0


def parse(lines: Iterable[str]) -> Record:
    """Return mounts and counters; never raises."""
    mounts: list[Mount] = []
    counters: dict[str, dict[str, int]] = {}
    troubles: list[Trouble] = []
    section, waiting = "", 0
    names: list[str] = []
    version: Optional[str] = None
    for at, line in enumerate(lines, 1):
        match = _FROM.match(line)
        if match:
            if waiting:
                troubles.append(Trouble(waiting, "a mount without flags"))
            mounts.append(Mount(plain(match[1]), "nfs", plain(match[2]), {}))
            waiting = at
            continue
        match = _FLAGS.match(line)
        if match and waiting:
            options = options_of(match[1])
            kind = (
                "nfs4" if options.get("vers", options.get("nfsvers", "")).startswith("4") or "v4" in options else "nfs"
            )
            mounts[-1] = mounts[-1]._replace(options=options, type=kind)
            waiting = 0
            continue
        match = _TITLE.match(line.strip())
        if match:
            section, names = " ".join(match.group(0).rstrip(": ").lower().split()).replace(" stats", ""), []
            counters.setdefault(section, {})
            version = version or (match[2].lower().partition("nfs ")[2].split() or [None])[0]
        elif section and _NAMES.match(line.strip()):
            names = line.split()
        elif section and names and _COUNTS.match(line.strip()):
            values = [integer(word) for word in line.split() if not word.endswith("%")]
            if len(values) == len(names):
                counters[section].update({name: value for name, value in zip(names, values) if value is not None})
            else:
                troubles.append(Trouble(at, f"{len(values)} counts for {len(names)} names"))
            names = []
    if waiting:
        troubles.append(Trouble(waiting, "a mount without flags: the output ends there"))
    return Record(tuple(mounts), counters, version, tuple(troubles[:20]))
