"""Read the table that ``nvidia-smi`` prints without arguments (any driver), its MIG devices, its messages. Pure."""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools import nvidia_words as words
from weaklink.observe.tools.nvidia_words import BUS, Notice
from weaklink.observe.tools.text import Trouble, integer

NAME = "nvidia-smi"
_BUS = re.compile(BUS)
_FIRST = re.compile(r"(\d{1,3})\s+(.*)\Z")
_LISTED = re.compile(r"GPU (\d{1,3}): (.{1,120}?) \(UUID: (GPU-[0-9a-fA-F-]{4,})\)?\s*\Z")
_VERSION = re.compile(r"NVIDIA-SMI\s+(\d[\d.]*)")
_DRIVER = re.compile(r"Driver Version:\s*(\d[\d.]*)")
_CUDA = re.compile(r"CUDA Version:\s*(\S+)")
_MEMORY = re.compile(r"(\d{1,12})MiB\s{0,8}/\s{0,8}(\d{1,12})MiB")
_SWITCH = frozenset({"On", "Off", "N/A", "ERR!"})
_CELLS = 3


class Gpu(NamedTuple):
    """One GPU: its number, name and bus address as printed, its faults in words of nvidia_words, its ECC errors."""

    number: int
    line: int
    name: str
    bus: Optional[str]
    uuid: Optional[str]
    faults: tuple[str, ...]
    uncorrected: Optional[int]
    used_mib: Optional[int]
    total_mib: Optional[int]


