"""Which lines of a kernel's log mean something, and what: from lines to a ``kernel_events.Record``. Pure, one pass.

Kinds of events: lost, gpu-init, api-mismatch, reset-required, recovery (detail: the action), sxid-fatal, sxid, probe,
health, tx-timeout and tx-timeout-netdev, soft-lockup, lockup-in-driver, hung-task, cable, aer-fatal, aer-uncorrected,
aer-corrected, pci-gone, pci-recovery-failed, pcie-limited, unplugged, lnet-start, lustre-lost, lustre-timeout,
lustre-evicted, nfs, refused, nothing (an empty journal).
"""

import re
from collections.abc import Iterable
from itertools import islice
from typing import Callable, Optional

from weaklink.observe.tools import kernel_lines
from weaklink.observe.tools.kernel_events import Record, Said, Tally
from weaklink.observe.tools.kernel_nics import BDF, carrier, link, mlx, probe, watchdog
from weaklink.observe.tools.kernel_nvidia import Nvidia, sxid

_AER = re.compile(
    rf"(?:AER: (?:Multiple )?(Corrected|Uncorrected|Uncorrectable)(?: \(([^)]{{3,12}})\))? error(?: message)? "
    rf"received:? ?(?:id=\S{{1,8}}|(?:from )?({BDF}))"
    rf"|({BDF}): (?:AER: )?PCIe Bus Error: severity=(Corrected|Uncorrected|Uncorrectable)(?: \(([^)]{{3,12}})\))?)"
)
_AT = re.compile(rf"\b({BDF})")
_LIMITED = re.compile(rf"\b({BDF}): .{{0,24}}available PCIe bandwidth, limited by (.{{1,60}}?) link at (\S{{1,20}})")
_LUSTRE_LOST = re.compile(r"Connection to (\S{1,80}) \(at (\S{1,80}?)\) was lost")
_LUSTRE_BACK = re.compile(r"Connection restored to (\S{1,80})(?: \(at (\S{1,80}?)\))?")
_LUSTRE_OUT = re.compile(r"was evicted by (\S{1,80}?)[;,. ]")
_NID = re.compile(r"([0-9A-Za-z_.:\-]{1,64}@(?:o2ib|tcp|gni|kfi|ptlf|lo)\d{0,5})\b")
_LNET_START = re.compile(r"LNetError: .{0,40}Error -\d{1,5} starting up LNI (\S{1,40})")
_LNET_ADDED = re.compile(r"LNet: Added LNI \S{1,80}@(\S{1,16})")
_LATE = ("timed out", "timeout", "unable to contact")
_NFS = re.compile(r"(?:nfs|NFS|nfs4|lockd): server (\S{1,255}) (not responding|OK)\b")
_GONE = ("Card not present", "Link Down", "removed")


def _aer(said: Said, tally: Tally) -> None:
    match = _AER.search(said.text)
    if match:
        word = (match.group(1) or match.group(5)).lower()
        rank = (match.group(2) or match.group(6) or "").lower().replace("-", "")
        device = match.group(3) or match.group(4) or (_AT.findall(said.text) or ["device"])[0]
        kind = "aer-corrected" if word == "corrected" else "aer-fatal" if rank == "fatal" else "aer-uncorrected"
        tally.event(said.line, kind, device, said.text, times=said.times)
    elif "device recovery failed" in said.text:
        tally.event(said.line, "pci-recovery-failed", (_AT.findall(said.text) or ["device"])[0], said.text)


def _pci(said: Said, tally: Tally) -> None:
    match = _LIMITED.search(said.text)
    if match:
        tally.event(said.line, "pcie-limited", match.group(1), said.text, detail=match.group(2))


def _gone(said: Said, tally: Tally) -> None:
    if any(word in said.text for word in _GONE):
        where = _AT.findall(said.text)
        tally.event(said.line, "pci-gone", where[0] if where else "slot", said.text)


def _lnet(said: Said, tally: Tally) -> bool:
    """Read that LNet starts on a network or fails to; tell whether the message was of that."""
    match = _LNET_START.search(said.text)
    if match:
        tally.event(said.line, "lnet-start", match.group(1), said.text, times=said.times)
        return True
    match = _LNET_ADDED.search(said.text)
    if match:
        tally.over("lnet-start", match.group(1))
    return match is not None


def _lustre(said: Said, tally: Tally) -> None:
    text = said.text
    match = _LUSTRE_LOST.search(text)
    if match:
        tally.event(said.line, "lustre-lost", match.group(2), text, times=said.times, detail="lost")
        return
    match = _LUSTRE_BACK.search(text)
    if match:
        for peer in {match.group(1).rstrip(",.;"), match.group(2) or ""}:
            for kind in ("lustre-lost", "lustre-timeout"):
                if tally.has(kind, peer):
                    tally.event(said.line, kind, peer, text, times=0, detail="restored")
        return
    if "LNet" in text and _lnet(said, tally):
        return
    match = _LUSTRE_OUT.search(text)
    if match:
        tally.event(said.line, "lustre-evicted", match.group(1), text, times=said.times)
    elif any(word in text.lower() for word in _LATE):
        peers = _NID.findall(text)
        if peers:
            tally.event(said.line, "lustre-timeout", peers[-1], text, times=said.times, detail="lost")


