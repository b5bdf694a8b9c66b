"""A fleet at the process boundary: answers salloc, srun and scancel like Slurm, and measures like nodes would."""

# ruff: noqa: S311 - seeded simulations, no secrets

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Optional

from weaklink.guard.context import Guard
from weaklink.history.store import Store
from weaklink.model.process import EXITED, TIMEOUT, RunResult
from weaklink.model.round import EndReport, FlowSpec, decode
from weaklink.model.site import parse_site
from weaklink.scheduler.fake import FakeSlurm

KEY = bytes(range(32))
# benchmark, flow -> factor on the usual value (1: usual), or a failure class with detail
Fault = Callable[[str, FlowSpec], "float | tuple[str, str]"]
USUAL = {"ib_write_bw": 0.5, "ib_send_lat": 1500.0}
SHAPES = {"ib_write_bw": "65536B,1qp", "ib_send_lat": "2B"}


def site_text(names: Sequence[str], store: str, mode: str = "enforce", **sweep: Any) -> str:
    return json.dumps(
        {
            "format": 1,
            "cluster": "lab",
            "mode": mode,
            "service_user": "weaklink",
            "account": "weaklink",
            "qos": "weaklink",
            "partition": "main",
            "store": store,
            "nodes": [
                {
                    "name": name,
                    "leaf": "leaf1",
                    "management": f"10.77.0.{10 + index}",
                    "hcas": [
                        {
                            "name": "rxe_compute",
                            "network": "compute",
                            "role": "compute",
                            "rail": 0,
                            "address": f"10.77.1.{10 + index}",
                            "rate_gbps": 400,
                        },
                        {"name": "rxe_storage", "role": "storage", "rail": 0, "address": f"10.77.2.{10 + index}"},
                    ],
                }
                for index, name in enumerate(names, 1)
            ],
            "policy": {"budget": {"total_nodes": 2}},
            "deadlines": {"slurm": 20, "check": 10},
            "sweep": {"min_loss": 0.15, "sigmas": 5, "baseline_sweeps": 3, **sweep},
        }
    )


