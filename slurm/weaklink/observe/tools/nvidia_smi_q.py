"""Read ``nvidia-smi -q`` (whole, or sections by -d) of any driver: every value by its path, a GPU at a time. Pure."""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools import nvidia_words as words
from weaklink.observe.tools.nvidia_words import Notice
from weaklink.observe.tools.text import Trouble, integer

NAME = "nvidia-smi-q"
_GPU = re.compile(r"GPU ((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*\Z")
_BANNER = "NVSMI LOG"
_MAX_PATHS = 4000
_FLAGS = frozenset({"Pending", "Remapping Failure Occurred", "Pending Page Blacklist", "Pending Page Retirement"})
_FLAG_SECTIONS = ("Remapped Rows", "Retired Pages")
_FLAG_VALUES = frozenset({"yes", "no", "n/a", "not supported", "none"})


class Gpu(NamedTuple):
    """One GPU: its address as printed, its values by path (``Remapped Rows/Pending``), its sections in order."""

    bus: str
    line: int
    values: dict[str, str]
    sections: tuple[str, ...]

    def value(self, *paths: str) -> Optional[str]:
        """Return the first of the values that is there."""
        return next((self.values[path] for path in paths if path in self.values), None)

    def amount(self, *paths: str) -> Optional[int]:
        """Return the first of the values as a number (``640 bank(s)`` is 640), None where it is none."""
        value = self.value(*paths)
        return integer(value.split(" ")[0]) if value else None


class Record(NamedTuple):
    """What nvidia-smi -q printed; ``attached`` how many GPUs it says there are, ``cut`` when its end is missing."""

    version: Optional[str]
    cuda: Optional[str]
    attached: Optional[int]
    gpus: tuple[Gpu, ...]
    notices: tuple[Notice, ...]
    library: Optional[str]
    troubles: tuple[Trouble, ...]
    cut: bool


def recognise(head: str) -> int:
    """Return how sure it is that a text is this tool's: 95 by its banner, 70 by a GPU's heading and its values."""
    if _BANNER in head:
        return 95
    lines = head[:65_536].split("\n")[:400]
    if any(line.startswith("Attached GPUs ") for line in lines):
        return 85
    heads = sum(bool(_GPU.match(line)) for line in lines)
    pairs = sum(" : " in line for line in lines)
    if heads and pairs:
        return 70
    marks = ("Remapping Failure Occurred", "Pending Page Blacklist", "GPU Recovery Action", "ClusterUUID")
    return 60 if any(mark in head for mark in marks) else 30 if words.sounds(head) else 0


class _Block:
    """A GPU that is being read."""

    def __init__(self, bus: str, line: int) -> None:
        self.bus = bus
        self.line = line
        self.values: dict[str, str] = {}
        self.sections: list[str] = []
        self.open: list[tuple[int, str]] = []
        self.last = ""
        self.end = line
        self.empty = False

    def place(self, indent: int, key: str) -> str:
        """Return the path of a key at an indent; sections that it leaves are closed."""
        while self.open and self.open[-1][0] >= indent:
            self.open.pop()
        return "/".join([name for _, name in self.open] + [key])


