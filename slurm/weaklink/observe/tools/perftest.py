"""Read what perftest's bandwidth and latency tools print (4.5 to 25.x), as text or as the file of ``--out_json``.

"MB/sec" and "MiB/sec" are 2^20 bytes; bandwidths are returned in Gb/s of 10^9 bits, latencies in microseconds. The
JSON file does not name its unit: the message rate, which has none, tells which it is. A row counts once another line
follows it, so that a cut figure is none.
"""

import re
from collections.abc import Iterable
from typing import Any, Optional

from weaklink.observe.perftest import failure
from weaklink.observe.tools import perftest_json
from weaklink.observe.tools.perftest_records import MIB_GBPS, Record, Row, Run
from weaklink.observe.tools.text import Trouble, integer, number

__all__ = ["NAME", "Record", "Row", "Run", "parse", "recognise"]

NAME = "perftest"
MAX_ROWS = 1_000
MAX_RUNS = 1_000
MAX_KEPT = 200

_UNITS = {"gb": 1.0, "mb": MIB_GBPS, "mib": MIB_GBPS}
_TITLE = re.compile(r"^\s+((?:[\w-]+ ){1,4}(?:BW|Latency)(?: \w+){0,2}) Test\s*$")
_KEY = re.compile(r"([A-Za-z][\w*. /-]{0,40}?)\s*: *([^\s:][^\t]*?)(?=\t|\s{2,}|$)")
_COLUMN = re.compile(r"#?[A-Za-z9][\w.%]*(?: (?:peak|average|Port\d|percentile))*(?:\[[^\]]*\])?")
_HEAD = re.compile(r"^\s*#bytes\s")
_ROW = re.compile(r"^\s*\d{1,19}(?:\s+\S+){2,16}\s*$")
# The entry of the GID table that was chosen is empty.
_NO_GID = re.compile(r"^\s*GID: (?:00:){15}00\s*$")
_RULE = re.compile(r"^-{20,}\s*$")
_PORT_DOWN = re.compile(r"Port number (\d+) state is (\w+)")
_FAILS = re.compile(r"fail|unable|couldn't|error|not found|exceeded|ethernet_read_keys|state is", re.IGNORECASE)
_JSON = re.compile(r"\b(test_info|results|MsgSize|n_iterations|BW_average|t_avg)\"?\s{0,10}:")
_NOT_STARTED = re.compile(
    r"\b(?:ib_(?:write|read|send|atomic)|raw_ethernet)_(?:bw|lat): .{0,80}(?:not found|No such file|cannot open)"
)
_SIDE = re.compile(r"^\s*(Local|Remote) results:\s*$")
_WARNING = re.compile(r"\bwarning\b|^libibverbs:", re.IGNORECASE)
# Said after a whole result too, when the other side left first.
_GOODBYE = re.compile(r"^\s*Failed to (?:close connection|exchange data)", re.IGNORECASE)
_BELOW = re.compile(r"^\s*(?:Error: )?(?:BW result|Msg rate)\s+is below (?:bw|msg_rate) limit", re.IGNORECASE)
# What the tool prints before or without a table, and nobody else does.
_SIGNS = (
    "* Waiting for client to connect... *",
    "Couldn't get context for the device",
    "Unable to find the Infiniband/RoCE device",
    "Unable to init the socket connection",
    "Unable to open file descriptor for socket connection",
    "Unable to Connect the HCA's through the link",
    "Failed to complete run_iter_bw function",
    "ethernet_read_keys",
)


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is perftest's."""
    head = head[:65_536]
    if head.lstrip().startswith("{"):
        return 92 if len(set(_JSON.findall(head))) >= 3 else 0  # noqa: PLR2004 - fewer may be another tool's
    lines = head.splitlines()
    if any(_HEAD.match(line) and "#iterations" in line for line in lines):
        return 92
    if any(_TITLE.match(line) and ("BW" in line or "Latency" in line) for line in lines):
        return 90
    if any(word in head for word in _SIGNS) or _NOT_STARTED.search(head):
        return 80
    if any(word in head for word in ("Completion with error at", "Couldn't connect to ")):
        return 60
    return 0


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises."""
    reader = _Reader()
    rest = iter(lines)
    for at, line in enumerate(rest, 1):
        if not line.strip() and reader.blank:
            continue
        if reader.blank and line.lstrip().startswith("{"):
            return perftest_json.parse([line], rest)
        reader.line(at, line)
    return reader.end()


class _Reader:
    """State while the lines go by."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.failures: list[str] = []
        self.troubles: list[Trouble] = []
        self.blank = True
        self.port: Optional[tuple[str, str]] = None
        self.below: Optional[str] = None
        self.no_gid: Optional[str] = None
        self._begin(None)

    def _begin(self, test: Optional[str]) -> None:
        self.test = test
        self.side = ""
        self.keys: dict[str, str] = {}
        self.rows: list[Row] = []
        self.columns: list[str] = []
        self.pending: Optional[Row] = None
        self.closed = False
        self.empty = False

    def line(self, at: int, line: str) -> None:
        self.blank = False
        if self.pending is not None and len(self.rows) < MAX_ROWS:
            self.rows.append(self.pending)
        self.pending = None
        title = _TITLE.match(line)
        if title:
            self._close()
            self._begin(title.group(1))
        elif _HEAD.match(line):
            if self.rows:
                self._next_table("")
            self.columns = _COLUMN.findall(line)
        elif _RULE.match(line):
            self.closed = self.closed or bool(self.rows)
            self.empty = bool(self.columns) and not self.rows
        elif self.columns and _ROW.match(line):
            self.pending = self._row(at, line)
        else:
            self._other(line)

    def _other(self, line: str) -> None:
        side = _SIDE.match(line)
        if side:
            self._next_table(side.group(1).lower())
        elif _BELOW.match(line):
            self.below = self.below or line.strip()[:200]
        elif _FAILS.search(line):
            self._failed(line)
        elif self.no_gid is None and _NO_GID.match(line):
            self.no_gid = line.strip()[:200]
        if not self.columns and len(self.keys) < MAX_KEPT:
            for key, value in _KEY.findall(line[:400]):
                self.keys.setdefault(key.strip().lower(), value.strip())

    def _failed(self, line: str) -> None:
        if _WARNING.search(line) or (self.closed and _GOODBYE.match(line)):
            return
        if len(self.failures) < MAX_KEPT:
            self.failures.append(line[:400])
        state = _PORT_DOWN.search(line)
        if state and state.group(2).lower() != "active":
            self.port = (state.group(2).lower(), line.strip()[:200])

    def _next_table(self, side: str) -> None:
        """Begin another table under the same header."""
        keys = self.keys
        self._close()
        self._begin(self.test)
        self.keys, self.side = dict(keys), side

    def _row(self, at: int, line: str) -> Optional[Row]:
        cells = line.split()
        if len(cells) != len(self.columns):
            self._trouble(at, f"a result row that is not whole: {line.strip()[:80]!r}")
            return None
        named = dict(zip(self.columns, cells))
        values: dict[str, Any] = {}
        for column, cell in named.items():
            name, unit = _meaning(column)
            if name is None:
                continue
            figure = number(cell)
            if figure is None:
                self._trouble(at, f"column {column}: found {cell!r:.40}, wanted a number")
            elif figure > 0:
                values[name] = figure * unit
        return Row(at, int(cells[0]), integer(named.get("#iterations")), **values)

    def _trouble(self, at: int, what: str) -> None:
        if len(self.troubles) < MAX_KEPT:
            self.troubles.append(Trouble(at, what))

    def _close(self) -> None:
        if (self.test or self.columns or self.rows) and len(self.runs) < MAX_RUNS:
            self.runs.append(Run(self.test, self.keys, tuple(self.rows), self.closed, self.side, self.empty))

    def end(self) -> Record:
        self._close()
        return Record(None, tuple(self.runs), self._failure(), tuple(self.troubles), self.blank, self.below)

    def _failure(self) -> Optional[tuple[str, str, str]]:
        if self.port is not None:
            state, line = self.port
            # A link without a subnet manager stays in "Init".
            return ("fail", "no-subnet-manager" if state.startswith("init") else "link-down", line)
        found = failure("\n".join(self.failures))
        if found is not None and found[1] == "rdma-work-failed" and "Failed status" not in "".join(self.failures):
            return None  # the line that tells which work failed, and why, is cut off
        if found is not None and found[1] == "roce-gid-unreachable" and self.no_gid is not None:
            return ("fail", "gid-index-wrong", f"{found[2]} ({self.no_gid})")
        if found is None and self.failures and not any(run.rows for run in self.runs):
            return ("unknown", "test-did-not-run", self.failures[0].strip()[:200])
        return found


_NAMES = {
    "BW peak": "peak_gbps",
    "BW average": "gbps",
    "MsgRate": "msg_rate_mpps",
    "t_min": "lat_min_us",
    "t_max": "lat_max_us",
    "t_typical": "lat_us",
    "t_avg": "lat_avg_us",
    "99% percentile": "p99_us",
    "99.9% percentile": "p999_us",
}


def _meaning(column: str) -> tuple[Optional[str], float]:
    """Return the field that a column fills, and what its figures are multiplied with."""
    name, _, unit = column.partition("[")
    field = _NAMES.get(name)
    word = unit.lower()
    if field in ("gbps", "peak_gbps"):
        factor = _UNITS.get(word.partition("/")[0])
        return (field, factor) if factor is not None else (None, 1.0)
    wanted = {"msg_rate_mpps": "mpps]"}.get(field or "", "usec]")
    return (field, 1.0) if word == wanted else (None, 1.0)
