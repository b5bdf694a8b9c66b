"""Read ``nvidia-smi topo -m`` and ``-mp``: the matrix of distances, affinities, and the names of the NICs. Pure."""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools import nvidia_words as words
from weaklink.observe.tools.nvidia_words import Notice
from weaklink.observe.tools.text import Trouble

NAME = "nvidia-smi-topo"
SELF = "X"
# From near to far; NV<n> is a bond of n NVLinks, SOC an old word for SYS.
DISTANCES = ("PIX", "PXB", "PHB", "NODE", "SYS")
_NVLINK = re.compile(r"NV\d{1,3}\Z")
_GPU = re.compile(r"GPU\d{1,3}\Z")
_DEVICE = re.compile(
    r"(?:GPU|NIC)\d{1,3}\Z|(?:mlx|bnxt_re|irdma|hfi1_|rdma|ib|roce|efa|qedr|cxgb|hns_|erdma_|mana_)[\w-]*\Z"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,8}m")
# Old drivers head a NIC's column with the device's own name, whatever that is.
_ANY_NAME = re.compile(r"[A-Za-z][\w-]{1,30}\Z")
_LEGEND = re.compile(r"\s*(NIC\d{1,3})\s*:\s*(\S+)\s*\Z")
_COLUMNS_END = frozenset({"CPU", "NUMA"})


class Row(NamedTuple):
    """One device's line: its distance to each column's device (None where it cannot be read), what stands behind."""

    name: str
    line: int
    to: dict[str, Optional[str]]
    affinity: tuple[str, ...]


class Record(NamedTuple):
    """A matrix of distances.

    ``columns`` the devices in order, ``rows`` by name, ``legend`` NIC names by their short ones (``NIC0``: ``mlx5_0``),
    ``pci_only`` whether the legend knows no NVLinks, as that of ``-mp``, which shows PCIe alone.
    """

    columns: tuple[str, ...]
    rows: dict[str, Row]
    legend: dict[str, str]
    notices: tuple[Notice, ...]
    troubles: tuple[Trouble, ...]
    pci_only: bool = False
    version: Optional[str] = None

    @property
    def gpus(self) -> list[str]:
        """The GPUs, in order."""
        return [name for name in self.columns if _GPU.match(name)]

    @property
    def nics(self) -> list[str]:
        """The other devices, in order, by their short names."""
        return [name for name in self.columns if not _GPU.match(name)]

    def distance(self, one: str, other: str) -> Optional[str]:
        """Return the distance between two devices; the matrix is symmetric, so one of its halves is enough."""
        there = self.rows[one].to.get(other) if one in self.rows else None
        return there or (self.rows[other].to.get(one) if other in self.rows else None)


def distance(word: str) -> Optional[str]:
    """Return a distance by its one name, None where the word is none."""
    if word == "SOC":
        return "SYS"
    return word if word in DISTANCES or word == SELF or _NVLINK.match(word) else None


def _columns(line: str) -> Optional[tuple[str, ...]]:
    """Return the devices that a heading names, None where the line is no heading."""
    names = []
    for word in line.split():
        if word in _COLUMNS_END:
            break
        names.append(word)
    device = _ANY_NAME if "CPU Affinity" in line else _DEVICE
    good = bool(names) and bool(_GPU.match(names[0])) and all(device.match(name) for name in names)
    return tuple(names) if good and (len(names) > 1 or len(line.split()) > 1) else None


def recognise(head: str) -> int:
    """Return how sure it is that a text is such a matrix: 95 by heading and legend, 85 by the heading alone."""
    # The tool itself underlines its heading, into files too.
    lines = _COLOUR.sub("", head[:65_536]).split("\n")[:400]
    heading = any(_columns(line) for line in lines)
    legend = "Connection traversing" in head
    if heading and legend:
        return 95
    return 85 if heading else 50 if legend else 0


class _Reader:
    def __init__(self) -> None:
        self.columns: tuple[str, ...] = ()
        self.rows: dict[str, Row] = {}
        self.legend: dict[str, str] = {}
        self.notices: list[Notice] = []
        self.troubles: list[Trouble] = []
        self.in_legend = False
        self.explained: set[str] = set()
        self.last = 0

    def take(self, line: str, at: int) -> None:
        text = line.strip()
        if not text:
            return
        self.last = at
        heading = _columns(text)
        if heading and (not self.columns or heading == self.columns):
            self.columns, self.in_legend = heading, False
            return
        named = _LEGEND.match(text)
        if named:
            self.legend[named[1]] = named[2]
            return
        if text.startswith(("Legend", "NIC Legend")):
            self.in_legend = True
            return
        if self.in_legend:
            self.explained.add(text.split()[0])
        said = words.notice(text, at)
        if said is not None:
            self.notices.append(said)
            return
        if self.columns and not self.in_legend:
            self._row(text, at)

    def _row(self, text: str, at: int) -> None:
        name, *cells = text.split()
        if name not in self.columns:
            if _DEVICE.match(name):
                self._bad(at, f"a row for {name!r:.40}, which the heading does not name")
            return
        to: dict[str, Optional[str]] = {}
        for column, cell in zip(self.columns, cells):
            to[column] = distance(cell)
            if to[column] is None:
                self._bad(at, f"{name} to {column}: found {cell[:20]!r}, wanted a distance")
                break
        else:
            if len(to) < len(self.columns):
                if to:
                    to[self.columns[len(to) - 1]] = None
                self._bad(at, f"{name}: {len(to)} distances, wanted {len(self.columns)}")
        self.rows[name] = Row(name, at, to, tuple(cells[len(self.columns) :]))

    def _bad(self, at: int, what: str) -> None:
        if len(self.troubles) < 50:  # noqa: PLR2004 - more than anybody reads
            self.troubles.append(Trouble(at, what))

    def finish(self) -> None:
        """Note what the matrix lacks."""
        missing = [name for name in self.columns if name not in self.rows]
        if missing:
            self._bad(self.last, f"no row for {', '.join(missing[:20])}: the matrix is cut")
        unnamed = [name for name in self.columns if name.startswith("NIC") and name not in self.legend]
        if unnamed and self.legend and not missing:
            self._bad(self.last, f"the legend does not name {', '.join(unnamed[:20])}")
        if not self.columns and not self.notices:
            self._bad(0, "no matrix of nvidia-smi topo is in the text")


def parse(lines: Iterable[str]) -> Record:
    """Return the matrix; cells may be parted by tabs or blanks, with columns behind that are empty for NICs."""
    reader = _Reader()
    for at, line in enumerate(lines, 1):
        reader.take(line, at)
    reader.finish()
    whole = {"X", "PHB", "PXB", "PIX"} <= reader.explained
    return Record(
        reader.columns,
        reader.rows,
        reader.legend,
        tuple(reader.notices),
        tuple(reader.troubles),
        pci_only=whole and "NV#" not in reader.explained,
    )
