"""Read ``dcgmi`` diag (JSON and table of DCGM 2 to 4), health -c and discovery -l. Pure."""

import json
import re
from collections.abc import Iterable
from typing import Optional

from weaklink.observe.tools.nvidia_dcgm import (
    DIAGNOSTIC,
    DISCOVERY,
    HEALTH,
    Record,
    Result,
    Test,
    numbers,
    of_broken_json,
    of_json,
    status,
)
from weaklink.observe.tools.text import Trouble, whole

NAME = "dcgmi"
_MARKS = ("DCGM GPU Diagnostic", "DCGM Diagnostic", "Successfully ran diagnostic for group", "| DCGM Version ")
_FOUND = re.compile(r"(\d{1,3}) GPUs? found\.")
_OF_GPU = re.compile(r"GPU\s?(\d{1,3})\s*:\s*(\w+)")
_STATUS = re.compile(r"(Pass|Fail(?:ed)?|Warn(?:ing)?|Skip(?:ped)?|Not Run)\b(.*)\Z", re.IGNORECASE)
_CATEGORY = re.compile(r"[|+]-{3,}\s{1,4}([A-Z][\w ]{1,40}?)\s{1,4}-")
_GPU_ROW = re.compile(r"(?:->\s*)?(\d{1,3})\Z")
_ERRORS = ("error:", "error when", "unable to", "failed to", "cannot ", "dcgmi: command not found", "no such file")
_MAX_TEXT = 600
_CELLS = 2


def recognise(head: str) -> int:
    """Return how sure it is that a text is dcgmi's: 95 by a diagnostic's title, 85 by health or discovery."""
    if any(mark in head for mark in _MARKS):
        return 95
    if "Health Monitor Report" in head or ("GPUs found." in head and "Device UUID" in head):
        return 90
    if '"test_categories"' in head or "| Diagnostic " in head:
        return 85
    low = head[:4000].lower()
    return 80 if "host engine" in low or "dcgmi:" in low or "unable to complete diagnostic" in low else 0


