"""What the readers of InfiniBand tools share: words for states, speeds and widths, the tools' own complaints. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Optional

from weaklink.observe.tools.text import Trouble

# Speed names, and Gb/s of one lane as the tools round them: 10.0 is QDR (8b/10b) or FDR10, and four lanes of FDR are
# called 56 (InfiniBand Architecture, volume 2).
LANE_GBPS = {
    "SDR": 2.5,
    "DDR": 5.0,
    "QDR": 10.0,
    "FDR10": 10.0,
    "FDR": 14.0,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}
# One lane's signalling rate as iblinkinfo and smpquery print it, and the name of that speed.
_SIGNALLING = (
    (2.5, "SDR"),
    (5.0, "DDR"),
    (10.0, "QDR"),
    (14.0625, "FDR"),
    (14.0, "FDR"),
    (25.78125, "EDR"),
    (25.0, "EDR"),
    (53.125, "HDR"),
    (50.0, "HDR"),
    (106.25, "NDR"),
    (100.0, "NDR"),
    (212.5, "XDR"),
    (200.0, "XDR"),
)
LONGEST = 4096
_LINK = re.compile(r"\s*(\d{1,2})\s*[xX]\s*_?\s*([A-Za-z]{2,5}\d{0,3})\s*\Z")
_GUID = re.compile(r"0x[0-9a-f]{1,16}\Z", re.IGNORECASE)
_LAYERS = {"infiniband": "InfiniBand", "ib": "InfiniBand", "ethernet": "Ethernet", "iwarp": "iWARP"}

# What the tools, their library and the shell say when nothing could be asked. The words are those of ibdiag_common.c,
# libibumad and libibmad; the first group asks for root.
_NOT_ROOT = re.compile(r"Permission denied|Operation not permitted|[Mm]ust be (?:run as )?root|requires? root")
_FAILED = re.compile(
    r"\bibpanic:|\biberror:|command not found|[Nn]o such file or directory|[Cc]an't (?:init|open|list|find|serve)"
    r"|Failed to (?:open|get|query|find)\b|discover failed|Fatal error:|Usage:|invalid option|unrecognized option"
    r"|loading cached fabric failed|Connection timed out|Object \"link\" is unknown"
)
# Chatter that says nothing of the devices asked for.
_HARMLESS = re.compile(r"\s*(?:libibverbs: )?[Ww]arning:|\s*[$#] ")
# The driver's directories are not there: no device at all, or not the one asked for (ibstatus, ibstat.c).
_NO_DEVICE = re.compile(r"Fatal error: +device '.*': sys files not found|stat of IB device '.*' failed")
_NO_ANSWER = re.compile(r"Query SA failed|sa_query|SA query|SM LID is 0|no SM|NO-SM", re.IGNORECASE)


class Complaint(NamedTuple):
    """A line by which a tool said that it could not do its work: ``kind`` is not-root, no-sm, no-device or failed."""

    line: int
    kind: str
    what: str


class Link(NamedTuple):
    """A link's width (lanes) and speed name: ``Link(4, "HDR")``."""

    lanes: int
    speed: str

    @property
    def gbps(self) -> float:
        """The rate of the whole link in Gb/s, as the tools round it."""
        return self.lanes * LANE_GBPS[self.speed]

    def __str__(self) -> str:
        return f"{self.lanes}x {self.speed}"


def bounded(lines: Iterable[str], longest: int = LONGEST) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank with their numbers, from 1, none longer than ``longest``.

    No tool here prints longer lines, and no parser here needs the blank ones.
    """
    for at, line in enumerate(lines, 1):
        if line and not line.isspace():
            yield at, line if len(line) <= longest else line[:longest]


def complaint(at: int, line: str) -> Optional[Complaint]:
    """Return what line ``at`` says of the tool's own failure, or None."""
    if _HARMLESS.match(line):
        return None
    if _NOT_ROOT.search(line):
        return Complaint(at, "not-root", line.strip()[:200])
    if _NO_DEVICE.search(line):
        return Complaint(at, "no-device", line.strip()[:200])
    if _NO_ANSWER.search(line):
        return Complaint(at, "no-sm", line.strip()[:200])
    return Complaint(at, "failed", line.strip()[:200]) if _FAILED.search(line) else None


def named(name: str, head: str) -> int:
    """Return how sure it is that ``head`` is a failure of the tool ``name``: its first lines then say its name."""
    failed = rf"(?:^|[/ ]){re.escape(name)}: (?:iberror|ibpanic|command not found|error|Permission denied)"
    return 75 if re.search(failed, head[:4000], re.MULTILINE) else 0


def link(text: Optional[str]) -> Optional[Link]:
    """Return what ``4X HDR``, ``4xHDR`` or ``4x hdr`` says, or None for a width or speed that is not known."""
    match = _LINK.match(text or "")
    if match is None:
        return None
    speed = match.group(2).upper()
    return Link(int(match.group(1)), speed) if speed in LANE_GBPS else None


def speed_name(gbps: Optional[float]) -> Optional[str]:
    """Return the name of one lane's signalling rate in Gb/s (``53.125`` is HDR), or None."""
    if gbps is None:
        return None
    return next((name for rate, name in _SIGNALLING if abs(rate - gbps) < 0.02 * rate), None)


def layer(text: Optional[str]) -> Optional[str]:
    """Return a link layer in the kernel's spelling, or None for anything else."""
    return _LAYERS.get((text or "").strip().lower())


def is_guid(text: str) -> bool:
    """Tell whether ``text`` is a GUID of at most 16 hexadecimal digits after 0x."""
    return bool(_GUID.match(text))


def same_guid(one: str, other: str) -> bool:
    """Tell whether two GUIDs are the same number, however many zeros lead."""
    return is_guid(one) and is_guid(other) and int(one, 16) == int(other, 16)


def nothing(complaints: "tuple[Complaint, ...]", what: str) -> "tuple[Trouble, ...]":
    """Return the trouble of a text in which no ``what`` was found and no tool complained."""
    return () if complaints else (Trouble(0, f"no {what} in it"),)
