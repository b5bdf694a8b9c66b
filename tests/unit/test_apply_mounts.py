"""Area mounts: mounted with the transport that was asked for; "not mounted" and "mounted without RDMA" differ."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from weaklink.apply.mounts import parse_mounts, unit_of

from tests.unit.apply_fake import FakeNode

SOURCE = "10.77.2.1:/home"
DESIRED: dict[str, Any] = {
    "mounts": [{"path": "/home", "source": SOURCE, "fstype": "nfs4", "options": "vers=4.2,proto=rdma", "proto": "rdma"}]
}


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    node = FakeNode(tmp_path)
    node.known = {"slurmd.service"}
    node.servers[SOURCE] = "rdma"
    return node


def whats(result: dict[str, Any]) -> list[str]:
    return [change["what"] for change in result["changes"]]


def test_it_is_mounted_and_stays(node: FakeNode) -> None:
    before = node.digest()
    predicted = node.apply("mounts", DESIRED, check=True)
    assert (node.digest(), node.changes) == (before, [])
    result = node.apply("mounts", DESIRED)
    assert result["failed"] == []
    assert whats(result) == whats(predicted)
    assert whats(result)[-1] == "mount /home"
    [mounted] = [entry for entry in parse_mounts(node.read("/proc/mounts")) if entry.path == "/home"]
    assert (mounted.source, mounted.proto) == (SOURCE, "rdma")
    assert "weaklink-mount-home.service" in node.enabled
    calls = len(node.changes)
    assert node.apply("mounts", DESIRED)["changes"] == []
    assert len(node.changes) == calls


def test_a_mount_that_failed_says_so_and_why(node: FakeNode) -> None:
    node.servers.clear()
    [failure] = node.apply("mounts", DESIRED)["failed"]
    assert "/home: mount failed: systemctl exited 1" in failure["message"]
    assert "its log ends: it said why" in failure["message"]
    assert "mounted without" not in failure["message"]


def test_a_mount_without_rdma_is_another_fault(node: FakeNode) -> None:
    node.servers[SOURCE] = "tcp"
    [failure] = node.apply("mounts", DESIRED)["failed"]
    assert "/home: mounted without rdma: proto=tcp in /proc/mounts" in failure["message"]
    assert "mount failed" not in failure["message"]
    verified = node.apply("verify", {"mounts": DESIRED["mounts"]}, check=True)["failed"]
    assert "mounted without rdma" in verified[0]["message"]


def test_a_wrong_transport_is_mounted_anew_only_when_no_job_runs(node: FakeNode) -> None:
    node.write("/proc/mounts", f"{SOURCE} /home nfs4 rw,proto=tcp 0 0\n")
    node.active.add("slurmd.service")
    node.jobs = ["17"]
    result = node.apply("mounts", DESIRED)
    [waiting] = result["pending"]
    assert (waiting["what"], waiting["from"]) == ("mount /home", f"{SOURCE} proto=tcp")
    assert ("umount", "/home") not in node.changes
    node.jobs = []
    result = node.apply("mounts", DESIRED)
    assert (result["failed"], result["pending"], whats(result)) == ([], [], ["mount /home"])
    assert "proto=rdma" in node.read("/proc/mounts")
    assert node.read("/proc/mounts").count(" /home ") == 1


def test_another_servers_file_system_is_a_fault_of_its_own(node: FakeNode) -> None:
    node.write("/proc/mounts", "10.0.0.9:/other /home nfs4 rw,proto=rdma 0 0\n")
    [failure] = node.apply("verify", {"mounts": DESIRED["mounts"]}, check=True)["failed"]
    assert "/home: mounted from 10.0.0.9:/other, wanted 10.77.2.1:/home" in failure["message"]


def test_the_last_line_of_a_path_is_the_mount_that_is_seen_and_blanks_are_read() -> None:
    text = "a:/x /mnt/a\\040b nfs4 rw,proto=tcp 0 0\nb:/y /mnt/a\\040b nfs4 rw,proto=rdma 0 0\nshort line\n"
    seen = {entry.path: entry for entry in parse_mounts(text)}
    assert (seen["/mnt/a b"].source, seen["/mnt/a b"].proto) == ("b:/y", "rdma")


@pytest.mark.parametrize("path", ["/home", "/", "/mnt/a b", "/srv/with-dash", "/.hidden", "/mnt/ü", "/a.b/c:d_e"])
def test_units_are_named_as_systemd_names_them(path: str) -> None:
    known = {
        "/home": "home.mount",
        "/": "-.mount",
        "/mnt/a b": "mnt-a\\x20b.mount",
        "/srv/with-dash": "srv-with\\x2ddash.mount",
        "/.hidden": "\\x2ehidden.mount",
        "/mnt/ü": "mnt-\\xc3\\xbc.mount",
        "/a.b/c:d_e": "a.b-c:d_e.mount",
    }
    assert unit_of(path) == known[path]
    escape = shutil.which("systemd-escape")
    if escape:
        command = [escape, "--path", "--suffix=mount", path]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == known[path]
