"""Read ``ibdiagnet``: the table of its stages at the end, and the -E- and -W- lines before it.

In 2.x every row of the table begins with -I-, whatever its numbers say, and warnings come before errors; in 1.5
(ibutils) rows have no level and errors come first. Names of stages hold blanks and slashes, so that a
row is read from its end. A stage that was not run has no numbers.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools.ib_text import Complaint, bounded, complaint
from weaklink.observe.tools.text import Trouble

NAME = "ibdiagnet"

_HEAD = re.compile(r"\s*-I-\s+Stage\s+Warnings\s+Errors\s+Comments?\s*\Z")
_OLD_HEAD = re.compile(r"\s*STAGE\s+Errors\s+Warnings\s*\Z")
_ROW = re.compile(r"\s*(?:-[IWE]-\s+)?(\S.{0,80}?)\s{2,}(\d{1,9})\s+(\d{1,9})(\s.*)?\Z")
# A name that fills its column leaves one blank.
_LONG_ROW = re.compile(r"\s*-[IWE]-\s+(\S.{0,80}?)\s(\d{1,9})\s+(\d{1,9})(\s.*)?\Z")
_SKIPPED = re.compile(r"\s*-[IWE]-\s+(\S.{0,80}?)\s{2,}(?:N/?A|-|[Ss]kipped)(?:\s+(?:N/?A|-|[Ss]kipped))*(?:\s.*)?\Z")
_LEVELLED = re.compile(r"\s*-[IWE]-")
_LEVEL = re.compile(r"\s*-([EWF])-\s+(\S.*)\Z")
_VERSION = re.compile(
    r"ibdiagnet\s+(?:version\s+)?(\d+(?:\.\d+)+)"
    r"|Version\s*:?\s+\"?IBDIAGNET (\d+(?:\.\d+)+)",
    re.IGNORECASE,
)
_NODES = re.compile(
    r"\s*(?:-I-\s+)?(Total Nodes|IB Switches|IB Channel Adapters|IB Aggregation Nodes|IB Routers)\s*:\s*(\d+)"
)
# What the tool says below the table, in either generation: sentences, and its files as "name : path".
_CLOSING = re.compile(r"\s*-I-\s+(?:Done\b|You can\b|Please\b|Detailed\b|[^:]{1,80}:(?:\s|\Z))")
_MAX_LINES = 200


class Stage(NamedTuple):
    """One row of the Summary; no numbers for a stage that was skipped."""

    line: int
    name: str
    warnings: Optional[int]
    errors: Optional[int]
    comment: str = ""


class Diagnosis(NamedTuple):
    """The table, and at most 200 lines each of errors and warnings said before it."""

    stages: tuple[Stage, ...]
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    nodes: tuple[tuple[str, int], ...] = ()
    complaints: tuple[Complaint, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    version: Optional[str] = None


def recognise(head: str) -> int:
    """Return how sure it is that ``head`` is ibdiagnet's."""
    if (
        re.search(r"^[ \t]*(?:-I-\s+Stage\s+Warnings\s+Errors|STAGE\s+Errors\s+Warnings)", head, re.MULTILINE)
        or "ibdiagnet" in head[:2000].lower()
    ):
        return 95
    return 50 if len(re.findall(r"^[ \t]*-[IEW]- ", head, re.MULTILINE)) > 1 else 0


def parse(lines: Iterable[str]) -> Diagnosis:
    """Return the Summary and what was said before it; see ``Diagnosis``."""
    stages: list[Stage] = []
    said: dict[str, list[str]] = {"E": [], "W": []}
    nodes: list[tuple[str, int]] = []
    troubles: list[Trouble] = []
    complaints: list[Complaint] = []
    version: Optional[str] = None
    table = old = False
    padded = bare = last = 0
    unread: list[Trouble] = []
    for at, line in bounded(lines):
        last = at
        if _HEAD.match(line) or _OLD_HEAD.match(line):
            table, old, stages, padded, bare = True, bool(_OLD_HEAD.match(line)), [], 0, 0
            continue
        row = _ROW.match(line) or _LONG_ROW.match(line) if table and (old or _LEVELLED.match(line)) else None
        skipped = _SKIPPED.match(line) if table and not row else None
        level = _LEVEL.match(line)
        if row or skipped:
            stages.append(_stage(at, row, skipped, old=old))
            whole = line.endswith(" ") or bool(stages[-1].comment)
            padded, bare = padded + line.endswith(" "), 0 if whole else at
        elif table and re.match(r"\s*-I-", line) and not _CLOSING.match(line):
            unread.append(Trouble(at, f"no numbers in {line.strip()!r:.80}"))
        elif level:
            lines_kept = said["W" if level.group(1) == "W" else "E"]
            lines_kept += [level.group(2)] if len(lines_kept) < _MAX_LINES else []
        elif line.strip():
            found, count = _VERSION.search(line), _NODES.match(line)
            version = (found.group(1) or found.group(2)) if found else version
            nodes += [(count.group(1), int(count.group(2)))] if count else []
            complained = complaint(at, line)
            complaints += [complained] if complained else []
    if not stages:
        troubles.append(Trouble(0, "the table of stages is missing: it did not run to its end, or was cut off"))
    elif padded and bare == last:
        # Rows are padded on the right: one that is not, at the end of the text, may have lost digits.
        troubles.append(Trouble(bare, f"the text ends within the row of {stages[-1].name!r}"))
        stages[-1] = stages[-1]._replace(errors=None)
    # Text below the table is no row; within it, or at the text's end, it is one without its numbers.
    end = stages[-1].line if stages else 0
    troubles += [trouble for trouble in unread if trouble.line < end or trouble.line == last]
    return Diagnosis(
        tuple(stages), tuple(said["E"]), tuple(said["W"]), tuple(nodes), tuple(complaints), tuple(troubles), version
    )


def _stage(at: int, row: "Optional[re.Match[str]]", skipped: "Optional[re.Match[str]]", *, old: bool) -> Stage:
    if row is None:
        return Stage(at, skipped.group(1) if skipped else "", None, None, "skipped")
    numbers = int(row.group(2)), int(row.group(3))
    warnings, errors = numbers[::-1] if old else numbers
    return Stage(at, row.group(1), warnings, errors, (row.group(4) or "").strip())
