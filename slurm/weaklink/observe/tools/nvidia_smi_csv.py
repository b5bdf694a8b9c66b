"""Read ``nvidia-smi --query-…= --format=csv`` of GPUs, remapped rows, retired pages and compute processes. Pure."""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools import nvidia_words as words
from weaklink.observe.tools.nvidia_words import BUS, Notice
from weaklink.observe.tools.text import Trouble

NAME = "nvidia-smi-csv"
GPU_QUERY = "gpu"
ROW_QUERY = "remapped-rows"
PAGE_QUERY = "retired-pages"
PROCESS_QUERY = "processes"

_FIELD = re.compile(r"[a-zA-Z_][\w.]*(?: \[[^\]]{1,12}\])?\Z")
_UNIT = re.compile(r"\s*\[[^\]]{0,12}\]\Z")
_BUS_CELL = re.compile(BUS + r"\Z")
_UUID = re.compile(r"(?:GPU|MIG)-[0-9a-fA-F-]{4,}\Z")
_INDEX = re.compile(r"\d{1,3}\Z")
_ALIASES = {
    "gpu_bus_id": "pci.bus_id",
    "gpu_uuid": "uuid",
    "gpu_name": "name",
    "gpu_serial": "serial",
    "retired_pages.sbe": "retired_pages.single_bit_ecc.count",
    "retired_pages.dbe": "retired_pages.double_bit.count",
    "retired_pages.double_bit_ecc.count": "retired_pages.double_bit.count",
    "clocks_throttle_reasons.active": "clocks_event_reasons.active",
    "pcie.link.gen.gpucurrent": "pcie.link.gen.current",
}
_HEADS = frozenset(
    {
        "index",
        "timestamp",
        "name",
        "uuid",
        "serial",
        "pci.bus_id",
        "pid",
        "process_name",
        "used_memory",
        "count",
        "driver_version",
        "pstate",
    }
)
_PROMPTS = "#$"
_NO_PROCESSES = "no running processes found"


class Row(NamedTuple):
    """One line of values: its number, the values by field name (without unit; by position where no header is), what of.

    ``kind`` is that of its table.
    """

    line: int
    cells: dict[str, str]
    kind: str = GPU_QUERY

    @property
    def bus(self) -> Optional[str]:
        """The PCI address as printed, None where none is in the row."""
        named = self.cells.get("pci.bus_id", "")
        if _BUS_CELL.match(named):
            return named
        return next((cell for cell in self.cells.values() if _BUS_CELL.match(cell)), None)

    @property
    def uuid(self) -> Optional[str]:
        """The UUID of the GPU, None where none is in the row."""
        return next((cell for cell in self.cells.values() if _UUID.match(cell)), None)

    @property
    def number(self) -> Optional[int]:
        """The index, None where no column is known to hold it."""
        cell = self.cells.get("index", "")
        return int(cell) if _INDEX.match(cell) else None

    @property
    def subject(self) -> str:
        """What the row is about, in the best name that it has."""
        known = self.bus or self.uuid or self.cells.get("index")
        return known or f"line {self.line}"


class Record(NamedTuple):
    """A CSV of nvidia-smi.

    ``kind`` what the first table is of, ``header`` its canonical field names (None: printed without), ``rows`` those of
    all tables, ``notices`` messages beside them, ``library`` the NVML version of a mismatch; ``cut`` when the last row
    is partial.
    """

    kind: str
    header: Optional[tuple[str, ...]]
    rows: tuple[Row, ...]
    notices: tuple[Notice, ...]
    library: Optional[str]
    troubles: tuple[Trouble, ...]
    cut: bool
    version: Optional[str] = None


def canonical(field: str) -> str:
    """Return a field's one name: lower case, without unit, aliases resolved."""
    name = _UNIT.sub("", field.strip()).lower()
    return _ALIASES.get(name, name)


def _header(cells: list[str]) -> Optional[tuple[str, ...]]:
    """Return the canonical names when the cells are field names, None when they are values."""
    if not all(_FIELD.match(cell) for cell in cells):
        return None
    names = tuple(canonical(cell) for cell in cells)
    known = [name for name in names if name in _HEADS or ("." in name and name[0].isalpha()) or "_" in name]
    return names if known and len(known) * 2 >= len(names) else None


def _named(cell: str) -> bool:
    """Tell whether a cell is certainly the name of a field."""
    name = canonical(cell)
    return name in _HEADS - {"count"} or name.startswith(("remapped_rows.", "retired_pages.", "ecc.", "pcie.link."))


def _kind(header: Optional[tuple[str, ...]]) -> str:
    if header is None:
        return GPU_QUERY
    if "pid" in header or "process_name" in header:
        return PROCESS_QUERY
    if "retired_pages.address" in header or "retired_pages.cause" in header:
        return PAGE_QUERY
    plain = {name for name in header if not name.startswith("remapped_rows.")}
    rows = len(plain) < len(header) and plain <= {"pci.bus_id", "uuid", "name", "serial", "timestamp"}
    return ROW_QUERY if rows else GPU_QUERY


