"""Read what perftest's ``ib_write_bw`` and ``ib_send_lat`` print, as text or as ``--out_json``.

Seen: 4.5 ("MB/sec") and 25.01 ("MiB/sec"); both words mean 2^20 bytes. Bandwidths are returned in Gb/s (10^9 bit/s),
latencies in microseconds. What was cut off, empty or odd gives no number: ``status`` is then ``unknown`` (the tool
did not get as far as RDMA) or ``fail`` (RDMA itself failed and the tool said so), never a bandwidth of 0.
"""

import json
import re
from typing import Any, NamedTuple, Optional

MIB_BITS = float(8 << 20)
GIGA = 1e9

# What the tools print when the rendezvous over TCP did not come about: our set-up, not the fabric's health.
_RENDEZVOUS = (
    "Couldn't connect to",
    "Unable to open file descriptor for socket connection",
    "Unable to init the socket connection",
    "Failed to bind socket",
    "Failed to exchange data between server and clients",
    "ethernet_read_keys",
    "Unable to set up socket connection",
)
# What they print when a work request or the path under it failed. The order is that of the diagnosis.
_RDMA = (
    (re.compile(r"Failed status 12\b|transport retry counter exceeded", re.IGNORECASE), "rdma-retry-exceeded"),
    (re.compile(r"Failed status 13\b|RNR retry counter exceeded", re.IGNORECASE), "rdma-rnr-exceeded"),
    (
        re.compile(r"Failed to modify QP \S+ to RT[RS]|Unable to Connect the HCA's through the link"),
        "roce-gid-unreachable",
    ),
    (re.compile(r"Completion with error at (?:client|server)|Failed status \d+"), "rdma-work-failed"),
)
_DEVICE = ("Unable to find the Infiniband/RoCE device", "Couldn't get context for the device", "IB device ")

_KEY = re.compile(r"^\s*([A-Za-z_*][\w .*/]*?)\s*:\s*(\S+)", re.MULTILINE)
_TITLE = re.compile(r"^\s+(\w+) (BW|Latency)(?: Post_list)? ?(?:Bi-?directional )?Test", re.MULTILINE | re.IGNORECASE)
_BW_HEAD = re.compile(r"#bytes\s+#iterations\s+BW peak\[(\w+)/sec\]\s+BW average\[\w+/sec\]\s+MsgRate\[Mpps\]")
_LAT_HEAD = re.compile(r"#bytes\s+#iterations\s+t_min\[usec\]\s+t_max\[usec\]\s+t_typical\[usec\]\s+t_avg\[usec\]")
_NUMBER = re.compile(r"^\d+(?:\.\d+)?$")
_BW_COLUMNS = 5
_LAT_COLUMNS = 6
_LAT_COLUMNS_P99 = 8


class Perftest(NamedTuple):
    """What one run said.

    ``status``: ok | unknown | fail. ``cause``: healthy, output-truncated, test-did-not-run, rendezvous-failed,
    nic-probe-failed, or the kind of RDMA failure. ``test`` as printed ("RDMA_Write BW"); ``bytes`` and ``iterations``
    of the last result row; ``gbps`` for bandwidth tests, ``lat_us`` (typical) and ``p99_us`` for latency tests.
    """

    status: str
    cause: str
    detail: str
    test: Optional[str] = None
    bytes: Optional[int] = None
    iterations: Optional[int] = None
    gbps: Optional[float] = None
    peak_gbps: Optional[float] = None
    msg_rate_mpps: Optional[float] = None
    lat_us: Optional[float] = None
    lat_avg_us: Optional[float] = None
    p99_us: Optional[float] = None
    mtu: Optional[int] = None
    gid_index: Optional[int] = None
    qps: Optional[int] = None
    bidirectional: bool = False


def parse_text(text: str) -> Perftest:
    """Return what the text output of a perftest tool says; never raises."""
    facts = _header(text)
    row = _bandwidth_row(text) or _latency_row(text)
    failed = failure(text)
    if failed is not None:
        return Perftest(failed[0], failed[1], failed[2], **facts)
    if row is None:
        if not text.strip():
            return Perftest("unknown", "test-did-not-run", "the tool printed nothing")
        return Perftest("unknown", "output-truncated", "no complete result row: " + _last_line(text), **facts)
    return Perftest("ok", "healthy", "", **facts, **row)


