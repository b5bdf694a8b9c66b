"""Run one end of a flow with perftest, between counters read before and after.

The receiving node starts a server for each benchmark at once (a waiting server costs nothing); the sending node runs
the clients one after another and tries again until the server listens. Every process has a deadline of its own. What
went wrong on our side (no tool, no rendezvous, no device, time-out before the two ends met) is *unknown*; only when
the two tools had met and RDMA then failed or hung is the flow ``rdma-failed``.
"""

import os
import time
from collections.abc import Mapping
from threading import Thread
from typing import Callable, NamedTuple, Optional

from weaklink.model.measurement import BANDWIDTH, LATENCY, RDMA_FAILED
from weaklink.model.process import ABANDONED, MISSING, TIMEOUT, Runner, RunResult
from weaklink.model.round import EndReport, FlowSpec, RoundSpec
from weaklink.observe.host import Host
from weaklink.observe.perftest import Perftest, parse_text
from weaklink.observe.rdma import devices, gid_index, read_counters

_UNKNOWN = {
    "rendezvous-failed": "rendezvous-failed",
    "nic-probe-failed": "device-missing",
    "test-did-not-run": "test-did-not-run",
    "output-truncated": "test-did-not-run",
}
ROCE_V2 = "RoCE v2"
_RETRY_AFTER = 0.5
BW_BYTES = 65536
LAT_BYTES = 2


class Device(NamedTuple):
    """The RDMA device to use: name, and the GID index (None on InfiniBand, where none is given)."""

    name: str
    gid_index: Optional[int]


def find_device(host: Host, hca: str, address: str) -> Optional[Device]:
    """Return the device with ``address`` in a RoCE v2 GID; else an InfiniBand device named ``hca``; else None."""
    for name in devices(host):
        index = gid_index(host, name, address, ROCE_V2)
        if index is not None:
            return Device(name, index)
    if host.word(f"/sys/class/infiniband/{hca}/ports/1/link_layer") == "InfiniBand":
        return Device(hca, None)
    return None


