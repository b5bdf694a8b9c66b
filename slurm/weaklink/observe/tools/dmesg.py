"""Read the kernel's log: dmesg in all its forms, ``journalctl -k``. See ``kernel_scan`` for what is looked for."""

import re
from collections.abc import Iterable

from weaklink.observe.tools import kernel_lines, kernel_scan
from weaklink.observe.tools.kernel_events import Record

NAME = "dmesg"
_STAMP = re.compile(
    r"(?:<\d{1,3}>)?(?:[a-z0-9]{3,9} *:[a-z]{3,7} *: )?\[ {0,8}(?:\d{1,9}\.\d{6}|\+\d{1,6}\.\d{1,6}"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\]"
)
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d ")
_REFUSED = re.compile(r"(?m)^dmesg: (?:read kernel buffer|klogctl) failed")
_LINES = 400


def recognise(head: str) -> int:  # noqa: PLR0911 - one return a kind of log
    """Return 0..100: how sure it is that this text is the log of the kernel alone."""
    if _REFUSED.search(head):
        return 90
    lines = [line for line in head[:65_536].splitlines() if line.strip()][:_LINES]
    if not lines:
        return 0
    if lines[0].lstrip().startswith("{"):
        return _json(lines)
    stamped = sum(1 for line in lines if _STAMP.match(line) or _ISO.match(line))
    found = [
        kernel_lines.split(line).program for line in lines if " kernel: " in line[:120] or " kernel - " in line[:160]
    ]
    if stamped and stamped * 2 >= len(lines) and not found:
        return 90
    programs = [kernel_lines.split(line).program for line in lines]
    if programs.count(kernel_lines.KERNEL) * 10 >= 9 * len(lines):
        return 90
    if stamped * 4 >= len(lines):
        return 70
    return 45 if any("NVRM: " in line or "mlx5_core " in line for line in lines) else 0


def _json(lines: list[str]) -> int:
    text = "\n".join(lines)
    if re.match(r'\s*\{\s*"dmesg"\s*:', text):
        return 92
    if '"MESSAGE"' in text and ('"_TRANSPORT":"kernel"' in text.replace(" ", "") or '"kernel"' in text):
        return 88
    return 0


def parse(lines: Iterable[str]) -> Record:
    """Return what the log says; never raises; one pass, memory bounded by the number of devices."""
    return kernel_scan.scan(lines)
