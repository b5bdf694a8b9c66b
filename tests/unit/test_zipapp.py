"""The node program's archive: the same bytes from the same sources, whole or refused on the node, and it runs alone."""

from __future__ import annotations

import importlib.util
import io
import os
import random
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNPACK = (ROOT / "plugins/plugin_utils/unpack.py").read_text(encoding="utf-8")


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("weaklink_zipapp", ROOT / "plugins/plugin_utils/zipapp.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


zipapp = _load()


@pytest.fixture(scope="module")
def real() -> dict[str, bytes]:
    """Return what the checkout's archive holds."""
    return zipapp.contents(ROOT / "slurm")  # type: ignore[no-any-return]


def unpack(cache: Path, release: str, packed: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run the script as the action plugin does on the target."""
    command = [sys.executable, "-I", "-S", "-c", UNPACK, str(cache), release]
    return subprocess.run(command, input=packed, capture_output=True, check=False, timeout=120)


SMALL = {"__main__.py": b"print('hello from', __file__)\n", "weaklink/data.json": b"{}"}


def test_the_archive_depends_on_nothing_but_the_sources(tmp_path: Path, real: dict[str, bytes]) -> None:
    names = list(real)
    random.Random(7).shuffle(names)  # noqa: S311 - stands for the order in which a file system lists them
    for name in names:
        target = tmp_path / "other place" / "slurm" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(real[name])
        target.chmod(0o600)
        os.utime(target, (1, 1))
    (tmp_path / "other place/slurm/weaklink/__pycache__").mkdir()
    (tmp_path / "other place/slurm/weaklink/__pycache__/x.pyc").write_bytes(b"old")
    again = zipapp.contents(tmp_path / "other place" / "slurm")
    assert again == real
    assert zipapp.build(again) == zipapp.build(real)
    assert zipapp.fingerprint(dict(reversed(again.items()))) == zipapp.fingerprint(real)


@pytest.mark.parametrize(
    "changed",
    [
        {"weaklink/data.json": b"{ }"},
        {"weaklink/more.py": b""},
        {"__main__.py": b""},
        # the same bytes, cut elsewhere
        {"__main__.py": SMALL["__main__.py"] + b"x", "weaklink/data.json": b"{}"[1:]},
    ],
)
def test_any_change_makes_another_release(changed: dict[str, bytes]) -> None:
    assert zipapp.fingerprint({**SMALL, **changed}) != zipapp.fingerprint(SMALL)
    renamed = {name.replace("data", "date"): content for name, content in SMALL.items()}
    assert zipapp.fingerprint(renamed) != zipapp.fingerprint(SMALL)


def test_everything_that_a_node_needs_is_in_it_and_nothing_else(real: dict[str, bytes]) -> None:
    assert {"prolog", "epilog", "health", "job_submit.lua", "weaklink/__main__.py"} <= set(real)
    assert "weaklink/model/cluster.schema.json" in real
    assert not [name for name in real if "__pycache__" in name or name.startswith((".", "/"))]
    with zipfile.ZipFile(io.BytesIO(zipapp.build(real))) as archive:
        assert archive.getinfo("prolog").external_attr >> 16 == 0o755
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_unpacked_program_is_compiled_and_runs_alone(tmp_path: Path, real: dict[str, bytes]) -> None:
    release = zipapp.fingerprint(real)
    done = unpack(tmp_path / "cache", release, zipapp.build(real))
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "cache" / release
    compiled = Path(importlib.util.cache_from_source(str(folder / "weaklink/apply/run.py")))
    assert compiled.exists()
    assert compiled.read_bytes()[4] == 1, "compiled files must be trusted without a look at the source"
    # All that hooks, jobs of the service user and the playbooks import is compiled; what people run later is not yet.
    layers = ("apply", "checks", "hooks", "measure", "observe", "scheduler")
    on_nodes = [path for layer in layers for path in (folder / "weaklink" / layer).glob("*.py")]
    on_nodes += [folder / f"weaklink/cli/{name}.py" for name in ("__init__", "apply", "check", "measure", "observe")]
    on_nodes += [folder / f"weaklink/model/{name}.py" for name in ("expected", "finding", "hostlist", "nccl", "round")]
    missing = [path for path in on_nodes if not Path(importlib.util.cache_from_source(str(path))).exists()]
    assert missing == []
    plan = importlib.util.cache_from_source(str(folder / "weaklink/plan/design.py"))
    assert not Path(plan).exists()
    program = [sys.executable, "-I", "-S", str(folder), "--version"]
    said = subprocess.run(program, capture_output=True, text=True, check=True, env={}, cwd="/", timeout=60)
    assert said.stdout.strip().endswith("0.1.0")
    assert (folder.stat().st_mode & 0o777, (tmp_path / "cache").stat().st_mode & 0o777) == (0o755, 0o755)


def test_it_starts_as_one_file_too(tmp_path: Path, real: dict[str, bytes]) -> None:
    path = tmp_path / "weaklink.pyz"
    path.write_bytes(zipapp.build(real, shebang="/usr/bin/env python3"))
    assert path.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    command = [sys.executable, "-I", "-S", str(path), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip().endswith("0.1.0")


def test_a_second_copy_and_old_releases_do_no_harm(tmp_path: Path) -> None:
    packed, release = zipapp.build(SMALL), zipapp.fingerprint(SMALL)
    cache = tmp_path / "cache"
    for number in "01234":
        (cache / (number * 20)).mkdir(parents=True)
        os.utime(cache / (number * 20), (int(number), int(number)))
    stale, fresh = cache / ".new-1", cache / ".new-2"
    for folder, age in ((stale, 7200), (fresh, 0)):
        folder.mkdir()
        os.utime(folder, (time.time() - age, time.time() - age))
    for _ in range(2):
        assert unpack(cache, release, packed).returncode == 0
    assert sorted(path.name for path in cache.iterdir()) == sorted([".new-2", "3" * 20, "4" * 20, release])


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (b"", "nothing came on standard input"),
        (zipapp.build(SMALL)[:-30], "arrived damaged"),
        (b"garbage", "arrived damaged"),
        (zipapp.build({**SMALL, "evil.py": b"x"}), "arrived damaged"),
    ],
    ids=["nothing", "cut", "garbage", "another program"],
)
def test_a_program_that_did_not_arrive_whole_is_refused(tmp_path: Path, packed: bytes, words: str) -> None:
    done = unpack(tmp_path / "cache", zipapp.fingerprint(SMALL), packed)
    assert done.returncode != 0
    assert words in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("trick", ["link", "writable", "foreign"])
def test_a_folder_that_others_could_write_to_is_refused(tmp_path: Path, trick: str) -> None:
    cache = tmp_path / "cache"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if trick == "link":
        cache.symlink_to(elsewhere)
    else:
        cache.mkdir()
        if trick == "writable":
            cache.chmod(0o777)
        else:
            os.chown(cache, 12345, -1)
    done = unpack(cache, zipapp.fingerprint(SMALL), zipapp.build(SMALL))
    assert done.returncode != 0
    assert "is not ours alone" in done.stderr.decode()
    assert list(elsewhere.iterdir()) == []
    assert trick == "link" or list(cache.iterdir()) == []


def test_a_killed_unpacking_leaves_no_release(tmp_path: Path) -> None:
    """The folder appears by one rename: what is there under a release's name is whole."""
    cache, release = tmp_path / "cache", zipapp.fingerprint(SMALL)
    script = UNPACK.replace("os.rename(fresh, final)", "os._exit(9)")
    assert script != UNPACK
    command = [sys.executable, "-I", "-S", "-c", script, str(cache), release]
    done = subprocess.run(command, input=zipapp.build(SMALL), capture_output=True, check=False, timeout=60)
    assert done.returncode == 9
    assert not (cache / release).exists()
    assert unpack(cache, release, zipapp.build(SMALL)).returncode == 0
    assert (cache / release / "__main__.py").exists()