def difference(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return what moved; a counter that went backwards was reset and tells nothing."""
    return {name: after[name] - before[name] for name in sorted(after) if name in before and after[name] > before[name]}


def shape(benchmark: str) -> str:
    """Return the name of what is run, which is part of the key of a baseline."""
    return f"{BW_BYTES}B,1qp" if benchmark == BANDWIDTH else f"{LAT_BYTES}B"


class Bench:
    """Runs ends of flows on this node; ``clock`` and ``sleep`` are for tests."""

    def __init__(self, host: Host, run: Runner) -> None:
        self.host, self.run = host, run
        self.clock: Callable[[], float] = time.monotonic
        self.sleep: Callable[[float], None] = time.sleep

    def flows(self, spec: RoundSpec, node: str, emit: Callable[[EndReport], None]) -> int:
        """Run this node's ends of the round's flows side by side; return how many there were."""
        mine = [(flow, "dst") for flow in spec.flows if flow.dst.partition("/")[0] == node]
        mine += [(flow, "src") for flow in spec.flows if flow.src.partition("/")[0] == node]
        threads = [Thread(target=self._end, args=(spec, flow, end, emit), daemon=True) for flow, end in mine]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(self.deadline(spec) + 30.0)
        return len(mine)

    def deadline(self, spec: RoundSpec) -> float:
        """Return how long an end may take, in seconds."""
        return sum(self._length(spec, name) for name in spec.benchmarks)

    def _length(self, spec: RoundSpec, benchmark: str) -> float:
        # An iteration of a latency test takes two trips; 100 ms each way is far beyond what anybody wants to measure.
        run = float(spec.bw_seconds) if benchmark == BANDWIDTH else spec.lat_iterations * 0.1
        return spec.setup_seconds + run

    def _end(self, spec: RoundSpec, flow: FlowSpec, end: str, emit: Callable[[EndReport], None]) -> None:
        hca, address = (flow.src, flow.src_address) if end == "src" else (flow.dst, flow.dst_address)
        device = find_device(self.host, hca.partition("/")[2], address)
        if device is None:
            for name in spec.benchmarks:
                detail = f"{hca}: no RDMA device with address {address} and a RoCE v2 GID"
                emit(EndReport(flow.id, end, name, failure="device-missing", detail=detail, shape=shape(name)))
            return
        if end == "src":
            for index, name in enumerate(spec.benchmarks):
                emit(self._client(spec, flow, name, index, device))
            return
        servers = [
            Thread(target=lambda *one: emit(self._server(*one)), args=(spec, flow, name, index, device), daemon=True)
            for index, name in enumerate(spec.benchmarks)
        ]
        for server in servers:
            server.start()
        for server in servers:
            server.join(self.deadline(spec) + 20.0)

    def _argv(self, spec: RoundSpec, name: str, device: Device, port: int) -> list[str]:
        # Line buffering: what the tool said before it was killed tells whether the two ends had met.
        argv = ["stdbuf", "-oL", name, "-d", device.name, "-i", "1", "-p", str(port), "-F"]
        if device.gid_index is not None:
            argv += ["-x", str(device.gid_index)]
        if name == BANDWIDTH:
            return [*argv, "--report_gbits", "-s", str(BW_BYTES), "-D", str(spec.bw_seconds)]
        return [*argv, "-s", str(LAT_BYTES), "-n", str(spec.lat_iterations)]

    def _server(self, spec: RoundSpec, flow: FlowSpec, name: str, index: int, device: Device) -> EndReport:
        before = read_counters(self.host, device.name, 1)
        # All servers start together, so a later benchmark's server also waits for the earlier ones to end.
        deadline = sum(self._length(spec, one) for one in spec.benchmarks[: index + 1])
        result = self.run(self._argv(spec, name, device, flow.port + index), deadline)
        moved = difference(before, read_counters(self.host, device.name, 1)) if index == 0 else {}
        failure, detail, _ = classify(result)
        versions = {"kernel": os.uname().release, **(self._tool_version(name) if index == 0 else {})}
        return EndReport(
            flow.id,
            "dst",
            name,
            failure=failure,
            detail=detail,
            shape=shape(name),
            counters=moved,
            versions=versions,
        )

    def _client(self, spec: RoundSpec, flow: FlowSpec, name: str, index: int, device: Device) -> EndReport:
        give_up = self.clock() + self._length(spec, name)
        argv = [*self._argv(spec, name, device, flow.port + index), flow.server]
        while True:
            before = read_counters(self.host, device.name, 1)
            result = self.run(argv, max(1.0, give_up - self.clock()))
            failure, detail, seen = classify(result)
            if failure != "rendezvous-failed" or self.clock() + _RETRY_AFTER >= give_up:
                break
            self.sleep(_RETRY_AFTER)
        moved = difference(before, read_counters(self.host, device.name, 1))
        value = seen.gbps if name == BANDWIDTH else seen.lat_us
        if not failure and value is None:
            failure, detail = "test-did-not-run", f"{name} ran and gave no figure"
        return EndReport(
            flow.id,
            "src",
            name,
            value=None if failure else value,
            unit="Gb/s" if name == BANDWIDTH else "us",
            p99_us=seen.p99_us if name == LATENCY and not failure else None,
            failure=failure,
            detail=detail,
            shape=shape(name),
            counters=moved,
        )

    def _tool_version(self, name: str) -> dict[str, str]:
        result = self.run([name, "--version"], 5.0)
        words = (result.out + " " + result.err).split()
        return {"perftest": words[words.index("Version:") + 1]} if "Version:" in words[:-1] else {}


def classify(result: RunResult) -> tuple[str, str, Perftest]:  # noqa: PLR0911 - one for each class
    """Return (failure class or "", one line of detail, what the output says) of one run of a tool."""
    seen = parse_text(result.out + "\n" + result.err)
    if result.status == MISSING or _no_such_tool(result):
        return "tool-missing", result.failure(), seen
    if seen.status == "fail":
        return RDMA_FAILED, f"{seen.cause}: {seen.detail}", seen
    if result.status in (TIMEOUT, ABANDONED):
        if "remote address:" in result.out:
            return RDMA_FAILED, f"rdma-hung: no end within {result.seconds:.0f} s after both ends had met", seen
        return "timeout", result.failure(), seen
    if seen.status == "ok" and result.ok:
        return "", "", seen
    if seen.status == "ok":
        return "test-did-not-run", result.failure(), seen
    return _UNKNOWN.get(seen.cause, "test-did-not-run"), seen.detail or result.failure(), seen


def _no_such_tool(result: RunResult) -> bool:
    return result.rc == 127 and "No such file" in result.err  # noqa: PLR2004 - what stdbuf says of a missing tool
