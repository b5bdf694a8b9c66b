"""What NVIDIA's drivers say in the kernel's log: Xid, SXid, GPUs that are lost, recovery actions. Pure.

Texts: NVIDIA/open-gpu-kernel-modules, where every message of the GPU driver begins with ``NVRM:``.
"""

import re
from typing import Optional

from weaklink.observe.tools.kernel_events import Said, Tally

_BDF = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_LOST_WITHIN = 6  # lines of NVRM that a message of three lines may be spread over
_LOST_XID = 79
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:]{5,16}(?:\.\d)?)[^)]{0,40}\): ?(\d{1,5})(?=[,: ]) ?,? ?")
_XID_CUT = re.compile(r"NVRM: Xid ?(?:\([^)]{0,60}\)?:? ?\d{0,5})?\Z")
_RECOVERY = re.compile(r"GPU recovery action changed from 0x[0-9a-fA-F]{1,8} \([^)]{0,60}\) to 0x([0-9a-fA-F]{1,8}) \(")
_ACTION = re.compile(r"GPU recovery action changed from [^()]{0,20}\([^)]{0,60}\) to [^()]{0,20}\(([^)]{1,60})\)")
_LOST = re.compile(rf"NVRM: (?:GPU|The NVIDIA GPU) ?(?:at )?(?:PCI:)?({_BDF})")
_LOST_DEVICE = re.compile(rf"NVRM: The NVIDIA GPU ({_BDF})")
_INIT = re.compile(rf"NVRM: GPU (?:at PCI:)?({_BDF}): RmInitAdapter failed!")
_ADDRESS = re.compile(r"\b([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)\b")
_NUMBER = re.compile(r"\bGPU ?(\d{1,3})\b")
_DRIVER = re.compile(r"NVRM: loading NVIDIA UNIX .{0,60}?Kernel Module .{0,40}?\b(\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)\b")
_SXID = re.compile(
    r"(nvidia-nvswitch\d{1,3}): ?SXid \((?:PCI:)?([0-9a-fA-F:.]{5,18})[^)]{0,20}\): ?(\d{1,6}), ?([^,]{1,40})"
)
_SEVERITY = {"fatal": "sxid-fatal", "nonfatal": "sxid"}


class Nvidia:
    """State that lasts over lines of the NVIDIA driver: a GPU named, whose fate comes one or two lines later."""

    def __init__(self) -> None:
        self.named: Optional[tuple[str, int, int]] = None
        self.seen = 0

    def read(self, said: Said, tally: Tally) -> None:
        """Read a message with ``NVRM:`` in it."""
        if "NVRM: Xid" in said.text:
            _xid(said, tally)
            return
        self.seen += 1
        text = said.text
        device = _LOST_DEVICE.search(text)
        if device and "fallen off" not in text:
            self.named = (device.group(1), said.line, self.seen)
        elif "fallen off the bus" in text:
            self._lost(said, tally)
        elif "GPU_IS_LOST" in text or "GPU lost from the bus" in text:
            _after(said, tally, "lost")
        elif "RESET_REQUIRED" in text or "requires reset" in text or "likely needs to be reset" in text:
            _after(said, tally, "reset-required")
        elif "RmInitAdapter failed" in text:
            match = _INIT.search(text)
            tally.event(said.line, "gpu-init", match.group(1) if match else "GPU", text)
        elif "API mismatch" in text:
            tally.event(said.line, "api-mismatch", "NVRM", text)
        match = _DRIVER.search(text) if "loading NVIDIA" in text else None
        if match:
            tally.version = match.group(1)

    def _lost(self, said: Said, tally: Tally) -> None:
        match = _LOST.search(said.text)
        if match:
            tally.event(said.line, "lost", match.group(1), said.text, times=said.times)
        elif self.named and self.seen - self.named[2] < _LOST_WITHIN:
            address, line, _ = self.named
            tally.event(line, "lost", address, f"NVRM: {address} has fallen off the bus")
        else:
            _after(said, tally, "lost")
        self.named = None

    def close(self, tally: Tally) -> None:
        """Note at the end what was begun and never said."""
        if self.named:
            tally.trouble(self.named[1], f"what happened to GPU {self.named[0]} stands in lines that are missing")


def _after(said: Said, tally: Tally, kind: str) -> None:
    """Count an event on the GPU that the message names, by address or number."""
    match = _ADDRESS.search(said.text)
    number = None if match else _NUMBER.search(said.text)
    name = match.group(1) if match else f"GPU{number.group(1)}" if number else "GPU"
    tally.event(said.line, kind, name, said.text, times=said.times)


def _xid(said: Said, tally: Tally) -> None:
    match = _XID.search(said.text)
    if match is None:
        if _XID_CUT.search(said.text):
            tally.trouble(said.line, f"an Xid is cut off: {said.text[-60:]!r}")
        return
    address, number, rest = match.group(1), int(match.group(2)), said.text[match.end() :]
    tally.xid(said.line, address, number, rest, said.times)
    if "fallen off the bus" in rest or number == _LOST_XID:
        tally.event(said.line, "lost", address, said.text, times=said.times)
    if "recovery action changed" in rest:
        _recovery(said, tally, address, rest)


def _recovery(said: Said, tally: Tally, address: str, rest: str) -> None:
    action = _ACTION.search(rest)
    value = _RECOVERY.search(rest)
    word = action.group(1) if action else ""
    if word.lower() == "none" or (value and int(value.group(1), 16) == 0):
        tally.over("recovery", address)
    else:
        tally.event(said.line, "recovery", address, said.text, detail=word or "unknown")


def sxid(said: Said, tally: Tally) -> None:
    """Read an error of an NVSwitch."""
    match = _SXID.search(said.text)
    if match is None:
        if said.text.rstrip().endswith(("SXid", ":")) or "SXid (" in said.text[-40:]:
            tally.trouble(said.line, f"an SXid is cut off: {said.text[-60:]!r}")
        return
    word = match.group(4).strip().lower().replace("-", "").replace(" ", "").replace("_", "")
    kind = _SEVERITY.get(word)
    if kind is None:
        tally.trouble(said.line, f"an SXid without its severity: {said.text[-60:]!r}")
        return
    subject = f"{match.group(2)} {match.group(3)}"
    tally.event(said.line, kind, subject, said.text, times=said.times, detail=match.group(1))
