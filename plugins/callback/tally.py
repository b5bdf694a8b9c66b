"""Callback plugin weaklink.cluster.tally: count tasks and changes by host into a JSON file."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: tally
type: aggregate
short_description: Count tasks, changes and seconds by host into a JSON file
description:
  - Writes C({"hosts":{host:{"tasks":n,"changed":[{"task","what"}],"changes":[what],"failures":[{"task","msg"}],
    "seconds":{task:s}}},"seconds":s}) when the environment variable E(WEAKLINK_TALLY) names a file.
  - A skipped task is not counted; a task that changed something without saying what is named by its own name.
author: weaklink
requirements:
  - listed in C(callbacks_enabled)
"""


class CallbackModule(CallbackBase):
    """Collects results; does nothing unless asked to."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "weaklink.cluster.tally"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._path = os.environ.get("WEAKLINK_TALLY", "")
        self.disabled = not self._path
        self._begun = time.monotonic()
        self._started: dict[tuple[str, str], float] = {}
        self._hosts: dict[str, dict[str, Any]] = {}

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        """Remember when a host began a task."""
        self._started[host.get_name(), task._uuid] = time.monotonic()  # noqa: SLF001 - a task has no other name of its own

    def v2_runner_on_ok(self, result: Any) -> None:
        """Count a task that worked."""
        self._count(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Count a task that failed."""
        del ignore_errors
        self._count(result, failed=True)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Count a task whose host did not answer."""
        self._count(result, failed=True)

    def _count(self, result: Any, failed: bool = False) -> None:
        task, data = result.task, result.result
        name, host = task.get_name(), result.host.get_name()
        entry = self._hosts.setdefault(host, {"tasks": 0, "changed": [], "changes": [], "failures": [], "seconds": {}})
        entry["tasks"] += 1
        begun = self._started.pop((host, task._uuid), None)  # noqa: SLF001 - a task has no other name of its own
        if begun is not None:
            entry["seconds"][name] = round(entry["seconds"].get(name, 0.0) + time.monotonic() - begun, 3)
        if failed:
            entry["failures"].append({"task": name, "msg": str(data.get("msg", ""))})
        if data.get("changed"):
            what = [str(change["what"]) for change in data.get("changes", [])] or [name]
            entry["changed"] += [{"task": name, "what": each} for each in what]
            entry["changes"] += what

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Write the file."""
        del stats
        record = {"hosts": self._hosts, "seconds": round(time.monotonic() - self._begun, 3)}
        path = Path(self._path)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        fresh.replace(path)
