"""Area ``database``: MariaDB databases whose one user is a system account, known by its socket: no password anywhere.

Desired: ``{"databases": [{"name", "user"}]}``. Names are plain words (letters, digits, underscore).
"""

from __future__ import annotations

from typing import Any

from weaklink.apply.host import CommandError, Host
from weaklink.apply.plan import Json, Plan, Problem, Step

_SECONDS = 60.0
_GRANTS = "SELECT CONCAT(User, ' ', Db) FROM mysql.db WHERE Host = 'localhost'"


def _sql(host: Host, statement: str) -> str:
    return host.must("mariadb", "--batch", "--skip-column-names", f"--execute={statement}", seconds=_SECONDS)


def observe(host: Host, desired: Json) -> Json:  # noqa: ARG001 - areas share one shape
    """Return {"up": bool, "grants": ["user database"]}; a server that is not running has none."""
    if not host.run("systemctl", "is-active", "--quiet", "mariadb.service").ok:
        return {"up": False, "grants": []}
    return {"up": True, "grants": [line.replace("\\", "") for line in _sql(host, _GRANTS).splitlines()]}


def plan(desired: Json, observed: Json) -> Plan:
    """Return the steps from ``observed`` to ``desired``. Pure."""
    steps, problems = [], []
    for entry in desired["databases"]:
        name, user = str(entry["name"]), str(entry["user"])
        if not all(word.isascii() and word.replace("_", "").isalnum() for word in (name, user)):
            problems.append(
                Problem(
                    f"database {name}",
                    f"{name!r} for {user!r}: wanted letters, digits and underscores; choose other names",
                )
            )
        elif f"{user} {name}" not in observed["grants"]:
            steps.append(Step(f"database {name}", None, f"granted to {user}", ("grant", name, user)))
    return Plan(steps, problems)


def _grant(host: Host, name: str, user: str) -> None:
    if not host.run("systemctl", "is-active", "--quiet", "mariadb.service").ok:
        raise CommandError("mariadb.service is not active; `journalctl -u mariadb` says why")
    pattern = name.replace("_", "\\_")  # an underscore in a grant is a wildcard
    _sql(
        host,
        f"CREATE DATABASE IF NOT EXISTS {name}; CREATE USER IF NOT EXISTS {user}@localhost IDENTIFIED VIA unix_socket; "
        f"GRANT ALL ON `{pattern}`.* TO {user}@localhost",
    )


OPERATIONS: dict[str, Any] = {"grant": _grant}
