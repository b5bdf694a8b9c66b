"""Area ``accounts``: Slurm's cluster, QOS, accounts and users in its database, through sacctmgr.

Desired: ``{"cluster", "qos": [{"name", "priority"?}],
"accounts": [{"name", "description"?, "qos"?: [name], "users": [name]}]}``.
Only what is named is looked at; other accounts and users are somebody else's. When slurmdbd does not answer, everything
is still to be made: check mode on a fresh node says so, and a real run waits for slurmdbd first.
"""

from __future__ import annotations

import time
from typing import Any

from weaklink.apply.host import CommandError, Host
from weaklink.apply.plan import Json, Plan, Step

_SECONDS = 30.0
_WAIT_SECONDS = 120.0


def _rows(host: Host, *argv: str) -> list[list[str]]:
    out = host.must("sacctmgr", "--noheader", "--parsable2", *argv, seconds=_SECONDS)
    return [line.split("|") for line in out.splitlines() if line]


def observe(host: Host, desired: Json) -> Json:
    """Return clusters, QOS with priority, accounts, and [account, user, qos list] rows of the cluster."""
    empty: Json = {"up": False, "clusters": [], "qos": {}, "accounts": [], "associations": []}
    if not host.run("systemctl", "is-active", "--quiet", "slurmdbd.service").ok:
        return empty
    try:
        cluster = str(desired["cluster"])
        return {
            "up": True,
            "clusters": [row[0] for row in _rows(host, "show", "cluster", "format=cluster")],
            "qos": {row[0]: int(row[1] or 0) for row in _rows(host, "show", "qos", "format=name,priority")},
            "accounts": [row[0] for row in _rows(host, "show", "account", "format=account")],
            "associations": _rows(host, "show", "associations", f"cluster={cluster}", "format=account,user,qos"),
        }
    except CommandError:
        return empty  # active but not answering yet


def plan(desired: Json, observed: Json) -> Plan:
    """Return the steps from ``observed`` to ``desired``. Pure."""
    cluster, steps = desired["cluster"], []
    if cluster not in observed["clusters"]:
        steps.append(_step(f"cluster {cluster}", None, cluster, "add", "cluster", cluster))
    for qos in desired.get("qos", []):
        name, priority = qos["name"], int(qos.get("priority", 0))
        if name not in observed["qos"]:
            steps.append(_step(f"qos {name}", None, f"priority {priority}", "add", "qos", name, f"priority={priority}"))
        elif observed["qos"][name] != priority:
            before = f"priority {observed['qos'][name]}"
            change = ("modify", "qos", name, "set", f"priority={priority}")
            steps.append(_step(f"qos {name}", before, f"priority {priority}", *change))
    for account in desired.get("accounts", []):
        steps += _account(cluster, account, observed)
    return Plan(steps, [])


def _account(cluster: str, account: Json, observed: Json) -> list[Step]:
    name, steps = account["name"], []
    wanted = sorted({"normal", *account.get("qos", [])})
    own = [row for row in observed["associations"] if row[0] == name and not row[1]]
    if name not in observed["accounts"] or not own:
        description = f"description={account.get('description', name)}"
        added = ("add", "account", name, f"cluster={cluster}", description, f"qos={','.join(wanted)}")
        steps.append(_step(f"account {name}", None, ",".join(wanted), *added))
    elif set(wanted) - set(own[0][2].split(",")):
        change = ("modify", "account", name, f"cluster={cluster}", "set", f"qos={','.join(wanted)}")
        steps.append(_step(f"account {name} qos", own[0][2], ",".join(wanted), *change))
    users = {row[1] for row in observed["associations"] if row[0] == name}
    for user in account.get("users", []):
        if user not in users:
            add = ("add", "user", user, f"cluster={cluster}", f"account={name}")
            steps.append(_step(f"account {name} user {user}", None, user, *add))
    return steps


def _step(what: str, before: Any, after: Any, *argv: str) -> Step:
    return Step(what, before, after, ("sacctmgr", *argv))


def _sacctmgr(host: Host, *argv: str) -> None:
    """Make one change, after slurmdbd has answered once (it needs some seconds after its start)."""
    end = time.monotonic() + _WAIT_SECONDS
    while not host.run("sacctmgr", "--noheader", "show", "cluster", seconds=_SECONDS).ok:
        if time.monotonic() > end:
            raise CommandError(
                f"slurmdbd did not answer within {_WAIT_SECONDS:.0f} s; `journalctl -u slurmdbd` says why"
            )
        time.sleep(1.0)
    host.must("sacctmgr", "--immediate", "--quiet", *argv, seconds=_SECONDS)


OPERATIONS: dict[str, Any] = {"sacctmgr": _sacctmgr}
