"""The text output of nccl-tests: one pass over the lines."""

import re
from collections.abc import Iterable
from typing import Any, Optional

from weaklink.observe.tools import nccl_tests_rows
from weaklink.observe.tools.nccl_tests_records import Config, Device, Record, Row, Run, Said
from weaklink.observe.tools.text import Trouble, integer, number

MAX_ROWS = 20_000
MAX_DEVICES = 200_000
MAX_SAID = 200
MAX_RUNS = 1_000
MAX_TROUBLES = 50
MAX_TORN = 1_000

_START = re.compile(r"Collective test starting: (\S+)")
_CONFIG = re.compile(r"\bnThread (\d+) nGpus (\d+) minBytes (\d+) maxBytes (\d+) step: (\d+)\((\w+)\)")
_ITERS = re.compile(r"(?<!warmup )(?<!agg )\biters: (\d+)")
_VALIDATION = re.compile(r"\bvalidation: (\d+)")
_RANK = re.compile(
    r"\bRank +(\d+)(?: +Group +(\d+))?(?: +Pid +(\d+))? +on +(\S+) +device +(\d+) +\[([^\]]{0,64})\] ?(.{0,120})"
)
_TOOL = re.compile(r"nccl-tests version (\S+)")
_LIBRARY = re.compile(r"\bNCCL version (\d[\w.+-]*)")
_BOUNDS = re.compile(r"Out of bounds values +: +(\d+) +(OK|FAILED)\b")
_BITWISE = re.compile(r"Bitwise mismatches +: +(\d+) +(?:OK|FAILED)\b")
_AVERAGE = re.compile(r"Avg bus bandwidth +: +(\S+)(\s*)(OK|FAILED)?")
_REDUCED = re.compile(r"Reducing maxBytes to \d+")
_LOG = re.compile(r"(?:^|\s)([\w.-]{1,255}):\d+:\d+ \[(\d+)\] (.*)")
_WARN = re.compile(r"\bNCCL WARN (.*)")
_FAILURE = re.compile(r"^\s*(?:([\w.-]{1,255}): )?(Test (?:NCCL|CUDA) failure .*)")
_GPUS = re.compile(r"(Invalid number of GPUs: \d+ requested but only \d+ were found.*)")
_LAUNCHER = re.compile(
    r"^\s*((?:srun|slurmstepd|mpirun|prterun|prun|orterun)(?:-\S+)?: .*(?:error|CANCELLED|TIME LIMIT|failed).*"
    r"|.*error while loading shared libraries: .*|.*: command not found|.*No such file or directory)$",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"\b(?:Using network|Assigned NET plugin) (.{1,40}?)(?: to comm)?\s*$|\bvia NET/([\w-]+)/\d+(/GDRDMA)?"
)
# NCCL's log lines go to the same stream in the middle of a row that is printed cell by cell.
_GLUED = re.compile(r"^(\s*\d[^:\[]{0,300}?)([A-Za-z][\w.-]{0,255}:\d+:\d+ \[\d+\] NCCL .*)$")
_CELLS = re.compile(r"^\s*(?:(?:[-+.\d]\S{0,20}|N/A|nan|inf)(?:\s+|$)){1,32}$")
_NO_DEVICE = re.compile(r"NET/IB : No device found")


def parse(lines: Iterable[str]) -> Record:
    """Return what the text holds."""
    reader = _Reader()
    at = 0
    for at, line in enumerate(lines, 1):
        reader.line(at, line)
    return reader.end(at)


