"""At most one lab on a machine: who has it, and who may change it now."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from . import layout, network
from .errors import LabError

_RECORD = Path(layout.RUN_DIR, "owner.json")


class Owner(NamedTuple):
    """The checkout that started the running lab, and with how many compute nodes."""

    checkout: Path
    compute: int


def read() -> Owner | None:
    """Return the owner of the lab on this machine; None when there is none or its record is unreadable."""
    try:
        data = json.loads(_RECORD.read_text())
        return Owner(Path(data["checkout"]), int(data["compute"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def claim(checkout: Path, compute: int) -> None:
    """Record ``checkout`` as the owner; a LabError when another checkout's lab runs."""
    refuse_foreign(checkout)
    fresh = _RECORD.with_suffix(".new")
    fresh.write_text(json.dumps({"checkout": str(checkout), "compute": compute}) + "\n")
    fresh.rename(_RECORD)


def release() -> None:
    """Remove the record."""
    _RECORD.unlink(missing_ok=True)


def refuse_foreign(checkout: Path) -> None:
    """Raise a LabError when a lab of another checkout is up; one whose processes are all gone is nobody's."""
    owner = read()
    if owner is None or owner.checkout == checkout or not network.processes():
        return
    raise LabError(
        "another checkout's lab runs on this machine",
        found=f"the lab of {owner.checkout}",
        wanted="one lab a machine",
        todo=f"use that one, or end it first: make -C {owner.checkout} lab-down (or here: python -m lab down --force)",
    )


def require(checkout: Path) -> None:
    """Raise a LabError when ``checkout`` has no lab: it is another checkout's, or none was started."""
    refuse_foreign(checkout)
    owner = read()
    if owner is None or owner.checkout != checkout:
        raise LabError("the lab is not up", todo="make lab-up")


@contextmanager
def exclusive() -> Iterator[None]:
    """Hold the machine-wide lock: nobody else starts, ends, saves or resets a lab meanwhile."""
    if os.geteuid() != 0:
        raise LabError("the lab needs root: it makes a network namespace", found=f"user {os.geteuid()}", todo="sudo")
    Path(layout.RUN_DIR).mkdir(mode=0o755, exist_ok=True)
    with Path(layout.RUN_DIR, "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LabError(
                "somebody else is changing the lab at this moment",
                found=f"{layout.RUN_DIR}/lock is held",
                todo="wait for the other lab-up, lab-down or lab-reset, or end it",
            ) from error
        os.set_inheritable(lock.fileno(), False)
        yield
