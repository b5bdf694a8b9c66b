"""Services run with the configuration on disk, are restarted only for it, and never from under a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from weaklink.apply.services import RECORD

from tests.unit.apply_fake import FakeNode

UNIT = "/etc/systemd/system/app.service.d/weaklink.conf"


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    node = FakeNode(tmp_path)
    node.known = {"app.service", "slurmd.service"}
    return node


def desired(restart: str = "a=1\n", reload: str = "b=1\n", **more: Any) -> dict[str, Any]:
    service = {"name": "app", "enabled": True, "state": "started", **more}
    return {
        "files": [
            {"path": "/etc/app.conf", "content": restart},
            {"path": "/etc/app.d/soft.conf", "content": reload},
            {"path": "/etc/unrelated", "content": "x"},
        ],
        "services": [{**service, "restart_on": ["/etc/app.conf"], "reload_on": ["/etc/app.d/soft.conf"]}],
    }


def verbs(node: FakeNode) -> list[str]:
    return [call[1] for call in node.changes if call[0] == "systemctl"]


def test_a_fresh_service_is_enabled_and_started_once(node: FakeNode) -> None:
    result = node.apply("files", desired())
    assert result["failed"] == []
    assert verbs(node) == ["enable", "start", "daemon-reload"] or verbs(node) == ["enable", "daemon-reload", "start"]
    assert [c["what"] for c in result["changes"]][-2:] == ["service app.service enabled", "service app.service started"]
    node.changes.clear()
    assert node.apply("files", desired())["changes"] == []
    assert node.changes == []


@pytest.mark.parametrize(
    ("changed", "verb"),
    [({"restart": "a=2\n"}, ["restart"]), ({"reload": "b=2\n"}, ["reload"]), ({}, [])],
    ids=["file of the restart", "file of the reload", "nothing"],
)
def test_it_is_restarted_only_when_its_files_change(node: FakeNode, changed: dict[str, str], verb: list[str]) -> None:
    node.apply("files", desired())
    node.write("/etc/unrelated", "changed by hand")
    node.changes.clear()
    result = node.apply("files", desired(**changed))
    assert result["failed"] == []
    assert verbs(node) == verb
    assert node.apply("files", desired(**changed))["changes"] == []


def test_a_file_changed_by_hand_is_put_right_and_the_daemon_told(node: FakeNode) -> None:
    node.apply("files", desired())
    node.write("/etc/app.conf", "a=evil\n")
    node.changes.clear()
    assert [c["what"] for c in node.apply("files", desired())["changes"]] == [
        "file /etc/app.conf",
        "service app.service restarted",
    ]
    assert verbs(node) == ["restart"]


def test_a_run_killed_between_write_and_restart_is_made_good(node: FakeNode) -> None:
    node.apply("files", desired())
    node.write("/etc/app.conf", "a=2\n")  # as the killed run left it
    node.changes.clear()
    result = node.apply("files", desired(restart="a=2\n"))
    assert [c["what"] for c in result["changes"]] == ["service app.service restarted"]
    assert verbs(node) == ["restart"]


@pytest.mark.parametrize("record", ["", "{", "[]", '{"app.service": null}'])
def test_a_damaged_record_costs_a_restart_and_no_more(node: FakeNode, record: str) -> None:
    node.apply("files", desired())
    node.write(RECORD, record)
    node.changes.clear()
    assert node.apply("files", desired())["failed"] == []
    assert verbs(node) == ["restart"]
    assert set(json.loads(node.read(RECORD))["app.service"]) == {"restart", "reload"}


def test_a_service_that_stopped_is_started_and_one_that_should_not_run_is_stopped(node: FakeNode) -> None:
    node.apply("files", desired())
    node.active.discard("app.service")
    assert [c["what"] for c in node.apply("files", desired())["changes"]] == ["service app.service started"]
    off = {"services": [{"name": "app", "enabled": False, "state": "stopped"}]}
    assert [c["what"] for c in node.apply("files", off)["changes"]] == [
        "service app.service disabled",
        "service app.service stopped",
    ]
    assert "app.service" not in node.active | node.enabled


def test_a_service_that_does_not_start_fails_with_its_log(node: FakeNode) -> None:
    node.broken.add("app.service")
    result = node.apply("files", desired())
    assert "systemctl start app.service: " in result["failed"][0]["message"]
    assert "its log ends: it said why" in result["failed"][0]["message"]
    node.broken.clear()
    assert node.apply("files", desired())["failed"] == []


def test_a_changed_drop_in_is_read_before_the_restart(node: FakeNode) -> None:
    def wanted(text: str) -> dict[str, Any]:
        service = {"name": "app", "state": "started", "restart_on": [UNIT]}
        return {"files": [{"path": UNIT, "content": text}], "services": [service]}

    node.apply("files", wanted("[Service]\nRestart=no\n"))
    node.changes.clear()
    node.apply("files", wanted("[Service]\nRestart=always\n"))
    assert verbs(node) == ["daemon-reload", "restart"]


def test_check_mode_runs_nothing(node: FakeNode) -> None:
    before = node.digest()
    predicted = [c["what"] for c in node.apply("files", desired(), check=True)["changes"]]
    assert node.changes == []
    assert node.digest() == before
    assert predicted == [c["what"] for c in node.apply("files", desired())["changes"]]


# ---- jobs in the way


@pytest.mark.parametrize(
    ("jobs", "words"), [(["17", "18"], "2 job(s) on c1 (17 18)"), (None, "cannot tell whether jobs run on c1")]
)
@pytest.mark.parametrize("check", [True, False])
def test_a_disruptive_restart_waits_for_jobs(node: FakeNode, jobs: Any, words: str, check: bool) -> None:
    node.apply("files", desired(disruptive=True))
    node.active.add("slurmd.service")
    node.jobs = jobs
    node.changes.clear()
    result = node.apply("files", desired(restart="a=2\n", disruptive=True), check=check)
    [waiting] = result["pending"]
    assert words in waiting["message"]
    assert waiting["disruptive"] is True
    assert [c["what"] for c in result["changes"]] == ["file /etc/app.conf"]
    assert node.changes == []
    node.jobs = []
    later = node.apply("files", desired(restart="a=2\n", disruptive=True))
    assert later["pending"] == []
    assert verbs(node) == ["restart"]


def test_a_disruptive_restart_is_made_when_told_so_or_when_no_job_can_run(node: FakeNode) -> None:
    node.apply("files", desired(disruptive=True))
    node.jobs = None
    assert node.apply("files", desired(restart="a=2\n", disruptive=True))["pending"] == []  # slurmd is not active
    node.active.add("slurmd.service")
    node.jobs = ["17"]
    result = node.apply("files", desired(restart="a=3\n", disruptive=True), allow_disruptive=True)
    assert (result["pending"], result["failed"]) == ([], [])
    assert verbs(node)[-2:] == ["restart", "restart"]


def test_a_reload_needs_nobody_to_wait(node: FakeNode) -> None:
    node.apply("files", desired(disruptive=True))
    node.active.add("slurmd.service")
    node.jobs = ["17"]
    assert node.apply("files", desired(reload="b=2\n", disruptive=True))["pending"] == []
    assert verbs(node)[-1] == "reload"
