"""Action and callback plugins, through a real ansible-playbook on this machine's own Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAY = """\
- hosts: localhost
  connection: local
  gather_facts: false
  vars: {{ansible_python_interpreter: {python}}}
  tasks:
    - name: Own file
      weaklink.cluster.apply:
        area: files
        desired:
          files:
            - {{path: {folder}/a.conf, content: "one\\n"}}
            - {{path: {folder}/key, content: "TOPSECRET", mode: "0600", secret: true}}
    - name: Skipped
      ansible.builtin.debug: {{}}
      when: false
    - name: Impossible
      weaklink.cluster.apply:
        area: verify
        desired: {{paths: [/no/such/path], node: other}}
"""


@pytest.fixture
def play(tmp_path: Path) -> Any:
    (tmp_path / "play.yml").write_text(PLAY.format(python=sys.executable, folder=tmp_path))
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "WEAKLINK_TALLY": str(tmp_path / "tally.json"),
        "ANSIBLE_FORCE_COLOR": "0",
        "ANSIBLE_NOCOLOR": "1",
    }

    def run(*argv: str) -> tuple[dict[str, Any], str]:
        command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", "-vvv", *argv]
        done = subprocess.run(
            [*command, str(tmp_path / "play.yml")],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return json.loads((tmp_path / "tally.json").read_text()), done.stdout + done.stderr

    return run


@pytest.mark.skipif(os.geteuid() != 0, reason="stages the program in /var/cache/weaklink")
def test_check_predicts_run_changes_second_run_nothing(play: Any, tmp_path: Path) -> None:
    wanted = [f"file {tmp_path}/a.conf", f"file {tmp_path}/key"]
    tally, output = play("--check", "--diff")
    assert tally["hosts"]["localhost"]["changes"] == wanted
    assert "+one" in output
    assert not (tmp_path / "a.conf").exists()
    tally, output = play("--diff")
    assert tally["hosts"]["localhost"]["changes"] == wanted
    assert "TOPSECRET" not in output
    assert (tmp_path / "key").read_text() == "TOPSECRET"
    tally, _ = play()
    host = tally["hosts"]["localhost"]
    assert host["changes"] == []
    assert host["tasks"] == 2, "skipped tasks are not counted"
    assert [failure["task"] for failure in host["failures"]] == ["Impossible"]
    assert "/no/such/path: missing" in host["failures"][0]["msg"]
    assert "hostname is" in host["failures"][0]["msg"]
    assert set(host["seconds"]) >= {"Own file", "Impossible"}


def test_module_documentation_is_readable() -> None:
    command = [str(Path(sys.executable).with_name("ansible-doc")), "--json", "weaklink.cluster.apply"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    options = json.loads(done.stdout)["weaklink.cluster.apply"]["doc"]["options"]
    from weaklink.apply.run import AREAS

    assert sorted(options["area"]["choices"]) == sorted(AREAS)
