"""Read sminfo: which subnet manager answers, and in what state. Part of infiniband-diags (sminfo.c)."""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.ib_text import Complaint, bounded, complaint, named
from weaklink.observe.tools.text import Trouble, integer

NAME = "sminfo"

# Old versions end behind the priority, so that a line cut there looks like theirs; some print the LID in hexadecimal.
_LINE = re.compile(
    r"\s*sminfo: sm lid (0x[0-9a-fA-F]{1,4}|\d{1,5}) sm guid (0x[0-9a-fA-F]{1,16}), activity count (\d{1,10})"
    r" priority (\d{1,2})(?:\s+state \d{1,2} SMINFO_(NOTACT|DISCOVER|STANDBY|MASTER))?\s*\Z"
)


class Manager(NamedTuple):
    """A subnet manager's answer: its LID and GUID, priority, state (MASTER, STANDBY…; None where not printed)."""

    lid: Optional[int]
    guid: str
    activity: Optional[int]
    priority: Optional[int]
    state: Optional[str]


class Record(NamedTuple):
    """The answers in their order, and the tool's own errors."""

    managers: tuple[Manager, ...]
    complaints: tuple[Complaint, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is sminfo's."""
    return 92 if re.search(r"(?m)^\s{0,8}sminfo: sm lid ", head[:65_536]) else named(NAME, head)


def parse(lines: Iterable[str]) -> Record:
    """Return what was answered; never raises."""
    managers: list[Manager] = []
    complaints: list[Complaint] = []
    troubles: list[Trouble] = []
    for at, line in bounded(lines):
        match = _LINE.match(line)
        said = complaint(at, line)
        if match:
            lid, activity, priority = (integer(match[number]) for number in (1, 3, 4))
            managers.append(Manager(lid, match[2], activity, priority, match[5]))
        elif said:
            complaints.append(said)
        elif "sminfo:" in line:
            troubles.append(Trouble(at, f"not a whole answer: {line.strip()[:80]!r}"))
    if not (managers or complaints or troubles):
        troubles.append(Trouble(0, "no answer of a subnet manager is in the text"))
    return Record(tuple(managers), tuple(complaints), None, tuple(troubles[:20]))
