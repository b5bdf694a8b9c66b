"""NCCL versions: read, compare, print."""

import re
from typing import NamedTuple

_TEXT = re.compile(r"v?(\d{1,2})\.(\d{1,3})(?:\.(\d{1,3}))?(?:[-+_].{0,40})?")
_CODE = re.compile(r"(\d)(\d\d)(\d\d)")


class Version(NamedTuple):
    """A version of NCCL."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}" if self.patch else f"{self.major}.{self.minor}"


def version(text: str) -> Version:
    """Return the version that "2.27.3", "2.27", "2.27.3-1+cuda12.9" or NCCL's own code "22703" names.

    Raises ValueError with what was found and what is wanted.
    """
    match = _TEXT.fullmatch(text.strip()) or _CODE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text[:40]!r} is no version of NCCL; wanted one such as 2.27.3")
    major, minor, patch = match.groups()
    return Version(int(major), int(minor), int(patch or 0))


FIRST = Version(2, 0)
# The newest version that the table of variables knows.
NEWEST = Version(2, 32)
