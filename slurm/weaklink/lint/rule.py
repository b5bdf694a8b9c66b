"""What is known of one NCCL variable, and short ways to write it down."""

import re
from typing import Any, NamedTuple, Optional

from weaklink.lint.version import FIRST, Version, version

SYSTEM = "system"
"""Describes the system; may stay in files."""
FABRIC = "fabric"
"""Listed under Debugging, yet its right value depends on the fabric alone, so that a site may keep it."""
DEBUGGING = "debugging"
"""For experiments; NVIDIA says not to set it in production."""
FOREIGN = "foreign"
"""Read by something else than NCCL."""

GUIDE = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"

_STEP = re.compile(r"(\d+\.\d+(?:\.\d+)?):(.*)")

Steps = tuple[tuple[Version, str], ...]


class Rule(NamedTuple):
    """One variable.

    ``kind``: int, size (bytes), flag (0 or 1), float, enum, level (how far a GPU and a NIC may be apart), hca, ifname,
    cidr, file, text. ``defaults`` and ``highs`` list (first version, value), oldest first; ``values`` are the words or
    numbers that are allowed; ``alias`` names the variable to use instead; ``where`` says where the default holds.
    """

    name: str
    section: str
    kind: str
    since: Version = FIRST
    defaults: Steps = ()
    low: Optional[int] = None
    highs: Steps = ()
    values: tuple[str, ...] = ()
    ignore_case: bool = False
    deprecated: Optional[Version] = None
    removed: Optional[Version] = None
    alias: str = ""
    where: str = ""
    unit: str = ""
    secret: bool = False
    documented: bool = True

    @property
    def source(self) -> str:
        """Where the rule comes from."""
        if not self.documented:
            return "NCCL's source (NCCL_PARAM); not in its user guide"
        return f"{GUIDE}#{self.name.lower().replace('_', '-')}"

    def default(self, at: Version) -> Optional[str]:
        """Return the default of one version, None where there is none or it depends on the machine."""
        return _step(self.defaults, at)

    def high(self, at: Version) -> Optional[int]:
        """Return the largest value that one version allows."""
        value = _step(self.highs, at)
        return None if value is None else int(value)


def _step(steps: Steps, at: Version) -> Optional[str]:
    value = None
    for since, candidate in steps:
        if at >= since:
            value = candidate
    return value or None


def steps(text: str) -> Steps:
    """Read "14 2.14:18 2.23:20": values, each with the first version that it holds for; "2.19:" ends the last."""
    found = []
    for word in text.split():
        step = _STEP.fullmatch(word)
        found.append((version(step[1]), step[2]) if step else (FIRST, word))
    return tuple(found)


def rule(section: str, name: str, kind: str, since: str = "2.0", default: str = "", **more: Any) -> Rule:
    """Return the rule of NCCL_``name``; ``default`` is read by ``steps``, ``more`` are other fields."""
    return Rule("NCCL_" + name, section, kind, version(since), steps(default))._replace(**more)
