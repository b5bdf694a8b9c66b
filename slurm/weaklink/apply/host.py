"""The node as the areas see it: files below a root, commands through a runner.

With a ``root`` other than "/" every file access stays below it and commands are whatever the given runner makes of
them: that is how plans and writes are tested without a machine.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from weaklink.model.process import Runner, RunResult

COMMAND_SECONDS = 30.0
_CHUNK = 65536  # bytes; /proc/sys refuses reads of megabytes


class CommandError(Exception):
    """A command that had to work did not; the text says which and how."""


class Stat(NamedTuple):
    """Kind ("file", "directory", "link", "other"), permission bits, owner and group by name, link target."""

    kind: str
    mode: int
    owner: str
    group: str
    target: str


class Host:
    """Reads and changes one node."""

    def __init__(self, run: Runner, root: str = "/") -> None:
        self._run = run
        self.root = root.rstrip("/")
        self._names: dict[str, dict[str, int]] = {}
        self.stale_units = False  # unit files were written that systemd has not read yet
        self.stale_networks = False  # the same of networkd

    def path(self, path: str) -> str:
        """Return where ``path`` of the node lies for this process."""
        return f"{self.root}{path}"

    # ---- commands

    def run(self, *argv: str, seconds: float = COMMAND_SECONDS) -> RunResult:
        """Run a command to its end or its deadline (``seconds``)."""
        return self._run(argv, seconds)

    def must(self, *argv: str, seconds: float = COMMAND_SECONDS) -> str:
        """Run a command that has to work and return its output."""
        result = self._run(argv, seconds)
        if not result.ok:
            raise CommandError(f"`{' '.join(argv)}`: {result.failure()}")
        return result.out

    # ---- reading

    def read(self, path: str) -> bytes | None:
        """Return a file's content, None where there is none."""
        try:
            with open(self.path(path), "rb") as stream:
                return b"".join(iter(lambda: stream.read(_CHUNK), b""))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def text(self, path: str) -> str:
        """Return a file's content as text; empty where there is none or it cannot be read."""
        try:
            return (self.read(path) or b"").decode(errors="replace")
        except OSError:
            return ""

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none where there is no such directory."""
        try:
            return sorted(os.listdir(self.path(path)))
        except OSError:
            return []

    def stat(self, path: str) -> Stat | None:
        """Return what lies at ``path`` (links are not followed), None where nothing does."""
        try:
            info = os.lstat(self.path(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        kind, target = "other", ""
        if stat.S_ISLNK(info.st_mode):
            kind, target = "link", os.readlink(self.path(path))
        elif stat.S_ISREG(info.st_mode):
            kind = "file"
        elif stat.S_ISDIR(info.st_mode):
            kind = "directory"
        owner = self._name("passwd", info.st_uid)
        return Stat(kind, stat.S_IMODE(info.st_mode), owner, self._name("group", info.st_gid), target)

    def ids(self, database: str) -> dict[str, int]:
        """Return name → number of the node's ``passwd`` or ``group`` file."""
        if database not in self._names:
            fields = [line.split(":") for line in self.text(f"/etc/{database}").splitlines()]
            self._names[database] = {row[0]: int(row[2]) for row in fields if row[2:] and row[2].isdigit()}
        return self._names[database]

    def forget_ids(self) -> None:
        """Read users and groups anew the next time: some were just made."""
        self._names.clear()

    def _name(self, database: str, number: int) -> str:
        for name, value in self.ids(database).items():
            if value == number:
                return name
        return "root" if number == 0 else str(number)

    def _number(self, database: str, name: str) -> int:
        numbers = self.ids(database)
        if name in numbers:
            return numbers[name]
        if name == "root":
            return 0
        if name.isdigit():
            return int(name)
        found = self._run(("getent", database, name), COMMAND_SECONDS)  # users of a directory service
        fields = found.out.split(":")
        if found.ok and fields[2:] and fields[2].isdigit():
            return int(fields[2])
        kind = "user" if database == "passwd" else "group"
        raise CommandError(f"no {kind} {name!r} on this node; create it (or install the package that does) first")

    # ---- writing

    def write(self, path: str, content: bytes, owner: str, group: str, mode: int) -> None:
        """Put ``content`` at ``path``; at any moment, also after a power cut, either the old or the new is there."""
        uid, gid = self._number("passwd", owner), self._number("group", group)
        target = self.path(path)
        folder = os.path.dirname(target)
        os.makedirs(folder, mode=0o755, exist_ok=True)
        temporary = f"{folder}/.{os.path.basename(target)}.weaklink-{os.getpid()}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fchown(stream.fileno(), uid, gid)
                os.fchmod(stream.fileno(), mode)
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
        self.sync_directory(folder)

    @staticmethod
    def sync_directory(folder: str) -> None:
        """Make a rename in ``folder`` (a path of this process) outlast a power cut."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def set_attributes(self, path: str, owner: str, group: str, mode: int) -> None:
        """Give a file or directory its owner, group and permission bits."""
        uid, gid = self._number("passwd", owner), self._number("group", group)
        os.chown(self.path(path), uid, gid, follow_symlinks=False)
        os.chmod(self.path(path), mode)

    def make_directory(self, path: str, owner: str, group: str, mode: int) -> None:
        """Create a directory with its parents (those root's, 0755)."""
        os.makedirs(self.path(path), mode=0o755, exist_ok=True)
        self.set_attributes(path, owner, group, mode)

    def link(self, path: str, target: str) -> None:
        """Point the symbolic link ``path`` at ``target``, replacing an older one in one step."""
        full = self.path(path)
        os.makedirs(os.path.dirname(full), mode=0o755, exist_ok=True)
        temporary = f"{full}.weaklink-{os.getpid()}"
        if os.path.lexists(temporary):
            os.unlink(temporary)
        os.symlink(target, temporary)
        os.replace(temporary, full)
        self.sync_directory(os.path.dirname(full))

    def remove(self, path: str) -> None:
        """Remove a file or link; quiet where there is none."""
        try:
            os.unlink(self.path(path))
        except FileNotFoundError:
            return
