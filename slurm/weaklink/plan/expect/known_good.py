"""Bus bandwidths that are known to be good, with where they are published and how sure they are."""

from typing import NamedTuple

PRIMARY = "primary"
NO_PRIMARY = "no primary source"

MEASURED = "measured"
THRESHOLD = "threshold"
FIGURE = "figure"


class KnownGood(NamedTuple):
    """One figure: GB/s of busbw for collectives, Gb/s for an adapter (``unit`` says which).

    ``size``: the message, "1G-16G average" for an average over sizes, "" where the source gives none. ``kind``: what a
    healthy system measured, the limit somebody accepts by, or a figure of which the source does not say which of both
    it is. ``evidence``: "primary": read in the source; otherwise it is a figure to compare with, not a fact.
    """

    system: str
    ranks: int | None
    nodes: int | None
    size: str
    low: float
    high: float
    unit: str
    kind: str
    source: str
    evidence: str
    note: str = ""


def _reduce(
    system: str,
    ranks: int,
    nodes: int | None,
    size: str,
    *,
    low: float,
    source: str,
    kind: str = MEASURED,
    high: float = 0,
    note: str = "",
    evidence: str = PRIMARY,
) -> KnownGood:
    return KnownGood(system, ranks, nodes, size, low, high or low, "GB/s busbw", kind, source, evidence, note)


def _nic(system: str, low: float, source: str, note: str) -> KnownGood:
    return KnownGood(system, None, None, "", low, low, "Gb/s", THRESHOLD, source, PRIMARY, note)


_AZURE = "Azure node health checks"
_CORE = "CoreWeave nccl-tests README"
_OCI = "OCI HPC health checks"
_STAS = "stas00 ml-engineering"
_RATIO = "the source files it under 64 GPUs; busbw/algbw = 1.9792 means 96 ranks (12 nodes)"
_TWO_RACKS = "the source's header says 143 ranks; busbw/algbw = 1.9844 means 128"
_PAIR = "two nodes exceed 400: each adapter moves its eighth once; a pair's limit is higher than that of N nodes"

TABLE = (
    _reduce("H100 node", 8, 1, "16G", low=460, source=_AZURE, kind=THRESHOLD),
    _reduce(
        "H100 node", 8, 1, "", low=480, source="NVIDIA/nccl-tests issue 212", note="peak, NVLS (the switch reduces)"
    ),
    _reduce("H100 node", 8, 1, "", low=365, source="NVIDIA/nccl-tests issue 212", high=370, note="without NVLS"),
    _reduce("H200 node", 8, 1, "8G", low=473, source=_STAS, note="NVLS; 365.6 as a ring"),
    _reduce("H200 node", 8, 1, "", low=431, source=_AZURE, high=432, kind=THRESHOLD),
    _reduce("H100/H200/B200 8x400G", 16, 2, "1G-16G average", low=440, source=_OCI, kind=THRESHOLD, note=_PAIR),
    _reduce("B300", 8, 1, "", low=800, source=_OCI, kind=FIGURE),
    _reduce("B300", 16, 2, "", low=700, source=_OCI, high=750, kind=FIGURE),
    _reduce("H100 8x400G IB", 96, 12, "512M", low=356, source=_CORE, note=_RATIO),
    _reduce("H100 8x400G IB", 96, 12, "1G", low=366, source=_CORE, note=_RATIO),
    _reduce("H100 8x400G IB", 96, 12, "2G", low=381, source=_CORE, note=_RATIO),
    _reduce("H100 8x400G IB", 96, 12, "4G", low=383, source=_CORE, note=_RATIO),
    _reduce("H100 8x400G IB", 96, 12, "8G", low=387, source=_CORE, note=_RATIO),
    _reduce(
        "H100 8x400G",
        128,
        16,
        "8G-16G",
        low=360,
        source="",
        high=390,
        evidence=NO_PRIMARY,
        note="agrees with the 96-rank rows; no published 16-node measurement was found",
    ),
    _reduce("GB200 1 rack", 72, None, "512M", low=586, source=_CORE),
    _reduce("GB200 1 rack", 72, None, "1G", low=724, source=_CORE),
    _reduce("GB200 1 rack", 72, None, "8G", low=835, source=_CORE, high=847),
    _reduce("GB200 2 racks", 128, None, "8G", low=793, source=_CORE, note=_TWO_RACKS),
    _reduce("GB200 2 racks", 128, None, "16G", low=810, source=_CORE, high=820, note=_TWO_RACKS),
    _reduce("GB200 20 racks", 1440, None, "1G", low=219, source=_CORE, note="9.8 ms"),
    _reduce("GB200 20 racks", 1440, None, "8G", low=381, source=_CORE),
    _reduce("GB200 20 racks", 1440, None, "16G", low=405, source=_CORE, high=406, note="84.6 ms"),
    _nic("adapter 200G", 192, _OCI, "ib_write_bw"),
    _nic("adapter 400G", 384, _OCI, "ib_write_bw"),
    _nic("adapter 400G H100", 380, _AZURE, "ib_write_bw from GPU memory"),
    _nic("adapter 400G H200", 360, _AZURE, "ib_write_bw from GPU memory"),
    _nic(
        "adapter 400G",
        720,
        "Imbue's acceptance tests",
        "both directions, from GPU memory; 300 is what it gives without GPUDirect",
    ),
)


def find(system: str | None) -> tuple[KnownGood, ...]:
    """Return the rows whose system's name holds ``system`` (any case); all where it is None."""
    return tuple(row for row in TABLE if system is None or system.lower() in row.system.lower())


def systems() -> tuple[str, ...]:
    """Return the systems' names, each once."""
    return tuple(dict.fromkeys(row.system for row in TABLE))
