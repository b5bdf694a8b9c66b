"""What readers of Slurm's tools share: a node, its states in all spellings, GPUs of a Gres, JSON of all versions. Pure.

Sources: Slurm's manual pages sinfo(1) (suffixes * # ~ ! % $ @ ^ -), scontrol(1), slurm.h (node states and flags).
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools.text import integer

BASES = frozenset({"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE", "END"})
_SUFFIXES = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
# What sinfo makes of states and flags, by short and long word.
_WORDS = {
    "alloc": ("ALLOCATED",),
    "comp": ("IDLE", "COMPLETING"),
    "completing": ("IDLE", "COMPLETING"),
    "drain": ("IDLE", "DRAIN"),
    "drained": ("IDLE", "DRAIN"),
    "drng": ("ALLOCATED", "DRAIN"),
    "draining": ("ALLOCATED", "DRAIN"),
    "fail": ("IDLE", "FAIL"),
    "failg": ("ALLOCATED", "FAIL"),
    "failing": ("ALLOCATED", "FAIL"),
    "futr": ("FUTURE",),
    "maint": ("IDLE", "MAINTENANCE"),
    "mix": ("MIXED",),
    "resv": ("IDLE", "RESERVED"),
    "reserved": ("IDLE", "RESERVED"),
    "plnd": ("IDLE", "PLANNED"),
    "planned": ("IDLE", "PLANNED"),
    "pow_dn": ("IDLE", "POWERED_DOWN"),
    "power_down": ("IDLE", "POWER_DOWN"),
    "powered_down": ("IDLE", "POWERED_DOWN"),
    "pow_up": ("IDLE", "POWERING_UP"),
    "power_up": ("IDLE", "POWERING_UP"),
    "powering_up": ("IDLE", "POWERING_UP"),
    "powering_down": ("IDLE", "POWERING_DOWN"),
    "boot": ("IDLE", "REBOOT_ISSUED"),
    "reboot": ("IDLE", "REBOOT_ISSUED"),
    "reboot^": ("IDLE", "REBOOT_ISSUED"),
    "reboot_issued": ("IDLE", "REBOOT_ISSUED"),
    "reboot_requested": ("IDLE", "REBOOT_REQUESTED"),
    "unk": ("UNKNOWN",),
    "err": ("ERROR",),
    "inval": ("IDLE", "INVALID_REG"),
    "block": ("IDLE", "BLOCKED"),
    "blocked": ("IDLE", "BLOCKED"),
    "no_respond": ("IDLE", "NOT_RESPONDING"),
    "noresp": ("IDLE", "NOT_RESPONDING"),
}
_STATE = re.compile(r"[A-Za-z][A-Za-z_]{1,30}[*~#!%$@^-]{0,3}(?:\+[A-Za-z][A-Za-z_]{1,30}[*~#!%$@^-]{0,3}){0,12}\Z")
FLAGS = frozenset(
    [
        "DRAIN",
        "DRAINED",
        "DRAINING",
        "COMPLETING",
        "NOT_RESPONDING",
        "NO_RESPOND",
        "POWERED_DOWN",
        "POWER_DOWN",
        "POWERING_DOWN",
        "POWERING_UP",
        "POWER_UP",
        "POWER",
        "MAINTENANCE",
        "MAINT",
        "RESERVED",
        "PLANNED",
        "CLOUD",
        "FAIL",
        "REBOOT",
        "REBOOT_REQUESTED",
        "REBOOT_ISSUED",
        "REBOOT_CANCELED",
        "INVALID_REG",
        "UNDRAIN",
        "RESUME",
        "DYNAMIC_NORM",
        "DYNAMIC_FUTURE",
        "BLOCKED",
        "PERFCTRS",
        "LOST",
        "POWER_DRAIN",
        "NET",
    ]
)
_GRES = re.compile(r"gpu(?::[^,:()=]{1,60}){0,3}?:(\d{1,7})([KMG]?)(?=[,(]|\Z)")
_TRES = re.compile(r"gres/gpu=(\d{1,7})(?=,|\Z)")
_KILO = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
# What a shell puts before the name of a command that it does not find.
SHELL = r"(?:\S{1,40}: )?(?:(?:line )?\d{1,6}: )?(?:\S{0,40}/)?"
ERROR = re.compile(
    r"(?:slurm_load_\w+|sinfo|scontrol|slurm_\w+)\b.{0,40}(?:error|Unable to contact|Connection refused|timed out)"
    r"|Node \S{1,80} not found|No nodes in the system|Unable to contact slurm controller.{0,80}"
    r"|(?:sinfo|scontrol): (?:command )?not found",
    re.IGNORECASE,
)


class Node(NamedTuple):
    """A node as Slurm shows it.

    ``base`` one of the base states or None where the output does not tell, ``flags`` upper-case, ``reason`` without
    its stamp, ``reason_by``/``reason_at`` who and when, ``gpus`` configured, ``memory_mb`` RealMemory.
    """

    name: str
    base: Optional[str]
    flags: tuple[str, ...]
    reason: Optional[str] = None
    reason_by: Optional[str] = None
    reason_at: Optional[str] = None
    comment: Optional[str] = None
    extra: Optional[str] = None
    gpus: Optional[int] = None
    memory_mb: Optional[int] = None
    partitions: tuple[str, ...] = ()
    version: Optional[str] = None


def states(text: str) -> Optional[tuple[Optional[str], tuple[str, ...]]]:
    """Return base state and flags of ``IDLE+DRAIN``, ``DOWN*``, ``drng@``, ``mixed``; None for what is no state."""
    if not _STATE.match(text):
        return None
    words: list[str] = []
    for part in text.split("+"):
        word = part.rstrip("*~#!%$@^-")
        upper = word.upper()
        if upper in BASES or (upper in FLAGS and (upper not in {w.upper() for w in _WORDS} or "+" in text)):
            words.append(upper)
        elif word.lower() in _WORDS:
            words += _WORDS[word.lower()]
        elif "+" in text or upper == word:
            words.append(upper)
        else:
            return None
        words += [_SUFFIXES[mark] for mark in part[len(word) :]]
    return of_words(words)


def of_words(words: Iterable[str]) -> tuple[Optional[str], tuple[str, ...]]:
    """Return base state and flags of a list of words, in whatever order and case; each flag once."""
    upper = [word.upper() for word in words]
    base = next((word for word in upper if word in BASES), None)
    flags = [
        {"NO_RESPOND": "NOT_RESPONDING", "MAINT": "MAINTENANCE"}.get(word, word) for word in upper if word not in BASES
    ]
    return base, tuple(dict.fromkeys(flags))


def gpus(gres: Optional[str], tres: Optional[str] = None) -> Optional[int]:
    """Return the GPUs of ``gpu:h100:8(S:0-1),…`` or of a TRES list; None where neither is there."""
    if gres is not None:
        plain = re.sub(r"\([^()]{0,200}\)", "", gres)
        found = [int(number) * _KILO[unit] for number, unit in _GRES.findall(plain)]
        if found:
            return sum(found)
    match = _TRES.search(tres or "")
    if match:
        return int(match.group(1))
    return 0 if gres is not None else None


def from_json(entry: Any) -> Optional[Node]:
    """Return the node of one entry of ``nodes`` in JSON of any data parser; None when it is no node."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return None
    base, flags = json_states(entry)
    partitions = entry.get("partitions")
    if isinstance(partitions, str):
        partitions = partitions.split(",")
    return Node(
        name=entry["name"],
        base=base,
        flags=flags,
        reason=word(entry.get("reason")),
        reason_by=word(entry.get("reason_set_by_user")),
        reason_at=word(json_number(entry.get("reason_changed_at"))),
        comment=word(entry.get("comment")),
        extra=word(entry.get("extra")),
        gpus=gpus(entry["gres"] if isinstance(entry.get("gres"), str) else None, word(entry.get("tres"))),
        memory_mb=json_number(entry.get("real_memory")),
        partitions=tuple(str(name) for name in partitions or () if name),
        version=word(entry.get("slurmd_version")) or word(entry.get("version")),
    )


