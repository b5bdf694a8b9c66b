"""The one exception of the lab: what went wrong, and what to do about it."""

from __future__ import annotations


class LabError(Exception):
    """Something about the lab that a person has to act on.

    The message reads ``what; found: …; wanted: …; do: …`` in one line, followed by the tail of a tool's output where
    there is one.
    """

    def __init__(self, what: str, *, found: str = "", wanted: str = "", todo: str = "", output: str = "") -> None:
        parts = [what]
        parts += [f"found: {found}"] if found else []
        parts += [f"wanted: {wanted}"] if wanted else []
        parts += [f"do: {todo}"] if todo else []
        text = "; ".join(parts)
        if output.strip():
            tail = output.strip().splitlines()[-15:]
            text += "\n" + "\n".join(f"    {line}" for line in tail)
        super().__init__(text)
