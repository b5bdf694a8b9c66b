"""Host lists as Slurm writes them: ``c[1-3,7],login1``. Pure."""

import re

_LIMIT = 65_536
_RANGE = re.compile(r"(\d+)(?:-(\d+))?\Z")


def expand(text: str) -> list[str]:
    """Return the names in a host list, in order, each once; ValueError says what does not parse."""
    found: dict[str, None] = {}
    for part in _split(text):
        for name in _expand_one(part):
            found[name] = None
            if len(found) > _LIMIT:
                raise ValueError(f"{text[:60]!r} names more than {_LIMIT} hosts")
    return list(found)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if depth not in (0, 1):
            raise ValueError(f"brackets do not match in {text[:60]!r}")
        if char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    if depth:
        raise ValueError(f"brackets do not match in {text[:60]!r}")
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _expand_one(part: str) -> list[str]:
    head, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    inside, _, tail = rest.partition("]")
    tails = _expand_one(tail) if tail else [""]
    names = []
    for piece in inside.split(","):
        match = _RANGE.match(piece.strip())
        if match is None:
            raise ValueError(f"{piece[:40]!r} is no number and no range, in {part[:60]!r}")
        first, last = match.group(1), match.group(2) or match.group(1)
        if int(last) < int(first) or int(last) - int(first) > _LIMIT:
            raise ValueError(f"range {piece[:40]!r} is empty or too long, in {part[:60]!r}")
        for number in range(int(first), int(last) + 1):
            names += [f"{head}{str(number).zfill(len(first))}{end}" for end in tails]
    return names