def recognise(head: str) -> int:
    """Return how sure it is that a text is such a CSV: 90 by its header, 75 by nothing but rows with addresses."""
    alone = _alone(head)
    rows = lines = 0
    for line in head[:65_536].split("\n")[:200]:
        cells = [cell.strip() for cell in line.split(",")]
        lines += bool(line.strip())
        if len(cells) > 1:
            names = _header(cells)
            if names and any(name in _HEADS or name.startswith(("remapped_", "retired_", "ecc.")) for name in names):
                return 90
            rows += any(_BUS_CELL.match(cell) or _UUID.match(cell) for cell in cells)
        elif "is not a valid field to query" in line:
            return 90
    return alone or ((75 if rows == lines else 50) if rows else 30 if words.sounds(head) else 0)


def _alone(head: str) -> int:
    """Return how sure it is that a text is one column of this tool's, with a header or without."""
    first, *rest = [line.strip() for line in head[:65_536].split("\n") if line.strip()][:200] or [""]
    if len(first) > 100:  # noqa: PLR2004 - longer than any column's name or one value
        return 0
    like = {"uuid": _UUID, "pci.bus_id": _BUS_CELL, "count": _INDEX}.get(canonical(first))
    if like is not None:
        return 75 if rest and all(like.match(line) for line in rest) else 0
    values = [first, *rest]
    return 75 if any(all(kind.match(line) for line in values) for kind in (_UUID, _BUS_CELL)) else 0


class _Reader:
    """Takes lines one by one; keeps the rows of a table."""

    def __init__(self) -> None:
        self.header: Optional[tuple[str, ...]] = None
        self.first: Optional[tuple[str, ...]] = None
        self.width = 0
        self.rows: list[Row] = []
        self.notices: list[Notice] = []
        self.library: Optional[str] = None
        self.troubles: list[Trouble] = []
        self.cut = False

    def take(self, line: str, at: int) -> None:
        """Read one line."""
        text = line.strip()
        if not text or text.lower().startswith(_NO_PROCESSES) or (text[-1] in _PROMPTS and "," not in text):
            return
        self.library = self.library or words.library(text)
        said = words.notice(text, at)
        if said is not None:
            self.notices.append(said)
            return
        cells = [cell.strip() for cell in text.split(",")]
        names = _header(cells)
        if names is not None and (len(names) > 1 or not self.width):
            self._head(names)
            return
        if not self.width and any(_named(cell) for cell in cells):
            self._bad(at, f"the header is cut: {text[-40:]!r}")
            return
        alone = not self.width and (_BUS_CELL.match(text) or _UUID.match(text) or _INDEX.match(text))
        if len(cells) == 1 and self.width != 1 and not alone:
            if self.rows or self.header:
                self._bad(at, f"{text[:60]!r} is no row of {self.width} values")
            return
        self._row(cells, at)

    def _head(self, names: tuple[str, ...]) -> None:
        if self.first is None:
            self.first, self.rows, self.troubles = names, [], []
        self.header, self.width, self.cut = names, len(names), False

    def _row(self, cells: list[str], at: int) -> None:
        self.width = self.width or len(cells)
        self.cut = False
        if len(cells) != self.width:
            self._bad(at, f"{len(cells)} values, wanted {self.width}")
            return
        last = cells[-1]
        if last.startswith("[") and not last.endswith("]"):
            self._bad(at, f"the last value is cut: {last[:40]!r}")
            return
        if not last and self.header:
            self._bad(at, "the last value is missing")
            return
        names = self.header or tuple(f"#{place}" for place in range(len(cells)))
        if self.header is None and _INDEX.match(cells[0]) and int(cells[0]) == len(self.rows):
            names = ("index", *names[1:])
        self.rows.append(Row(at, dict(zip(names, cells)), _kind(self.header)))

    def _bad(self, at: int, what: str) -> None:
        self.cut = True
        if len(self.troubles) < 50:  # noqa: PLR2004 - more than anybody reads
            self.troubles.append(Trouble(at, what))


def parse(lines: Iterable[str]) -> Record:
    """Return what a CSV of nvidia-smi says. Rows with another number of values than the header are troubles."""
    reader = _Reader()
    for at, line in enumerate(lines, 1):
        reader.take(line, at)
    if not reader.rows and not reader.header and not reader.notices and not reader.troubles:
        reader.troubles.append(Trouble(0, "no table of nvidia-smi is in the text"))
    return Record(
        _kind(reader.first),
        reader.first,
        tuple(reader.rows),
        tuple(reader.notices),
        reader.library,
        tuple(reader.troubles),
        reader.cut,
    )
