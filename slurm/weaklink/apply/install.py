"""Area ``install``: this very program, put where the hooks of Slurm find it.

Desired: ``{"release": "<hash>", "prefix": "/usr/lib/weaklink", "launcher": "/usr/bin/weaklink"}``. The running program
was unpacked into a folder named by its hash and compiled there. It is copied below ``prefix``, and ``current`` is
switched to it in one step, so that a hook that starts at any moment finds a whole release. The release before stays for
hooks that still run.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import Any

from weaklink.apply import files
from weaklink.apply.host import CommandError, Host
from weaklink.apply.plan import Json, Plan, Step, join

_ENTRY_SCRIPTS = ("prolog", "epilog", "health")
_RELEASE = re.compile(r"[0-9a-f]{16,64}")


def _files(desired: Json) -> Json:
    launcher = (
        f'#!/bin/sh\n# Written by weaklink\'s playbooks.\nexec /usr/bin/python3 -I {desired["prefix"]}/current "$@"\n'
    )
    return {
        "directories": [{"path": desired["prefix"], "mode": "0755"}],
        "files": [{"path": desired["launcher"], "content": launcher, "mode": "0755"}],
    }


def observe(host: Host, desired: Json) -> Json:
    """Return the whole releases, newest first, the one that ``current`` names, and the launcher."""
    prefix = desired["prefix"]
    releases = [name for name in host.list(prefix) if _RELEASE.fullmatch(name)]
    releases.sort(key=lambda name: os.lstat(host.path(f"{prefix}/{name}")).st_mtime_ns, reverse=True)
    current = host.stat(f"{prefix}/current")
    return {
        "releases": releases,
        "current": current.target if current is not None else None,
        "files": files.observe(host, _files(desired)),
    }


def plan(desired: Json, observed: Json) -> Plan:
    """Return the steps from ``observed`` to ``desired``. Pure."""
    prefix, release, current = desired["prefix"], desired["release"], observed["current"]
    steps = []
    if release not in observed["releases"]:
        steps.append(Step(f"release {release}", None, f"{prefix}/{release}", ("copy", prefix, release)))
    if current != release:
        steps.append(Step(f"link {prefix}/current", current, release, ("link", f"{prefix}/current", release)))
    others = [name for name in observed["releases"] if name != release]
    others.sort(key=lambda name: name != current)  # the one in use stays: its hooks may still run
    old = others[1:]
    steps += [Step(f"release {name}", name, None, ("discard", prefix, name)) for name in old]
    return join([files.plan(_files(desired), observed["files"]), Plan(steps, [])])


def _copy(host: Host, prefix: str, release: str) -> None:
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if os.path.basename(source) != release:
        raise CommandError(
            f"this program runs from {source}, not from a folder named {release}; run it through the playbooks"
        )
    folder = host.path(prefix)
    temporary = f"{folder}/.new-{os.getpid()}"
    for leftover in host.list(prefix):
        if leftover.startswith((".new-", ".old-")):  # of a run that was killed
            shutil.rmtree(f"{folder}/{leftover}")
    shutil.copytree(source, temporary, symlinks=True)
    for name in _ENTRY_SCRIPTS:
        if os.path.exists(f"{temporary}/{name}"):
            os.chmod(f"{temporary}/{name}", 0o755)  # noqa: S103 - slurmd and people start them
    os.utime(temporary)
    os.sync()
    os.rename(temporary, f"{folder}/{release}")
    host.sync_directory(folder)


def _discard(host: Host, prefix: str, release: str) -> None:
    folder = host.path(f"{prefix}/{release}")
    os.rename(folder, f"{host.path(prefix)}/.old-{release}")
    shutil.rmtree(f"{host.path(prefix)}/.old-{release}")


OPERATIONS: dict[str, Any] = {**files.OPERATIONS, "copy": _copy, "discard": _discard}
