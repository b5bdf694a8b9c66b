"""Lines of the kernel's log, as dmesg, journalctl and syslog write them, taken apart: who says it, and what. Pure.

Known fronts: dmesg's ``[ 12.345678]``, ``[Wed Mar  5 18:20:41 2025]`` (-T), ``[  +0.000012]`` (-d), ISO times, the
``kern  :err   :`` of -x, the ``<6>`` of -r, ``[ T1234]`` of kernels that print the caller; journalctl's and syslog's
``Mar  5 18:20:41 host program[pid]:`` (RFC 3164), ``<3>1 2025-… host program pid - -`` (RFC 5424), the forms
short-iso, short-full, short-unix, short-monotonic; JSON of journalctl (lines or pretty) and of ``dmesg --json``.
"""

import json
import re
from typing import NamedTuple, Optional

_MONTH = r"[A-Z][a-z]{2}"
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_PRIORITY = re.compile(r"<\d{1,3}>(?:1 (?=\d{4}-))?")
_FACILITY = re.compile(r"[a-z0-9]{3,9} *:[a-z]{3,7} *: ")
_BRACKET = re.compile(
    r"\[ {0,12}(?:\d{1,12}\.\d{1,9}|<? {0,12}\+?\d{1,12}\.\d{1,9}>?|[TC] {0,8}\d{1,8}"
    r"|[^\W\d]{2,12}\.? {0,2}(?:[^\W\d]{2,12}\.? {0,2})?\d{1,2}[^\[\]]{4,40})\] ?"
)
_STAMP = re.compile(
    rf"(?:{_MONTH} [ \d]\d (?:\d{{4}} )?\d\d:\d\d:\d\d(?:\.\d{{1,9}})?|{_ISO}"
    rf"|{_MONTH} \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z+\-\d:]{{1,8}}|\d{{9,11}}\.\d{{1,9}})(?: (?=\S)|\Z)"
)
_PROGRAM = re.compile(r"([^\s\[\]:]{1,80})(?:\[\d{1,10}\])?: ?")
_HOST = re.compile(r"(\S{1,255}) +")
_RFC5424 = re.compile(r"(\S{1,80}) (?:-|\d{1,10}) \S{1,64} (?:-|\[[^\n]{0,400}?\]) ?")
_MEMBER = re.compile(r'"(?:MESSAGE|msg)"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.)*")')
_BYTES = re.compile(r'"MESSAGE"\s{0,4}:\s{0,4}\[([\d,\s]{1,65536})\]')
_WHO = re.compile(r'"(?:SYSLOG_IDENTIFIER|_COMM)"\s{0,4}:\s{0,4}"([^"\\]{1,80})"')
_TIMES = re.compile(r"message repeated (\d{1,6}) times: \[ ?(.*?)\]?\Z")
_LAST = re.compile(r"last message repeated (\d{1,6}) times")
KERNEL = "kernel"


class Line(NamedTuple):
    """A message: the program that says it (``kernel``, or None where the form does not tell), text, how many times.

    ``text`` is None for "last message repeated": the one before, said ``times`` more.
    """

    program: Optional[str]
    text: Optional[str]
    times: int = 1
    host: Optional[str] = None


def split(line: str) -> Line:
    """Return what a line says, by whom; a line of no known form is a text of nobody's."""
    if '"' in line and line.lstrip()[:1] in ("{", '"', "d"):
        found = _json(line)
        if found is not None:
            return found
    rest = line
    match = _PRIORITY.match(rest)
    modern = False
    if match:
        modern = match.group().endswith("1 ")
        rest = rest[match.end() :]
    match = _FACILITY.match(rest)
    if match:
        rest = rest[match.end() :]
    match = _STAMP.match(rest)
    if match:
        return _of_program(rest[match.end() :], modern=modern)
    rest, marks = _unbracket(rest)
    if marks == 1 and not rest.startswith((" ", "\t")):
        monotonic = _monotonic(rest)
        if monotonic is not None:
            return monotonic
    if rest.startswith("kernel: "):
        return Line(KERNEL, _unbracket(rest[8:])[0])
    return Line(None, rest)


def _unbracket(text: str) -> tuple[str, int]:
    """Take off up to three time stamps and callers in brackets."""
    marks = 0
    while text[:1] == "[" and marks < 3:  # noqa: PLR2004 - time, caller, and the time once more behind syslog's
        match = _BRACKET.match(text)
        if match is None:
            break
        text = text[match.end() :]
        marks += 1
    return text, marks


def _monotonic(text: str) -> Optional[Line]:
    """Journalctl's short-monotonic: host and program follow the bracket. dmesg's own lines do not look so."""
    host = _HOST.match(text)
    program = _PROGRAM.match(text, host.end()) if host else None
    if host is None or program is None or host.group(1).endswith(":"):
        return None
    if program.group(1) != KERNEL and "[" not in program.group():
        return None
    return _said(program.group(1), text[program.end() :], host.group(1))


def _of_program(rest: str, *, modern: bool) -> Line:
    """Return what stands behind a time stamp: host and program, or dmesg's bare text."""
    host = _HOST.match(rest)
    if host is None:
        return Line(None, rest)
    if modern:
        head = _RFC5424.match(rest, host.end())
        if head:
            return _said(head.group(1), rest[head.end() :].lstrip("\ufeff"), host.group(1))
    program = _PROGRAM.match(rest, host.end())
    if program is None or host.group(1).endswith(":"):
        return Line(None, _unbracket(rest)[0])
    if program.group(1) != KERNEL and _is_device(host.group(1), program.group(1)):
        return Line(None, rest)
    return _said(program.group(1), rest[program.end() :], host.group(1))


_ADDRESS = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d\Z")


def _is_device(host: str, program: str) -> bool:
    """Tell dmesg's ``mlx5_core 0000:ca:00.0: text`` behind a time stamp from a host and a program."""
    return _ADDRESS.match(program) is not None or host in ("mlx5_core", "pcieport", "nfs", "watchdog", "pci")


def _said(program: str, text: str, host: Optional[str]) -> Line:
    if program == KERNEL:
        text = _unbracket(text)[0]
    if "repeated" in text[:22]:
        match = _TIMES.match(text)
        if match:
            return Line(program, match.group(2), int(match.group(1)), host)
        match = _LAST.match(text)
        if match:
            return Line(program, None, int(match.group(1)), host)
    return Line(program, text, 1, host)


def _json(line: str) -> Optional[Line]:
    who = _WHO.search(line)
    match = _MEMBER.search(line)
    if match:
        try:
            text = json.loads(match.group(1), strict=False)
        except ValueError:
            return None
        return _said(who.group(1) if who else KERNEL, text, None)
    match = _BYTES.search(line)
    if match is None:
        return None
    numbers = [word for word in match.group(1).replace(",", " ").split() if len(word) < 4]  # noqa: PLR2004 - bytes
    raw = bytes(number for number in map(int, numbers) if number < 256)  # noqa: PLR2004 - bytes
    return _said(who.group(1) if who else KERNEL, raw.decode("utf-8", "replace"), None)
