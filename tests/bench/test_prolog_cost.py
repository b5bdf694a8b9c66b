"""What a prolog costs a job: the whole hook with nothing wrong, against the same Python doing nothing.

Both run by turns in one run, so that a slow or busy machine slows both; the ratio of the medians is what counts.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from weaklink.checks.base import PROLOG
from weaklink.checks.registry import in_context

from tests.fakenode import FakeNode, dump, expected

SLURM = Path(__file__).parents[2] / "slurm"
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
ROUNDS = 60
MOST = 12.0

# As slurm/prolog, but for the places: no variable can redirect the real one.
HOOK = """
import os, sys
sys.path.insert(0, {lib!r})
from weaklink.hooks import prolog, start
from weaklink.hooks.files import Places
from weaklink.observe.command import Tools
at = {at!r}
names = "expected.json token.key lib/state lib/evidence log/guard.log".split()
places = Places(*(at + "/" + name for name in names))
def work(*args):
    return prolog.work(*args, tools=Tools((at + "/bin",)), root=at + "/root")
start.leave(start.begin("prolog", work, places, dict(os.environ)))
"""
# What ibv_devinfo says on a node with two ports, and a line for every time it is run.
TOOL = """#!/bin/sh
echo "$0" >> {at}/ran
echo 'hca_id: rxe_compute
  port: 1
    active_mtu: 4096 (5)
hca_id: rxe_storage
  port: 1
    active_mtu: 4096 (5)'
"""


class Bench:
    """A fake node with a byte-compiled copy of the package, as it is installed."""

    def __init__(self, at: Path) -> None:
        self.at = at
        self.node = FakeNode(at / "root")
        lib = at / "lib-weaklink"
        shutil.copytree(SLURM, lib, ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([PYTHON, "-IS", "-m", "compileall", "-q", str(lib)], check=True, timeout=300)
        dump(expected(mounts=expected()["mounts"]), at / "expected.json")
        (at / "token.key").write_text("5a" * 32)
        (at / "token.key").chmod(0o600)
        (at / "bin").mkdir()
        for name in ("ibv_devinfo", "scontrol", "squeue", "scancel"):
            (at / "bin" / name).write_text(TOOL.format(at=at))
            (at / "bin" / name).chmod(0o755)
        self.script = at / "prolog"
        self.script.write_text(HOOK.format(lib=str(lib), at=str(at)))
        self.argv = [PYTHON, "-I", "-S", str(self.script)]

    def ran(self) -> list[str]:
        path = self.at / "ran"
        names = [Path(line).name for line in path.read_text().splitlines()] if path.exists() else []
        path.unlink(missing_ok=True)
        return names


def seconds(argv: list[str]) -> float:
    begun = time.perf_counter()
    done = subprocess.run(
        argv,
        env={"SLURM_JOB_ID": "7", "SLURM_JOB_USER": "alice"},
        cwd="/",
        check=False,
        capture_output=True,
        timeout=60,
    )
    took = time.perf_counter() - begun
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return took


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_prolog_with_nothing_wrong_costs_little(bench: Bench) -> None:
    nothing = [PYTHON, "-I", "-S", "-c", "pass"]
    for argv in (nothing, bench.argv) * 3:  # into the page cache
        seconds(argv)
    bench.ran()
    bare, whole = [], []
    for _ in range(ROUNDS):
        bare.append(seconds(nothing))
        whole.append(seconds(bench.argv))
    commands = bench.ran()
    assert not (bench.at / "log/guard.log").exists()
    ratio = statistics.median(whole) / statistics.median(bare)

    # The same hook, a moment later, finds a fault: it was not quick because it looked at nothing.
    bench.node.mtu("enp0s17", 1500)
    faulty = seconds(bench.argv)
    lines = [json.loads(line) for line in (bench.at / "log/guard.log").read_text().splitlines()]
    found = {line["check"] for line in lines}
    asked = bench.ran()

    checks = in_context(PROLOG)
    print(f"\nprolog, {ROUNDS} runs by turns ({PYTHON})")
    print(f"{'':34}{'median ms':>10}{'best ms':>9}{'p90 ms':>9}")
    for words, values in (("python3 -I -S -c pass", bare), ("whole prolog, nothing wrong", whole)):
        p90 = statistics.quantiles(values, n=10)[-1]
        print(f"{words:34}{1000 * statistics.median(values):10.1f}{1000 * min(values):9.1f}{1000 * p90:9.1f}")
    print(f"{'ratio of the medians':34}{ratio:10.2f}   (at most {MOST:g})")
    print(f"{'with a fault, Slurm away':34}{1000 * faulty:10.1f}")
    print(f"checks ({len(checks)}): {', '.join(check.name for check in checks)}")
    names = ", ".join(sorted(set(commands)))
    print(f"commands a run: {len(commands) / ROUNDS:g} ({names}); with a fault: {', '.join(asked)}")

    assert commands == ["ibv_devinfo"] * ROUNDS
    assert ratio < MOST
    assert "net.mtu" in found, lines
    assert "scontrol" in asked
