"""weaklink check and weaklink observe as a person or a program runs them, from a plain checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakenode import FakeNode, dump, expected

REPO = Path(__file__).parents[2]


def weaklink(*argv: str) -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": str(REPO / "slurm"), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-m", "weaklink", *argv],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
    )


ONLY = [
    arg
    for name in ("rdma.device", "rdma.state", "net.mtu", "rdma.rate", "rdma.gid", "mount.transport")
    for arg in ("--only", name)
]


@pytest.fixture
def args(tmp_path: Path) -> list[str]:
    FakeNode(tmp_path / "root")
    dump(expected(), tmp_path / "expected.json")
    return ["check", "--expected", str(tmp_path / "expected.json"), "--root", str(tmp_path / "root")]


def test_a_good_node(args: list[str]) -> None:
    done = weaklink(*args, *ONLY, "--json")
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert (found["node"], found["verdict"]) == ("c1", "ok")
    assert {finding["status"] for finding in found["findings"]} == {"ok"}
    assert found["seconds"] < 30
    assert any(item["check"] == "net.mtu" for item in found["not_applicable"])


def test_a_bad_node_in_words(args: list[str], tmp_path: Path) -> None:
    FakeNode(tmp_path / "root").mtu("enp0s17", 1500)
    done = weaklink(*args, *ONLY)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("fail      net.mtu          enp0s17 (compute, 0000:00:11.0): MTU 1500, wanted 4200;")
    assert lines[-1] == "c1: fail"
    assert any(line.startswith("n/a") for line in lines)
    assert done.stderr == ""


def test_a_node_that_cannot_be_judged(args: list[str], tmp_path: Path) -> None:
    FakeNode(tmp_path / "root").remove("/proc/mounts")
    assert weaklink(*args, *ONLY).returncode == 3


def test_wrong_usage(args: list[str], tmp_path: Path) -> None:
    assert weaklink(*args, "--only", "nosuch").returncode == 2
    (tmp_path / "expected.json").write_text("{")
    done = weaklink(*args, "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "is not JSON" in done.stderr
    assert weaklink("check", "--expected", "/nosuch").returncode == 2


def test_hostile_text_does_not_steer_the_terminal(args: list[str], tmp_path: Path) -> None:
    data = expected()
    data["mounts"][0]["path"] = "/home\x1b[2J\udcff"
    dump(data, tmp_path / "expected.json")
    done = weaklink(*args, "--only", "mount.present")
    assert "\x1b" not in done.stdout
    assert done.returncode == 1


def test_observe(tmp_path: Path) -> None:
    FakeNode(tmp_path / "root")
    done = weaklink("observe", "--root", str(tmp_path / "root"), "--concern", "nics", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["nics"]["0000:00:11.0"]["rdma"]["device"] == "rxe_compute"
    assert weaklink("observe", "--timeout", "0").returncode == 2
    assert weaklink("observe", "--expected", "/nosuch").returncode == 2