def parse_json(text: str, *, gbits: bool = True) -> Perftest:
    """Return what a ``--out_json`` file says; ``gbits`` tells whether ``--report_gbits`` was given.

    The file itself does not say its unit, hence the argument. A file that is not whole JSON is unknown.
    """
    if not text.strip():
        return Perftest("unknown", "test-did-not-run", "the result file is empty")
    try:
        document = json.loads(text)
        info = document["test_info"]
        results = document["results"]
        row = results[-1] if isinstance(results, list) else results
        facts = _json_facts(info, row)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        return Perftest("unknown", "output-truncated", f"the result file is not whole: {type(error).__name__}: {error}")
    unit = 1.0 if gbits else MIB_BITS / GIGA
    values: dict[str, Any] = {}
    if "BW_average" in row:
        average, peak = _positive(row["BW_average"]), _positive(row.get("BW_peak"))
        values = {
            "gbps": None if average is None else average * unit,
            "peak_gbps": None if peak is None else peak * unit,
            "msg_rate_mpps": _positive(row.get("MsgRate")),
        }
    elif "t_avg" in row:
        values = {
            "lat_us": _positive(row.get("t_typical")),
            "lat_avg_us": _positive(row["t_avg"]),
            "p99_us": _positive(row.get("percentile_99")),
        }
    if values.get("gbps") is None and values.get("lat_us") is None:
        return Perftest("unknown", "output-truncated", "the result file holds no bandwidth and no latency", **facts)
    return Perftest("ok", "healthy", "", **facts, **values)


def _json_facts(info: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    name = re.sub(r"_(BW|Latency)(?:_Test)?_*\Z", r" \1", str(info.get("test", "")).strip())
    return {
        "test": name or None,
        "bytes": int(row["MsgSize"]),
        "iterations": int(row["n_iterations"]),
        "mtu": _integer(info.get("Mtu")),
        "gid_index": _integer(info.get("GID_index")),
        "qps": _integer(info.get("Number_of_qps")),
        "bidirectional": "bidirectional" in name.lower(),
    }


def _header(text: str) -> dict[str, Any]:
    title = _TITLE.search(text)
    keys: dict[str, str] = {}
    for match in _KEY.finditer(text):
        keys.setdefault(match.group(1).lower(), match.group(2))
    return {
        "test": f"{title.group(1)} {title.group(2)}" if title else None,
        "mtu": _integer(keys.get("mtu", "").partition("[")[0]),
        "gid_index": _integer(keys.get("gid index")),
        "qps": _integer(keys.get("number of qps")),
        "bidirectional": "idirectional" in text.partition("#bytes")[0],
    }


def _rows_after(text: str, head: "re.Match[str]", columns: int) -> Optional[list[str]]:
    """Return the last whole row of numbers below a head line; a row without its line end may be cut."""
    found = None
    for line in text[head.end() :].split("\n")[1:-1]:
        cells = line.split()
        if cells and not _NUMBER.match(cells[0]):
            break
        if len(cells) >= columns and all(_NUMBER.match(cell) for cell in cells[:columns]):
            found = cells
    return found


def _bandwidth_row(text: str) -> Optional[dict[str, Any]]:
    head = _BW_HEAD.search(text)
    cells = _rows_after(text, head, _BW_COLUMNS) if head else None
    if head is None or cells is None:
        return None
    unit = {"gb": 1.0, "mb": MIB_BITS / GIGA, "mib": MIB_BITS / GIGA}.get(head.group(1).lower())
    average = _positive(cells[3])
    if unit is None or average is None:
        return None
    peak = _positive(cells[2])  # 0.00 in timed runs: not measured
    return {
        "bytes": int(cells[0]),
        "iterations": int(cells[1]),
        "gbps": average * unit,
        "peak_gbps": None if peak is None else peak * unit,
        "msg_rate_mpps": _positive(cells[4]),
    }


def _latency_row(text: str) -> Optional[dict[str, Any]]:
    head = _LAT_HEAD.search(text)
    cells = _rows_after(text, head, _LAT_COLUMNS) if head else None
    if cells is None:
        return None
    typical = _positive(cells[4])
    if typical is None:
        return None
    p99 = cells[7] if len(cells) >= _LAT_COLUMNS_P99 else None
    return {
        "bytes": int(cells[0]),
        "iterations": int(cells[1]),
        "lat_us": typical,
        "lat_avg_us": _positive(cells[5]),
        "p99_us": _positive(p99),
    }


def failure(text: str) -> Optional[tuple[str, str, str]]:
    """Return status, cause and the line in which the tool says that it failed, or None."""
    for pattern, cause in _RDMA:
        match = pattern.search(text)
        if match:
            return ("fail", cause, _line_at(text, match.start()))
    for word in _DEVICE:
        at = text.find(word)
        if at >= 0 and (word != "IB device " or "not found" in text[at : at + 120]):
            return ("unknown", "nic-probe-failed", _line_at(text, at))
    for word in _RENDEZVOUS:
        at = text.find(word)
        if at >= 0:
            return ("unknown", "rendezvous-failed", _line_at(text, at))
    return None


def _line_at(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    return text[start:].partition("\n")[0].strip()[:200]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" -\t")]
    return (lines[-1] if lines else "")[:200]


def _positive(value: Any) -> Optional[float]:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 < number < float("inf") else None


def _integer(value: Any) -> Optional[int]:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None
