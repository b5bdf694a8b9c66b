"""What can go wrong while files are written: a full disk, missing rights, something in the way. Nothing is lost."""

from __future__ import annotations

import base64
import os
import resource
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apply_fake import OWNERS, FakeNode


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path)


def one(text: str | None, **more: Any) -> dict[str, Any]:
    return {"files": [{"path": "/etc/app.conf", "content": text, **more}]}


@pytest.mark.parametrize(("attribute", "value"), [("mode", 0o666), ("owner", 64030), ("group", 64030)])
def test_attributes_changed_by_hand_are_seen_and_put_right(node: FakeNode, attribute: str, value: int) -> None:
    node.apply("files", one("x"))
    path = node.root / "etc/app.conf"
    if attribute == "mode":
        path.chmod(value)
    else:
        os.chown(path, value if attribute == "owner" else -1, value if attribute == "group" else -1)
    inode = path.stat().st_ino
    [change] = node.apply("files", one("x"))["changes"]
    assert change["to"] == "root:root 0644"
    assert change["from"] != change["to"]
    info = path.stat()
    assert (info.st_uid, stat.S_IMODE(info.st_mode), info.st_ino) == (OWNERS["root"], 0o644, inode)


def test_a_full_disk_leaves_the_old_file_whole(node: FakeNode) -> None:
    node.write("/etc/app.conf", "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))  # the kernel refuses in the middle, as a full disk does
    try:
        result = node.apply("files", one("new" * 10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result["changes"] == []
    assert result["failed"][0]["message"] == "file /etc/app.conf: File too large"
    assert node.read("/etc/app.conf") == "old"
    assert sorted(path.name for path in (node.root / "etc").iterdir()) == ["app.conf", "group", "passwd", "systemd"]


def test_what_may_not_be_read_is_told_and_left_alone(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.write("/etc/app.conf", "old")

    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied", "/etc/app.conf")

    with monkeypatch.context() as patch:
        patch.setattr("weaklink.apply.host.os.lstat", refuse)
        result = node.apply("files", one("new"))
    assert result["failed"] == [{"what": "files", "message": "/etc/app.conf: Permission denied"}]
    assert node.read("/etc/app.conf") == "old"


def test_what_may_not_be_replaced_is_told_and_stops_the_run(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.write("/etc/app.conf", "old")
    desired = one("new")
    desired["files"].append({"path": "/etc/later.conf", "content": "x"})

    def refuse(_source: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted", target)

    with monkeypatch.context() as patch:
        patch.setattr("weaklink.apply.host.os.replace", refuse)
        result = node.apply("files", desired)
    [failure] = result["failed"]
    assert failure["message"] == f"file /etc/app.conf: {node.root}/etc/app.conf: Operation not permitted"
    assert result["changes"] == []
    assert node.read("/etc/app.conf") == "old"
    assert sorted(path.name for path in (node.root / "etc").iterdir()) == ["app.conf", "group", "passwd", "systemd"]


@pytest.mark.parametrize("kind", ["directories", "files", "links"])
def test_what_is_in_the_way_is_refused_and_not_lost(node: FakeNode, kind: str) -> None:
    precious = node.root / "srv/thing"
    if kind != "directories":
        precious /= "inside"
    node.write(f"/{precious.relative_to(node.root)}", "precious")
    entry = {"path": "/srv/thing", "content": "x", "target": "elsewhere"}
    result = node.apply("files", {kind: [entry]})
    assert "move it away" in result["failed"][0]["message"]
    assert precious.read_text() == "precious"


def test_a_link_in_place_of_a_file_is_not_followed(node: FakeNode) -> None:
    node.write("/srv/elsewhere", "precious")
    (node.root / "etc/app.conf").symlink_to("../srv/elsewhere")
    result = node.apply("files", one("x"))
    assert "a link is in its place" in result["failed"][0]["message"]
    assert node.read("/srv/elsewhere") == "precious"


def test_binary_content_survives(node: FakeNode) -> None:
    raw = bytes(range(256))
    desired = {"files": [{"path": "/etc/app.bin", "content_b64": base64.b64encode(raw).decode()}]}
    assert node.apply("files", desired)["failed"] == []
    assert (node.root / "etc/app.bin").read_bytes() == raw
    assert node.apply("files", desired)["changes"] == []


@pytest.mark.parametrize("check", [True, False])
def test_a_run_that_has_nothing_to_do_writes_nothing_at_all(node: FakeNode, check: bool) -> None:
    desired = {
        **one("x", owner=max(OWNERS), mode="0600"),
        "directories": [{"path": "/srv/data", "mode": "0700"}],
        "links": [{"path": "/srv/link", "target": "data"}],
        "users": [{"name": "weaklink"}],
        "absent": ["/etc/old.conf"],
    }
    before = node.digest()
    node.apply("files", desired, check=True)
    assert (node.digest(), node.changes) == (before, [])
    node.apply("files", desired)
    before, calls = node.digest(), len(node.changes)
    assert node.apply("files", desired, check=check)["changes"] == []
    assert (node.digest(), len(node.changes)) == (before, calls)
