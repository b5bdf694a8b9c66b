"""Read the NVIDIA fabric manager's log, journal and systemctl status, in order. Pure."""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.text import Trouble

NAME = "fabricmanager"
STARTING = "starting"
RUNNING = "running"
CONFIGURED = "configured"
MISMATCH = "mismatch"
NO_SWITCH = "no-switch"
FATAL = "fatal"
NONFATAL = "non-fatal"
LINK = "link"
FAILED = "failed"
STOPPED = "stopped"
ABSENT = "absent"

_VERSION = r"(\d{2,4}(?:\.\d+){1,3})"
_MISMATCH = re.compile(
    r"version " + _VERSION + r" (?:don'?t|doesn'?t|do not|does not) match (?:with )?(?:the )?"
    r"(?:[\w ]{0,40}?)?version (?:" + _VERSION + r"(?=\.?\s|\.\Z|,))?",
    re.IGNORECASE,
)
_FM_VERSION = re.compile(r"fabric ?manager version(?: is)?\s*:?\s*" + _VERSION, re.IGNORECASE)
_DRIVER_VERSION = re.compile(r"driver version(?: is)?\s*:?\s*" + _VERSION, re.IGNORECASE)
_KERNEL_MODULE = re.compile(r"NVRM version: NVIDIA UNIX.{0,40}Kernel Module.{0,20}?\s" + _VERSION)
_FATAL = re.compile(
    r"detected (NVSwitch|NVLink|GPU)[\w ]{0,20}? ?(non-)?fatal error ?(\d{1,6})?(.{0,200})", re.IGNORECASE
)
_PCI = re.compile(r"pci bus id ([0-9A-Fa-f:.]+)", re.IGNORECASE)
_PORT = re.compile(r"port (\d{1,4})")
_DAEMON = re.compile(r"nv-fabricmanager|nvidia-fabricmanager|fabric ?manager|NVSwitch", re.IGNORECASE)
_LOG_LINE = re.compile(r"\[(?:INFO|ERROR|WARNING|NOTICE|CRITICAL|DEBUG)\] \[tid \d+\]")
_TAIL_CUT = re.compile(r"version [\d.]{0,20}(?: don'?t?(?: m\w*| match[\w ]{0,30})?)?\Z|detected[\w -]{0,80}\Z")

# The first of these that a line holds is what it says.
_WORDS: tuple[tuple[str, str], ...] = (
    ("nv_warn_nothing_to_do", NO_SWITCH),
    ("no nvswitch devices", NO_SWITCH),
    ("successfully configured all the available", CONFIGURED),
    ("failed to configure all the available", FAILED),
    ("starting nvidia fabric manager", STARTING),
    ("starting nvidia-fabricmanager", STARTING),
    ("started nvidia fabric manager", RUNNING),
    ("started nvidia-fabricmanager", RUNNING),
    ("active: active (running)", RUNNING),
    ("active: failed", FAILED),
    ("active: inactive", STOPPED),
    ("active: activating", STARTING),
    ("could not be found", ABSENT),
    ("could not find the requested service", ABSENT),
    ("code=exited, status=0", STOPPED),
    ("control process exited", FAILED),
    ("main process exited", FAILED),
    ("failed with result", FAILED),
    ("failed to start nvidia", FAILED),
    ("failed! exit code", FAILED),
    ("failed to initialize", FAILED),
    ("initialization failed", FAILED),
    ("failed with error", FAILED),
    ("stopped nvidia fabric manager", STOPPED),
    ("stopped nvidia-fabricmanager", STOPPED),
    ("deactivated successfully", STOPPED),
)
_LINK_WORDS = (
    "nvlink training failed",
    "link training failed",
    "failed to train",
    "nvlinks are not trained",
    "nvlinks not trained",
    "links are not active",
    "trunk link fail",
    "access link fail",
    "nvlink down",
    "degraded mode",
    "has been degraded",
    "excluded from",
)
_MAX_EVENTS = 20_000
# The heading of nvidia-smi's table names the driver that is loaded.
_SMI = "| NVIDIA-SMI "


