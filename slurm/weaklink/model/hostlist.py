"""Host lists as Slurm writes them: ``c[1-3,7],gpu[001-512]``. Pure."""

import re
from collections.abc import Iterable
from typing import Optional

_MAX_HOSTS = 100_000
_PART = re.compile(r",(?![^\[]*\])")
_RANGE = re.compile(r"\[([^\[\]]*)\]")
_BOUNDS = re.compile(r"\s*(\d+)(?:-(\d+))?\s*\Z")
_LAST_NUMBER = re.compile(r"(.*?)(\d{1,9})(\D*)\Z")
_NAME = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]*\Z")


def expand(text: str) -> list[str]:
    """Return the host names in the order written, zeros kept; a name written twice is there twice.

    ValueError says what is wrong with it.
    """
    names: list[str] = []
    try:
        for part in _PART.split(text):
            names += _expand_one(part.strip())
            _refuse_too_many(names)
    except ValueError as error:
        raise ValueError(f"{error}, in the host list {text[:60]!r}") from None
    return names


def _refuse_too_many(names: list[str]) -> None:
    if len(names) > _MAX_HOSTS:
        raise ValueError(f"more than {_MAX_HOSTS} hosts")


def _expand_one(part: str) -> list[str]:
    match = _RANGE.search(part)
    if match is None:
        if not _NAME.match(part):
            raise ValueError(f"{part[:60]!r} is no host name")
        return [part]
    numbers: list[str] = []
    for item in match.group(1).split(","):
        bounds = _BOUNDS.match(item)
        if bounds is None:
            raise ValueError(f"[{match.group(1)[:60]}] is no range such as [1-3,7]")
        first, last = bounds.group(1), bounds.group(2) or bounds.group(1)
        if int(last) < int(first) or int(last) - int(first) >= _MAX_HOSTS:
            raise ValueError(f"the range {item.strip()[:60]!r} runs backwards or is too long")
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    before, after = part[: match.start()], part[match.end() :]
    if "[" in before or "]" in before:
        raise ValueError(f"brackets do not match in {part[:60]!r}")
    names: list[str] = []
    for number in numbers:
        names += _expand_one(f"{before}{number}{after}")
        _refuse_too_many(names)
    return names


def fold(names: Iterable[str]) -> str:
    """Return the names as one host list with ranges, in the order given: ``c[1-3,7],d``; ``expand`` gives them back.

    Names that differ in one number at the same place share brackets; consecutive numbers of one width share a range.
    """
    parts: list[str] = []
    runs: list[str] = []
    stem: Optional[tuple[str, str]] = None
    first = last = ""

    def end_run() -> None:
        if first:
            runs.append(first if first == last else f"{first}-{last}")

    def end_part() -> None:
        if stem is not None:
            one = len(runs) == 1 and "-" not in runs[0]
            parts.append(f"{stem[0]}{runs[0] if one else '[' + ','.join(runs) + ']'}{stem[1]}")
            runs.clear()

    for name in names:
        match = _LAST_NUMBER.match(name)
        if match is None:
            end_run()
            end_part()
            stem, first, last = None, "", ""
            parts.append(name)
            continue
        before, digits, after = match.groups()
        if (before, after) != stem:
            end_run()
            end_part()
            stem, first, last = (before, after), digits, digits
        elif digits == str(int(last) + 1).zfill(len(first)):
            last = digits
        else:
            end_run()
            first = last = digits
    end_run()
    end_part()
    return ",".join(parts)
