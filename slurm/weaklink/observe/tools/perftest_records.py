"""What an output of perftest holds, whether it came as text or as JSON."""

from typing import NamedTuple, Optional

from weaklink.observe.perftest import GIGA, MIB_BITS
from weaklink.observe.tools.text import Trouble

# "MB" and "MiB" are 2^20 bytes in all versions.
MIB_GBPS = MIB_BITS / GIGA


class Row(NamedTuple):
    """One result: bandwidth in Gb/s, latencies in us; None for what this test does not print or did not measure."""

    line: int
    bytes: int
    iterations: Optional[int]
    gbps: Optional[float] = None
    peak_gbps: Optional[float] = None
    msg_rate_mpps: Optional[float] = None
    lat_us: Optional[float] = None
    lat_min_us: Optional[float] = None
    lat_max_us: Optional[float] = None
    lat_avg_us: Optional[float] = None
    p99_us: Optional[float] = None
    p999_us: Optional[float] = None


class Run(NamedTuple):
    """One test: its title without the word "Test", its header's keys in lower case, its rows; whether it was ended.

    ``side``: "local" or "remote" in a table of one direction (--report-both), else empty. ``empty``: the table was
    ended without a row, which is all that some versions print on the side that only receives.
    """

    test: Optional[str]
    keys: dict[str, str]
    rows: tuple[Row, ...]
    closed: bool
    side: str = ""
    empty: bool = False

    @property
    def bidirectional(self) -> bool:
        """Whether both sides sent; the bandwidth is then the sum."""
        return "idirectional" in (self.test or "")


class Record(NamedTuple):
    """All runs of an output, and what failed: status, cause, line's text (words of ``weaklink.observe.perftest``).

    ``below_limit``: the line in which the tool says that its own limit (--limit_bw, --limit_msgrate) was missed.
    """

    version: Optional[str]
    runs: tuple[Run, ...]
    failure: Optional[tuple[str, str, str]]
    troubles: tuple[Trouble, ...]
    blank: bool
    below_limit: Optional[str] = None