class Record(NamedTuple):
    """What nvidia-smi printed: versions, GPUs, numbers of MIG devices and processes, messages in its place.

    ``library`` is the NVML version of a mismatch, ``table`` whether there is a table (or a list, by -L).
    """

    version: Optional[str]
    driver: Optional[str]
    cuda: Optional[str]
    gpus: tuple[Gpu, ...]
    mig_devices: int
    processes: Optional[int]
    notices: tuple[Notice, ...]
    library: Optional[str]
    table: bool
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return how sure it is that a text is this tool's: 95 by the table's heading, 90 by a message of its or a list."""
    if "| NVIDIA-SMI " in head:
        return 95
    if words.sounds(head):
        return 90 if "==NVSMI LOG==" not in head else 30
    lines = head[:65_536].split("\n")[:400]
    if any(_LISTED.match(line.strip()) for line in lines):
        return 90 if " Link " not in head and "nvlink" not in head.lower() else 20
    rows = sum(line.count("|") >= _CELLS and bool(_BUS.search(line[:300])) for line in lines)
    return 60 if rows else 0


class _Reader:
    def __init__(self) -> None:
        self.version: Optional[str] = None
        self.driver: Optional[str] = None
        self.cuda: Optional[str] = None
        self.library: Optional[str] = None
        self.gpus: dict[int, Gpu] = {}
        self.notices: list[Notice] = []
        self.troubles: list[Trouble] = []
        self.table = False
        self.where = ""
        self.fresh = False
        self.open: Optional[int] = None
        self.mig = 0
        self.processes: Optional[int] = None
        self.last = 0
        self.width = 0

    def take(self, line: str, at: int) -> None:
        text = line.strip()
        if not text:
            return
        self.last = at
        self.library = self.library or words.library(text)
        if text[0] in "+|":
            self._framed(text, at)
            return
        listed = _LISTED.match(text[:300])
        if listed:
            self.table, self.where = True, "list"
            index = int(listed[1])
            self.gpus[index] = Gpu(index, at, listed[2], None, listed[3], (), None, None, None)
            return
        said = words.notice(text, at)
        if said is not None:
            self.notices.append(said)

    def _framed(self, text: str, at: int) -> None:
        if "NVIDIA-SMI" in text:
            self._heading(text)
            return
        body = text[1:-1] if text[-1] in "+|" and len(text) > 1 else text[1:]
        if ("-" in body or "=" in body) and not body.strip("-+=| "):
            self.fresh, self.open = True, None
            self.width = max(self.width, len(text))
            if len(text) < self.width:
                self._bad(at, "the line of dashes is cut")
            self.where = "gpus" if self.where == "head" and "=" in body else self.where
            return
        if "Processes:" in text:
            self.where, self.processes = "processes", 0
        elif "MIG devices:" in text:
            self.where = "mig"
        elif self.where == "gpus":
            self._row(text, at)
        elif self.where == "processes" and self.fresh:
            first = body.split()
            self.processes = (self.processes or 0) + (bool(first) and first[0].isdigit())
        elif self.where == "mig" and self.fresh:
            cells = body.split("|")
            self.mig += bool(cells[0].split()) and all(word.isdigit() for word in cells[0].split())
        elif self.where == "" and _BUS.search(text[:300]):
            self.where, self.table, self.fresh = "gpus", True, True
            self._row(text, at)

    def _heading(self, text: str) -> None:
        self.table, self.where = True, "head"
        for attribute, pattern in (("version", _VERSION), ("driver", _DRIVER), ("cuda", _CUDA)):
            found = pattern.search(text[:400])
            if found:
                setattr(self, attribute, found[1])

    def _row(self, text: str, at: int) -> None:
        whole = text.endswith("|") and text.count("|") > _CELLS
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        first = _FIRST.match(cells[0])
        if self.fresh and first:
            self.fresh = False
            self.open = int(first[1])
            self._begin(int(first[1]), first[2], cells, at)
        elif self.open is None:
            self._bad(at, f"found {text[:40]!r}, wanted a GPU's first line")
            return
        if not whole:
            self._bad(at, f"GPU {self.open}: the line is cut: {text[-30:]!r}")
        gpu = self.gpus.get(self.open) if self.open is not None else None
        if gpu is None:
            return
        kinds = [kind for kind in (words.fault(cell) for cell in cells) if kind and kind != words.FORBIDDEN]
        memory = _MEMORY.search(cells[1]) if len(cells) > 1 and whole else None
        self.gpus[gpu.number] = gpu._replace(
            faults=tuple(dict.fromkeys([*gpu.faults, *kinds])),
            used_mib=int(memory[1]) if memory else gpu.used_mib,
            total_mib=int(memory[2]) if memory else gpu.total_mib,
        )

    def _begin(self, index: int, rest: str, cells: list[str], at: int) -> None:
        head, _, last = rest.rpartition(" ")
        name = head.strip() if last in _SWITCH and head.strip() else rest.strip()
        bus = _BUS.search(cells[1]) if len(cells) > 1 else None
        ecc = integer(cells[2]) if len(cells) == _CELLS else None
        self.gpus[index] = Gpu(index, at, name, bus[0] if bus else None, None, (), ecc, None, None)

    def _bad(self, at: int, what: str) -> None:
        if len(self.troubles) < 50:  # noqa: PLR2004 - more than anybody reads
            self.troubles.append(Trouble(at, what))

    def finish(self) -> None:
        """Note what shows that the end is missing."""
        if self.open is not None:
            self._bad(self.last, "the table ends before the line that closes it")
        elif self.where in {"head", "gpus"} and not self.gpus and not self.notices:
            self._bad(self.last, "the table ends before its GPUs")
        if not self.table and not self.notices and not self.troubles:
            self._bad(0, "no table of nvidia-smi is in the text")


def parse(lines: Iterable[str]) -> Record:
    """Return what the table says; a GPU's rows end at the next line of dashes, however many they are."""
    reader = _Reader()
    for at, line in enumerate(lines, 1):
        reader.take(line, at)
    reader.finish()
    return Record(
        reader.version,
        reader.driver,
        reader.cuda,
        tuple(reader.gpus.values()),
        reader.mig,
        reader.processes,
        tuple(reader.notices),
        reader.library,
        reader.table,
        tuple(reader.troubles),
    )
