"""Read a system's log: RFC 3164 and RFC 5424 files, journalctl in its text forms and JSON. One pass, bounded."""

import re
from collections.abc import Iterable

from weaklink.observe.tools import kernel_lines, kernel_scan
from weaklink.observe.tools.kernel_events import Record

NAME = "syslog"
_JOURNAL = re.compile(r"(?m)^-- (?:Logs begin|Journal begins|No entries|Boot [0-9a-f]{32}|Reboot|Subject:)")
_LINES = 400


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is a log in which programs speak."""
    lines = [line for line in head[:65_536].splitlines() if line.strip()][:_LINES]
    if not lines:
        return 0
    if lines[0].lstrip().startswith("{"):
        return 80 if '"__REALTIME_TIMESTAMP"' in head or ('"MESSAGE"' in head and '"_HOSTNAME"' in head) else 0
    found = [kernel_lines.split(line) for line in lines]
    said = [line for line in found if line.program is not None]
    if not said:
        return 60 if _JOURNAL.search(head) else 0
    others = sum(1 for line in said if line.program != kernel_lines.KERNEL)
    fabric = sum(1 for line in lines if "fabricmanager" in line)
    if len(said) * 2 < len(lines) or fabric * 2 > len(lines):  # that one has a reader of its own
        return 40
    return 90 if others * 10 > len(said) else 75


def parse(lines: Iterable[str]) -> Record:
    """Return what the log says of links, NICs, GPUs and file systems; never raises."""
    return kernel_scan.scan(lines)
