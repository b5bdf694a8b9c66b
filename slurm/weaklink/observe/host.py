"""The one way in which a node is read: files under a root, and commands.

In tests a fake tree or fake tools stand in for a node.
"""

import os
from typing import Optional

from weaklink.model.process import Runner
from weaklink.observe.command import run as run_command

MAX_FILE = 4 * 1024 * 1024


class Host:
    """A node to read: ``root`` is put before every path, ``run`` runs its commands."""

    def __init__(self, root: str = "/", run: Runner = run_command) -> None:
        self.root = root.rstrip("/")
        self.run = run

    def path(self, path: str) -> str:
        """Return where ``path`` (absolute) really lies."""
        return self.root + path

    def read(self, path: str) -> Optional[str]:
        """Return the text of a file, or None when it cannot be read (a port that is going away says EINVAL)."""
        try:
            fd = os.open(self.path(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        parts, size = [], 0
        try:
            while size < MAX_FILE:
                part = os.read(fd, 65_536)
                if not part:
                    break
                parts.append(part)
                size += len(part)
        except OSError:
            return None
        finally:
            os.close(fd)
        if size >= MAX_FILE:
            return None  # half a file would be half a truth
        return b"".join(parts).decode("utf-8", "surrogateescape")

    def word(self, path: str) -> Optional[str]:
        """Return the text of a one-line file without the line's end, or None."""
        text = self.read(path)
        return None if text is None else text.strip()

    def listdir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none when it is not there.

        Any other trouble (too many open files, an I/O error) is an OSError: "not there" would be a verdict.
        """
        try:
            return sorted(os.listdir(self.path(path)))  # noqa: PTH208 - pathlib is slow to load
        except (FileNotFoundError, NotADirectoryError):
            return []

    def exists(self, path: str) -> bool:
        """Return True when there is something at ``path``; an OSError when that cannot be told."""
        try:
            os.stat(self.path(path))  # noqa: PTH116 - pathlib is slow to load
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def realpath(self, path: str) -> str:
        """Return where links lead, seen from the root."""
        return os.path.realpath(self.path(path))[len(os.path.realpath(self.root)) if self.root else 0 :]
