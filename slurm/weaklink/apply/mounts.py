"""Area ``mounts``: network file systems as systemd units, with the transport that was asked for really in force.

Desired: ``{"mounts": [{"path", "source", "fstype", "options", "proto": "rdma"|"tcp"}]}``.
At boot a service of its own mounts each and keeps trying: a dead server does not stop the boot, a late one is enough.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from weaklink.apply import files, services
from weaklink.apply.host import CommandError, Host
from weaklink.apply.plan import Json, Plan, Problem, Step, join

MOUNT_SECONDS = 150.0
BOOT_SECONDS = 600  # for which slurmd waits at boot; the service goes on trying after that


class Mounted(NamedTuple):
    """One line of /proc/mounts."""

    source: str
    path: str
    fstype: str
    options: tuple[str, ...]

    @property
    def proto(self) -> str:
        """The transport in force ("rdma", "tcp"), empty where the file system has none."""
        return next((option[6:] for option in self.options if option.startswith("proto=")), "")


def parse_mounts(text: str) -> list[Mounted]:
    """Read /proc/mounts; a path's last line is the mount that is seen."""
    rows = [line.split(" ") for line in text.splitlines()]
    return [Mounted(_plain(r[0]), _plain(r[1]), r[2], tuple(r[3].split(","))) for r in rows if r[3:]]


def _plain(field: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field


def unit_of(path: str) -> str:
    """Return the name of the mount unit of ``path``, as systemd-escape --path makes it."""
    parts = path.strip("/")
    if not parts:
        return "-.mount"
    escaped = ""
    for position, character in enumerate(parts):
        if character == "/":
            escaped += "-"
        elif character.isascii() and (character.isalnum() or character in ":_" or (character == "." and position)):
            escaped += character
        else:
            escaped += "".join(f"\\x{byte:02x}" for byte in character.encode())
    return f"{escaped}.mount"


def starter_of(path: str) -> str:
    """Return the name of the service that mounts ``path`` at boot."""
    return f"weaklink-mount-{unit_of(path).removesuffix('.mount')}.service"


def render(mount: Json) -> str:
    """Return the mount unit of one file system."""
    return (
        "# Written by weaklink's playbooks; changes are overwritten.\n"
        f"[Unit]\nDescription={mount['path']} from {mount['source']} over {mount['proto']}\n\n"
        f"[Mount]\nWhat={mount['source']}\nWhere={mount['path']}\nType={mount['fstype']}\nOptions={mount['options']}\n"
        "TimeoutSec=120\n"
    )


def render_starter(mount: Json) -> str:
    """Return the service that mounts one file system at boot, however late its server comes.

    Without RDMA's listener the kernel says "protocol error", which mount takes for final: so the trying again is here.
    slurmd waits for it, since a node without its file systems should not ask for jobs, but not without end.
    """
    unit = unit_of(mount["path"])
    return (
        "# Written by weaklink's playbooks; changes are overwritten.\n"
        f"[Unit]\nDescription=Mount {mount['path']} as soon as its server answers\n"
        "Wants=network-online.target\nAfter=network-online.target remote-fs-pre.target\nBefore=slurmd.service\n"
        "StartLimitIntervalSec=0\n\n"
        "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
        f"ExecStart=/bin/sh -c 'until systemctl start {unit}; do sleep 5; done'\n"
        f"TimeoutStartSec={BOOT_SECONDS}\nRestart=on-failure\nRestartSec=10\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def _files(desired: Json) -> Json:
    units = [(unit_of(m["path"]), render(m)) for m in desired["mounts"]]
    starters = [(starter_of(m["path"]), render_starter(m)) for m in desired["mounts"]]
    return {
        "files": [{"path": f"/etc/systemd/system/{name}", "content": text} for name, text in units + starters],
        "services": [{"name": name, "enabled": True} for name, _ in starters],
    }


def observe(host: Host, desired: Json) -> Json:
    """Return the units and what is mounted at the wanted paths."""
    table = {entry.path: entry for entry in parse_mounts(host.text("/proc/mounts")) if entry.fstype != "autofs"}
    return {
        "files": files.observe(host, _files(desired)),
        "mounted": {mount["path"]: table.get(mount["path"]) for mount in desired["mounts"]},
    }


def plan(desired: Json, observed: Json) -> Plan:
    """Return the steps from ``observed`` to ``desired``. Pure."""
    steps = [step for mount in desired["mounts"] for step in _mount(mount, observed["mounted"][mount["path"]])]
    return join([files.plan(_files(desired), observed["files"]), Plan(steps, [])])


def _mount(mount: Json, found: Mounted | None) -> list[Step]:
    path = mount["path"]
    wanted = f"{mount['source']} proto={mount['proto']}"
    if found is None:
        return [Step(f"mount {path}", None, wanted, ("mount", mount))]
    if found.source == mount["source"] and found.proto == mount["proto"]:
        return []
    before = f"{found.source} proto={found.proto or 'none'}"
    return [Step(f"mount {path}", before, wanted, ("remount", mount), disruptive=True)]


def verify(mount: Json, found: Mounted | None) -> Problem | None:
    """Judge one mount; not being mounted and being mounted without RDMA are different faults. Pure."""
    path = mount["path"]
    if found is None:
        return Problem(
            f"mount {path}",
            f"{path}: not mounted, wanted {mount['source']} over {mount['proto']}; "
            f"see `systemctl status {unit_of(path)}`, then the server and the storage network",
        )
    if found.source != mount["source"]:
        return Problem(
            f"mount {path}", f"{path}: mounted from {found.source}, wanted {mount['source']}; unmount it and run again"
        )
    if found.proto != mount["proto"]:
        return Problem(
            f"mount {path}",
            f"{path}: mounted without {mount['proto']}: proto={found.proto or 'none'} in /proc/mounts, wanted "
            f"{mount['proto']}; unmount it, check the server's RDMA port (/proc/fs/nfsd/portlist there), mount again",
        )
    return None


def _start(host: Host, mount: Json) -> None:
    services.settle(host)
    name, path = unit_of(mount["path"]), mount["path"]
    result = host.run("systemctl", "start", name, seconds=MOUNT_SECONDS)
    found = {entry.path: entry for entry in parse_mounts(host.text("/proc/mounts"))}.get(path)
    if not result.ok or found is None:
        log = host.run("journalctl", "--no-pager", "--quiet", "-o", "cat", "-n", "4", "-u", name)
        said = " / ".join(line.strip() for line in log.out.splitlines() if line.strip())[-400:]
        raise CommandError(
            f"{path}: mount failed: {result.failure() or 'no line in /proc/mounts'}; wanted {mount['source']} over "
            f"{mount['proto']}; its log ends: {said or '(empty)'}; check the server and the storage network"
        )
    problem = verify(mount, found)
    if problem:
        raise CommandError(problem.message)


def _remount(host: Host, mount: Json) -> None:
    result = host.run("umount", mount["path"], seconds=60.0)
    if not result.ok:
        raise CommandError(
            f"{mount['path']}: cannot be unmounted ({result.failure()}); `fuser -vm {mount['path']}` names its users"
        )
    _start(host, mount)


OPERATIONS: dict[str, Any] = {**files.OPERATIONS, "mount": _start, "remount": _remount}
