"""Read values as NCCL does, and say where one is not what its writer meant. Pure."""

import ipaddress
import re
from typing import NamedTuple, Optional

from weaklink.lint.base import CONTRADICTION, DISCOURAGED, UNIT
from weaklink.lint.parse import COMMENT, LONG, QUOTES, RETURN, SPACE, Setting
from weaklink.lint.rule import Rule
from weaklink.lint.version import Version

NUMBERS = ("int", "size", "flag")
_STRTOLL = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_RANGE_NOTES = {"NCCL_IB_TIMEOUT": "; 0 and everything from 32 on wait for ever"}
# Distances that NCCL takes too and its guide does not list (topoPathTypeStr in src/graph/topo.cc).
_PATHS = ("NVB", "C2C", "P2C", "PXN")
_SPOILED = {
    COMMENT: "in a file only a '#' in the first column starts a comment: the rest of the line is part of the value",
    SPACE: "NCCL trims nothing: the spaces are part of the value",
    QUOTES: "NCCL knows no quotes in a file: they are part of the value",
    RETURN: "the file has DOS line ends: a carriage return is part of the value; convert it",
    LONG: "NCCL keeps 1023 bytes of a value and cuts the rest without a word",
}


class Remark(NamedTuple):
    """A judgement without its place: class and message."""

    klass: str
    message: str


def strtoll(text: str) -> tuple[Optional[int], str]:
    """Return the number that NCCL (C, any base) reads, None where there is none, and what it leaves unread."""
    match = _STRTOLL.match(text)
    if not match:
        return None, text
    digits = match[2]
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10
    number = int(digits, base)
    return (-number if match[1] == "-" else number), text[match.end() :]


def number(setting: Setting) -> Optional[int]:
    """Return what NCCL reads of a numeric setting, None where it reads no number."""
    return strtoll(setting.value)[0]


def spoiled(setting: Setting, rule: Rule) -> list[Remark]:
    """Return what is wrong with how a value is written in a configuration file."""
    found = []
    for flaw in setting.spoiled:
        harmless = rule.kind in NUMBERS and flaw in (COMMENT, SPACE, RETURN)
        if rule.kind == "hca" and flaw != QUOTES:  # a port is read with atoi, which stops at what is no digit
            harmless = ":" in setting.value.rsplit(",", 1)[-1] and "," not in setting.comment
        if harmless and flaw in (SPACE, RETURN):
            continue
        why = _SPOILED[flaw]
        if harmless:
            found.append(Remark(DISCOURAGED, f"{why}; here NCCL stops reading at it, elsewhere it breaks the setting"))
        else:
            seen = setting.raw[:60]
            found.append(Remark(CONTRADICTION, f"{why}; NCCL sees {seen!r}. Put nothing but the value after '='"))
    return found


def check(setting: Setting, rule: Rule, at: Version) -> list[Remark]:
    """Return what is wrong with a value for its kind, range and words."""
    if rule.kind in NUMBERS:
        wrong = _number_written(setting.value) or _number_allowed(strtoll(setting.value)[0] or 0, rule, at)
    else:
        wrong = _CHECKS.get(rule.kind, _anything)(setting.value, rule)
    return [] if wrong is None else [wrong]


def _anything(_value: str, _rule: Rule) -> Optional[Remark]:
    return None


def _number_written(value: str) -> Optional[Remark]:
    read, rest = strtoll(value)
    if read is None:
        return Remark(CONTRADICTION, f"{value!r} is no number; NCCL reads 0")
    if rest.strip():
        return Remark(UNIT, f"NCCL takes a plain number and reads {value!r} as {read}; write the number alone")
    if value.lstrip("+-").startswith("0") and value.lstrip("+-0") and "x" not in value.lower():
        return Remark(UNIT, f"a leading 0 makes it octal: NCCL reads {value!r} as {read}")
    return None


def _number_allowed(read: int, rule: Rule, at: Version) -> Optional[Remark]:
    if rule.kind == "flag" and read not in (0, 1):
        return Remark(CONTRADICTION, f"{read} is neither 0 nor 1")
    if rule.values and str(read) not in rule.values:
        return Remark(CONTRADICTION, f"{read} is not among the values that NCCL takes: {', '.join(rule.values)}")
    low, high = rule.low, rule.high(at)
    if (low is not None and read < low) or (high is not None and read > high):
        span = f"{'' if low is None else low} to {'…' if high is None else high}"
        note = _RANGE_NOTES.get(rule.name, "")
        return Remark(CONTRADICTION, f"{read} is outside what NCCL {at} takes, {span}{note}")
    return None


def _float(value: str, _rule: Rule) -> Optional[Remark]:
    try:
        good = float(value) > 0
    except ValueError:
        good = False
    return None if good else Remark(CONTRADICTION, f"{value!r} is no positive number; NCCL takes 1")


def _enum(value: str, rule: Rule) -> Optional[Remark]:
    if value in rule.values or (rule.ignore_case and value.upper() in rule.values):
        return None
    same = [word for word in rule.values if word.upper() == value.upper()]
    hint = f"; did you mean {same[0]}?" if same else ""
    return Remark(CONTRADICTION, f"{value!r} is not among {', '.join(rule.values)}{hint}")


def _level(value: str, rule: Rule) -> Optional[Remark]:
    if value[:1].isdigit() or value in rule.values or value in _PATHS:
        return None
    return Remark(CONTRADICTION, f"{value!r} is no distance; NCCL knows {', '.join(rule.values)} (in capitals)")


def _file(value: str, _rule: Rule) -> Optional[Remark]:
    return Remark(CONTRADICTION, "NCCL does not expand '~'; write the whole path") if value.startswith("~") else None


def _cidr(value: str, _rule: Rule) -> Optional[Remark]:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return Remark(CONTRADICTION, f"{value!r} is no network such as 10.77.0.0/16")
    return None


_CHECKS = {"float": _float, "enum": _enum, "level": _level, "file": _file, "cidr": _cidr}


def same(value: str, default: str, rule: Rule) -> bool:
    """Return whether a value says what the default says."""
    if rule.kind in NUMBERS:
        return strtoll(value)[0] == strtoll(default)[0]
    if rule.kind == "float":
        return float(value) == float(default)
    return value == default
