"""What an nccl-tests output holds, whether it came as text or as JSON."""

from typing import NamedTuple, Optional

from weaklink.observe.tools.text import Trouble


class Half(NamedTuple):
    """One half of a row (out-of-place or in-place): time in us, bandwidths in GB/s (10^9 byte/s).

    ``wrong`` is the number of wrong values, or in old versions the largest deviation; None where nothing was checked.
    ``odd`` tells that the cell held neither a number nor N/A (nan, inf).
    """

    time_us: Optional[float]
    algbw: Optional[float]
    busbw: Optional[float]
    wrong: Optional[float] = None
    odd: bool = False
    bit_differences: Optional[float] = None


class Row(NamedTuple):
    """One message size: bytes, elements, type and operation as printed; its line (0 in JSON)."""

    line: int
    size: int
    elements: int
    type: str
    redop: Optional[str]
    root: Optional[int]
    out_of_place: Optional[Half]
    in_place: Optional[Half]
    iters: Optional[int] = None
    process_medians_us: tuple[float, ...] = ()

    @property
    def halves(self) -> tuple[Half, ...]:
        """The halves that were measured."""
        return tuple(half for half in (self.out_of_place, self.in_place) if half is not None)

    @property
    def busbw(self) -> Optional[float]:
        """The greater bus bandwidth of the two halves, GB/s."""
        return max((half.busbw for half in self.halves if half.busbw is not None), default=None)


class Device(NamedTuple):
    """One line of the list of ranks."""

    rank: int
    group: Optional[int]
    pid: Optional[int]
    host: str
    device: int
    bus: str
    name: str


class Config(NamedTuple):
    """What the run was told to do; None where the header does not say."""

    threads: Optional[int] = None
    gpus: Optional[int] = None
    min_bytes: Optional[int] = None
    max_bytes: Optional[int] = None
    step: Optional[int] = None
    step_is_factor: bool = True
    iters: Optional[int] = None
    validation: Optional[int] = None


class Run(NamedTuple):
    """One table and what belongs to it. ``headers`` and ``summaries`` above 1: several processes in one stream.

    ``average_failed``: the tool compared with a limit of its own (NCCL_TESTS_MIN_BW) and said FAILED.
    ``ranks``: None where the list of ranks is missing or cut.
    """

    headers: int = 0
    summaries: int = 0
    averages: int = 0
    test: Optional[str] = None
    config: Config = Config()
    devices: tuple[Device, ...] = ()
    rank0_lines: int = 0
    ranks: Optional[int] = None
    rows: tuple[Row, ...] = ()
    old_error_column: bool = False
    out_of_bounds: Optional[int] = None
    out_of_bounds_failed: bool = False
    bitwise_mismatches: Optional[int] = None
    average: Optional[float] = None
    average_failed: bool = False
    reduced_max_bytes: bool = False

    @property
    def complete(self) -> bool:
        """Whether the summary of every process is there."""
        return self.summaries > 0 and self.averages >= self.summaries and self.average is not None


class Said(NamedTuple):
    """A line in which NCCL, CUDA or the launcher reports a failure. ``kind``: warn | failure | launcher."""

    line: int
    kind: str
    text: str
    host: Optional[str] = None
    device: Optional[int] = None


class Record(NamedTuple):
    """A whole output. ``networks``: transports that NCCL named (IB, Socket, …) with the number of mentions."""

    version: Optional[str]
    library: Optional[str]
    runs: tuple[Run, ...]
    said: tuple[Said, ...]
    networks: dict[str, int]
    gdr: bool
    troubles: tuple[Trouble, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all runs."""
        return tuple(row for run in self.runs for row in run.rows)
