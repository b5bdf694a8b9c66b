"""Lines of ``Name:......value`` as perfquery and smpquery print them (libibmad's mad_dump_field). Pure."""

import re
from typing import NamedTuple, Optional

_FIELD = re.compile(r"\s*([A-Za-z][\w ]{0,40}?):\.*(.*)\Z")
_LID = re.compile(r"\bLid (\d{1,5})\b")
_PATH = re.compile(r"DR path slid \d+; dlid \d+; ([\d,]+)")
_PORT = re.compile(r"\bport (\d{1,3})\b")


class Where(NamedTuple):
    """The address in a title: ``Lid 17 port 3``, or a directed route (``0,1,4``)."""

    lid: Optional[int]
    path: Optional[str]
    port: Optional[int]

    @property
    def node(self) -> str:
        """The LID or the route, as a word."""
        return str(self.lid) if self.lid is not None else (self.path or "?")


def field(line: str) -> Optional[tuple[str, str]]:
    """Return name and value of one line, or None."""
    match = _FIELD.match(line)
    return (match.group(1), match.group(2).strip()) if match and ":." in line else None


def where(title: str) -> Where:
    """Return the address in a title."""
    lid, path, port = _LID.search(title), _PATH.search(title), _PORT.search(title)
    return Where(
        int(lid.group(1)) if lid else None, path.group(1) if path else None, int(port.group(1)) if port else None
    )
