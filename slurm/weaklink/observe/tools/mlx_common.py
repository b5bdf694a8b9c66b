"""What the readers of the NVIDIA firmware tools share: rates, fields, complaints of the tools. Pure."""

import re
from typing import Any, Optional

from weaklink.observe.tools.ib_text import LANE_GBPS
from weaklink.observe.tools.text import Trouble

_LANES = re.compile(r"(\d{1,2})[xX]\Z")
_ETHERNET = re.compile(r"(?:Base[A-Za-z]{1,4})?(\d{1,4}(?:\.\d)?)(G|M)(?:bE|b/s)?(?:_\d{1,2}[xX])?\Z")
_INFINIBAND = re.compile(r"(?:IB-)?([A-Z]{3}(?:10)?)\Z")
_COMPLAINT = re.compile(r"\s{0,8}(?:-E-|FATAL\b|ERROR\b|Error:|error:)\s{0,4}(.{1,300})")
_NO_RIGHT = re.compile(r"permission denied|not permitted|as root|root user|superuser", re.IGNORECASE)
_MOST_TROUBLES = 50
MISSING = frozenset({"", "n/a", "na", "none", "unknown", "-", "--", "not available"})


def lanes(width: Optional[str]) -> Optional[int]:
    """Return the number of lanes of ``4x`` or ``16X``; None for anything else."""
    match = _LANES.match((width or "").strip())
    return int(match.group(1)) if match else None


def is_infiniband(speed: Optional[str]) -> bool:
    """Tell whether a speed is named as InfiniBand's are (``IB-HDR``, ``NDR``)."""
    match = _INFINIBAND.match((speed or "").strip())
    return bool(match and match.group(1) in LANE_GBPS)


def gbps(speed: Optional[str], width: Optional[str]) -> Optional[float]:
    """Return the rate in Gb/s of ``200G`` (the whole link) or of ``IB-HDR`` with ``4x``; None where not known."""
    word = (speed or "").strip()
    match = _ETHERNET.match(word)
    if match:
        value = float(match.group(1)) / (1.0 if match.group(2) == "G" else 1000.0)
        return value or None
    match = _INFINIBAND.match(word)
    count = lanes(width)
    if match is None or count is None or match.group(1) not in LANE_GBPS:
        return None
    return LANE_GBPS[match.group(1)] * count


def field(line: str) -> Optional[tuple[str, str]]:
    """Return key and value of ``Key   : value``, both stripped; None for another kind of line."""
    key, colon, value = line.partition(":")
    key = key.strip()
    return (key, value.strip()) if colon and key else None


def present(value: Any) -> Optional[str]:
    """Return a value as text, None where the tool says that it has none (``N/A``, an empty cell)."""
    text = "" if value is None else str(value).strip()
    return None if text.lower() in MISSING else text


def complaint(line: str) -> Optional[str]:
    """Return what a line says that begins as the tools' errors do (``-E- …``)."""
    match = _COMPLAINT.match(line)
    return match.group(1).strip() if match else None


def lacks_right(text: str) -> bool:
    """Tell whether an error says that the tool was not run as root."""
    return bool(_NO_RIGHT.search(text[:400]))


def nothing(first: str, complaints: list[str], troubles: list[Trouble], what: str, *, ours: bool = False) -> None:
    """Note that a text holds nothing to judge: what it says instead (``first``, its first line) is the complaint.

    An empty text, or one whose first line is the tool's own (``ours``), is a cut one and leaves a trouble.
    """
    if complaints:
        return
    if first.strip() and not ours:
        complaints.append(first.strip()[:300])
    else:
        note(troubles, 0, what)


def note(troubles: list[Trouble], line: int, what: str) -> None:
    """Add what could not be read, unless there is already more of it than anybody reads."""
    if len(troubles) < _MOST_TROUBLES:
        troubles.append(Trouble(line, what))


def plain_number(value: float) -> float:
    """Return a whole number as int, for a fact that reads as people write it."""
    return int(value) if float(value).is_integer() else value
