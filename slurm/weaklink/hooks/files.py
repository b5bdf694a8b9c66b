"""The hooks' files: a log of JSON lines, evidence, and a little state.

All are root's and written atomically; none is trusted when it is read.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

_MAX_LINE = 16_384
_MAX_TEXT = 500
_MAX_LOG = 16 * 1024 * 1024
_MAX_STATE = 1024 * 1024
_KEEP_EVIDENCE = 256


class Places(NamedTuple):
    """Where the hooks' files lie. Only code can give others (tests do); no variable of the environment can."""

    expected: str = "/etc/weaklink/expected.json"
    key: str = "/etc/weaklink/token.key"
    state: str = "/var/lib/weaklink/state"
    evidence: str = "/var/lib/weaklink/evidence"
    log: str = "/var/log/weaklink/guard.log"


def now_text() -> str:
    """Return the time as 2026-11-29T14:37:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def new_id(node: str) -> str:
    """Return a new evidence id: time, node, and something that no other has."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{node}-{os.urandom(4).hex()}"


def _make_folder(path: str) -> None:
    if not os.path.isdir(path):  # noqa: PTH112 - pathlib is slow to load
        _make_folder(path.rpartition("/")[0] or "/")
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)  # noqa: PTH102 - makedirs would give parents another mode


def write_atomic(path: str, data: Mapping[str, Any]) -> None:
    """Write JSON so that a reader, or a crash, sees the old file or the new one."""
    folder = path.rpartition("/")[0]
    _make_folder(folder)
    draft = f"{path}.{os.getpid()}.new"
    left = json.dumps(data, separators=(",", ":")).encode("ascii")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            while left:  # a disk that fills up takes a part first and says no only after that
                left = left[os.write(fd, left) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(draft, path)  # noqa: PTH105 - pathlib is slow to load
    except OSError:
        with suppress(OSError):
            os.unlink(draft)  # noqa: PTH108 - pathlib is slow to load
        raise


def read_state(path: str) -> dict[str, Any]:
    """Return the JSON object in ``path``; an empty one when it is not there or is broken."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow to load
            data = json.loads(file.read(_MAX_STATE))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def log(places: Places, record: Mapping[str, Any]) -> None:
    """Append one JSON line to the log. What cannot be logged is lost: a full disk must not stop a job."""
    line = json.dumps({"time": now_text(), **record}, separators=(",", ":"))
    if len(line) > _MAX_LINE:
        short = {
            key: value[:_MAX_TEXT] if isinstance(value, str) else value
            for key, value in record.items()
            if not isinstance(value, (list, dict))
        }
        line = json.dumps({"time": now_text(), **short, "cut": True}, separators=(",", ":"))
    with suppress(OSError):
        _make_folder(places.log.rpartition("/")[0])
        fd = os.open(places.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size > _MAX_LOG:
                os.replace(places.log, places.log + ".1")  # noqa: PTH105 - pathlib is slow to load
            os.write(fd, line.encode("ascii") + b"\n")
        finally:
            os.close(fd)


def write_evidence(places: Places, record: Mapping[str, Any]) -> None:
    """Write one evidence file, named by its id, and let the oldest ones go."""
    with suppress(OSError):
        write_atomic(f"{places.evidence}/{record['id']}.json", record)
        names = sorted(name for name in os.listdir(places.evidence) if name.endswith(".json"))  # noqa: PTH208 - as above
        for name in names[:-_KEEP_EVIDENCE]:
            os.unlink(f"{places.evidence}/{name}")  # noqa: PTH108 - pathlib is slow to load


@contextmanager
def lock(path: str, *, wait: bool) -> Iterator[bool]:
    """Hold a lock file; yield False when somebody else holds it and ``wait`` is false. It ends with this process."""
    import fcntl

    _make_folder(path.rpartition("/")[0])
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(fd)
