"""Bytes, files, directories, archives: every encoding, any length, nothing unpacked, nothing that leads outside."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import random
import sys
import tarfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.explain import decode, labels, parts, sources
from weaklink.explain.reports import Asked, explain

from tests.unit.explain.texts import CONTEXT, DOWN, IBSTAT, counted


def read(data: bytes) -> list[str]:
    how = decode.coding(data[: decode.HEAD])
    assert how.binary is None
    return list(decode.lines([data[at : at + 1000] for at in range(0, len(data), 1000)], how.name))


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_text_comes_back_in_every_encoding(text: str, coding: str) -> None:
    text = f"State: Active\n{text}|"
    assert "\n".join(read(text.encode(coding))).lstrip("\ufeff") == text


def test_bytes_that_are_no_utf_8_are_latin_1() -> None:
    assert read("Température : 41 °C\n".encode("latin-1")) == ["Température : 41 °C"]


def test_a_bad_byte_deep_in_a_file_spoils_one_character() -> None:
    data = b"a line\n" * 20_000 + b"b\xffd\n"
    assert read(data)[-1] == "b\ufffdd"


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01" + bytes(100),
        bytes(5000),
        b"PK\x03\x04abc",
        b"\x28\xb5\x2f\xfdabc",
        random.Random(7).randbytes(5000),  # noqa: S311 - any bytes
    ],
)
def test_binary_data_is_said_to_be_that(data: bytes) -> None:
    assert decode.coding(data).binary


def test_nuls_in_a_log_after_a_crash_are_passed_over() -> None:
    data = b"[    1.0] NVRM: loading\n" * 50 + bytes(300) + b"[    2.0] mlx5_core: x\n"
    assert decode.coding(data).binary is None


def test_a_line_without_end_is_cut_and_the_next_ones_are_whole() -> None:
    found = read(b"x" * 500_000 + b"\nafter\n" + b"y" * 500_000)
    assert [len(line) for line in found] == [decode.MAX_LINE, 5, decode.MAX_LINE]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.one_of(st.integers(), st.text(max_size=30), st.dictionaries(st.text(max_size=5), st.text())), max_size=9
    )
)
def test_json_in_one_long_line_stays_json(values: list[Any]) -> None:
    document = [*values, *(['a, "b", [c]', 12345, {"d,": ",e"}] * 2000)]
    text = json.dumps(document, ensure_ascii=False)
    found = read(text.encode("utf-8"))
    assert len(found) > 1
    assert max(map(len, found)) <= decode.MAX_LINE
    assert json.loads("\n".join(found)) == document


def names(found: Iterator[sources.Text]) -> dict[str, str | None]:
    return {text.name: text.why for text in found}


def archive(path: Path, mode: str, members: dict[str, str]) -> None:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
        for name, kind in (("link", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("dev", tarfile.CHRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/shadow"
            tar.addfile(info)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_an_archive_is_read_without_unpacking(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "capture"
    members = {"n1/ibstat": IBSTAT, "n2/ibstat": DOWN, "../../etc/passwd": IBSTAT, "/abs": IBSTAT, "n1/notes": "hi\n"}
    archive(path, mode, members)
    found = [report for text in sources.texts(str(path)) for report in explain(text, Asked(None, CONTEXT))]
    assert [(Path(report.source).parent.name, report.verdict) for report in found if not report.passed_over] == [
        ("n1", "ok"),
        ("n2", "fail"),
    ]
    passed = {
        report.source.removeprefix(f"{path}/"): report.judged.findings[0].message
        for report in found
        if report.passed_over
    }
    assert {"../../etc/passwd", "/abs", "link", "hard", "dev", "n1/notes"} == set(passed)
    assert "outside" in passed["/abs"]
    assert "link" in passed["hard"]
    assert [left.name for left in tmp_path.iterdir()] == ["capture"]


def test_an_archive_that_breaks_off_is_said_to(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    archive(whole, "w:gz", {"a": IBSTAT, "b": random.Random(1).randbytes(40_000).hex()})  # noqa: S311 - incompressible
    cut = tmp_path / "cut"
    cut.write_bytes(whole.read_bytes()[:9_000])
    found = [report for text in sources.texts(str(cut)) for report in explain(text, Asked(None, CONTEXT))]
    assert found[0].verdict == "ok"
    assert {report.verdict for report in found[1:] if not report.passed_over} == {"unknown"}
    assert "breaks off" in found[-1].judged.findings[-1].message


def test_archives_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "capture"
    archive(path, "w", {f"f{at}": IBSTAT for at in range(9)})
    monkeypatch.setattr(sources, "MAX_MEMBERS", 4)
    assert "more than 4" in str(list(names(sources.texts(str(path))).values())[-1])
    monkeypatch.setattr(sources, "MAX_MEMBERS", 100)
    monkeypatch.setattr(sources, "MAX_BYTES", 2 * len(IBSTAT))
    assert "GiB" in str(list(names(sources.texts(str(path))).values())[-1])


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_one_packed_file_is_read(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "ibstat.packed"
    path.write_bytes(pack(IBSTAT.encode()))
    found = [report for text in sources.texts(str(path)) for report in explain(text, Asked(None, CONTEXT))]
    assert counted(found) == [("", "ibstat", "ok")]


def test_a_packed_file_that_breaks_off_is_never_health(tmp_path: Path) -> None:
    path = tmp_path / "dmesg.gz"
    lines = "".join(f"[{at:5d}.000000] usb {at * 7919 % 1009}: ordinary words {at * 104729}\n" for at in range(20_000))
    data = gzip.compress(lines.encode())
    for share in (0.99, 0.7, 0.3):
        path.write_bytes(data[: int(len(data) * share)])
        found = [report for text in sources.texts(str(path)) for report in explain(text, Asked("dmesg", {}))]
        [report] = found
        assert (report.tool, report.verdict) == ("dmesg", "unknown")
        assert report.judged.findings[-1].cause == "output-truncated"
        assert report.judged.facts["lines"] > 1_000


def test_a_directory_is_walked_and_links_are_left(tmp_path: Path) -> None:
    (tmp_path / "n1").mkdir()
    (tmp_path / "n1" / "ibstat").write_text(IBSTAT)
    (tmp_path / "n1" / "empty").write_text("")
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "n1" / "shadow").symlink_to("/etc/shadow")
    os.mkfifo(tmp_path / "n1" / "pipe")
    found = {name.removeprefix(f"{tmp_path}/"): why for name, why in names(sources.texts(str(tmp_path))).items()}
    assert found["n1/ibstat"] is None
    assert "empty" in str(found["n1/empty"])
    assert "link" in str(found["n1/shadow"])
    assert "pipe" in str(found["n1/pipe"])
    assert not any(name.startswith("out/") for name in found)


def test_stdin_is_read_and_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(DOWN.encode()))))
    found = [report for text in sources.texts("-") for report in explain(text, Asked(None, CONTEXT))]
    assert [report.source for report in found] == ["stdin"]
    assert counted(found) == [("", "ibstat", "fail")]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(sources.SourceError, match="No such file"):
        list(sources.texts(str(tmp_path / "none")))


class Endless(io.RawIOBase):
    """So many bytes of log, made while they are read."""

    def __init__(self, line: bytes, size: int) -> None:
        super().__init__()
        self._block = line * 1000
        self._left = size

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1) -> bytes:
        data = self._block[: min(size, self._left, len(self._block))]
        self._left -= len(data)
        return data


@pytest.mark.thorough
@pytest.mark.parametrize(
    "line",
    [
        b"Jun 18 03:41:02 node-63 systemd-networkd[1893]: ordinary words of a log\n",
        b"node-07: Jun 18 03:41:02 node-63 systemd-networkd[1893]: ordinary words of a log\n",
        b"words of nobody that no tool prints, line after line after line\n",
        b"no line ends in this one ",
    ],
)
def test_memory_does_not_grow_with_the_input_nor_time_more_than_it(
    line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What bounds memory and looking ahead, made small, so that a small input reaches it.
    monkeypatch.setattr(parts, "WINDOWS", 2)
    monkeypatch.setattr(labels, "HELD", 150_000)

    def run(size: int) -> tuple[float, int]:
        monkeypatch.setattr(sys, "stdin", type("In", (), {"buffer": Endless(line, size)}))
        begun = time.process_time()
        tracemalloc.start()
        for text in sources.texts("-"):
            explain(text, Asked(None, {}))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return time.process_time() - begun, peak

    small, big = run(300_000), run(1_500_000)
    assert big[0] < max(1.0, small[0] * 15)
    assert big[1] < max(3_000_000, small[1] * 1.5)
