"""The command: exit codes, JSON as its schema says, bad input with its place."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from weaklink.cli import UsageError, lint

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads(resources.files("weaklink.lint").joinpath("lint.schema.json").read_text(encoding="utf-8"))
CLEAN = "NCCL_IB_HCA==mlx5_0,mlx5_1\nNCCL_SOCKET_IFNAME==eth0\nNCCL_IB_TC=106\n"


def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]})


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any]:
    code = lint.run([*argv, "--json"])
    answer = json.loads(capsys.readouterr().out)
    validator(argv[0]).validate(answer)
    return code, answer


def put(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert not validator("nccl").is_valid(
        {"findings": [{"variable": "A", "value": "1", "class": "bad", "message": "m", "source": "s"}]}
    )


@pytest.mark.parametrize(
    ("text", "code"), [(CLEAN, 0), ("NCCL_IB_RETRY_CNT=7\n", 1), ("NCCL_BANANA=1\n", 3), ("", 0), ("# nothing\n", 0)]
)
def test_the_exit_code_says_what_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int
) -> None:
    got, answer = run(capsys, "nccl", put(tmp_path, "nccl.conf", text))
    assert got == code
    assert {item["variable"] for item in answer["findings"]} == {
        row.partition("=")[0] for row in text.split("\n") if "=" in row
    }


def test_the_version_comes_from_the_option_then_from_the_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = put(tmp_path, "nccl.conf", "NCCL_IB_TIMEOUT=18\n")
    facts = put(tmp_path, "facts.json", '{"nccl_version": "2.18.3", "colour": 1}')
    assert run(capsys, "nccl", file)[0] == 0
    assert run(capsys, "nccl", "--fabric-facts", facts, file)[0] == 1
    assert run(capsys, "nccl", "--fabric-facts", facts, "--nccl-version", "2.23", file)[0] == 0


def test_a_key_that_means_nothing_is_said_beside_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = put(tmp_path, "facts.json", '{"lossles_priority": 3}')
    lint.run(["nccl", "--fabric-facts", facts, put(tmp_path, "nccl.conf", CLEAN)])
    assert "lossles_priority" in capsys.readouterr().err


def test_the_environment_wins_over_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_IB_TC", "104")
    _, answer = run(capsys, "nccl", "--environ", put(tmp_path, "nccl.conf", "NCCL_IB_TC=106\n"))
    rows = {item["value"]: item["effective"] for item in answer["findings"] if item["variable"] == "NCCL_IB_TC"}
    assert rows == {"106": False, "104": True}


def test_the_table_puts_what_matters_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = put(tmp_path, "nccl.conf", "NCCL_DEBUG=WARN\nNCCL_IB_RETRY_CNT=7\nNCCL_IB_TC=999\n\x1b[2JNCCL_X=\n")
    assert lint.run(["nccl", file]) == 1
    out = capsys.readouterr().out
    assert [row.split()[0] for row in out.splitlines()] == ["contradiction", "contradiction", "no-op", "ok"]
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["nccl"], "nothing to judge"),
        (["nccl", "{tmp}/absent.conf"], "absent.conf: No such file"),
        (["nccl", "{tmp}"], "Is a directory"),
        (["nccl", "/dev/null"], "no regular file"),
        (["nccl", "{tmp}/binary.conf"], "byte 1 is NUL"),
        (["nccl", "{tmp}/latin.conf"], "latin.conf:2: byte 0xe9"),
        (["nccl", "{tmp}/nccl.conf", "{tmp}/nccl.conf"], "named twice"),
        (["nccl", "--nccl-version", "newest", "{tmp}/nccl.conf"], "--nccl-version: 'newest'"),
        (["nccl", "--nccl-version", "", "{tmp}/nccl.conf"], "--nccl-version: ''"),
        (["nccl", "--fabric-facts", "{tmp}/absent.json", "{tmp}/nccl.conf"], "absent.json: No such file"),
        (["nccl", "--fabric-facts", "{tmp}/nccl.conf", "{tmp}/nccl.conf"], "no JSON"),
        (["nccl", "--fabric-facts", "{tmp}/list.json", "{tmp}/nccl.conf"], "wanted an object"),
        (["nccl", "--fabric-facts", "{tmp}/deep.json", "{tmp}/nccl.conf"], "no JSON"),
        (["nccl", "--fabric-facts", "{tmp}/bad.json", "{tmp}/nccl.conf"], "bad.json: trust is 'x'"),
        (["fabric", "{tmp}/absent.yml"], "absent.yml: No such file"),
        (["fabric", "{tmp}/binary.conf"], "binary.conf:1"),
        (["fabric", "{tmp}/latin.conf"], "no UTF-8"),
        (["fabric", "{tmp}/nccl.conf"], "nccl.conf:1"),
        (["fabric", "{tmp}/unknown.yml"], "'networkz'"),
    ],
)
def test_bad_input_is_refused_with_its_place(tmp_path: Path, argv: list[str], words: str) -> None:
    put(tmp_path, "nccl.conf", CLEAN)
    put(tmp_path, "binary.conf", b"a\0b")
    put(tmp_path, "latin.conf", b"# a\n# caf\xe9\n")
    put(tmp_path, "list.json", "[]")
    put(tmp_path, "deep.json", "[" * 100_000)
    put(tmp_path, "bad.json", '{"trust": "x"}')
    put(tmp_path, "unknown.yml", "format: 1\ncluster: a\nnetworkz: {}\n")
    with pytest.raises(UsageError) as caught:
        lint.run([word.format(tmp=tmp_path) for word in argv])
    assert words in str(caught.value)


def test_the_fabric_of_a_cluster_file_is_judged_with_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "inventory/lab/cluster.yml").read_text()
    file = put(tmp_path, "cluster.yml", text)
    assert run(capsys, "fabric", file) == (0, {"findings": [run(capsys, "fabric", file)[1]["findings"][0]]})
    bad = text.replace("role: compute, mtu: 4200", "role: compute, mtu: 1500", 1)
    code, answer = run(capsys, "fabric", put(tmp_path, "cluster.yml", bad))
    number = next(n for n, row in enumerate(bad.splitlines(), 1) if "role: compute, mtu: 1500" in row)
    (finding,) = answer["findings"]
    assert (code, finding["key"], finding["value"], finding["class"]) == (
        1,
        "networks.compute.mtu",
        "1500",
        "contradiction",
    )
    assert finding["line"] == number
    assert "4192" in finding["message"]


def test_nccl_settings_are_judged_with_the_standard_library_alone(tmp_path: Path) -> None:
    file = put(tmp_path, "nccl.conf", CLEAN)
    path = f"import sys; sys.path.insert(0, {str(ROOT / 'slurm')!r})"
    code = f"{path}; from weaklink.cli import lint; sys.exit(lint.run(['nccl', {file!r}]))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mlx5_0,mlx5_1" in done.stdout
