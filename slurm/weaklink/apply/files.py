"""Area ``files``: users, directories, files, links, and the services that read them.

Desired::

    {"users": [{"name", "uid"?, "comment"?, "home"?, "shell"?}],
     "directories": [{"path", "owner", "group", "mode"}],
     "files": [{"path", "content"|"content_b64", "owner", "group", "mode", "secret"?}],
     "links": [{"path", "target"}], "absent": [path],
     "services": [see services.py]}

Modes are octal text ("0644"); owner and group default to root. A content of null is one that is not known yet (a key
that check mode may not generate): predicted as a change, refused in a real run. A secret never shows in a result.
"""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

from weaklink.apply import services
from weaklink.apply.host import CommandError, Host, Stat
from weaklink.apply.plan import Json, Plan, Step, join, text_diff

SYSUSERS = "/etc/sysusers.d"


class Entry(NamedTuple):
    """What is at a path: its attributes and, for a file, its content."""

    stat: Stat
    content: bytes | None


Seen = dict[str, Any]


def expand(desired: Json) -> Json:
    """Return ``desired`` with each user's sysusers.d file among the files."""
    extra = [
        {"path": f"{SYSUSERS}/{user['name']}.conf", "content": _sysusers_line(user)}
        for user in desired.get("users", [])
    ]
    return {**desired, "files": [*extra, *desired.get("files", [])]}


def _sysusers_line(user: Json) -> str:
    comment = str(user.get("comment", user["name"])).replace('"', "'")
    return (
        f"# Written by weaklink's playbooks.\n"
        f'u {user["name"]} {user.get("uid", "-")} "{comment}" {user.get("home", "/")} {user.get("shell", "-")}\n'
    )


def content_of(file: Json) -> bytes | None:
    """Return the wanted content of one desired file as bytes, None when it is not known yet."""
    if file.get("content_b64") is not None:
        return base64.b64decode(str(file["content_b64"]), validate=True)
    content = file.get("content")
    return None if content is None else str(content).encode()


def observe(host: Host, desired: Json) -> Seen:
    """Return what is at every path that ``desired`` names, which users exist, and the services' states."""
    wanted = expand(desired)
    paths = [entry["path"] for key in ("directories", "files", "links") for entry in wanted.get(key, [])]
    entries: dict[str, Entry | None] = {}
    for path in [*paths, *wanted.get("absent", [])]:
        stat = host.stat(path)
        content = host.read(path) if stat is not None and stat.kind == "file" else None
        entries[path] = None if stat is None else Entry(stat, content)
    return {
        "entries": entries,
        "users": sorted(host.ids("passwd")),
        "services": services.observe(host, wanted.get("services", [])),
    }


def plan(desired: Json, observed: Seen) -> Plan:
    """Return the steps from ``observed`` to ``desired``. Pure."""
    wanted = expand(desired)
    entries: dict[str, Entry | None] = observed["entries"]
    users = [user["name"] for user in wanted.get("users", [])]
    config = [file for file in wanted["files"] if file["path"].startswith(SYSUSERS + "/")]
    others = [file for file in wanted["files"] if not file["path"].startswith(SYSUSERS + "/")]
    steps = [step for file in config for step in file_steps(file, entries[file["path"]])]
    steps += [
        Step(f"user {name}", None, name, ("user", f"{SYSUSERS}/{name}.conf"))
        for name in users
        if name not in observed["users"]
    ]
    steps += [
        step for entry in wanted.get("directories", []) for step in directory_steps(entry, entries[entry["path"]])
    ]
    steps += [step for file in others for step in file_steps(file, entries[file["path"]])]
    steps += [step for entry in wanted.get("links", []) for step in _link(entry, entries[entry["path"]])]
    steps += [
        Step(f"remove {path}", entries[path].stat.kind, None, ("remove", path))  # type: ignore[union-attr]
        for path in wanted.get("absent", [])
        if entries[path] is not None
    ]
    contents = {file["path"]: content_of(file) for file in wanted["files"]}
    changed = {step.op[1] for step in steps if step.op[0] in ("write", "unknown", "remove")}
    return join([Plan(steps, []), services.plan(wanted.get("services", []), observed["services"], contents, changed)])


