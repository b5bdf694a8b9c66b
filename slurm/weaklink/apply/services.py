"""Services of the area ``files``: enabled, running, and running with the configuration that is on disk.

A service of the desired state is ``{"name", "enabled"?, "state"?: "started"|"stopped", "restart_on"?: [path],
"reload_on"?: [path], "disruptive"?: bool}``. What a daemon read when it last (re)started is remembered as a hash of the
named files in ``/var/lib/weaklink/apply/services.json``, so that a run that was killed between writing and restarting
is made good by the next one. ``disruptive`` marks restarts that jobs on the node can feel.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from weaklink.apply.host import CommandError, Host
from weaklink.apply.plan import Json, Plan, Step

RECORD = "/var/lib/weaklink/apply/services.json"
START_SECONDS = 180.0
_PROPERTIES = "LoadState,ActiveState,UnitFileState,NeedDaemonReload"
_UP = ("active", "reloading", "activating")


def unit(name: str) -> str:
    """Return a unit's full name."""
    return name if "." in name else f"{name}.service"


def observe(host: Host, wanted: list[Json]) -> dict[str, Any]:
    """Return {"units": {unit: its properties}, "record": {unit: {"restart": hash, "reload": hash}}}."""
    if not wanted:
        return {"units": {}, "record": {}}
    names = [unit(service["name"]) for service in wanted]
    out = host.must("systemctl", "show", f"--property={_PROPERTIES}", *names)
    blocks = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in out.strip().split("\n\n")]
    if len(blocks) != len(names):
        raise CommandError(f"systemctl show told of {len(blocks)} units instead of {len(names)}")
    return {"units": dict(zip(names, blocks)), "record": _record(host)}


def _record(host: Host) -> dict[str, Any]:
    try:
        record = json.loads(host.text(RECORD) or "{}")
    except ValueError:  # a damaged record only costs restarts
        return {}
    return record if isinstance(record, dict) else {}


def fingerprint(paths: list[str], contents: dict[str, bytes | None]) -> str:
    """Return a short hash of the wanted contents of ``paths``."""
    digest = hashlib.sha256()
    for path in paths:
        content = contents.get(path)
        digest.update(f"{path}\0{len(content or b'')}\0".encode() + (content or b""))
    return digest.hexdigest()[:16]


def plan(wanted: list[Json], observed: dict[str, Any], contents: dict[str, bytes | None], changed: set[str]) -> Plan:
    """Return the steps that bring services in line; ``changed`` are the paths that this run writes. Pure."""
    steps: list[Step] = []
    units = observed["units"]
    if any(state.get("NeedDaemonReload") == "yes" for state in units.values()) and not any(
        path.startswith("/etc/systemd/system/") for path in changed
    ):
        steps.append(Step("systemd daemon-reload", "older unit files", "those on disk", ("daemon-reload",)))
    for service in wanted:
        name = unit(service["name"])
        steps += _enable(service, name, units[name])
    for service in wanted:
        name = unit(service["name"])
        steps += _run(service, name, units[name], observed["record"].get(name), contents, changed)
    return Plan(steps, [])


def _enable(service: Json, name: str, state: Json) -> list[Step]:
    if service.get("enabled") is None:
        return []
    found = state.get("UnitFileState") or "disabled"
    if service["enabled"] == (found in ("enabled", "static", "indirect", "alias", "generated")):
        return []
    verb = "enable" if service["enabled"] else "disable"
    return [Step(f"service {name} {verb}d", found, f"{verb}d", (verb, name))]


def _run(
    service: Json, name: str, state: Json, record: Json | None, contents: dict[str, bytes | None], changed: set[str]
) -> list[Step]:
    found = state.get("ActiveState", "inactive")
    if service.get("state") == "stopped":
        if found not in _UP:
            return []
        return [Step(f"service {name} stopped", found, "stopped", ("stop", name), disruptive=True)]
    if service.get("state") != "started":
        return []
    hashes = {
        "restart": fingerprint(service.get("restart_on", []), contents),
        "reload": fingerprint(service.get("reload_on", []), contents),
    }
    if found not in _UP:
        return [Step(f"service {name} started", found, "started", ("start", name, hashes))]
    record = record or {}
    for verb in ("restart", "reload"):
        paths = service.get(f"{verb}_on", [])
        if paths and (record.get(verb) != hashes[verb] or changed.intersection(paths)):
            disruptive = verb == "restart" and bool(service.get("disruptive"))
            return [
                Step(f"service {name} {verb}ed", "older settings", "those on disk", (verb, name, hashes), disruptive)
            ]
    return []


# ---- operations


def _systemctl(host: Host, verb: str, name: str) -> None:
    settle(host)
    result = host.run("systemctl", verb, name, seconds=START_SECONDS)
    if result.ok:
        return
    log = host.run("journalctl", "--no-pager", "--quiet", "-o", "cat", "-n", "6", "-u", name)
    lines = " / ".join(line.strip() for line in log.out.splitlines() if line.strip())[-600:]
    raise CommandError(f"systemctl {verb} {name}: {result.failure()}; its log ends: {lines or '(empty)'}")


def settle(host: Host) -> None:
    """Let systemd read unit files that were just written."""
    if host.stale_units:
        host.must("systemctl", "daemon-reload", seconds=START_SECONDS)
        host.stale_units = False


def _remember(host: Host, name: str, hashes: Json) -> None:
    record = _record(host)
    record[name] = hashes
    host.write(RECORD, (json.dumps(record, indent=1, sort_keys=True) + "\n").encode(), "root", "root", 0o600)


def _install(host: Host, verb: str, name: str) -> None:
    """Enable or disable a unit; systemd reads the result once, together with other changed unit files.

    A start script of the old kind beside the unit is left alone: systemd does not use it, and its tool takes seconds.
    """
    host.must("env", "SYSTEMCTL_SKIP_SYSV=1", "systemctl", "--no-reload", verb, name, seconds=START_SECONDS)
    host.stale_units = True


def _start(host: Host, name: str, hashes: Json) -> None:
    _systemctl(host, "start", name)
    _remember(host, name, hashes)


def _restart(host: Host, name: str, hashes: Json) -> None:
    _systemctl(host, "restart", name)
    _remember(host, name, hashes)


def _reload(host: Host, name: str, hashes: Json) -> None:
    _systemctl(host, "reload", name)
    _remember(host, name, hashes)


def _daemon_reload(host: Host) -> None:
    host.stale_units = True
    settle(host)


OPERATIONS = {
    "daemon-reload": _daemon_reload,
    "enable": lambda host, name: _install(host, "enable", name),
    "disable": lambda host, name: _install(host, "disable", name),
    "start": _start,
    "restart": _restart,
    "reload": _reload,
    "stop": lambda host, name: _systemctl(host, "stop", name),
}
