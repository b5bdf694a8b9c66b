"""Area ``files``: plan, change, and nothing left to do, over random starting points in a folder."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.apply import files

from tests.unit.apply_fake import MEMORY, FakeNode

DAEMONS = {"alpha.service": ("/etc/alpha.conf",), "beta.service": ("/etc/beta.conf", "/etc/shared.conf")}
CONTENTS = st.sampled_from(["", "a\n", "b\nc\n", "ünï\n"])
PATHS = ["/etc/alpha.conf", "/etc/beta.conf", "/etc/shared.conf", "/etc/deep/er/x"]
MODES = st.sampled_from(["0644", "0600", "0755"])
FILES = st.dictionaries(st.sampled_from(PATHS), st.tuples(CONTENTS, MODES))
SERVICES = [
    {"name": "alpha", "enabled": True, "state": "started", "restart_on": list(DAEMONS["alpha.service"])},
    {"name": "beta.service", "enabled": True, "state": "started", "reload_on": list(DAEMONS["beta.service"])},
]


def fresh(root: Path) -> FakeNode:
    node = FakeNode(root)
    node.known, node.settings = set(DAEMONS), DAEMONS
    return node


def desired_of(wanted: dict[str, tuple[str, str]], absent: list[str]) -> dict[str, Any]:
    return {
        "files": [{"path": path, "content": text, "mode": mode} for path, (text, mode) in wanted.items()],
        "directories": [{"path": "/srv/data", "mode": "0750"}],
        "links": [{"path": "/etc/current", "target": "deep"}],
        "absent": [path for path in absent if path not in wanted],
        "services": SERVICES,
    }


def what(result: dict[str, Any]) -> list[str]:
    return [change["what"] for change in result["changes"]]


@settings(max_examples=40, deadline=None)
@given(before=FILES, wanted=FILES, absent=st.lists(st.sampled_from(PATHS), unique=True), drift=FILES)
def test_apply_reaches_the_desired_state_and_then_has_nothing_to_do(
    before: dict[str, tuple[str, str]],
    wanted: dict[str, tuple[str, str]],
    absent: list[str],
    drift: dict[str, tuple[str, str]],
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        node = fresh(Path(folder))
        desired = desired_of(wanted, absent)
        for start in (before, drift):
            put(node, start)
            tree = node.digest()
            predicted = node.apply("files", desired, check=True)
            assert node.digest() == tree, "check mode wrote something"
            done = node.apply("files", desired, check=False)
            assert done["failed"] == []
            assert what(done) == what(predicted)
            assert all(change["applied"] for change in done["changes"])
            for path, (text, mode) in wanted.items():
                full = node.root / path.lstrip("/")
                assert full.read_text() == text
                assert full.stat().st_mode & 0o7777 == int(mode, 8)
            assert not any((node.root / path.lstrip("/")).exists() for path in desired["absent"])
            assert node.active & node.enabled >= set(DAEMONS)
            for unit, paths in DAEMONS.items():
                now = dict(zip(paths, node.settings_of(unit), strict=True))
                then = dict(zip(paths, node.seen[unit], strict=True))
                assert all(now[path] == then[path] for path in paths if path in wanted), "runs with older settings"
            again = node.apply("files", desired, check=False)
            assert again == {"changes": [], "pending": [], "failed": []}


def put(node: FakeNode, start: dict[str, tuple[str, str]]) -> None:
    for path, (text, mode) in start.items():
        full = node.root / path.lstrip("/")
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)
        full.chmod(int(mode, 8))


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return fresh(tmp_path)


def test_a_run_killed_before_the_restart_is_made_good(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    desired = desired_of({"/etc/alpha.conf": ("old\n", "0644")}, [])
    node.apply("files", desired, check=False)
    desired["files"][0]["content"] = "new\n"

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(files.OPERATIONS, "restart", die)
    with pytest.raises(KeyboardInterrupt):
        node.apply("files", desired, check=False)
    monkeypatch.undo()
    assert (node.root / "etc/alpha.conf").read_text() == "new\n"
    assert what(node.apply("files", desired, check=True)) == ["service alpha.service restarted"]
    node.apply("files", desired, check=False)
    assert node.seen["alpha.service"] == (b"new\n",)


def test_a_secret_shows_nowhere(node: FakeNode) -> None:
    desired = {"files": [{"path": "/etc/key", "content": "TOPSECRET\n", "mode": "0600", "secret": True}]}
    assert "TOPSECRET" not in str(node.apply("files", desired, check=True))
    assert "TOPSECRET" not in str(node.apply("files", desired, check=False))
    assert (node.root / "etc/key").read_text() == "TOPSECRET\n"


def test_a_content_that_is_not_known_yet_is_predicted_and_refused(node: FakeNode) -> None:
    desired = {"files": [{"path": "/etc/key", "content_b64": None}]}
    assert what(node.apply("files", desired, check=True)) == ["file /etc/key"]
    failed = node.apply("files", desired, check=False)["failed"]
    assert "not known" in failed[0]["message"]


def test_an_unknown_owner_is_named(node: FakeNode) -> None:
    desired = {"files": [{"path": "/etc/x", "content": "", "owner": "nobody-knows"}]}
    failed = node.apply("files", desired, check=False)["failed"]
    assert "nobody-knows" in failed[0]["message"]


def test_users_are_made_once(node: FakeNode) -> None:
    desired = {"users": [{"name": "probe", "comment": 'a "quoted" word'}]}
    first = node.apply("files", desired, check=False)
    assert what(first) == ["file /etc/sysusers.d/probe.conf", "user probe"]
    assert what(node.apply("files", desired, check=False)) == []


def test_text_that_is_not_utf8_has_a_short_diff(node: FakeNode) -> None:
    (node.root / "etc/alpha.conf").write_bytes(b"\xff\xfe")
    result = node.apply("files", desired_of({"/etc/alpha.conf": ("x\n", "0644")}, []), check=True)
    assert "binary" in result["changes"][1]["diff"]


def test_diff_is_unified(node: FakeNode) -> None:
    (node.root / "etc/alpha.conf").write_text("one\ntwo\n")
    result = node.apply("files", desired_of({"/etc/alpha.conf": ("one\nthree\n", "0644")}, []), check=True)
    diff = next(change["diff"] for change in result["changes"] if change["what"] == "file /etc/alpha.conf")
    assert "-two\n+three\n" in diff
    assert diff.startswith("--- /etc/alpha.conf\n+++ /etc/alpha.conf\n")
