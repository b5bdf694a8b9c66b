"""The registry: every tool by any of its spellings, nearest names, imports only when needed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from weaklink.checks.tools.base import DRAIN, NOTE
from weaklink.explain import catalogue, tools
from weaklink.explain.recognise import guess

from tests.unit.explain.texts import IBSTAT

SLURM = Path(__file__).resolve().parents[3] / "slurm"


@pytest.mark.parametrize("name", tools.ORDER)
def test_every_tool_is_found_by_its_name(name: str) -> None:
    assert tools.resolve(name) == name
    assert tools.resolve(name.replace("-", "_")) == name
    assert getattr(tools.reader(name), "NAME", None) == name
    assert callable(tools.judge(name).judge)


@pytest.mark.parametrize("alias", tools.ALIASES)
def test_every_alias_is_a_tools(alias: str) -> None:
    assert tools.resolve(alias.upper()) == tools.ALIASES[alias]


@pytest.mark.parametrize(
    ("word", "near"),
    [("ibsatt", "ibstat"), ("nvidia_smi_toplogy", "nvidia-smi-topo"), ("scontol", "scontrol-node")],
)
def test_a_misspelt_tool_gets_the_nearest(word: str, near: str) -> None:
    with pytest.raises(tools.UnknownToolError, match=near):
        tools.resolve(word)


def test_a_word_that_is_near_nothing_gets_the_list() -> None:
    with pytest.raises(tools.UnknownToolError, match="--list"):
        tools.resolve("zzzzqqqq")


def test_a_named_tool_does_not_import_the_others() -> None:
    code = (
        "import sys\nfrom weaklink.explain import tools\ntools.judge(tools.resolve('ibstat'))\n"
        "print(sum(name.startswith('weaklink.observe.tools.') for name in sys.modules))\n"
        "assert 'weaklink.observe.tools.dmesg' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(SLURM)!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 8


def test_an_archive_of_the_package_explains_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "weaklink.zip", "w") as archive:
        for path in sorted((SLURM / "weaklink").rglob("*.py")):
            archive.write(path, path.relative_to(SLURM))
    (tmp_path / "text").write_text(IBSTAT)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'weaklink.zip')!r})\n"
        f"from weaklink.cli.explain import run\nsys.exit(run(['--json', {str(tmp_path / 'text')!r}]))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["tool"] == "ibstat"


def test_a_reader_that_cannot_be_imported_is_named_and_the_others_read(tmp_path: Path) -> None:
    package = tmp_path / "slurm"
    shutil.copytree(SLURM / "weaklink", package / "weaklink", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "weaklink/observe/tools/dmesg.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "text").write_text(IBSTAT)
    code = (
        f"import sys; sys.path.insert(0, {str(package)!r})\n"
        f"from weaklink.cli.explain import run\nsys.exit(run(['--json', {str(tmp_path / 'text')!r}]))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "the reader dmesg cannot be used" in done.stderr
    assert json.loads(done.stdout)["tool"] == "ibstat"


def test_a_reader_that_breaks_takes_no_other_along(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(head: str) -> int:
        raise RuntimeError(head[:1])

    monkeypatch.setattr(tools.reader("dmesg"), "recognise", broken)
    assert guess(IBSTAT).tool == "ibstat"


def test_equals_are_settled_by_the_order_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, score in (("syslog", 92), ("lspci", 92), ("ibstat", 90)):
        monkeypatch.setattr(tools.reader(name), "recognise", lambda _, score=score: score)
    found = guess("x")
    assert (found.tool, found.near) == ("lspci", ("syslog", "ibstat"))
    assert "syslog, ibstat" in found.said()
    assert "--tool" in found.said()


def test_the_catalogue_tells_every_rule() -> None:
    found = catalogue.catalogue()
    assert [entry["tool"] for entry in found] == list(tools.readers())
    for entry in found:
        assert entry["rules"], entry["tool"]
        for rule in entry["rules"]:
            assert rule["severity"] in {"ok", "unknown", "degraded", "fail"}, rule
            assert rule["action"] in {DRAIN, NOTE}, rule
            assert rule["causes"], rule
            assert rule["decides"], rule
            assert rule["remedy"], rule
    json.dumps(found)
    lines = list(catalogue.words())
    assert all(len(line) <= 100 for line in lines if line.startswith("      "))
    assert "ibstat" in lines
