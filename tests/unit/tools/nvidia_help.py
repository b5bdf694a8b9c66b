"""What the tests of the NVIDIA tools share: a text judged, and that damage never makes a verdict better."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from weaklink.observe.tools.text import clean

from tests.unit.tools import cases, fuzz

if TYPE_CHECKING:
    from weaklink.checks.tools.base import Judged


class Tool(NamedTuple):
    """A tool's two modules."""

    parser: ModuleType
    checker: ModuleType

    def judge(self, text: str, **context: Any) -> Judged:
        found: Judged = self.checker.judge(self.parser.parse(clean(text.split("\n"))), context)
        return found

    def said(self, text: str, **context: Any) -> tuple[str, str]:
        found = self.judge(text, **context)
        return found.verdict, found.cause

    def check_case(self, name: str) -> None:
        """Assert that the tool is recognised in a case, and judged as the case states."""
        text = cases.text_of(name)
        assert cases.case_of(name)["tool"] == self.parser.NAME
        assert self.parser.recognise(text) >= 90
        cases.check_case(name, self.judge(text, **cases.case_of(name)["context"]))

    def never_better(self, text: str, **context: Any) -> None:
        """Assert that no cut at the end turns a verdict that is not ok into ok, nor raises."""
        whole = self.judge(text, **context)
        assert whole.verdict != "ok"
        for at in range(0, len(text), max(1, len(text) // 400)):
            assert self.judge(text[:at], **context).verdict != "ok", text[max(0, at - 60) : at]

    def unknown_when_cut(self, text: str, *, upto: int, **context: Any) -> None:
        """Assert that a healthy text is never judged ok before ``upto`` (a place from its end, below 0)."""
        assert self.judge(text, **context).verdict == "ok"
        for at in range(0, len(text) + upto, max(1, len(text) // 400)):
            assert self.judge(text[:at], **context).verdict != "ok", text[max(0, at - 60) : at]

    def survives(self, text: str, **context: Any) -> None:
        fuzz.survives(self.parser, text, judge=self.checker.judge, context=context)


def tool(name: str) -> Tool:
    """Return a tool by the name of its modules."""
    return Tool(
        importlib.import_module(f"weaklink.observe.tools.{name}"),
        importlib.import_module(f"weaklink.checks.tools.{name}"),
    )