class _Reader:
    """State while the lines go by; a run is closed when the next one's header comes after its summary or failure."""

    def __init__(self) -> None:
        self.version: Optional[str] = None
        self.library: Optional[str] = None
        self.done: list[Run] = []
        self.said: list[Said] = []
        self.networks: dict[str, int] = {}
        self.gdr = False
        self.troubles: list[Trouble] = []
        self.pending_average: Optional[tuple[int, str, bool]] = None
        self._begin()

    def _begin(self) -> None:
        self.run: dict[str, Any] = {}
        self.devices: list[Device] = []
        self.list_cut = False
        self.rows: list[Row] = []
        self.columns: Optional[nccl_tests_rows.Columns] = None
        self.failed = False
        self.torn: Optional[tuple[int, str]] = None

    def line(self, at: int, line: str) -> None:
        self._settle_average()
        glued = _GLUED.match(line) if "] NCCL " in line else None
        if glued:
            if not self._row(at, glued.group(1), torn=True):
                self._mended(glued.group(1))
            self._log(at, glued.group(2))
            return
        if self._mended(line) or self._row(at, line):
            return
        columns = nccl_tests_rows.header(line)
        if columns is not None:
            self.columns = columns
            return
        if "NCCL" in line or "failure" in line or "Invalid number of GPUs" in line:
            self._log(at, line)
        if not (self._header(line) or self._rank(line) or self._summary(at, line)):
            self._launcher(at, line)

    def _row(self, at: int, line: str, *, torn: bool = False) -> bool:
        """Take a row of the table; of a torn one the beginning."""
        row = nccl_tests_rows.read(at, line, self.columns)
        if row is None:
            return False
        self._give_up()
        if isinstance(row, Row):
            if len(self.rows) < MAX_ROWS:
                self.rows.append(row)
        elif torn:
            self.torn = (at, line)
        else:
            self._trouble(row)
        return True

    def _mended(self, line: str) -> bool:
        """Put the rest of a torn row behind its beginning; False for a line that holds more than cells."""
        if self.torn is None or not _CELLS.match(line) or len(self.torn[1]) > MAX_TORN:
            return False
        at, begun = self.torn
        whole = f"{begun} {line.strip()}"
        row = nccl_tests_rows.read(at, whole, self.columns)
        self.torn = None if isinstance(row, Row) else (at, whole)
        if isinstance(row, Row) and len(self.rows) < MAX_ROWS:
            self.rows.append(row)
        return True

    def _give_up(self) -> None:
        if self.torn is not None:
            self._trouble(
                Trouble(self.torn[0], f"a row of the table that is not whole: {self.torn[1].strip()[:100]!r}")
            )
            self.torn = None

    def _trouble(self, trouble: Trouble) -> None:
        if len(self.troubles) < MAX_TROUBLES:
            self.troubles.append(trouble)

    def _header(self, line: str) -> bool:
        version = _TOOL.search(line)
        if version:
            self.version = version.group(1)
        start = _START.search(line)
        config = _CONFIG.search(line)
        if (start or config) and (self.rows or self.failed or "out_of_bounds" in self.run):
            self._close()
        if start:
            self.run["test"] = start.group(1)
        if config is None:
            return bool(version or start)
        iters, validation = _ITERS.search(line), _VALIDATION.search(line)
        self.run["headers"] = self.run.get("headers", 0) + 1
        self.run["config"] = Config(
            threads=integer(config.group(1)),
            gpus=integer(config.group(2)),
            min_bytes=integer(config.group(3)),
            max_bytes=integer(config.group(4)),
            step=integer(config.group(5)),
            step_is_factor=config.group(6) == "factor",
            iters=integer(iters.group(1)) if iters else None,
            validation=integer(validation.group(1)) if validation else None,
        )
        return True

    def _rank(self, line: str) -> bool:
        match = _RANK.search(line)
        if match is None:
            if line.strip() == "..." and self.devices and not self.rows:
                self.list_cut = True  # the tool's own buffer for a process with many GPUs was full
            return False
        if len(self.devices) < MAX_DEVICES:
            rank, group, pid, host, device, bus, name = match.groups()
            self.devices.append(
                Device(int(rank), integer(group), integer(pid), host, int(device), bus.strip(), name.strip())
            )
        return True

    def _summary(self, at: int, line: str) -> bool:
        bounds, bitwise, average = _BOUNDS.search(line), _BITWISE.search(line), _AVERAGE.search(line)
        run = self.run
        if bounds:
            run["summaries"] = run.get("summaries", 0) + 1
            run["out_of_bounds"] = run.get("out_of_bounds", 0) + int(bounds.group(1)[:18])
            run["out_of_bounds_failed"] = run.get("out_of_bounds_failed", False) or bounds.group(2) == "FAILED"
        if bitwise:
            run["bitwise_mismatches"] = run.get("bitwise_mismatches", 0) + int(bitwise.group(1)[:18])
        if average:
            # Without anything behind it the number may be cut; the next line, whatever it is, shows that it is whole.
            self.pending_average = (at, average.group(1), average.group(3) == "FAILED")
            if average.group(2):
                self._settle_average()
        if _REDUCED.search(line):
            run["reduced_max_bytes"] = True
        return bool(bounds or bitwise or average)

    def _settle_average(self) -> None:
        if self.pending_average is None:
            return
        at, word, failed = self.pending_average
        self.pending_average = None
        value = number(word)
        if value is None:
            self._trouble(Trouble(at, f"the average bus bandwidth is no number: {word!r:.60}"))
            return
        self.run["averages"] = self.run.get("averages", 0) + 1
        self.run["average"] = min(value, self.run.get("average", value))
        self.run["average_failed"] = self.run.get("average_failed", False) or failed

    def _log(self, at: int, line: str) -> None:
        library = _LIBRARY.search(line)
        if library and self.library is None:
            self.library = library.group(1)
        network = _NETWORK.search(line)
        if network:
            name = (network.group(1) or network.group(2)).strip()
            if name in self.networks or len(self.networks) < MAX_SAID:
                self.networks[name] = self.networks.get(name, 0) + 1
            self.gdr = self.gdr or bool(network.group(3))
        if _NO_DEVICE.search(line):
            self.networks["no IB device"] = self.networks.get("no IB device", 0) + 1
        log, warn, failure = _LOG.search(line), _WARN.search(line), _FAILURE.search(line)
        gpus = _GPUS.search(line)
        if warn:
            self._say(at, "warn", warn.group(1), log.group(1) if log else None, int(log.group(2)[:9]) if log else None)
        elif failure:
            self.failed = True
            self._say(at, "failure", failure.group(2), failure.group(1))
        elif gpus:
            self.failed = True
            self._say(at, "failure", gpus.group(1))

    def _launcher(self, at: int, line: str) -> None:
        if len(line) < 1_000 and "NCCL INFO" not in line:  # noqa: PLR2004 - launchers write short lines, and the pattern is not anchored
            match = _LAUNCHER.match(line)
            if match:
                self._say(at, "launcher", match.group(1))

    def _say(self, at: int, kind: str, text: str, host: Optional[str] = None, device: Optional[int] = None) -> None:
        if len(self.said) < MAX_SAID:
            self.said.append(Said(at, kind, text.strip()[:400], host, device))

    def _list_is_whole(self) -> bool:
        """Whether something follows the list of ranks that stands nowhere but behind it."""
        behind = self.columns is not None or self.rows or self.failed or self.said or "out_of_bounds" in self.run
        return bool(behind) and not self.list_cut

    def _close(self) -> None:
        self._give_up()
        ranks = {device.rank for device in self.devices}
        run = Run(
            devices=tuple(self.devices),
            rank0_lines=sum(device.rank == 0 for device in self.devices),
            ranks=len(ranks) if ranks and self._list_is_whole() and max(ranks) + 1 == len(ranks) else None,
            rows=tuple(self.rows),
            old_error_column=self.columns is not None and self.columns.error,
            **self.run,
        )
        if (self.run or self.devices or self.rows) and len(self.done) < MAX_RUNS:
            self.done.append(run)
        self._begin()

    def end(self, at: int) -> Record:
        if self.pending_average is not None:
            self.pending_average = None
            self._trouble(Trouble(at, "the text ends within the average bus bandwidth"))
        self._close()
        return Record(
            self.version,
            self.library,
            tuple(self.done),
            tuple(self.said),
            self.networks,
            self.gdr,
            tuple(self.troubles),
        )
