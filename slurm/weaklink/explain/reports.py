"""From a text to what is said of it: labels and prompts off, tool recognised, output read and judged."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Optional

from weaklink.checks.tools.base import DID_NOT_RUN, TRUNCATED, Judged
from weaklink.explain import commands, tools
from weaklink.explain.labels import Labelled, Sheaf, labelled, stripped
from weaklink.explain.parts import HEAD, OTHER, OVER, SAME, Parts
from weaklink.explain.recognise import Guess, guess, surest
from weaklink.explain.sources import Text
from weaklink.model.finding import OK, UNKNOWN, Finding
from weaklink.observe.tools.text import clean

# One run whose ranks all write into one log: the lines of all labels are read together.
ONE_RUN = frozenset({"nccl-tests"})
EMPTY = "empty: nothing was printed, or it was printed elsewhere"


class ContextValueError(Exception):
    """A judge refused a value of the context; the text names key, found and wanted."""


class Report(NamedTuple):
    """What is said of one output: of which text and part (host or label), its lines, what was noted beside."""

    source: str
    part: str
    tool: Optional[str]
    version: Optional[str]
    judged: Judged
    first: int
    last: int
    notes: tuple[str, ...] = ()
    passed_over: bool = False

    @property
    def verdict(self) -> str:
        """The worst status of the findings."""
        return self.judged.verdict


class Asked(NamedTuple):
    """What a person asked for: the tool (None: recognise it) and the context."""

    tool: Optional[str]
    context: dict[str, Any]


def nothing(text: str, why: str, cause: str = DID_NOT_RUN, *, passed_over: bool = False) -> Report:
    """Return the report of a text that allows no judgement."""
    finding = Finding("explain.readable", text, UNKNOWN, cause, why)
    return Report(text, "", None, None, Judged({}, (finding,)), 1, 0, (), passed_over)


def explain(text: Text, asked: Asked) -> list[Report]:
    """Return what is said of a text: one report an output in it. ContextValueError for a context of the wrong kind."""
    if text.why is not None:
        return [
            nothing(
                text.name, text.why, TRUNCATED if text.lost else DID_NOT_RUN, passed_over=not text.lost and text.member
            )
        ]
    lines = clean(text.lines)
    head = list(_head(lines))
    how = _labels(head, asked.tool)
    whole = itertools.chain(head, lines)
    if how is None:
        found = list(_parts(whole, text, asked, ""))
    elif _together(head, how, asked.tool):
        found = list(_parts(stripped(whole, how), text, asked, ""))
    else:
        found = _by_label(whole, how, text, asked)
    if text.broken:
        found[-1] = _cut(found[-1], text.broken[0])
    return _without_rests(found, text)


def _head(lines: Iterable[str]) -> Iterator[str]:
    size = 0
    for line in lines:
        yield line
        size += len(line) + 1
        if size > HEAD:
            return


def _labels(head: list[str], tool: Optional[str]) -> Optional[Labelled]:
    """Return how the lines are labelled; None where they read at least as well as they are."""
    how = labelled(head)
    if how is None:
        return None
    among = None if tool is None else (tool,)
    plain, _ = surest("\n".join(head), among)
    without, _ = surest("\n".join(stripped(head, how)), among)
    return how if without > plain or (without == plain and how.plain) else None


def _together(head: list[str], how: Labelled, tool: Optional[str]) -> bool:
    return (tool or surest("\n".join(stripped(head, how)))[1]) in ONE_RUN


def _by_label(lines: Iterable[str], how: Labelled, text: Text, asked: Asked) -> list[Report]:
    sheaf = Sheaf()
    try:
        sheaf.fill(lines, how)
        names = sheaf.labels()
        alone = len(names) == 1
        return [
            report for name in names for report in _parts(sheaf.lines(name), text, asked, "" if alone else name)
        ]  # fmt: skip
    finally:
        sheaf.close()


def _parts(lines: Iterable[str], text: Text, asked: Asked, label: str) -> Iterator[Report]:
    parts = Parts(lines)
    any_yet = False
    while parts.load():
        if not parts.blank or _command(parts) is not None:
            any_yet = True
            yield _one(parts, text, asked, label)
        else:
            for _ in parts.lines(lambda: OTHER):
                pass
    if not any_yet:
        yield nothing(text.name, EMPTY, passed_over=True)._replace(part=label)


def _command(parts: Parts) -> Optional[str]:
    return parts.prompt.tool if parts.prompt is not None else None


def _tell(parts: Parts, text: Text, asked: Asked) -> Guess:
    command = _command(parts)
    if asked.tool is None:
        return guess(parts.head(), command, commands.tool_of_file(text.name))
    score, _ = surest(parts.head(), (asked.tool,))
    other = command is not None and command != asked.tool and not score
    return Guess(None if other else asked.tool, score)


def _one(parts: Parts, text: Text, asked: Asked, label: str) -> Report:
    """Read and judge the part that is loaded, with those behind it that are the same tool's on the same host."""
    told = _tell(parts, text, asked)
    while told.tool is None and asked.tool is None and parts.onward():
        told = _tell(parts, text, asked)
    host = parts.prompt.host if parts.prompt is not None else ""
    first, command, blank = parts.first, _command(parts), parts.blank

    def belongs() -> str:
        of = parts.prompt.host if parts.prompt is not None else ""
        if parts.blank or of not in {"", host}:
            return SAME if parts.blank else OTHER
        tool = _tell(parts, text, asked).tool
        return SAME if tool == told.tool else OVER if tool is None and asked.tool is None else OTHER

    lines = parts.lines(belongs)
    if blank:
        why = f"line {first}: the command is there, but nothing of what it printed"
        report = nothing(text.name, why, passed_over=True)._replace(tool=command)
    elif told.tool is None:
        why = f"from line {first} on {told.said()}; name it with --tool"
        if asked.tool is not None:
            why = f"line {first}: an output of {command}, not of {asked.tool}"
        report = nothing(text.name, why, passed_over=not label)
    else:
        alien = (told.by_name or asked.tool is not None) and not told.score and parts.short
        record, judged = _judge(told.tool, lines, asked.context)
        if alien and judged.verdict == OK:
            why = f"nothing in it looks like an output of {told.tool}"
            judged = Judged(judged.facts, (Finding("explain.tool", told.tool, UNKNOWN, DID_NOT_RUN, why),))
        notes = (told.said(),) if told.said() else ()
        version = getattr(record, "version", None)
        left = alien and text.member and judged.verdict == UNKNOWN
        report = Report(text.name, "", told.tool, version, judged, first, 0, notes, left)
    for _ in lines:  # what the reader left, so that the next part begins where it should
        pass
    over = tuple(f"lines {start} to {end} are of no known tool and were passed over" for start, end in parts.over)
    return report._replace(part=label or host, first=first, last=parts.last, notes=report.notes + over)


