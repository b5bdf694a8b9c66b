"""``weaklink plan`` as a person or a program calls it: output, exit codes, files, and every kind of bad input."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import shlex
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

import jsonschema
import pytest
from weaklink.cli import UsageError, plan_output
from weaklink.cli.plan import run
from weaklink.plan import prices
from weaklink.plan.request import TOPOLOGIES

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "slurm/weaklink/plan/plan.schema.json").read_text(encoding="utf-8"))
SIZE = ["--nodes", "127", "--gpus-per-node", "8", "--radix", "64"]
H100 = ["--topology", "rail", *SIZE, "--su-nodes", "32", "--extra-endpoints", "4"]
# What weaklink's main does with the command, in a process of its own.
CALL = """
import sys
from weaklink.cli import UsageError
from weaklink.cli.plan import run
try:
    status = run(sys.argv[1:])
except UsageError as error:
    print(error, file=sys.stderr)
    status = 2
sys.exit(status)
"""
KEYS = {
    "topology", "nodes", "gpus", "endpoints", "tiers", "planes", "leaf", "spine", "core", "switches", "node_links",
    "inter_switch_links", "oversubscription", "bisection_gbps", "diameter", "max_endpoints", "cost", "warnings",
}  # fmt: skip


@pytest.fixture
def price_file(tmp_path: Path) -> str:
    path = tmp_path / "prices.yml"
    path.write_text(prices.example_text(), encoding="utf-8")
    return str(path)


def json_of(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    assert run(list(argv)) == 0
    return json.loads(capsys.readouterr().out)


def text_of(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert run(list(argv)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_json_has_every_key_of_the_format(capsys: pytest.CaptureFixture[str], topology: str) -> None:
    size = ["--nodes", "64", "--gpus-per-node", "8", "--radix", "64"]
    planes = ["--planes", "8"] if topology == "multi-plane" else []
    plan = json_of(capsys, "--json", "--topology", topology, *size, *planes)
    assert set(plan) >= KEYS
    jsonschema.validate(plan, SCHEMA)
    assert (plan["topology"], plan["nodes"], plan["gpus"]) == (topology, 64, 512)
    assert plan["cost"] is None


def test_the_h100_table_comes_out(capsys: pytest.CaptureFixture[str]) -> None:
    plan = json_of(capsys, "--json", *H100)
    assert [plan[key] for key in ("gpus", "leaf", "spine", "core", "node_links", "inter_switch_links")] == [
        1016, 32, 16, None, 1020, 1024,
    ]  # fmt: skip


def test_cost_is_there_with_prices_alone(capsys: pytest.CaptureFixture[str], price_file: str) -> None:
    cost = json_of(capsys, "--json", *H100, "--prices", price_file)["cost"]
    assert cost["example"] is True
    jsonschema.validate(json_of(capsys, "--json", *H100, "--prices", price_file), SCHEMA)
    assert cost["total"] > cost["compute_total"] > 0
    assert cost["split"]["guide"]["compute"] == 80


def test_the_table_says_counts_and_that_prices_are_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(H100) == 0
    text = capsys.readouterr().out
    for part in ("1,016 GPUs", "32 leaf, 16 spine", "1:1 (non-blocking)", "bisection", "largest size", "--prices FILE"):
        assert part in text


def test_the_table_with_prices_has_every_part(capsys: pytest.CaptureFixture[str], price_file: str) -> None:
    assert run([*H100, "--prices", price_file]) == 0
    text = capsys.readouterr().out
    for part in ("EXAMPLE PRICES, not a quotation", "HCAs", "modules", "budget split", "storage network", "per GPU"):
        assert part in text


def test_comparison_as_json_and_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path, price_file: str) -> None:
    png = tmp_path / "a.png"
    done = json_of(capsys, "--json", "--compare", "all", *SIZE, "--prices", price_file, "--png", str(png))
    assert len(done["options"]) + len(done["cannot"]) == len(TOPOLOGIES)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


def test_a_comparison_of_what_cannot_be_lists_reasons_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    size = ["--nodes", "100000", "--gpus-per-node", "8", "--radix", "64"]
    for more, says in (([], "none of these topologies"), (["--png", "/nowhere/a.png"], "nothing to draw")):
        with pytest.raises(UsageError, match=says):
            run(["--compare", "fat-tree,rail", *size, *more])
        assert "cannot do this size" in capsys.readouterr().out


def test_advice_as_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--advice", *SIZE]) == 0
    text = capsys.readouterr().out
    assert "one HCA a GPU: 1,016 for 1,016 GPUs" in text
    assert "[no source] a claim in circulation" in text
    lines = json_of(capsys, "--advice", *SIZE, "--transport", "roce", "--json")["advice"]
    assert {line["topic"] for line in lines} >= {"HCAs", "tiers", "topology", "storage", "management", "RoCE"}


def test_cables_list_every_link_in_each_format(capsys: pytest.CaptureFixture[str]) -> None:
    csv = text_of(capsys, "cables", *H100).splitlines()
    listed = json_of(capsys, "cables", *H100, "--format", "json")
    lines = [json.loads(line) for line in text_of(capsys, "cables", *H100, "--format", "jsonl").splitlines()]
    table = text_of(capsys, "cables", *H100, "--format", "table").splitlines()
    assert len(csv) - 1 == len(listed) == 1020 + 1024
    assert lines == listed
    assert len(table) >= 1020 + 1024
    assert csv[1].split(",")[:2] == [listed[0]["cable"], listed[0]["link"]]


def test_the_fabric_is_json_of_nodes_switches_links(capsys: pytest.CaptureFixture[str]) -> None:
    fabric = json_of(capsys, "fabric", *H100, "--json")
    assert len(fabric["switches"]) == 48
    assert len(fabric["links"]) == 1020 + 1024


def test_the_example_prices_can_be_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "prices.yml"
    assert run(["prices", "--out", str(path)]) == 0
    assert prices.load(path).example


def test_config_is_written_for_the_transport(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "cluster.yml"
    assert run(["config", *H100, "--transport", "roce", "--out", str(path)]) == 0
    assert "transport: roce" in path.read_text(encoding="utf-8")
    assert capsys.readouterr().out == ""


def test_what_the_walk_through_shows_is_what_the_commands_print(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs/plan-before-you-buy.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    shown = 0
    for block in re.findall(r"```\n(.*?)```", text, re.DOTALL):
        for call in block.split("$ weaklink plan ")[1:]:
            command, *lines = call.splitlines()
            if "…" in command:
                continue
            printed = text_of(capsys, *shlex.split(command)).splitlines()
            for line in lines:
                start, cut, _ = line.partition("…")
                found = [one for one in printed if (one.startswith(start) if cut else one == line)]
                assert found, f"{command}: {line}"
                shown += bool(start)
    assert shown > 40
    assert {path.name for path in tmp_path.iterdir()} == {
        "cables.csv", "cluster.yml", "compare.png", "fabric.json", "prices.yml",
    }  # fmt: skip


# ---- bad input


BASE = {"--topology": "fat-tree", "--nodes": "8", "--gpus-per-node": "8", "--radix": "64"}


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        *[
            (option, value, f"argument {option}: found {value!r}; wanted a whole number from {low} to {high}")
            for option, low, high in (
                ("--nodes", 1, 1_000_000),
                ("--gpus-per-node", 1, 1024),
                ("--radix", 4, 1024),
                ("--spines", 1, 1_000_000),
                ("--planes", 1, 64),
                ("--extra-endpoints", 0, 1_000_000),
                ("--su-nodes", 1, 1_000_000),
                ("--hcas-per-gpu", 1, 16),
            )
            for value in ("many", "", "1.5", "-1", str(high + 1), "9" * 40, "0x8", "nan")
        ],
        *[
            (option, value, f"argument {option}: found {value!r}; wanted a number from ")
            for option in ("--taper", "--rate-gbps")
            for value in ("half", "", "0", "-1", "nan", "inf", "1e9")
        ],
        ("--topology", "fattree", "did you mean 'fat-tree'?"),
        ("--topology", "fat_tree", "did you mean 'fat-tree'?"),
        ("--topology", "Dragonfly", "did you mean 'dragonfly'?"),
        ("--topology", "hyper-cube", "did you mean 'hypercube'?"),
        ("--topology", "torus", "wanted one of fat-tree, rail, multi-plane, dragonfly, dragonfly+, hypercube"),
        ("--topology", "\x1b[31m" + "x" * 200, "argument --topology: found '\\x1b[31mxxx"),
        ("--prices", "/nowhere/prices.yml", "/nowhere/prices.yml:1: (file): found"),
        ("--prices", "/", "/:1: (file): found"),
        ("--colour", "red", "unrecognized arguments: --colour"),
        ("--node", "8", "unrecognized arguments: --node"),
    ],
)
def test_a_bad_option_is_named_with_what_it_takes(option: str, value: str, says: str) -> None:
    argv = [part for pair in {**BASE, option: value}.items() for part in (f"{pair[0]}={pair[1]}",)]
    with pytest.raises(UsageError) as caught:
        run(argv)
    assert says in str(caught.value)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("missing", ["--nodes", "--gpus-per-node", "--radix"])
def test_a_missing_option_is_named(missing: str) -> None:
    argv = [part for option, value in BASE.items() if option != missing for part in (option, value)]
    with pytest.raises(UsageError, match=f"required: {missing}"):
        run(argv)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "required: --nodes"),
        (SIZE, "found none of them; wanted one of --topology, --compare, --advice"),
        ([*SIZE, "--advice", "--topology", "rail"], "found --topology and --advice"),
        ([*H100, "--png", "a.png"], "--png without --compare"),
        ([*H100, "--transport", "roce"], "--transport without --advice"),
        *[
            (["--advice", *SIZE, option, value], f"{option} with --advice")
            for option, value in (
                ("--prices", "x"),
                ("--spines", "4"),
                ("--su-nodes", "4"),
                ("--planes", "2"),
                ("--taper", "2"),
            )
        ],
        (["--advice", *SIZE, "--transport", "rocee"], "did you mean 'roce'?"),
        (["--compare", "rail,rial", *SIZE], "did you mean 'rail'?"),
        (["--compare", "rail,rail", *SIZE], "wanted each topology once"),
        (["--compare", "", *SIZE], "wanted one of fat-tree"),
        (["cables", *H100, "--format", "cvs"], "did you mean 'csv'?"),
        (["cables", *SIZE], "required: --topology"),
        (["config", *H100, "--transport", "ethernet"], "wanted one of infiniband, roce"),
        (["fabric", *H100, "--prices", "x"], "unrecognized arguments: --prices x"),
        (["cable", *H100], "unrecognized arguments: cable"),
        (["prices", "--nodes", "3"], "unrecognized arguments"),
    ],
)
def test_a_bad_command_line_says_what_is_wanted(argv: list[str], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(argv)
    assert says in str(caught.value)


def test_a_plan_that_cannot_be_is_a_usage_error_with_its_key() -> None:
    for option, value, key in (("--planes", "3", "planes"), ("--radix", "63", "radix"), ("--nodes", "9999", "nodes")):
        with pytest.raises(UsageError, match=f"^{key}: found {value}"):
            run([*H100, option, value])


@pytest.mark.parametrize(
    ("old", "new", "says"), [("hca: 2000", "hcas: 2000", "did you mean 'hca'?"), ("hca: 2000", "hca: [", ":")]
)
def test_a_bad_prices_file_is_named_with_its_line(price_file: str, old: str, new: str, says: str) -> None:
    path = Path(price_file)
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    for argv in (H100, ["--compare", "all", *SIZE]):
        with pytest.raises(UsageError, match=f"{path}:1[0-9]: ") as caught:
            run([*argv, "--prices", price_file])
        assert says in str(caught.value)


# ---- files


def test_a_file_replaced_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    plan_output.write(str(link), lambda file: file.write("new"))
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert link.is_symlink()


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        plan_output.write(str(tmp_path / "new"), lambda file: file.buffer.write(b"x"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


@pytest.mark.parametrize("where", ["missing/a.csv", "folder", "file/a.csv"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, where: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    for argv in (["prices"], ["cables", *H100], ["config", *H100]):
        with pytest.raises(UsageError, match=f"{tmp_path / where}: not written: "):
            run([*argv, "--out", str(tmp_path / where)])
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


def test_a_pipe_is_written_straight_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    assert run(["prices", "--out", str(pipe)]) == 0
    reader.join(timeout=10)
    assert read == [prices.example_text()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "cables.csv"
    target.write_text("old")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    argv = [sys.executable, "-B", "-c", CALL, "cables", *H100, "--out", str(target)]
    done = subprocess.run(
        argv, preexec_fn=limit, env={"PYTHONPATH": str(ROOT / "slurm")}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert f"{target}: not written: {os.strerror(errno.EFBIG)}" in done.stderr
    assert "Traceback" not in done.stderr
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("argv", [["cables", *H100], H100, ["--advice", *SIZE], ["prices"]])
def test_a_full_standard_output_is_an_error_without_a_traceback(argv: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-B", "-c", CALL, *argv],
            env={"PYTHONPATH": str(ROOT / "slurm")},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "standard output: not written whole: No space left on device\n"


def test_an_interrupt_leaves_nothing_half_written(tmp_path: Path) -> None:
    def fill(file: TextIO) -> None:
        file.write("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan_output.write(str(tmp_path / "a"), fill)
    assert list(tmp_path.iterdir()) == []
