"""What a plan is: steps, problems, and the text that shows a difference. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, NamedTuple

Json = dict[str, Any]
MAX_DIFF_LINES = 400


class Step(NamedTuple):
    """One change to make.

    ``what`` names it and is the same in check mode and in the real run; ``before`` and ``after`` are short JSON values;
    ``disruptive`` marks what jobs on the node can feel; ``op`` is the operation and its arguments, for the area's table
    of operations; ``diff`` is a unified diff for files.
    """

    what: str
    before: Any
    after: Any
    op: tuple[Any, ...]
    disruptive: bool = False
    diff: str = ""

    def as_dict(self, applied: bool) -> Json:
        """Return the change as the object that ``weaklink apply --json`` prints."""
        out: Json = {
            "what": self.what,
            "from": self.before,
            "to": self.after,
            "disruptive": self.disruptive,
            "applied": applied,
        }
        if self.diff:
            out["diff"] = self.diff
        return out


class Problem(NamedTuple):
    """Something that cannot be brought about: what it is and one line an engineer can act on."""

    what: str
    message: str

    def as_dict(self) -> Json:
        """Return the problem as the object that ``weaklink apply --json`` prints."""
        return {"what": self.what, "message": self.message}


class Plan(NamedTuple):
    """Steps in the order in which they are made, and what stands in the way."""

    steps: list[Step]
    problems: list[Problem]

    def __add__(self, other: Plan) -> Plan:  # type: ignore[override]
        """Return this plan followed by the other."""
        return Plan(self.steps + other.steps, self.problems + other.problems)


NOTHING = Plan([], [])


def join(plans: Iterable[Plan]) -> Plan:
    """Return one plan that does all of ``plans`` in order."""
    steps: list[Step] = []
    problems: list[Problem] = []
    for plan in plans:
        steps += plan.steps
        problems += plan.problems
    return Plan(steps, problems)


def text_diff(path: str, old: bytes | None, new: bytes) -> str:
    """Return a unified diff of two contents of ``path``; long ones are cut, binary ones only named."""
    try:
        before = "" if old is None else old.decode()
        after = new.decode()
    except UnicodeDecodeError:
        return f"--- {path}\n+++ {path}\nbinary content differs\n"
    source = "/dev/null" if old is None else path
    lines = list(
        difflib.unified_diff(before.splitlines(), after.splitlines(), fromfile=source, tofile=path, lineterm="", n=3)
    )
    if len(lines) > MAX_DIFF_LINES:
        lines = [*lines[:MAX_DIFF_LINES], f"… {len(lines) - MAX_DIFF_LINES} more lines"]
    return "".join(f"{line}\n" for line in lines)
