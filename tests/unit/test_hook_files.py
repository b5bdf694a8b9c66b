"""What hooks leave on disk: private, whole or not at all, and cut in time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from weaklink.hooks.files import Places, log, read_state, write_atomic, write_evidence

from tests.hooknode import Node


def test_files_are_private_and_whole(node: Node) -> None:
    node.tree.down("rxe_compute")
    node.prolog()
    node.health()
    for path in (node.folder / "lib", node.folder / "log"):
        assert path.stat().st_mode & 0o077 == 0
        for file in path.rglob("*"):
            assert file.stat().st_mode & 0o077 == 0
            assert not file.name.endswith(".new")


def test_a_full_disk_stops_nothing(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: Any, **_kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("weaklink.hooks.files._make_folder", full)
    node.tree.down("rxe_compute")
    assert node.prolog() == 0
    assert node.reason()


def test_the_log_is_cut_and_turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places(log=str(tmp_path / "log/guard.log"))
    log(places, {"message": "x" * 100, "findings": ["y" * 100_000]})
    log(places, {"message": 'quote " line\nbreak \udcff'})
    first, second = [json.loads(line) for line in Path(places.log).read_text().splitlines()]
    assert first["cut"] is True
    assert "findings" not in first
    assert second["message"] == 'quote " line\nbreak \udcff'
    monkeypatch.setattr("weaklink.hooks.files._MAX_LOG", 10)
    log(places, {"message": "turn"})
    assert Path(places.log + ".1").exists()


def test_old_evidence_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weaklink.hooks.files._KEEP_EVIDENCE", 3)
    places = Places(evidence=str(tmp_path / "evidence"))
    for index in range(6):
        write_evidence(places, {"id": f"2026010{index}"})
    assert sorted(path.stem for path in Path(places.evidence).iterdir()) == ["20260103", "20260104", "20260105"]


def test_state_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "state.json")
    write_atomic(path, {"a": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("crash")))
        with pytest.raises(OSError, match="crash"):
            write_atomic(path, {"a": 2})
    assert read_state(path) == {"a": 1}


@pytest.mark.parametrize("taken", [0, 5])
def test_a_disk_that_takes_a_part_only_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    path = str(tmp_path / "state.json")
    write_atomic(path, {"a": 1})
    real, sizes = os.write, iter([taken])

    def write(fd: int, data: bytes) -> int:
        size = next(sizes, 0)
        if not size:
            raise OSError(28, "No space left on device")
        return real(fd, data[:size])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(OSError, match="No space"):
            write_atomic(path, {"a": 2})
    assert read_state(path) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]