class Event(NamedTuple):
    """One line that says something: its kind, number and text; code, PCI address and port of an NVSwitch error."""

    kind: str
    line: int
    text: str
    code: Optional[int] = None
    bus: Optional[str] = None
    port: Optional[int] = None


class Record(NamedTuple):
    """What the fabric manager told, oldest first; ``lines`` how many lines are its own; versions as last told."""

    version: Optional[str]
    driver: Optional[str]
    events: tuple[Event, ...]
    lines: int
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return how sure it is that a text is of the fabric manager: 95 by its daemon's lines, 85 by its log's form."""
    low = head.lower()
    if "nv-fabricmanager" in low or "nvidia-fabricmanager" in low or "fabric manager version" in low:
        return 95
    if "nvidia fabric manager service" in low or "nvidia gpu driver interface version" in low:
        return 92
    if _LOG_LINE.search(head) and ("nvswitch" in low or "fabric" in low):
        return 85
    return 0


def _fatal(text: str, at: int) -> Optional[Event]:
    found = _FATAL.search(text)
    if found is None:
        return None
    rest = found[4]
    bus, port = _PCI.search(rest), _PORT.search(rest)
    return Event(
        NONFATAL if found[2] else FATAL,
        at,
        text,
        int(found[3]) if found[3] else None,
        bus[1] if bus else None,
        int(port[1]) if port else None,
    )


def _event(text: str, at: int) -> Optional[Event]:
    fatal = _fatal(text, at)
    if fatal is not None:
        return fatal
    if _MISMATCH.search(text):
        return Event(MISMATCH, at, text)
    low = text.lower()
    kind = next((kind for words, kind in _WORDS if words in low), None)
    if kind is None and any(words in low for words in _LINK_WORDS):
        kind = LINK
    return Event(kind, at, text) if kind else None


def _said(line: str) -> bool:
    """Tell whether a line of the log says something, and not only the first letters of an error."""
    form = _LOG_LINE.search(line)
    return form is not None and not "detected ".startswith(line[form.end() :].strip())


def parse(lines: Iterable[str]) -> Record:
    """Return the events of the fabric manager, the latest 20 000 of them."""
    events: list[Event] = []
    troubles: list[Trouble] = []
    version = driver = None
    own = 0
    last, last_at, ended, form = "", 0, "", False
    for at, line in enumerate(lines, 1):
        text = line.strip()[:1000]
        if not text:
            continue
        mine = bool(_DAEMON.search(text) or _LOG_LINE.search(text))
        own += mine
        form = form or bool(_LOG_LINE.search(text))
        if mine:
            last, last_at = text, at
        mismatch = _MISMATCH.search(text)
        if mismatch:
            version, driver = mismatch[1], mismatch[2]
        else:
            named, of_driver = _FM_VERSION.search(text), _DRIVER_VERSION.search(text)
            version = named[1] if named else version
            of_module = _KERNEL_MODULE.search(text)
            driver = of_module[1] if of_module else of_driver[1] if of_driver and (mine or _SMI in text) else driver
        event = _event(text, at)
        if event is not None and (mine or event.kind in {RUNNING, FAILED, STOPPED, ABSENT, STARTING}):
            events.append(event)
            if len(events) > _MAX_EVENTS:
                del events[: _MAX_EVENTS // 2]
        ended = text
    if not own:
        troubles.append(Trouble(0, "no line of the fabric manager is in the text"))
    elif _TAIL_CUT.search(last[-120:]) or (form and ended[:1] == "[" and not _said(ended)):
        troubles.append(Trouble(last_at, f"the log ends within a line: {ended[-60:]!r}"))
    return Record(version, driver, tuple(events), own, tuple(troubles))
