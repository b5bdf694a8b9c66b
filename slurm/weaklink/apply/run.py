"""Run one area: observe, plan, refuse or change, look again."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from weaklink.apply import jobs, nics, services
from weaklink.apply.host import CommandError, Host
from weaklink.apply.plan import Json, Plan, Step

# area -> module with observe(host, desired), plan(desired, observed), OPERATIONS, and optionally facts(host, desired)
# for what the caller wants to know, finish(host), SETTLE for how many seconds a change may take to show.
AREAS = {
    "files": "weaklink.apply.files",
    "networks": "weaklink.apply.networks",
    "rdma": "weaklink.apply.rdma",
    "mounts": "weaklink.apply.mounts",
    "nccl": "weaklink.apply.nccl",
    "keys": "weaklink.apply.keys",
    "database": "weaklink.apply.database",
    "accounts": "weaklink.apply.accounts",
    "install": "weaklink.apply.install",
    "verify": "weaklink.apply.verify",
}
_SETTLE_SECONDS = 5.0
_POLL_SECONDS = 0.5


def run_area(host: Host, area: str, desired: Json, *, check: bool, allow_disruptive: bool = False) -> Json:
    """Bring one area to ``desired`` (or, in check mode, say what would change) and return the result object.

    The object has "changes", "pending" (disruptive steps that were not made because jobs run on the node), "failed",
    and where the area has something to tell, "facts".
    """
    module = import_module(AREAS[area])
    desired = nics.placed(host, desired)
    try:
        plan: Plan = module.plan(desired, module.observe(host, desired))
    except (CommandError, OSError) as error:
        return {"changes": [], "pending": [], "failed": [{"what": area, "message": explain(error)}]}
    steps, pending = _hold_back(host, plan.steps, allow_disruptive)
    failed = [problem.as_dict() for problem in plan.problems]
    done: list[Step] = []
    if not check and not failed:
        done, failed = _execute(host, module.OPERATIONS, steps)
        if done and not failed:
            failed = _finish(host, module) or _unfinished(host, module, desired, {step.what for step, _ in pending})
    applied = {step.what for step in done}
    shown = steps if check else done
    result: Json = {
        "changes": [step.as_dict(applied=step.what in applied) for step in shown],
        "pending": [{**step.as_dict(applied=False), "message": why} for step, why in pending],
        "failed": failed,
    }
    if hasattr(module, "facts"):
        try:
            result["facts"] = module.facts(host, desired)
        except OSError as error:
            result["failed"] = [*failed, {"what": area, "message": explain(error)}]
    return result


def explain(error: CommandError | OSError) -> str:
    """Return what went wrong in one line: for files which one and why, without the number of the error."""
    if isinstance(error, CommandError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _hold_back(host: Host, steps: list[Step], allow_disruptive: bool) -> tuple[list[Step], list[tuple[Step, str]]]:
    """Split off disruptive steps when jobs run here, or when nobody can tell."""
    if allow_disruptive or not any(step.disruptive for step in steps):
        return steps, []
    why = jobs.in_the_way(host)
    if not why:
        return steps, []
    return [step for step in steps if not step.disruptive], [(step, why) for step in steps if step.disruptive]


def _execute(host: Host, operations: Any, steps: list[Step]) -> tuple[list[Step], list[Json]]:
    """Make the steps in order; stop at the first that fails."""
    done: list[Step] = []
    for step in steps:
        try:
            operations[step.op[0]](host, *step.op[1:])
        except CommandError as error:
            return done, [{"what": step.what, "message": str(error)}]
        except OSError as error:
            return done, [{"what": step.what, "message": f"{step.what}: {explain(error)}"}]
        done.append(step)
    return done, []


def _finish(host: Host, module: Any) -> list[Json]:
    """Let systemd, and what else the area wrote for, read its new files."""
    try:
        services.settle(host)
        if hasattr(module, "finish"):
            module.finish(host)
    except (CommandError, OSError) as error:
        return [{"what": "reading the new files", "message": explain(error)}]
    return []


def _unfinished(host: Host, module: Any, desired: Json, held: set[str]) -> list[Json]:
    """Look again until nothing is left to do; return what still is not as wanted when time is up."""
    end = time.monotonic() + float(getattr(module, "SETTLE", _SETTLE_SECONDS))
    while True:
        host.forget_ids()
        try:
            plan: Plan = module.plan(desired, module.observe(host, desired))
        except (CommandError, OSError) as error:
            return [{"what": "second look", "message": explain(error)}]
        left = [step for step in plan.steps if step.what not in held]
        if not left and not plan.problems:
            return []
        if time.monotonic() > end:
            return [problem.as_dict() for problem in plan.problems] + [
                {
                    "what": step.what,
                    "message": f"{step.what}: changed, but a second look finds {step.before!r}, wanted {step.after!r}",
                }
                for step in left
            ]
        time.sleep(_POLL_SECONDS)
