"""Area ``keys``: secrets that one node makes once and others are given.

Desired: ``{"keys": [{"path", "bytes", "format": "binary"|"hex", "owner"?, "group"?, "mode"?, "content_b64"?}],
"reveal"?: bool}``. An existing key is never replaced, unless ``content_b64`` brings the site's own. With ``reveal`` the
facts hold the keys as base64 (null where one is still to be made): the caller has to keep them out of every log.
"""

from __future__ import annotations

import base64
import os
from typing import Any

from weaklink.apply import files
from weaklink.apply.host import Host
from weaklink.apply.plan import Json, Plan, Step

OPERATIONS: dict[str, Any] = {
    **files.OPERATIONS,
    "generate": lambda host, path, size, form, owner, group, mode: host.write(
        path, make(size, form), owner, group, mode
    ),
}


def make(size: int, form: str) -> bytes:
    """Return a new key of ``size`` random bytes, as they are or as one line of hexadecimal."""
    key = os.urandom(size)
    return key if form == "binary" else key.hex().encode() + b"\n"


def _as_file(key: Json) -> Json:
    file = {"path": key["path"], "mode": key.get("mode", "0600"), "owner": key.get("owner", "root"), "secret": True}
    file["group"] = key.get("group", file["owner"])
    return file


def _as_files(desired: Json) -> Json:
    folders = sorted({key["path"].rpartition("/")[0] for key in desired["keys"]})
    return {"files": [_as_file(key) for key in desired["keys"]], "directories": [{"path": path} for path in folders]}


def observe(host: Host, desired: Json) -> dict[str, Any]:
    """Return what is at each key's path."""
    return files.observe(host, _as_files(desired))


def plan(desired: Json, observed: dict[str, Any]) -> Plan:
    """Return the steps from ``observed`` to ``desired``. Pure."""
    folders = [entry for entry in _as_files(desired)["directories"] if observed["entries"][entry["path"]] is None]
    steps = [step for entry in folders for step in files.directory_steps(entry, None)]
    for key in desired["keys"]:
        file, found = _as_file(key), observed["entries"][key["path"]]
        if key.get("content_b64"):
            steps += files.file_steps({**file, "content_b64": key["content_b64"]}, found)
        elif found is not None and found.stat.kind != "file":  # perhaps a link to the key: not ours to replace
            steps += files.file_steps(file, found)
        elif found is None or not found.content:
            operation = ("generate", key["path"], key["bytes"], key["format"])
            attributes = (file["owner"], file["group"], int(file["mode"], 8))
            steps.append(Step(f"file {key['path']}", None, "a new key", (*operation, *attributes)))
        else:
            kept = base64.b64encode(found.content).decode()
            steps += files.file_steps({**file, "content_b64": kept}, found)
    return Plan(steps, [])


def facts(host: Host, desired: Json) -> Json:
    """Return {path: base64 or null} when the caller asked for the keys."""
    if not desired.get("reveal"):
        return {}
    contents = {key["path"]: host.read(key["path"]) for key in desired["keys"]}
    return {path: None if content is None else base64.b64encode(content).decode() for path, content in contents.items()}
