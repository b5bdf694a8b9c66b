"""Bus bandwidth, algorithm bandwidth and time of a collective; and the rank count that figures stand for.

algbw = S/t with S the total bytes (of all ranks for all-gather and reduce-scatter); busbw = algbw x factor(n). The
factors are those of nccl-tests' doc/PERFORMANCE.md. Where the switch reduces (NVLS, SHARP), busbw is not the bandwidth
of a wire. Units: bytes, seconds, GB/s of 10^9 bytes.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

GIGA = 1e9

TWICE = "2(n-1)/n"
ONCE = "(n-1)/n"
ONE = "1"

FACTORS = {
    "all_reduce": TWICE,
    "reduce_scatter": ONCE,
    "all_gather": ONCE,
    "alltoall": ONCE,
    "scatter": ONCE,
    "gather": ONCE,
    "broadcast": ONE,
    "reduce": ONE,
    "sendrecv": ONE,
}
MAX_RANKS = 10_000_000

# Suffixes as nccl-tests reads them are powers of 1024; KB, MB … are powers of 1000, KiB, MiB … of 1024.
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"(\d{1,30}(?:\.\d{1,30})?) ?([KMGT]?)(i?B)?\Z", re.IGNORECASE)


class ExpectError(ValueError):
    """An input that cannot be used; the text says what was found and what is wanted."""


def size_of(text: str) -> float:
    """Return bytes: "16G" as nccl-tests means it (x 2^30), "16GB" (x 10^9), "16GiB" (x 2^30), "4096"."""
    match = _SIZE.match(text.strip())
    if match is None:
        raise ExpectError(f"size: found {text!r:.60}, wanted a positive number with K, M, G, T (x1024), KB … or KiB …")
    figure, prefix, unit = match.groups()
    base = 1000 if (unit or "").upper() == "B" and prefix else 1024
    value = float(figure) * float(base ** _POWERS[prefix.upper()])
    if not 0 < value < 1e18:  # noqa: PLR2004 - an exabyte in one collective is a slip of the pen
        raise ExpectError(f"size: found {text!r:.60}, wanted more than 0 and less than 10^18 bytes")
    return value


def collective_of(test: str) -> str:
    """Return "all_reduce" for "all_reduce_perf", "./all_reduce_perf_mpi", "all-reduce"."""
    name = test.strip().rpartition("/")[2].replace("-", "_").lower()
    name = re.sub(r"_perf\w*\Z", "", name)
    if name == "all_to_all":
        name = "alltoall"
    if name not in FACTORS:
        raise ExpectError(f"collective: found {test!r:.60}, wanted one of {', '.join(FACTORS)}")
    return name


def factor(collective: str, ranks: int) -> float:
    """Return busbw/algbw of ``collective`` over ``ranks`` ranks."""
    if not 1 <= ranks <= MAX_RANKS:
        raise ExpectError(f"ranks: found {ranks}, wanted 1 to {MAX_RANKS}")
    kind = FACTORS[collective]
    if kind == ONE:
        return 1.0
    return (2.0 if kind == TWICE else 1.0) * (ranks - 1) / ranks


class Speed(NamedTuple):
    """One operation: bytes, seconds, and both bandwidths in GB/s."""

    size_bytes: float
    seconds: float
    algbw: float
    busbw: float


def from_time(collective: str, ranks: int, size_bytes: float, seconds: float) -> Speed:
    """Return the bandwidths of an operation that took ``seconds``."""
    if not seconds > 0:
        raise ExpectError(f"time: found {seconds}, wanted more than 0")
    algbw = size_bytes / seconds / GIGA
    return Speed(size_bytes, seconds, algbw, algbw * factor(collective, ranks))


def from_busbw(collective: str, ranks: int, size_bytes: float, busbw: float) -> Speed:
    """Return the time of an operation that reached ``busbw`` GB/s."""
    share = factor(collective, ranks)
    if not busbw > 0 or share == 0:
        raise ExpectError(f"busbw: found {busbw} with {ranks} ranks, wanted more than 0 and at least 2 ranks")
    algbw = busbw / share
    return Speed(size_bytes, size_bytes / algbw / GIGA, algbw, busbw)


class Ratio(NamedTuple):
    """Rank counts that printed figures allow: ``low`` to ``high`` (``high`` None: no upper limit).

    ``low`` > ``high``: the rows contradict each other. ``rows``: how many told something.
    """

    low: int
    high: int | None
    rows: int

    @property
    def exact(self) -> int | None:
        """The one count that is possible, or None."""
        return self.low if self.low == self.high else None

    def allows(self, ranks: int) -> bool:
        """Return whether ``ranks`` fits all rows."""
        return self.low <= ranks and (self.high is None or ranks <= self.high)


def ranks_from(collective: str, figures: Iterable[tuple[float, float]], decimals: float = 0.005) -> Ratio | None:
    """Return the rank counts that (algbw, busbw) pairs allow; None where the factor does not depend on n.

    Both are rounded to 2 x ``decimals``; each row gives an interval for n = 2/(2 - busbw/algbw) (1/(1 - ratio) for
    factors (n-1)/n), and n lies in all of them.
    """
    top = {TWICE: 2.0, ONCE: 1.0}.get(FACTORS[collective])
    if top is None:
        return None
    low, high, rows = 1.0, float("inf"), 0
    for algbw, busbw in figures:
        slack = decimals + 1e-6
        # Large figures are printed with fewer decimals: six digits at most.
        slack_a, slack_b = max(slack, algbw * 5e-6), max(slack, busbw * 5e-6)
        if algbw <= slack_a:
            continue
        rows += 1
        smallest = max(0.0, busbw - slack_b) / (algbw + slack_a)
        largest = (busbw + slack_b) / (algbw - slack_a)
        low = max(low, top / (top - smallest) if smallest < top else float("inf"))
        high = min(high, top / (top - largest) if largest < top else float("inf"))
    if rows == 0:
        return None
    if low > MAX_RANKS:
        return Ratio(MAX_RANKS + 1, 0, rows)
    return Ratio(_ceil(low), None if high > MAX_RANKS else int(high + 1e-9), rows)


def _ceil(value: float) -> int:
    return int(-(-(value - 1e-9) // 1))
