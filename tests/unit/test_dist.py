"""What one installs from: the three packages of ``make dist`` are complete, small, and work where they are put."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tools import dist

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def run(*argv: str | Path, **more: Any) -> str:
    words = [str(word) for word in argv]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=120, **more).stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist") / "out"
    assert dist.main(folder) == 0
    return folder


def test_the_program_runs_by_itself(built: Path) -> None:
    path = built / "weaklink-0.1.0.pyz"
    assert run("/usr/bin/python3", "-I", "-S", path, "--version", cwd="/").strip() == "weaklink 0.1.0"
    assert os.access(path, os.X_OK)


def test_program_and_wheel_are_the_same_every_time(built: Path, tmp_path: Path) -> None:
    for build in (dist.build_zipapp, dist.build_wheel):
        again = build(tmp_path)
        assert again.read_bytes() == (built / again.name).read_bytes()


@pytest.mark.thorough
def test_pip_installs_the_wheel_with_its_schemas(built: Path, tmp_path: Path) -> None:
    wheel = built / "weaklink-0.1.0-py3-none-any.whl"
    run(BIN / "python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", tmp_path / "site", wheel)
    installed = {path.name for path in (tmp_path / "site").rglob("*.schema.json")}
    assert installed == {path.name for path in (ROOT / "slurm").rglob("*.schema.json")}
    script = tmp_path / "site/bin/weaklink"
    assert run(script, "--version", env={"PYTHONPATH": str(tmp_path / "site")}).strip() == "weaklink 0.1.0"


@pytest.mark.thorough
def test_the_collection_works_without_the_checkout(built: Path, tmp_path: Path) -> None:
    packed = built / "weaklink-cluster-0.1.0.tar.gz"
    assert packed.stat().st_size < dist.MOST_BYTES
    with tarfile.open(packed) as archive:
        names = archive.getnames()
    tops = {name.split("/")[0] for name in names}
    assert not [top for top in tops if top.startswith(".")]
    assert not tops & {"tests", "tools", "molecule", "dist", "build", "requirements"}
    assert {"plugins", "roles", "playbooks", "slurm", "site.yml", "meta"} <= tops
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
        "ANSIBLE_COLLECTIONS_PATH": str(tmp_path),
        "ANSIBLE_INVENTORY_ENABLED": "weaklink.cluster.cluster",
    }
    run(BIN / "ansible-galaxy", "collection", "install", "--offline", "-p", tmp_path, packed, env=env, cwd=tmp_path)
    (tmp_path / "cluster.yml").write_text((ROOT / "inventory/lab/cluster.yml").read_text())
    listed = run(BIN / "ansible-inventory", "-i", tmp_path / "cluster.yml", "--list", env=env, cwd=tmp_path)
    assert json.loads(listed)["compute"]["hosts"] == ["c1", "c2", "c3"]


@pytest.mark.parametrize("name", [".venv/x", ".git/config", ".lab/disk", "a/__pycache__/x", "x.pyc", "tests/unit/x.py"])
def test_what_has_no_place_in_the_collection_is_known(name: str) -> None:
    assert dist.FORBIDDEN.search(name)
