"""expected.json: read whole, or refused with the place that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from weaklink.model.expected import ExpectedError, parse, read

from tests.fakenode import dump, expected


def test_what_is_read() -> None:
    want = parse(json.dumps(expected()))
    assert (want.node, want.enforce, want.strikes, want.service_user) == ("c1", True, 2, "weaklink")
    assert want.nics[1].rdma is not None
    assert (want.nics[1].mtu, want.nics[1].rdma.rate_gbps, want.nics[0].rdma) == (4200, 400, None)
    assert (want.mounts[0].path, want.mounts[0].proto) == ("/home", "rdma")
    assert want.deadline("prolog") == 10
    assert parse(json.dumps(expected(deadlines={}))).deadline("health") == 50
    assert want.budget_view()["partitions"] == {"main": ["c1", "c2", "c3"]}


def test_the_least_that_works() -> None:
    want = parse('{"format": 1, "node": "c1", "policy": {"budget": {}}, "later": [1]}')
    assert not want.enforce  # observe is the default
    assert want.nics == ()
    assert want.strikes == 2


@pytest.mark.parametrize("mode", ["observe", "Enforce", "enforced", ""])
def test_only_the_word_itself_enforces(mode: str) -> None:
    assert not parse(json.dumps(expected(mode=mode))).enforce


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"format": 2}, "format 2"),
        ({"format": "1"}, ".format"),
        ({"node": None}, ".node is missing"),
        ({"node": 5}, ".node"),
        ({"nics": {}}, ".nics"),
        ({"nics": [1]}, ".nics[0]"),
        ({"nics": [{"pci": "x", "mtu": "4200"}]}, ".nics[0].mtu"),
        ({"nics": [{"pci": "x", "mtu": True}]}, ".nics[0].mtu"),
        ({"nics": [{"mtu": 4200}]}, ".nics[0].pci is missing"),
        ({"nics": [{"pci": "x", "rdma": {"rate_gbps": "400"}}]}, ".nics[0].rdma.rate_gbps"),
        ({"mounts": [{"fstype": "nfs4"}]}, ".mounts[0].path"),
        ({"daemons": ["munge", 1]}, ".daemons"),
        ({"partitions": {"main": 1}}, ".partitions.main"),
        ({"policy": {}}, ".policy.budget"),
        ({"policy": {"budget": {}, "health_strikes": "2"}}, ".policy.health_strikes"),
        ({"deadlines": {"prolog": "10"}}, ".deadlines.prolog"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(ExpectedError, match=r".*") as caught:
        parse(json.dumps(expected(**changes)), "/etc/x.json")
    assert place in str(caught.value)
    assert "/etc/x.json" in str(caught.value)


def test_a_file_that_is_cut_absent_or_binary(tmp_path: Path) -> None:
    whole = dump(expected(), tmp_path / "whole")
    assert read(str(whole)).node == "c1"
    text = whole.read_text()
    for at in (0, 1, len(text) // 2, len(text) - 1):
        (tmp_path / "cut").write_text(text[:at])
        with pytest.raises(ExpectedError):
            read(str(tmp_path / "cut"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "nosuch", tmp_path / "binary", tmp_path):
        with pytest.raises(ExpectedError, match="cannot be read"):
            read(str(path))
    with pytest.raises(ExpectedError):
        parse("[" * 100_000)