def json_states(entry: dict[str, Any]) -> tuple[Optional[str], tuple[str, ...]]:
    """Return base state and flags: a word with ``state_flags`` beside it, a joined word, or one list."""
    found: list[str] = []
    guessed: list[str] = []
    for key in ("state", "state_flags"):
        value = entry.get(key)
        words = value if isinstance(value, list) else [value]
        for item in words:
            if isinstance(item, str) and item:
                parsed = states(item)
                base, flags = parsed or (None, (item.upper(),))
                # A flag alone ("DRAIN" in a list) implies a base state only where no other word gives one.
                alone = item.upper() in FLAGS and isinstance(value, list)
                (guessed if alone else found).extend([base] if base else [])
                found += flags
    return of_words([*found, *guessed])


def json_number(value: Any) -> Optional[int]:
    """Return a number, also one that newer data parsers wrap with ``set`` and ``infinite``."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def word(value: Any) -> Optional[str]:
    """Return a text that says something: not empty, not Slurm's ``(null)``."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value not in ("", "(null)", "N/A", "n/a") else None


def json_version(meta: Any) -> Optional[str]:
    """Return Slurm's release out of ``meta``."""
    found = meta.get("Slurm", meta.get("slurm")) if isinstance(meta, dict) else None
    if not isinstance(found, dict):
        return None
    if isinstance(found.get("release"), str):
        return str(found["release"])
    version = found.get("version")
    parts = [str(version.get(key)) for key in ("major", "minor", "micro")] if isinstance(version, dict) else []
    return ".".join(parts) if parts and all(integer(part) is not None for part in parts) else None
