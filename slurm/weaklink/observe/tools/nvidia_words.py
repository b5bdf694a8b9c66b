"""What the outputs of all nvidia-smi calls share: faults in place of values, messages in place of tables. Pure."""

import re
from typing import NamedTuple, Optional

LOST = "lost"
RESET = "reset"
UNREADABLE = "unreadable"
FORBIDDEN = "forbidden"
MISMATCH = "mismatch"
NO_DRIVER = "no-driver"
NO_DEVICES = "no-devices"
NOT_RUN = "not-run"
NOT_ALLOWED = "not-allowed"

BUS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
_BUS = re.compile(r"(?:([0-9A-Fa-f]{1,8}):)?([0-9A-Fa-f]{1,2}):([0-9A-Fa-f]{1,2})\.([0-9A-Fa-f])\Z")
_HANDLE = re.compile(
    r"Unable to determine the device handle for (?:gpu|GPU)\s*(?P<index>\d{1,3}(?=:? |:?$))?:?\s*(?P<bus>" + BUS + r")?"
    r"\s*:?\s*(?P<why>.*)"
)
_NVML_FAILED = re.compile(r"Failed to initialize NVML: ?(?P<why>.*)", re.IGNORECASE)
_LIBRARY = re.compile(r"NVML library version: ?(?P<version>\d+(?:\.\d+)*)")

_WORDS = (
    ("requires reset", RESET),
    ("reset required", RESET),
    ("gpu is lost", LOST),
    ("gpu lost", LOST),
    ("fallen off the bus", LOST),
    ("unknown error", UNREADABLE),
    ("err!", UNREADABLE),
    ("gpu access blocked", UNREADABLE),
    ("insufficient permission", FORBIDDEN),
    ("no permission", FORBIDDEN),
)
_ABSENT = frozenset({"n/a", "not supported", "not available", "requested functionality has been deprecated"})
_MESSAGES = (
    ("couldn't communicate with the nvidia driver", NO_DRIVER),
    ("couldn't find libnvidia-ml", NO_DRIVER),
    ("driver not loaded", NO_DRIVER),
    ("no devices were found", NO_DEVICES),
    ("no devices found", NO_DEVICES),
    ("command not found", NOT_RUN),
    ("no such file or directory", NOT_RUN),
    ("permission denied", NOT_RUN),
    ("is not a valid field to query", NOT_RUN),
    ("invalid combination of input arguments", NOT_RUN),
    ("option is not recognized", NOT_RUN),
    ("is not recognized. please run", NOT_RUN),
    ("timed out", NOT_RUN),
    ("timeout: sending signal", NOT_RUN),
)


class Notice(NamedTuple):
    """A message in place of an output, or beside it.

    ``kind`` one of this module's words, ``line`` from 1, ``text`` as printed, ``bus`` and ``gpu`` the address and
    the number of the GPU that it names, None where it names none.
    """

    kind: str
    line: int
    text: str
    bus: Optional[str] = None
    gpu: Optional[int] = None


def fault(value: str) -> Optional[str]:
    """Return what a value that is no value says: reset, lost, unreadable or forbidden; None for anything else."""
    word = value.lower()
    return next((kind for text, kind in _WORDS if text in word), None)


def absent(value: str) -> bool:
    """Tell whether a value only says that this board has no such thing."""
    return value.strip().strip("[]").strip().lower() in _ABSENT


def bus_key(address: str) -> Optional[tuple[int, int, int, int]]:
    """Return a PCI address in a form that compares, whatever its width and case; None where it is no address."""
    found = _BUS.match(address.strip())
    if found is None:
        return None
    domain, bus, device, function = found.groups()
    return int(domain or "0", 16), int(bus, 16), int(device, 16), int(function, 16)


def library(line: str) -> Optional[str]:
    """Return the version of the NVML library that a line names."""
    found = _LIBRARY.search(line)
    return found["version"] if found else None


def notice(line: str, at: int) -> Optional[Notice]:
    """Return the message that a line holds, None for a line of an ordinary output."""
    text = line.strip()[:400]
    handle = _HANDLE.search(text)
    if handle:
        kind = fault(handle["why"])
        index = int(handle["index"]) if handle["index"] else None
        return Notice(LOST if kind == LOST else RESET if kind == RESET else UNREADABLE, at, text, handle["bus"], index)
    failed = _NVML_FAILED.search(text)
    if failed:
        why = failed["why"].lower()
        kind = MISMATCH if "version mismatch" in why else NO_DRIVER if "driver not loaded" in why else NOT_RUN
        special = LOST if "gpu is lost" in why else NOT_ALLOWED if "insufficient permission" in why else kind
        return Notice(special, at, text)
    if "|" in text or " : " in text:
        return None
    low = text.lower()
    kind = next((kind for words, kind in _MESSAGES if words in low), "")
    return Notice(kind, at, text) if kind else None


def sounds(head: str) -> bool:
    """Tell whether the beginning of a text is one of nvidia-smi's own messages."""
    return any(
        mark in head
        for mark in (
            "Failed to initialize NVML",
            "NVIDIA-SMI has failed",
            "NVIDIA-SMI couldn't",
            "Unable to determine the device handle for",
            "No devices were found",
            "nvidia-smi: command not found",
            "nvidia-smi: No such file",
        )
    )
