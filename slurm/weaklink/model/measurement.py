"""Measurements and references: what a benchmark between two HCAs said, and what it says when all is well. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

BANDWIDTH = "ib_write_bw"
LATENCY = "ib_send_lat"
# Derived, not run: retransmissions a packet sent, from the hardware counters of both ends of a bandwidth test.
RETRANSMITS = "retransmits"

# Benchmark → (metric in the words of the locate output, unit, whether more is better).
BENCHMARKS = {
    BANDWIDTH: ("bandwidth", "Gb/s", True),
    LATENCY: ("latency", "us", False),
    RETRANSMITS: ("counters", "per packet", False),
}

# Failure classes of a flow. Only the last one says something about the fabric; the others are our own and mean unknown.
UNKNOWN_FAILURES = (
    "tool-missing",
    "timeout",
    "rendezvous-failed",
    "device-missing",
    "test-did-not-run",
    "not-reported",
)
RDMA_FAILED = "rdma-failed"


class Measurement(NamedTuple):
    """One flow and benchmark.

    ``src`` and ``dst`` are ``node/hca``. ``value`` is in Gb/s (bandwidth) or microseconds (latency), None when there is
    none; ``failure`` is then one of the classes above and ``detail`` a line of text. ``counters`` holds the
    differences of the hardware counters by end ("src", "dst"); ``time`` is seconds since the epoch.
    """

    src: str
    dst: str
    benchmark: str
    value: Optional[float]
    unit: str
    failure: str = ""
    detail: str = ""
    shape: str = ""
    p99_us: Optional[float] = None
    round: int = 0
    retest: bool = False
    time: float = 0.0
    counters: Mapping[str, Mapping[str, int]] = {}
    versions: Mapping[str, str] = {}

    def as_line(self) -> dict[str, Any]:
        """Return the object of a measurement line, with ``benchmark`` and what else is known."""
        metric = BENCHMARKS.get(self.benchmark, ("", "", True))[0]
        return {
            "round": self.round,
            "src": self.src,
            "dst": self.dst,
            "path": None,
            "gbps": self.value if metric == "bandwidth" else None,
            "lat_us": self.value if metric == "latency" else None,
            "p99_us": self.p99_us,
            "ok": self.value is not None,
            "retest": self.retest,
            "stage": "pair",
            "benchmark": self.benchmark,
            "shape": self.shape,
            "failure": self.failure,
            "detail": self.detail,
            "time": self.time,
            "counters": {end: dict(values) for end, values in self.counters.items()},
            "versions": dict(self.versions),
        }


class Reference(NamedTuple):
    """What one benchmark says on this fleet when it is healthy, learned from ``sweeps`` sweeps.

    Logarithms are natural. ``center`` is the log of the fleet's typical value, ``offsets`` what a path (``src>dst``)
    adds to it, ``offset_sd`` how well that is known; ``sigma`` is the noise of one flow within one sweep, common mode
    removed.
    """

    benchmark: str
    shape: str
    unit: str
    center: float
    sigma: float
    sweeps: int
    offsets: Mapping[str, float] = {}
    offset_sd: float = 0.0


def path_of(src: str, dst: str) -> str:
    """Return the name of a directed path in references."""
    return f"{src}>{dst}"


# Names of retransmission evidence over the drivers (rxe, mlx5); absent ones are not applicable.
RETRANSMIT_COUNTERS = (
    "out_of_seq_request",
    "rcvd_seq_err",
    "completer_retry_err",
    "duplicate_request",
    "retry_exceeded_err",
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "implied_nak_seq_err",
)
_PACKET_COUNTERS = ("sent_pkts", "port_xmit_packets")


def retransmit_rate(measurement: Measurement) -> Optional[float]:
    """Return retransmission events a packet of a bandwidth test, or None when the counters do not tell.

    Half an event is added, so that a run without any still has a logarithm.
    """
    events = packets = 0
    for values in measurement.counters.values():
        events += sum(max(0, values.get(name, 0)) for name in RETRANSMIT_COUNTERS)
        packets += sum(max(0, values.get(name, 0)) for name in _PACKET_COUNTERS)
    if packets <= 0:
        return None
    return (events + 0.5) / (packets + 1000.0)


def with_retransmits(measurements: "list[Measurement]") -> "list[Measurement]":
    """Return the measurements and, for each bandwidth test with counters, the derived rate of retransmissions."""
    found = list(measurements)
    for one in measurements:
        rate = retransmit_rate(one) if one.benchmark == BANDWIDTH else None
        if rate is not None:
            found.append(one._replace(benchmark=RETRANSMITS, value=rate, unit="per packet", failure="", p99_us=None))
    return found