def _nfs(said: Said, tally: Tally) -> None:
    match = _NFS.search(said.text)
    if match is None:
        return
    back = match.group(2) == "OK"
    server = match.group(1).rstrip(",")
    if not back or tally.has("nfs", server):
        times, detail = (0, "OK") if back else (said.times, "not responding")
        tally.event(said.line, "nfs", server, said.text, times=times, detail=detail)


def _lockup(said: Said, tally: Tally) -> None:
    kind, subject = ("soft-lockup", "CPU") if "soft lockup" in said.text else ("hung-task", "task")
    tally.event(said.line, kind, subject, said.text, times=said.times)


def _rip(said: Said, tally: Tally) -> None:
    if "mlx5" in said.text and tally.has("soft-lockup", "CPU"):
        tally.event(said.line, "lockup-in-driver", "mlx5_core", said.text)


def _refused(said: Said, tally: Tally) -> None:
    tally.event(said.line, "refused", "log", said.text)


def _nothing(said: Said, tally: Tally) -> None:
    tally.event(said.line, "nothing", "log", said.text)


_Reader = Callable[[Said, Tally], None]
# A word that a line must hold, and who reads it. The first that fits has it.
_READERS: tuple[tuple[str, _Reader], ...] = (
    ("SXid", sxid),
    ("soft lockup", _lockup),
    ("blocked for more than", _lockup),
    ("NETDEV WATCHDOG", watchdog),
    ("RIP: ", _rip),
    ("PCIe bandwidth, limited", _pci),
    ("AER: ", _aer),
    ("PCIe Bus Error", _aer),
    ("mlx5_", mlx),
    ("mlx4_", mlx),
    ("failed with error", probe),
    ("pciehp", _gone),
    ("Lustre", _lustre),
    ("LNet", _lustre),
    (": server ", _nfs),
    ("ink is ", link),
    ("ink Up", link),
    ("ink Down", link),
    ("ink up", link),
    ("ink down", link),
    ("arrier", carrier),
    (": link ", carrier),
    ("dmesg: ", _refused),
    ("currently not seeing messages", _refused),
    ("-- No entries --", _nothing),
)
_KERNEL_ONLY = frozenset({sxid, _lockup, watchdog, _rip, _aer, mlx, probe, _pci, _gone, _lustre, _nfs})
_BYTES = ('"MESSAGE":[', '"MESSAGE": [', '"MESSAGE" : [')  # text that the journal holds as bytes
_WORDS = ("NVRM", "message repeated", *_BYTES, *(word for word, _ in _READERS))
_BLOCK = 256  # lines looked through at once
_WHO_SPEAKS = 2000  # messages after which it is plain whether programs speak


class _Scanner:
    """The state of one pass."""

    def __init__(self) -> None:
        self.tally, self.nvidia = Tally(), Nvidia()
        self.messages = 0
        self.programs = False
        self.before: Optional[Said] = None

    def block(self, first: int, lines: list[str]) -> None:
        """Read lines of which the first has number ``first``: most hold no word of interest."""
        whole = "\n".join(lines)
        words = [word for word in _WORDS if word in whole]
        for number, line in enumerate(lines, first):
            if not line:
                continue
            self.messages += 1
            if any(map(line.__contains__, words)):
                self._line(number, line)
                continue
            self.before = None
            if not self.programs and self.messages < _WHO_SPEAKS:
                self.programs = kernel_lines.split(line).program not in (None, kernel_lines.KERNEL)

    def _line(self, number: int, line: str) -> None:
        found = kernel_lines.split(line)
        if found.program not in (None, kernel_lines.KERNEL):
            self.programs = True
        if found.text is not None:
            self.before = Said(number, found.text, found.times, found.program)
            self._read(self.before)
        elif self.before:
            self._read(self.before._replace(line=number, times=found.times))

    def _read(self, said: Said) -> None:
        from_kernel = said.program in (None, kernel_lines.KERNEL)
        if "NVRM: " in said.text:
            if from_kernel:
                self.nvidia.read(said, self.tally)
            return
        for word, reader in _READERS:
            if word in said.text:
                if from_kernel or reader not in _KERNEL_ONLY:
                    reader(said, self.tally)
                return


def scan(lines: Iterable[str]) -> Record:
    """Return what a kernel's log, or a system's with the kernel's in it, says; never raises."""
    scanner = _Scanner()
    rest = iter(lines)
    count = 0
    while True:
        block = list(islice(rest, _BLOCK))
        if not block:
            break
        scanner.block(count + 1, block)
        count += len(block)
    scanner.nvidia.close(scanner.tally)
    return scanner.tally.record(count, scanner.messages, programs=scanner.programs)
