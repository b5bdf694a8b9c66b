"""The document that tells the nodes of a round what to run, and the lines in which they answer.

The document goes from the coordinator to every task of one srun step; each task finds its own flows by its node's
name. It is JSON, packed (zlib, base64, prefix ``z:``) when it is long: one argument may hold 128 KiB.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

MAX_ARGUMENT = 120_000
_PLAIN = 4_000
_MAX_DOCUMENT = 16 * 1024 * 1024
BASE_PORT = 18515


class FlowSpec(NamedTuple):
    """One flow: ``src`` and ``dst`` as ``node/hca`` with their NICs' addresses; where the two ends meet over TCP."""

    id: int
    src: str
    dst: str
    src_address: str
    dst_address: str
    server: str
    port: int


class RoundSpec(NamedTuple):
    """What a round is: flows, benchmarks in the order they run, and their lengths (seconds, iterations)."""

    number: int
    flows: tuple[FlowSpec, ...]
    benchmarks: tuple[str, ...] = ("ib_write_bw", "ib_send_lat")
    bw_seconds: int = 2
    lat_iterations: int = 200
    setup_seconds: float = 20.0


def encode(spec: RoundSpec) -> str:
    """Return the document as one argument; ValueError when even packed it does not fit."""
    document = {"round": spec.number, **{key: value for key, value in spec._asdict().items() if key != "number"}}
    document["flows"] = [list(flow) for flow in spec.flows]
    text = json.dumps(document, separators=(",", ":"))
    if len(text) > _PLAIN:
        text = "z:" + base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    if len(text) > MAX_ARGUMENT:
        raise ValueError(f"a round of {len(spec.flows)} flows takes {len(text)} bytes, more than {MAX_ARGUMENT}")
    return text


def decode(text: str) -> RoundSpec:
    """Return the round that ``text`` describes; ValueError says what is wrong with it."""
    if text.startswith("z:"):
        try:
            unpack = zlib.decompressobj()
            text = unpack.decompress(base64.b64decode(text[2:], validate=True), _MAX_DOCUMENT).decode()
        except (binascii.Error, zlib.error, UnicodeDecodeError) as error:
            raise ValueError(f"packed round does not unpack: {error}") from error
    try:
        document: Any = json.loads(text)
        flows = tuple(_flow(entry) for entry in document["flows"])
        benchmarks = tuple(str(name) for name in document["benchmarks"])
        spec = RoundSpec(
            int(document["round"]),
            flows,
            benchmarks,
            int(document["bw_seconds"]),
            int(document["lat_iterations"]),
            float(document["setup_seconds"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a round: {type(error).__name__}: {error}") from error
    return spec


def _flow(entry: Sequence[Any]) -> FlowSpec:
    flow = FlowSpec(*entry)
    texts = (flow.src, flow.dst, flow.src_address, flow.dst_address, flow.server)
    if not all(isinstance(text, str) and text and not text.startswith("-") for text in texts):
        raise ValueError(f"flow {flow.id!r} has an empty or odd name or address")
    if not (isinstance(flow.port, int) and isinstance(flow.id, int) and 1024 <= flow.port <= 65000):  # noqa: PLR2004
        raise ValueError(f"flow {flow.id!r} has port {flow.port!r}; wanted 1024 to 65000")
    return flow


class EndReport(NamedTuple):
    """What one end of a flow says of one benchmark. ``end`` is "src" (which measures) or "dst" (which serves)."""

    flow: int
    end: str
    benchmark: str
    value: Any = None
    unit: str = ""
    p99_us: Any = None
    failure: str = ""
    detail: str = ""
    shape: str = ""
    counters: Any = None
    versions: Any = None

    def line(self) -> str:
        """Return the report as one line of JSON."""
        return json.dumps({"weaklink-end": 1, **self._asdict()}, separators=(",", ":"))


def parse_reports(text: str) -> list[EndReport]:
    """Return the reports among the lines of ``text``; other lines, and cut ones, are passed over."""
    found = []
    for line in text.splitlines():
        if not line.startswith('{"weaklink-end":1,'):
            continue
        try:
            data = json.loads(line)
            del data["weaklink-end"]
            report = EndReport(**data)
        except (ValueError, TypeError, KeyError):
            continue
        if report.end in ("src", "dst") and (report.value is None or _is_number(report.value)):
            found.append(report)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")
