"""Action plugin weaklink.cluster.apply: one area of a node to its desired state, by ``weaklink apply`` on it.

The module never imports weaklink. The program is staged on the target by content hash (also in check mode: the cache
folder is no part of the node's state), gets the desired state on standard input, and its JSON result becomes Ansible's.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.weaklink.cluster.plugins.plugin_utils import zipapp

CACHE = "/var/cache/weaklink"
_Program = tuple[str, dict[str, bytes]]  # the name of a release, and its files
_NOT_STAGED = 97


class ActionModule(ActionBase):
    """See the module's documentation for arguments and result."""

    _supports_check_mode = True
    _supports_diff = True
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run one area on one host."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        spec = {
            "area": {"type": "str", "required": True},
            "desired": {"type": "dict", "required": True},
            "allow_disruptive": {"type": "bool", "default": False},
        }
        _, args = self.validate_argument_spec(spec)
        desired = self._task.args["desired"] if isinstance(self._task.args["desired"], dict) else args["desired"]
        files = zipapp.contents(zipapp.source())
        release = zipapp.fingerprint(files)
        if args["area"] == "install":
            desired = {**desired, "release": release}
        check = bool(self._task.check_mode)
        options = [
            "--json",
            *(["--check"] if check else []),
            *(["--allow-disruptive"] if args["allow_disruptive"] else []),
        ]
        answer = self._ask([args["area"], *options], desired, task_vars or {}, (release, files))
        result.update(self._result(answer))
        return result

    def _ask(
        self, words: list[str], desired: dict[str, Any], task_vars: dict[str, Any], program: _Program
    ) -> dict[str, Any]:
        """Start the program on the target, staging it first where it is not there yet; return its JSON.

        ``words`` are the area and its options, ``program`` the release's name and files.
        """
        release, files = program
        python = str(task_vars.get("ansible_python_interpreter") or "/usr/bin/python3")
        python = "/usr/bin/python3" if python.startswith("auto") else python
        folder = f"{CACHE}/{release}"
        start = shlex.join([python, "-I", "-S", folder, "apply", *words, "--desired", "-"])
        command = f"test -e {folder}/__main__.py || exit {_NOT_STAGED}; exec {start}"
        text = json.dumps(desired, default=str).encode()
        answer = self._low_level_execute_command(command, in_data=text)
        if answer["rc"] == _NOT_STAGED:
            self._stage(python, files, release)
            answer = self._low_level_execute_command(command, in_data=text)
        try:
            parsed: dict[str, Any] = json.loads(answer["stdout"])
        except ValueError:
            said = " ".join((answer["stderr"] or answer["stdout"]).split())[-800:]
            raise AnsibleActionFail(
                f"weaklink apply {words[0]}: exit {answer['rc']} without a result; it said: {said or '(nothing)'}"
            ) from None
        return parsed

    def _stage(self, python: str, files: dict[str, bytes], release: str) -> None:
        """Send the zipapp and unpack it, in one command and without a temporary file on the target."""
        script = Path(zipapp.__file__).with_name("unpack.py").read_text(encoding="utf-8")
        command = shlex.join([python, "-I", "-S", "-c", script, CACHE, release])
        answer = self._low_level_execute_command(command, in_data=zipapp.build(files))
        if answer["rc"] != 0:
            said = " ".join((answer["stderr"] or answer["stdout"]).split())[-800:]
            raise AnsibleActionFail(f"weaklink could not be staged in {CACHE}/{release}: {said}")

    @staticmethod
    def _result(answer: dict[str, Any]) -> dict[str, Any]:
        """Turn the program's answer into a task result."""
        changes, pending, failed = answer["changes"], answer["pending"], answer["failed"]
        result: dict[str, Any] = {
            "changed": bool(changes),
            "changes": [
                {key: change[key] for key in ("what", "from", "to", "disruptive", "applied")} for change in changes
            ],
            "pending": pending,
            "facts": answer.get("facts", {}),
            "diff": [_diff(change) for change in changes],
        }
        lines = [problem["message"] for problem in failed] + [f"{step['what']}: {step['message']}" for step in pending]
        if lines:
            result["failed"] = True
            result["msg"] = "\n".join(lines)
        elif changes:
            result["msg"] = "; ".join(change["what"] for change in changes)
        return result


def _diff(change: dict[str, Any]) -> dict[str, Any]:
    if change.get("diff"):
        return {"prepared": change["diff"]}
    before, after = ("nothing" if value is None else value for value in (change["from"], change["to"]))
    return {"prepared": f"{change['what']}: {before} -> {after}\n"}