def _attributes(entry: Json, default_mode: str) -> tuple[str, str, int]:
    owner = str(entry.get("owner", "root"))
    return owner, str(entry.get("group", owner)), int(str(entry.get("mode", default_mode)), 8)


def _shown(owner: str, group: str, mode: int) -> str:
    return f"{owner}:{group} {mode:04o}"


def file_steps(file: Json, found: Entry | None) -> list[Step]:
    """Return the steps (none or one) that make one file what it should be. Pure."""
    path, content = file["path"], content_of(file)
    attributes = _attributes(file, "0644")
    what = f"file {path}"
    if found is not None and found.stat.kind != "file":
        return [
            Step(what, found.stat.kind, "file", ("refuse", path, f"a {found.stat.kind} is in its place; move it away"))
        ]
    now = None if found is None else (found.stat.owner, found.stat.group, found.stat.mode)
    if found is not None and content is not None and found.content == content:
        if now == attributes:
            return []
        return [
            Step(
                what, _shown(*found.stat[2:4], found.stat.mode), _shown(*attributes), ("attributes", path, *attributes)
            )
        ]
    before = None if found is None else "other content"
    if content is None:
        return [Step(what, before, "content made in the real run", ("unknown", path))]
    diff = "" if file.get("secret") else text_diff(path, None if found is None else found.content, content)
    return [Step(what, before, _shown(*attributes), ("write", path, content, *attributes), diff=diff)]


def directory_steps(entry: Json, found: Entry | None) -> list[Step]:
    """Return the steps (none or one) that make one directory what it should be. Pure."""
    path, attributes = entry["path"], _attributes(entry, "0755")
    what = f"directory {path}"
    if found is None:
        return [Step(what, None, _shown(*attributes), ("directory", path, *attributes))]
    if found.stat.kind != "directory":
        return [
            Step(
                what,
                found.stat.kind,
                "directory",
                ("refuse", path, f"a {found.stat.kind} is in its place; move it away"),
            )
        ]
    if (found.stat.owner, found.stat.group, found.stat.mode) == attributes:
        return []
    before = _shown(found.stat.owner, found.stat.group, found.stat.mode)
    return [Step(what, before, _shown(*attributes), ("directory", path, *attributes))]


def _link(entry: Json, found: Entry | None) -> list[Step]:
    path, target = entry["path"], entry["target"]
    if found is not None and found.stat.kind == "link" and found.stat.target == target:
        return []
    if found is not None and found.stat.kind == "directory":
        return [
            Step(f"link {path}", "directory", target, ("refuse", path, "a directory is in its place; move it away"))
        ]
    before = None if found is None else found.stat.target or found.stat.kind
    return [Step(f"link {path}", before, target, ("link", path, target))]


# ---- operations


def _user(host: Host, path: str) -> None:
    host.must("systemd-sysusers", path)
    host.forget_ids()


def _refuse(_host: Host, path: str, why: str) -> None:
    raise CommandError(f"{path}: {why}")


def _unknown(_host: Host, path: str) -> None:
    raise CommandError(f"{path}: its content is not known; the task that makes it has to run before")


def _write(host: Host, path: str, content: bytes, owner: str, group: str, mode: int) -> None:
    host.write(path, content, owner, group, mode)
    if path.startswith("/etc/systemd/system/"):
        host.stale_units = True


def _remove(host: Host, path: str) -> None:
    host.remove(path)
    if path.startswith("/etc/systemd/system/"):
        host.stale_units = True


OPERATIONS = {
    "user": _user,
    "directory": lambda host, path, owner, group, mode: host.make_directory(path, owner, group, mode),
    "write": _write,
    "attributes": lambda host, path, owner, group, mode: host.set_attributes(path, owner, group, mode),
    "link": lambda host, path, target: host.link(path, target),
    "remove": _remove,
    "refuse": _refuse,
    "unknown": _unknown,
    **services.OPERATIONS,
}