class _Reader:
    def __init__(self) -> None:
        self.version: Optional[str] = None
        self.cuda: Optional[str] = None
        self.attached: Optional[int] = None
        self.library: Optional[str] = None
        self.notices: list[Notice] = []
        self.troubles: list[Trouble] = []
        self.blocks: dict[str, _Block] = {}
        self.order: list[str] = []
        self.block: Optional[_Block] = None
        self.previous: list[str] = []
        self.finals: dict[str, str] = {}

    def take(self, line: str, at: int) -> None:
        text = line.strip()
        if not text or text.startswith("==="):
            return
        head = _GPU.match(text)
        if head and line[:1] not in " \t":
            self._close()
            self._open(head[1], at)
            return
        key, colon, value = (part.strip() for part in text.partition(":"))
        indent = _indent(line)
        if not colon or (not indent and self.block is not None and key not in _TOP):
            self._other(indent, text, at)
            return
        if indent == 0:
            self._top(key, value, at)
        elif self.block is not None:
            self._value(indent, key, value, at)

    def _top(self, key: str, value: str, at: int) -> None:
        said = words.notice(f"{key}: {value}", at)
        if said is not None:
            self.notices.append(said)
            self.library = self.library or words.library(f"{key}: {value}")
        elif key == "Driver Version":
            self.version = value or None
        elif key == "CUDA Version":
            self.cuda = value or None
        elif key == "Attached GPUs":
            self.attached = integer(value)
            if self.attached is None:
                self._bad(at, f"Attached GPUs: found {value[:40]!r}, wanted a number")
        elif key == "NVML library version":
            self.library = value

    def _open(self, bus: str, at: int) -> None:
        if bus not in self.blocks:
            self.order.append(bus)
            self.blocks[bus] = _Block(bus, at)
        self.block = self.blocks[bus]
        self.block.open = []
        self.block.end = at
        self.block.last = ""
        self.block.empty = True

    def _value(self, indent: int, key: str, value: str, at: int) -> None:
        block = self.block
        if block is None:
            return
        path = block.place(indent, key)
        block.end, block.empty, block.last = at, False, path
        if len(block.values) < _MAX_PATHS:
            block.values[path] = value
        if "/" not in path:
            block.sections.append(key)
        if not value:
            block.open.append((indent, key))
        flag = key in _FLAGS and path.split("/")[0] in _FLAG_SECTIONS
        if flag and value.lower() not in _FLAG_VALUES and words.fault(value) is None and integer(value) is None:
            self._bad(at, f"GPU {block.bus}: {path}: found {value[:40]!r}, wanted Yes or No")
            block.values.pop(path, None)

    def _other(self, indent: int, text: str, at: int) -> None:
        said = words.notice(text, at)
        self.library = self.library or words.library(text)
        if said is not None:
            self.notices.append(said)
            return
        if not indent or self.block is None or "=" in text:
            return
        path = self.block.place(indent, text)
        if "/" not in path:
            self.block.sections.append(text)
        self.block.open.append((indent, text))
        self.block.last, self.block.end, self.block.empty = path, at, True

    def _close(self) -> None:
        """Remember how a GPU's block ended: the last one of a whole output ends like the others."""
        if self.block is not None:
            top = self.block.last.split("/")[0]
            loose = "Process" in top or top in {"Capabilities", "Accounted Processes"}
            self.finals[self.block.bus] = top if loose else self.block.last

    def _bad(self, at: int, what: str) -> None:
        if len(self.troubles) < 50:  # noqa: PLR2004 - more than anybody reads
            self.troubles.append(Trouble(at, what))

    def _paths(self, block: _Block) -> set[str]:
        """Return the paths of the values of all other GPUs: boards of another kind may lack some and end elsewhere."""
        return {path for other in self.blocks.values() if other is not block for path in other.values}

    def finish(self) -> bool:
        """Note what shows that the end is missing; tell whether something does."""
        before = len(self.troubles)
        block = self.block
        self._close()
        if block is not None:
            others = {final for bus, final in self.finals.items() if bus != block.bus}
            if block.empty:
                self._bad(block.end, f"GPU {block.bus}: the output ends in a heading without values")
            elif len(others) == 1 and block.last in self._paths(block) and self.finals[block.bus] not in others:
                self._bad(block.end, f"GPU {block.bus}: the block ends at {block.last!r}, others at {others.pop()!r}")
            elif _whole(block) and "Process" not in self.finals[block.bus] and self.finals[block.bus] not in others:
                self._bad(block.end, f"GPU {block.bus}: the block ends before its processes")
            elif "Remapped Rows" in block.sections and not _complete(block):
                self._bad(block.end, f"GPU {block.bus}: the block ends within its remapped rows")
        named = sum(item.bus is not None or item.gpu is not None for item in self.notices)
        if self.attached is not None and len(self.order) + named < self.attached:
            at = block.end if block else 0
            self._bad(at, f"{self.attached} GPUs are attached, {len(self.order)} are described")
        if not self.order and self.attached is None and not self.notices and not self.troubles:
            self._bad(0, "no output of nvidia-smi -q is in the text")
        return len(self.troubles) > before


def _indent(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))


def _whole(block: _Block) -> bool:
    """Tell whether a block is of a call without -d, which ends in processes.

    It names the product, and no section of its middle comes without the PCI section before it.
    """
    middle = {"ECC Mode", "Ecc Mode", "ECC Errors", "Retired Pages", "Remapped Rows"} & set(block.sections)
    return "Product Name" in block.values and ("PCI" in block.sections or not middle)


def _complete(block: _Block) -> bool:
    rows = {path: value for path, value in block.values.items() if path.startswith("Remapped Rows")}
    return "Remapped Rows" in rows or {"Remapped Rows/Pending", "Remapped Rows/Remapping Failure Occurred"} <= set(rows)


_TOP = frozenset(
    {
        "Timestamp",
        "Driver Version",
        "CUDA Version",
        "Attached GPUs",
        "NVML library version",
        "Failed to initialize NVML",
    }
)


def parse(lines: Iterable[str]) -> Record:
    """Return what nvidia-smi -q says; of a GPU that is described twice, each later value counts."""
    reader = _Reader()
    for at, line in enumerate(lines, 1):
        reader.take(line, at)
    cut = reader.finish()
    gpus = tuple(
        Gpu(bus, block.line, block.values, tuple(dict.fromkeys(block.sections))) for bus, block in reader.blocks.items()
    )
    return Record(
        reader.version,
        reader.cuda,
        reader.attached,
        gpus,
        tuple(reader.notices),
        reader.library,
        tuple(reader.troubles),
        cut,
    )
