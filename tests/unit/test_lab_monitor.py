"""The monitor client, against a real socket that speaks the protocol."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from lab.errors import LabError
from lab.monitor import Monitor


class Peer(threading.Thread):
    """Answers each request with the next of ``answers``; an event comes before every answer."""

    def __init__(self, path: Path, answers: list[dict[str, Any]]) -> None:
        super().__init__(daemon=True)
        self.requests: list[dict[str, Any]] = []
        self._answers = answers
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(1)

    def run(self) -> None:
        connection, _ = self._server.accept()
        with connection, connection.makefile("rwb") as stream:
            stream.write(b'{"QMP": {"version": {}}}\n')
            stream.flush()
            for answer in [{"return": {}}, *self._answers]:
                line = stream.readline()
                if not line:
                    return
                self.requests.append(json.loads(line))
                stream.write(b'{"event": "RESUME"}\n' + json.dumps(answer).encode() + b"\n")
                stream.flush()


def _peer(path: Path, *answers: dict[str, Any]) -> Peer:
    peer = Peer(path, list(answers))
    peer.start()
    return peer


def test_events_are_passed_over_and_arguments_spelled(tmp_path: Path) -> None:
    peer = _peer(tmp_path / "qmp", {"return": [1, 2]})
    with Monitor(tmp_path / "qmp", timeout=5) as monitor:
        assert monitor.execute("object-add", qom_type="filter-buffer", interval=5) == [1, 2]
    assert peer.requests[0]["execute"] == "qmp_capabilities"
    assert peer.requests[1]["arguments"] == {"qom-type": "filter-buffer", "interval": 5}


def test_refusal_is_an_error(tmp_path: Path) -> None:
    _peer(tmp_path / "qmp", {"error": {"class": "GenericError", "desc": "Device 'x' not found"}})
    with Monitor(tmp_path / "qmp", timeout=5) as monitor, pytest.raises(LabError, match="Device 'x' not found"):
        monitor.execute("set_link", name="x", up=False)


def test_error_text_of_the_human_monitor_is_an_error(tmp_path: Path) -> None:
    _peer(tmp_path / "qmp", {"return": ""}, {"return": "Error: Snapshot 'x' does not exist\r\n"})
    with Monitor(tmp_path / "qmp", timeout=5) as monitor:
        assert monitor.human("savevm x") == ""
        with pytest.raises(LabError, match="does not exist"):
            monitor.human("loadvm x")


def test_machine_that_goes_away(tmp_path: Path) -> None:
    _peer(tmp_path / "qmp")
    with Monitor(tmp_path / "qmp", timeout=5) as monitor, pytest.raises(LabError):
        monitor.execute("stop")


def test_no_machine(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no connection"):
        Monitor(tmp_path / "none")