def _judge(tool: str, lines: Iterator[str], context: dict[str, Any]) -> tuple[Any, Judged]:
    """Return record and judgement. A reader or judge that stumbles is our own failure: unknown, never a traceback."""
    record = None
    try:
        record = tools.reader(tool).parse(lines)
        judged: Judged = tools.judge(tool).judge(record, context)
    except Exception as error:
        if isinstance(error, ValueError) and str(error).startswith("context:"):
            raise ContextValueError(str(error).partition(": ")[2]) from error
        why = f"the reader of {tool} stumbled ({type(error).__name__}: {error})"[:300]
        stumbled = f"{why}; this is weaklink's own fault, please report it with the text"
        judged = Judged({}, (Finding("explain.reader", tool, UNKNOWN, DID_NOT_RUN, stumbled),))
    return record, judged


def _cut(report: Report, why: str) -> Report:
    """Return the last report with the finding that its text broke off."""
    finding = Finding("explain.readable", report.source, UNKNOWN, TRUNCATED, why)
    judged = Judged(report.judged.facts, (*report.judged.findings, finding))
    return report._replace(judged=judged, passed_over=False)


def _without_rests(found: list[Report], text: Text) -> list[Report]:
    """Return the reports; what was not recognised counts only where nothing else was and a person named the text."""
    if text.member or any(not report.passed_over for report in found):
        return found
    return [report._replace(passed_over=False) for report in found]