class _Reader:
    """Takes the lines of a table; a row without a name belongs to the test above it."""

    def __init__(self) -> None:
        self.kind = ""
        self.version: Optional[str] = None
        self.driver: Optional[str] = None
        self.devices: Optional[int] = None
        self.tests: list[Test] = []
        self.health: Optional[str] = None
        self.incidents: list[str] = []
        self.errors: list[str] = []
        self.troubles: list[Trouble] = []
        self.category = ""
        self.label = ""
        self.framed = False
        self.closed = True
        self.width = 0
        self.last = 0
        self.gpu_rows: set[int] = set()

    def take(self, line: str, at: int) -> None:
        text = line.strip()
        if not text:
            return
        if text[0] in "|+":
            self.last, self.framed = at, True
            self._framed(text, at)
            return
        found = _FOUND.match(text)
        if found:
            self.kind, self.devices = DISCOVERY, int(found[1])
        elif text.lower().startswith(_ERRORS) or "command not found" in text:
            self.errors.append(text[:_MAX_TEXT])

    def _framed(self, text: str, at: int) -> None:
        category = _CATEGORY.match(text)
        if category:
            self.category, self.label, self.closed = category[1].strip(), "", False
            return
        if not text.strip("+-=|"):
            self.width = self.width or len(text)
            self.closed = text[0] == "+" and "=" not in text and len(text) >= self.width
            return
        self.closed = False
        cells = [cell.strip() for cell in text.strip("|+").split("|")]
        if not text.endswith("|"):
            self._bad(at, f"the line is cut: {text[-30:]!r}")
            return
        if "Health Monitor Report" in text:
            self.kind = HEALTH
        elif cells == ["Diagnostic", "Result"]:
            # A test of hardware is called Diagnostic as well.
            self.kind = DIAGNOSTIC
        elif len(cells) == _CELLS:
            self._pair(cells[0], cells[1], at)

    def _pair(self, name: str, value: str, at: int) -> None:
        if self.kind == HEALTH:
            self._health(name, value)
        elif self.kind == DISCOVERY:
            row = _GPU_ROW.match(name)
            if row and value.startswith("Name:"):
                self.gpu_rows.add(int(row[1]))
        elif name == "DCGM Version":
            self.version, self.kind = value, DIAGNOSTIC
        elif name.startswith("Driver Version"):
            self.driver = value
        elif name.startswith("GPU Device IDs"):
            self.devices = len([word for word in value.split(",") if word.strip()])
            self.label = "ids"
        elif self.category.lower() == "metadata":
            if not name and self.label == "ids":
                self.devices = (self.devices or 0) + len([word for word in value.split(",") if word.strip()])
            self.label = "ids" if not name and self.label == "ids" else ""
        else:
            self._test(name, value, at)

    def _test(self, name: str, value: str, at: int) -> None:
        low = name.lower()
        if low.startswith(("warning", "info", "error", "eud")) and not _STATUS.match(value):
            self.label = "message"
            self._message(value)
            return
        if name:
            self.label = "test"
            self.tests.append(Test(self.category, name[:80], ()))
        elif self.label == "message":
            self._message(value)
            return
        if not self.tests:
            return
        own = _OF_GPU.match(value)
        result = self._own(own[1], own[2]) if own else self._result(value)
        if result is not None:
            results = self.tests[-1].results
            if own and results and not results[0].gpus and not results[0].everything:
                results = results[1:]
            self.tests[-1] = self.tests[-1]._replace(results=(*results, result))
        elif name:
            self.tests.pop()
            self._bad(at, f"{name[:40]!r}: found {value[:40]!r}, wanted Pass, Fail, Warn or Skip")

    @staticmethod
    def _own(gpu: str, word: str) -> Optional[Result]:
        known = status(word)
        return Result((int(gpu),), known) if known else None

    @staticmethod
    def _result(value: str) -> Optional[Result]:
        found = _STATUS.match(value)
        known = status(found[1]) if found else None
        if found is None or known is None:
            return None
        rest = found[2]
        gpus = numbers(rest) if "GPU" in rest or rest.strip(" -,0123456789") == "" else ()
        return Result(gpus, known, "", everything="all" in rest.lower())

    def _message(self, value: str) -> None:
        if not self.tests or not self.tests[-1].results:
            return
        *before, last = self.tests[-1].results
        room = max(0, _MAX_TEXT - len(last.message))
        joined = last.message + value[:room]
        self.tests[-1] = self.tests[-1]._replace(results=(*before, last._replace(message=joined)))

    def _health(self, name: str, value: str) -> None:
        if name == "Overall Health":
            self.health = value.rstrip(".")
        elif len(self.incidents) < 200:  # noqa: PLR2004 - more than anybody reads
            said = f"{name.lstrip('-> ')} {value}".strip()
            if said:
                self.incidents.append(said[:_MAX_TEXT])

    def _bad(self, at: int, what: str) -> None:
        if len(self.troubles) < 50:  # noqa: PLR2004 - more than anybody reads
            self.troubles.append(Trouble(at, what))

    def finish(self) -> None:
        """Note what shows that the end is missing."""
        if self.framed and not self.closed:
            self._bad(self.last, "the table ends before the line that closes it")
        elif self.kind == DISCOVERY and self.devices is not None and len(self.gpu_rows) < self.devices and self.framed:
            self._bad(self.last, f"{self.devices} GPUs are found, {len(self.gpu_rows)} are listed")
        if not self.kind and not self.errors and not self.troubles:
            self._bad(0, "no output of dcgmi is in the text")


def _json(text: str) -> Optional[Record]:
    """Return what the JSON in a text says; None where no JSON is in it."""
    begin = text.find("{")
    brace = begin >= 0 and ('"test_categories"' in text or "Diagnostic" in text[begin : begin + 400])
    if not (brace or '"Overall Health"' in text) or begin < 0:
        return None
    if any(line.lstrip()[:1] == "|" for line in text[:begin].split("\n")):
        return None
    try:
        data, _ = json.JSONDecoder().raw_decode(text, begin)
    except (ValueError, RecursionError) as error:
        line = text.count("\n") + 1
        where = f"the JSON cannot be read to its end: {str(error)[:100]}"
        return of_broken_json(text[begin:], line, where)
    record = of_json(data)
    if isinstance(data, dict) and not record.tests and not record.errors and record.kind != HEALTH:
        return of_broken_json(text[begin:], text.count("\n") + 1, record.troubles[0].what)
    return record


def parse(lines: Iterable[str]) -> Record:
    """Return what dcgmi says; JSON may stand behind lines of the container's or the tool's own."""
    text, over = whole(lines)
    record = _json(text)
    if record is None:
        reader = _Reader()
        for at, line in enumerate(text.split("\n"), 1):
            reader.take(line, at)
        reader.finish()
        record = Record(
            reader.kind,
            reader.version,
            reader.driver,
            reader.devices,
            tuple(reader.tests),
            reader.health,
            tuple(reader.incidents),
            tuple(reader.errors),
            tuple(reader.troubles),
        )
    return record._replace(troubles=(*record.troubles, over)) if over else record
