"""Read /proc/self/mountstats: which NFS mounts there are, and over which transport each one really goes.

Layout: net/sunrpc/xprtsock.c and xprtrdma/transport.c (``xprt:`` lines, one for each connection of nconnect),
fs/nfs/super.c (``opts:``). Also the report of mountstats(8) of nfs-utils, as far as it says the same.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.storage_mounts import NFS, Mount, options_of, plain
from weaklink.observe.tools.text import Trouble

NAME = "mountstats"
_DEVICE = re.compile(r"device (.+) mounted on (/.*) with fstype (\S+)(?: statvers=(\S+))?\s*\Z")
_DEVICE_CUT = re.compile(r"device .*\Z")
_NONE = re.compile(r"no device mounted on (/.*) with fstype (\S+)\s*\Z")
_XPRT = re.compile(r"\s+xprt:\s+(\S+)(?:\s+\d|\s*\Z)")
_OPTS = re.compile(r"\s+opts:\s+(\S+)")
_STATS = re.compile(r"Stats for (.+) mounted on (/.*):\s*\Z")
_REPORT = re.compile(r"\s+NFS mount options: (\S+)")
_LONGEST = 6144  # a path has at most 4096 bytes
_MOST = 50_000


class NfsMount(NamedTuple):
    """An NFS mount: the transports of its connections as used, and the mount with its options."""

    mount: Mount
    transports: tuple[str, ...]
    line: int

    @property
    def transport(self) -> Optional[str]:
        """The transport: of the connections, or else the option's; None where nothing says it."""
        if not self.transports:
            return self.mount.proto
        return self.transports[0] if len(set(self.transports)) == 1 else "+".join(dict.fromkeys(self.transports))


class Record(NamedTuple):
    """All mounts' count, the NFS ones, ``version`` of the statistics."""

    mounts: int
    nfs: tuple[NfsMount, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is mountstats'."""
    lines = [line[:_LONGEST] for line in head[:65_536].splitlines()]
    if any(_DEVICE.match(line) for line in lines):
        return 92
    return 85 if any(_STATS.match(line) for line in lines) else 0


def parse(lines: Iterable[str]) -> Record:
    """Return the NFS mounts; never raises."""
    found: list[NfsMount] = []
    troubles: list[Trouble] = []
    version: Optional[str] = None
    mounts, current = 0, False
    for at, line in enumerate(lines, 1):
        match = (_DEVICE.match(line) or _STATS.match(line)) if len(line) < _LONGEST else None
        if match:
            mounts += 1
            kind = match[3] if match.re is _DEVICE else "nfs"
            current = kind in NFS and len(found) < _MOST
            if current:
                version = (match[4] if match.re is _DEVICE else None) or version
                found.append(NfsMount(Mount(plain(match[2]), kind, plain(match[1]), {}), (), at))
        elif line[:1] not in (" ", "\t", ""):
            current = False
            mounts += 1 if _NONE.match(line) else 0
            if _DEVICE_CUT.match(line):
                troubles.append(Trouble(at, f"not a whole mount: {line[:80]!r}"))
        elif current:
            found[-1] = _detail(found[-1], line)
    troubles += [
        Trouble(entry.line, f"{entry.mount.point}: its transport does not follow")
        for entry in found
        if not entry.transport
    ]
    return Record(mounts, tuple(found), version, tuple(troubles[:20]))


def _detail(entry: NfsMount, line: str) -> NfsMount:
    match = _XPRT.match(line)
    if match:
        return entry._replace(transports=(*entry.transports[:63], match[1].lower()))
    match = _OPTS.match(line) or _REPORT.match(line)
    if match and not entry.mount.options:
        return entry._replace(mount=entry.mount._replace(options=options_of(match[1])))
    return entry
