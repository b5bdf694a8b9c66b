"""Read ``ibswinfo`` (Stanford's script for unmanaged switches): the table, and -o inventory, vitals and status.

The table has ``key | value``, with power supplies' keys indented below ``PSU0 status``; the others ``psu0.dc : OK``.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, named, nothing
from weaklink.observe.tools.text import Trouble

NAME = "ibswinfo"

_ROW = re.compile(r"(\s*)([A-Za-z][^|:]{0,40}?(?:\([a-zA-Z:-]{1,8}\))?)\s*[|:]\s(.*)\Z")
_OWN = re.compile(r"psu\d|fan#\d|fans\Z|fan status\Z|part number\Z|psid\Z|max.temp \(")
_PSU = re.compile(r"PSU(\d{1,2}) status\Z", re.IGNORECASE)


class Switch(NamedTuple):
    """Values by key in lower case; a power supply's are ``psu0.status``, ``psu0.dc power``. ``name`` from the title."""

    values: dict[str, str]
    name: Optional[str] = None
    complaints: tuple[Complaint, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    version: Optional[str] = None


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is ibswinfo's."""
    if re.search(
        r"^PSU\d+ status\s*\| |^fan#\d+ \(rpm\)\s*\| |^psu\d+\.(?:status|power \(W\))\s*: ", head, re.MULTILINE
    ):
        return 95
    return (
        60 if re.search(r"^(?:part number|PSID)\s*[|:] ", head, re.MULTILINE) and "rpm" in head else named(NAME, head)
    )


def parse(lines: Iterable[str]) -> Switch:
    """Return a switch's values; see ``Switch``."""
    values: dict[str, str] = {}
    complaints: list[Complaint] = []
    troubles: list[Trouble] = []
    psu = name = None
    ruled = False
    for at, line in bounded(lines):
        if re.match(r"[=-]{10,}\s*\Z", line):
            ruled, psu = line.startswith("="), None
            continue
        row = _ROW.match(line)
        if row:
            indent, key, value = row.group(1), row.group(2).strip().lower(), row.group(3).strip()
            supply = _PSU.match(key)
            psu = supply.group(1) if supply else psu if indent else None
            key = "status" if supply else key
            values[f"psu{psu}.{key}" if psu is not None else key] = value
            if not value:
                troubles.append(Trouble(at, f"{key}: no value"))
        elif line.strip():
            if ruled and name is None:
                name = line.strip()
            said = complaint(at, line)
            complaints += [said] if said else []
    if not any(_OWN.match(key) for key in values):
        values = {}
        troubles += nothing(tuple(complaints), "value")
    return Switch(values, name, tuple(complaints), tuple(troubles))
