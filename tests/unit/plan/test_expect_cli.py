"""``weaklink expect`` on the command line: output, JSON, exit codes, bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from weaklink.cli import UsageError
from weaklink.cli.expect import run
from weaklink.plan.expect.factors import GIGA, factor

SIZES = [2**power for power in range(26, 35)]


def output(ranks: int, alpha: float = 0.29e-3, busbw: float = 389.0, listed: int | None = None) -> str:
    """Return what nccl-tests would print for a system with these figures."""
    share = factor("all_reduce", ranks)
    lines = [
        "# Collective test starting: all_reduce_perf",
        f"# nThread 1 nGpus 1 minBytes {SIZES[0]} maxBytes {SIZES[-1]} step: 2(factor) iters: 20 validation: 1",
    ]
    lines += [
        f"#  Rank {rank:2d} Group  0 Pid {rank + 1:6d} on host-{rank // 8} device {rank % 8} [0000:1b:00] NVIDIA H100"
        for rank in range(ranks if listed is None else listed)
    ]
    lines.append("#       size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong")
    for size in SIZES:
        seconds = alpha + size * share / (busbw * GIGA)
        algbw = size / seconds / GIGA
        cells = f"{seconds * 1e6:.2f} {algbw:.2f} {algbw * share:.2f} 0"
        lines.append(f" {size} {size // 4} float sum -1 {cells} {cells}")
    lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 370.1 ", "#", ""]
    return "\n".join(lines)


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any]:
    code = run([*argv, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "h100.txt"
    path.write_text(output(96))
    return path


def test_check(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, "check", str(table))
    assert (code, found["tables"][0]["found"], found["tables"][0]["verdict"]) == (0, 96, "consistent")
    assert said(capsys, "check", str(table), "--ranks", "64")[0] == 1
    wrong = tmp_path / "wrong.txt"
    wrong.write_text(output(128, listed=143))
    code, found = said(capsys, "check", str(wrong))
    assert (code, found["tables"][0]["found"], found["tables"][0]["stated"]) == (1, 128, 143)
    silent = tmp_path / "silent.txt"
    silent.write_text(output(96, listed=0))
    assert said(capsys, "check", str(silent))[0] == 3
    with pytest.raises(UsageError, match="are stated"):
        run(["fit", str(wrong)])


def test_fit_and_predict(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, "fit", str(table), "--predict", "3G")
    assert code == 0
    assert found["fits"][0]["alpha_us"] == pytest.approx(290, rel=0.02)
    assert found["fits"][0]["busbw"] == pytest.approx(389, rel=0.01)
    truth = 0.29 + 3 * 2**30 * factor("all_reduce", 96) / 389e9 * 1e3
    assert found["predictions"][0]["ms"] == pytest.approx(truth, rel=0.01)
    assert found["predictions"][0]["low_ms"] < truth < found["predictions"][0]["high_ms"]
    assert run(["fit", str(table), "--predict", "3G"]) == 0
    assert "3G over 96 ranks" in capsys.readouterr().out


def test_two_shapes_predict_what_lies_between(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = tmp_path / "large.txt"
    large.write_text(output(1440, 4.8e-3, 430, listed=1440))
    argv = ("fit", str(table), str(large), "--predict", "1G", "--gpus", "512")
    found = said(capsys, *argv)[1]["predictions"][0]
    assert found["low_ms"] < found["ms"] < found["high_ms"]
    assert "interpolated" in found["notes"][0]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["fit", "FILE", "--predict", "1Q"], "size: found '1Q'"),
        (["fit", "FILE", "--predict=-1G"], "size: found"),
        (["fit", "FILE", "--predict", "1G", "--gpus", "4096"], "ranks: found 4096"),
        (["fit", "FILE", "--min-bytes", "16G"], "1 size"),
        (["fit", "EMPTY"], "EMPTY: no result rows"),
        (["fit", "ROW"], "1 size"),
        (["fit", "MISSING"], "No such file"),
        (["check", "EMPTY"], "no result rows"),
        (["check", "FILE", "--ranks", "0"], "--ranks: found 0"),
        (["check", "FILE", "--collective", "magic"], "collective: found 'magic'"),
        (["known-good", "--system", "cray"], "nothing about 'cray'"),
        (["convert", "--gpus", "8", "--size", "1G", "--ms", "-1"], "time: found"),
        (["convert", "--gpus", "0", "--size", "1G", "--ms", "1"], "ranks: found 0"),
        (["convert", "--gpus", "8", "--size", "1G", "--algbw", "0"], "algbw: found"),
        (["convert", "--gpus", "8", "--size", "1G", "--busbw", "nan"], "busbw: found"),
        (["step", "--params", "7e9", "--gpus", "8", "--link-gbps", "400"], "--compute-ms"),
        (["step", "--params", "7e9", "--gpus", "8", "--link-gbps", "400", "--compute-ms", "-1"], "compute_s"),
        (["step", "--params", "7e9", "--gpus", "8", "--link-gbps", "0", "--compute-ms", "1"], "link_gbps"),
        (["step", "--params", "7e9", "--gpus", "8", "--link-gbps", "400", "--compute-ms", "1", "--mfu", "1"], "one of"),
        (["step", "--params", "7e9", "--gpus", "8", "--link-gbps", "400", "--fit", "200:0.5"], "exactly two"),
        (["step", "--params", "7e9", "--gpus", "8", "--link-gbps", "400", "--fit", "x:y", "--fit", "1:2"], "'x:y'"),
        (
            ["step", "--params", "7e9", "--gpus", "8", "--link-gbps", "400", "--compute-ms", "1", "--slow-link", "500"],
            "slow",
        ),
        (["magic"], "no command 'magic'"),
    ],
)
def test_bad_input_is_named(argv: list[str], words: str, table: Path, tmp_path: Path) -> None:
    (tmp_path / "EMPTY").write_text("")
    rows = output(96).splitlines(keepends=True)
    (tmp_path / "ROW").write_text(
        "".join(line for line in rows if not line.startswith(" ") or line.split()[0] == "67108864")
    )
    paths = {"FILE": str(table), **{name: str(tmp_path / name) for name in ("EMPTY", "ROW", "MISSING")}}
    with pytest.raises(UsageError, match=words):
        run([paths.get(word, word) for word in argv])


def test_argparse_refuses_what_is_no_number() -> None:
    for argv in (["convert", "--gpus", "x", "--size", "1G", "--ms", "1"], ["step", "--params", "many"], ["fit"]):
        with pytest.raises(SystemExit) as stopped:
            run(argv)
        assert stopped.value.code == 2


def test_convert_guide_and_known_good(capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "convert", "--gpus", "512", "--size", "1GB", "--ms", "6.2")[1]
    assert (round(found["algbw"], 1), round(found["busbw"])) == (161.3, 322)
    back = said(capsys, "convert", "--gpus", "512", "--size", "1GB", "--busbw", str(found["busbw"]))[1]
    assert back["ms"] == pytest.approx(6.2)
    assert len(said(capsys, "guide")[1]["claims"]) == 3
    assert said(capsys, "known-good", "--system", "b300")[1]["known_good"][0]["low"] == 800
    for argv, word in ((["guide"], "0.20"), (["known-good"], "no primary source"), (["--help"], "check")):
        assert run(argv) == 0
        assert word in capsys.readouterr().out


def test_step(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["step", "--params", "70e9", "--gpus", "512", "--link-gbps", "400"]
    found = said(capsys, *base, "--compute-ms", "1000", "--price", "2", "--slow-link", "100")[1]
    assert found["model"] is True
    assert found["slow_link"]["lost_money_per_day"] == pytest.approx(2 * found["slow_link"]["lost_gpu_hours_per_day"])
    fitted = said(capsys, *base, "--fit", "200:0.55", "--fit", "400:0.78")[1]
    assert fitted["utilisation"] == pytest.approx(0.78)
    assert "proves nothing" in fitted["fit"]["caution"]
    other = said(capsys, *base, "--mfu", "0.4", "--peak-tflops", "989", "--tokens", "4e6")[1]
    assert other["compute_ms"] == pytest.approx(6 * 70e9 * 4e6 / (512 * 989e12 * 0.4) * 1e3)
    assert run([*base, "--compute-ms", "1000", "--slow-link", "100", "--fit", "200:0.55"][:-2]) == 0
    assert "A model, no measurement." in capsys.readouterr().out