class Fleet:
    """Runner of commands for a guard. ``fault`` bends measurements; ``during`` is called before each step runs."""

    def __init__(self, tmp_path: Path, names: Sequence[str] = ("c1", "c2", "c3"), **more: Any) -> None:
        self.rng = random.Random(more.pop("seed", 1))
        self.sigma: float = more.pop("sigma", 0.15)
        # In memory-backed files where there are some: fsync is not what these tests are about.
        memory = "/dev/shm"  # noqa: S108 - TemporaryDirectory makes a private one in it
        self._folder = TemporaryDirectory(dir=memory if Path(memory).is_dir() else tmp_path)
        url = f"sqlite:///{self._folder.name}/state/store.sqlite"
        self.slurm = FakeSlurm(names)
        self.told: list[str] = []
        site = parse_site(site_text(names, url, **more))
        self.log_path = tmp_path / "log" / "guard.log"
        self.store = Store.open(url)
        # Noise and schedule are drawn, so both are seeded: a test says the same every time.
        self.guard = Guard(
            site, self.slurm, KEY, self.store, self.run, self.told.append, str(self.log_path), seed=lambda: 1
        )
        self.fault: Fault = lambda _benchmark, _flow: 1.0
        self.during: Callable[[list[str]], None] = lambda _argv: None
        self.common = 1.0
        self.argvs: list[list[str]] = []
        self.job: Optional[int] = None
        self.jobs = 100
        self.completing = 0
        self.lingers = 0
        self.dead = False
        self.grant = True
        self.checks: dict[str, list[dict[str, str]]] = {}
        self.check_fails = False

    def log(self) -> list[dict[str, Any]]:
        if not self.log_path.exists():
            return []
        return [json.loads(line) for line in self.log_path.read_text().splitlines()]

    def run(self, argv: Sequence[str], timeout: float) -> RunResult:
        assert timeout > 0
        words = list(argv)
        self.argvs.append(words)
        if words[0] == "runuser":
            assert words[:4] == ["runuser", "-u", "weaklink", "--"]
            words = words[4:]
        handler = {"salloc": self._salloc, "srun": self._srun, "scancel": self._scancel, "squeue": self._squeue}[
            words[0]
        ]
        return handler(tuple(argv), words)

    def _salloc(self, argv: tuple[str, ...], words: list[str]) -> RunResult:
        if not self.grant:
            return RunResult(
                argv, 1, "", "salloc: error: Unable to allocate resources: Requested nodes are busy", EXITED, 1.0
            )
        assert self.job is None
        nodes = next(word.partition("=")[2] for word in words if word.startswith("--nodelist=")).split(",")
        reservation = next((word.partition("=")[2] for word in words if word.startswith("--reservation=")), None)
        if any(info.taken for info in self.slurm.nodes(nodes).values()):
            return RunResult(argv, 1, "", "salloc: error: Unable to allocate resources: Nodes are drained", EXITED, 1.0)
        if reservation is not None:
            assert set(nodes) <= set(self.slurm.reservations()[reservation].nodes.split(","))
        self.jobs += 1
        self.job = self.jobs
        return RunResult(argv, 0, "", f"salloc: Granted job allocation {self.job}\n", EXITED, 1.0)

    def _scancel(self, argv: tuple[str, ...], words: list[str]) -> RunResult:
        if words[1] == str(self.job):
            self.job, self.completing = None, self.lingers
        return RunResult(argv, 0, "", "", EXITED, 0.1)

    def _squeue(self, argv: tuple[str, ...], words: list[str]) -> RunResult:
        # A cancelled job may be seen completing for a while before it is gone.
        self.completing -= 1
        assert words[1].startswith("--jobs=")
        return RunResult(argv, 0, "COMPLETING\n" if self.completing >= 0 else "", "", EXITED, 0.1)

    def _srun(self, argv: tuple[str, ...], words: list[str]) -> RunResult:
        assert f"--jobid={self.job}" in words
        self.during(words)
        if self.dead:
            return RunResult(argv, 1, "", "srun: error: Job/step already completing or completed", EXITED, 1.0)
        if "check" in words:
            return self._check(argv, words)
        spec = decode(words[words.index("--flows") + 1])
        lines = [report.line() for flow in spec.flows for name in spec.benchmarks for report in self.ends(name, flow)]
        return RunResult(argv, 0, "srun: some noise\n" + "\n".join(lines) + "\n", "", EXITED, 5.0)

    def _check(self, argv: tuple[str, ...], words: list[str]) -> RunResult:
        node = next(word.partition("=")[2] for word in words if word.startswith("--nodelist="))
        if self.check_fails:
            return RunResult(argv, None, "", "", TIMEOUT, 60.0)
        findings = self.checks.get(node, [finding("rdma.state", "ok"), finding("net.mtu", "ok")])
        bad = any(one["status"] != "ok" for one in findings)
        out = json.dumps({"node": node, "verdict": "fail" if bad else "ok", "findings": findings, "seconds": 1.0})
        return RunResult(argv, int(bad), out, "", EXITED, 1.0)

    def ends(self, benchmark: str, flow: FlowSpec) -> list[EndReport]:
        effect = self.fault(benchmark, flow)
        counters = {"sent_pkts": 4000}
        served = EndReport(
            flow.id, "dst", benchmark, shape=SHAPES[benchmark], counters=counters, versions={"perftest": "6.24"}
        )
        if not isinstance(effect, float):
            failure, detail = effect
            return [served, EndReport(flow.id, "src", benchmark, None, "", None, failure, detail, SHAPES[benchmark])]
        noise = math.exp(self.rng.gauss(0, self.sigma))
        speed = effect * self.common
        value = USUAL[benchmark] * noise * (speed if benchmark == "ib_write_bw" else 1 / speed)
        return [served, EndReport(flow.id, "src", benchmark, value, "", None, "", "", SHAPES[benchmark], counters)]


def finding(check: str, status: str, message: str = "as wanted") -> dict[str, str]:
    return {"check": check, "status": status, "cause": "healthy", "subject": "c2", "message": message}


def slow(node: str, factor: float, benchmark: str = "ib_write_bw") -> Fault:
    def fault(name: str, flow: FlowSpec) -> "float | tuple[str, str]":
        hit = node in (flow.src.partition("/")[0], flow.dst.partition("/")[0])
        return factor if hit and name == benchmark else 1.0

    return fault


def broken(node: str, failure: str, detail: str) -> Fault:
    def fault(name: str, flow: FlowSpec) -> "float | tuple[str, str]":
        hit = node in (flow.src.partition("/")[0], flow.dst.partition("/")[0])
        return (failure, detail) if hit and name == "ib_write_bw" else 1.0

    return fault
