"""What the readers of QoS settings share: names of code points, maps by priority. Pure."""

import re
from typing import Optional

from weaklink.observe.tools.text import integer

PRIORITIES = 8
HIGHEST_DSCP = 63
# RFC 2474, 2597, 3246, 5865, 8622; the names as iproute2 prints them.
DSCP_NAMES = {
    "DEFAULT": 0,
    "BE": 0,
    "LE": 1,
    "EF": 46,
    "VA": 44,
    "VOICE-ADMIT": 44,
    **{f"CS{number}": number * 8 for number in range(8)},
    **{f"AF{number}{drop}": number * 8 + drop * 2 for number in range(1, 5) for drop in range(1, 4)},
}
_PRIORITY = re.compile(r"[0-7]\Z")


def dscp(word: str) -> Optional[int]:
    """Return the code point of ``AF41``, ``34`` or ``0x22``; None for anything else."""
    name = word.strip()
    found = DSCP_NAMES.get(name.upper())
    if found is None:
        found = integer(name)
    return found if found is not None and 0 <= found <= HIGHEST_DSCP else None


def priority(word: str) -> Optional[int]:
    """Return a priority 0..7; None for anything else."""
    return int(word) if _PRIORITY.match(word.strip()) else None
