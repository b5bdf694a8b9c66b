"""Hold what a comment says of a value's unit against the unit that the variable has. Pure."""

import re
from typing import Optional

_TIME = {
    "us": 1e-6,
    "µs": 1e-6,
    "usec": 1e-6,
    "microsecond": 1e-6,
    "microseconds": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "millisecond": 1e-3,
    "milliseconds": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "min": 60.0,
    "mins": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
}
_SIZE = {"kb": 10, "kib": 10, "mb": 20, "mib": 20, "gb": 30, "gib": 30}
_BARE = frozenset(word for word in _TIME if len(word) > 1) - {"min"}
_WORD = re.compile(r"(?:(\d+(?:\.\d+)?)\s*)?(?<![a-zµ])(µs|[a-z]+)(?![a-z])")
_DSCP = re.compile(r"dscp\W{0,3}(\d{1,2})\b")
Claim = tuple[Optional[float], str]
EXPONENT = "it is an exponent, not a time: NCCL waits 4.096 µs * 2^value for an answer"


def timeout_seconds(exponent: int) -> Optional[float]:
    """Return the seconds of one try that an InfiniBand timeout stands for, None where it never ends."""
    return 4.096e-6 * 2.0**exponent if 1 <= exponent <= 31 else None  # noqa: PLR2004 - the field's width, as documented


def spoken(seconds: float) -> str:
    """Return a duration as people say it."""
    for size, word in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= size:
            amount = round(seconds / size, 1 if seconds < 10 * size else 0)
            return f"{amount:g} {word[:-1] if amount == 1 else word}"
    return f"{seconds:.4g} s"


def contradicts(comment: str, unit: str, value: int) -> str:
    """Return why ``comment`` misnames the unit of ``value``, empty where it does not."""
    text = comment.lower()
    claims = [(float(amount) if amount else None, word) for amount, word in _WORD.findall(text)]
    times = [(amount, word) for amount, word in claims if word in _TIME and (amount is not None or word in _BARE)]
    sizes = [(amount, word) for amount, word in claims if word in _SIZE]
    why = ""
    if unit == "traffic class":
        why = _traffic_class(text, value)
    elif unit == "exponent":
        why = _exponent(text, times)
    elif unit == "milliseconds":
        why = _milliseconds(times, value)
    elif unit in ("count", "index") and times:
        why = f"it is {'an' if unit == 'index' else 'a'} {unit}, not {times[0][1]}"
    elif unit == "bytes" and sizes and not any(_is_size(amount, word, value) for amount, word in sizes):
        why = f"it is in bytes, not {sizes[0][1].upper()}"
    return why


def _milliseconds(times: list[Claim], value: int) -> str:
    for amount, word in times:
        milliseconds = round((amount or 0) * _TIME[word] * 1000, 3)
        if not word.startswith(("ms", "milli")) and milliseconds != value:
            return f"it is in milliseconds, not {word}"
    return ""


def _exponent(text: str, times: list[Claim]) -> str:
    if not times or "exponent" in text or "4.096" in text or "2^" in text:
        return ""
    return EXPONENT


def _is_size(amount: Optional[float], word: str, value: int) -> bool:
    power = _SIZE[word]
    return amount is not None and value in (amount * 2**power, amount * 1000 ** (power // 10))


def _traffic_class(text: str, value: int) -> str:
    claim = _DSCP.search(text)
    byte = f"it is the whole traffic class byte, and {value} is DSCP {value >> 2}"
    if claim and int(claim[1]) != value >> 2:
        return f"{byte}; DSCP {claim[1]} would be {int(claim[1]) << 2}"
    return byte if not claim and re.search(r"\(\s*dscp\s*\)", text) else ""
