"""A node for the tests of apply: a root folder, and tools that answer at the process boundary as the real ones do."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weaklink.apply.host import Host
from weaklink.apply.run import run_area
from weaklink.model.process import RunResult

from tests.unit.apply_fake_tools import Database, Networkd, Sacctmgr

# Where random starting points are tried: in memory, since every write waits for the disk.
_SHARED = Path("/dev/shm")  # noqa: S108 - folders in it are made by tempfile
MEMORY = _SHARED if _SHARED.is_dir() else None
# Only root can give files away; others test with what is their own.
OWNERS = {"root": os.geteuid(), "slurm": 64030} if os.geteuid() == 0 else {"root": os.geteuid()}
GROUPS = {"root": os.getegid(), "slurm": 64030} if os.geteuid() == 0 else {"root": os.getegid()}
UNITS = "/etc/systemd/system"


class FakeNode:
    """Files below ``root``; systemd, networkd, kernel links, mounts, Slurm and MariaDB in memory.

    ``changes`` lists every command that changed something, so that check mode can be held to none.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("etc/systemd/system", "etc/systemd/network", "proc/sys/kernel", "sys/bus/pci/devices"):
            (root / folder).mkdir(parents=True)
        for name, ids in (("passwd", OWNERS), ("group", GROUPS)):
            (root / "etc" / name).write_text("".join(f"{who}:x:{number}:\n" for who, number in ids.items()))
        (root / "proc/sys/kernel/hostname").write_text("c1\n")
        (root / "proc/mounts").write_text("proc /proc proc rw 0 0\n")
        self.known: set[str] = set()  # units that packages brought
        self.active: set[str] = set()
        self.enabled: set[str] = set()
        self.loaded: dict[str, str] = {}  # unit -> hash of the file that systemd has read
        self.broken: set[str] = set()  # units that do not start
        self.settings: dict[str, tuple[str, ...]] = {}  # unit -> files that it reads
        self.seen: dict[str, tuple[bytes | None, ...]] = {}  # unit -> what they held when it last read them
        self.servers: dict[str, str] = {}  # mount source -> transport that it really gives
        self.jobs: list[str] | None = []  # None: squeue does not answer
        self.networkd = Networkd(root)
        self.slurm = Sacctmgr()
        self.database = Database()
        self.changes: list[tuple[str, ...]] = []

    # ---- the areas

    def apply(self, area: str, desired: dict[str, Any], **options: bool) -> dict[str, Any]:
        """Run one area as the command line does."""
        options.setdefault("check", False)
        return run_area(Host(self.run, str(self.root)), area, desired, **options)

    def write(self, path: str, text: str) -> None:
        """Put a file on the node, as an admin would."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def read(self, path: str) -> str:
        """Return a file's text."""
        return (self.root / path.lstrip("/")).read_text()

    def digest(self) -> str:
        """Return a hash over every name, kind, owner, mode, time and content below the root."""
        digest = hashlib.sha256()
        for path in sorted([self.root, *self.root.rglob("*")]):
            info = path.lstat()
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            target = str(path.readlink()) if path.is_symlink() else ""
            row = (str(path), info.st_mode, info.st_uid, info.st_gid, info.st_mtime_ns, target, content)
            digest.update(repr(row).encode())
        return digest.hexdigest()

    # ---- the tools

    def run(self, argv: Sequence[str], seconds: float) -> RunResult:
        """Answer one command; what is not known here is not installed."""
        del seconds
        words = tuple(argv)
        if words[:2] == ("env", "SYSTEMCTL_SKIP_SYSV=1"):
            words = words[2:]
        tool = getattr(self, f"_{words[0].replace('-', '_')}", None)
        if tool is None:
            return RunResult(tuple(argv), None, "", "", "missing", 0.0)
        rc, out, err = tool(*words[1:])
        return RunResult(tuple(argv), rc, out, err, "exited", 0.0)

    def _systemctl(self, *words: str) -> tuple[int, str, str]:
        verb, names = words[0], [word for word in words[1:] if not word.startswith("-")]
        if verb == "--no-reload":
            verb, names = names[0], names[1:]
        if verb == "is-active":
            return (0 if names[0] in self.active else 3), "", ""
        if verb == "show":
            return 0, "\n\n".join(self._properties(name) for name in names) + "\n", ""
        self.changes.append(("systemctl", verb, *names))
        if verb == "daemon-reload":
            self.loaded = {name: self._file_hash(name) for name in self.loaded}
            return 0, "", ""
        return self._act(verb, names[0])

    def _act(self, verb: str, name: str) -> tuple[int, str, str]:
        if not self._there(name):
            return 5, "", f"Unit {name} not found."
        if verb in ("enable", "disable"):
            (self.enabled.add if verb == "enable" else self.enabled.discard)(name)
            return 0, "", ""
        if verb in ("stop", "restart"):
            self.active.discard(name)
            self._stopped(name)
        if verb == "stop":
            return 0, "", ""
        if name in self.broken or not self._started(name):
            return 1, "", f"Job for {name} failed."
        self.active.add(name)
        self.seen[name] = self.settings_of(name)
        self.loaded.setdefault(name, self._file_hash(name))
        return 0, "", ""

    def settings_of(self, name: str) -> tuple[bytes | None, ...]:
        """Return what the files that a unit reads hold now."""
        paths = [self.root / path.lstrip("/") for path in self.settings.get(name, ())]
        return tuple(path.read_bytes() if path.is_file() else None for path in paths)

    def _there(self, name: str) -> bool:
        return name in self.known or (self.root / f"etc/systemd/system/{name}").exists()

    def _file_hash(self, name: str) -> str:
        path = self.root / f"etc/systemd/system/{name}"
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""

    def _properties(self, name: str) -> str:
        state = "enabled" if name in self.enabled else "disabled" if self._there(name) else ""
        stale = name in self.loaded and self.loaded[name] != self._file_hash(name)
        return (
            f"LoadState={'loaded' if self._there(name) else 'not-found'}\n"
            f"ActiveState={'active' if name in self.active else 'inactive'}\n"
            f"UnitFileState={state}\nNeedDaemonReload={'yes' if stale else 'no'}"
        )

    def _started(self, name: str) -> bool:
        """Do what the unit's file says, as far as the kernel of these tests knows it."""
        path = self.root / f"etc/systemd/system/{name}"
        text = path.read_text() if path.exists() else ""
        link = re.search(r"rdma link add (\S+) type rxe netdev (\S+)'", text)
        if link:
            folder = self.root / "sys/class/infiniband" / link[1]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "parent").write_text(f"{link[2]}\n")
        if name.endswith(".mount"):
            fields = dict(re.findall(r"^(What|Where|Options)=(.*)$", text, re.MULTILINE))
            gives = self.servers.get(fields["What"])
            if gives is None:
                return False
            wanted = re.search(r"proto=(\w+)", fields["Options"])
            proto = gives if gives == "tcp" else wanted[1] if wanted else "tcp"
            row = f"{fields['What']} {fields['Where']} nfs4 rw,vers=4.2,proto={proto} 0 0\n"
            self.write("/proc/mounts", self.read("/proc/mounts") + row)
        return True

    def _stopped(self, name: str) -> None:
        path = self.root / f"etc/systemd/system/{name}"
        link = re.search(r"rdma link delete (\S+)'", path.read_text()) if path.exists() else None
        folder = self.root / "sys/class/infiniband" / link[1] if link else None
        if folder is not None and folder.exists():
            (folder / "parent").unlink()
            folder.rmdir()

    def _umount(self, path: str) -> tuple[int, str, str]:
        self.changes.append(("umount", path))
        rows = self.read("/proc/mounts").splitlines(keepends=True)
        self.write("/proc/mounts", "".join(row for row in rows if row.split(" ")[1] != path))
        return 0, "", ""

    def _journalctl(self, *_words: str) -> tuple[int, str, str]:
        return 0, "it said why\n", ""

    def _systemd_sysusers(self, path: str) -> tuple[int, str, str]:
        self.changes.append(("systemd-sysusers", path))
        for line in self.read(path).splitlines():
            if line.startswith("u "):
                name = line.split()[1]
                for file in ("passwd", "group"):
                    self.write(f"/etc/{file}", self.read(f"/etc/{file}") + f"{name}:x:{os.geteuid() + 990}:\n")
        return 0, "", ""

    def _getent(self, database: str, name: str) -> tuple[int, str, str]:
        del database, name
        return 2, "", ""

    def _squeue(self, *_words: str) -> tuple[int, str, str]:
        if self.jobs is None:
            return 1, "", "slurm_load_jobs error: Unable to contact slurm controller"
        return 0, "".join(f"{job}\n" for job in self.jobs), ""

    def _networkctl(self, *words: str) -> tuple[int, str, str]:
        self.changes.append(("networkctl", *words))
        return self.networkd.networkctl(*words)

    def _ip(self, *words: str) -> tuple[int, str, str]:
        if words == ("-json", "address", "show"):
            return 0, json.dumps(self.networkd.show()), ""
        self.changes.append(("ip", *words))
        return self.networkd.ip(*words)

    def _sacctmgr(self, *words: str) -> tuple[int, str, str]:
        if "slurmdbd.service" not in self.active:
            return 1, "", "Connection refused"
        if "show" not in words:
            self.changes.append(("sacctmgr", *words))
        return self.slurm.run([word for word in words if not word.startswith("--")])

    def _mariadb(self, *words: str) -> tuple[int, str, str]:
        statement = words[-1].removeprefix("--execute=")
        if not statement.startswith("SELECT"):
            self.changes.append(("mariadb", statement))
        return self.database.run(statement)
