"""Read and judge in one step, and what must hold where a text is cut."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.unit.tools import fuzz

if TYPE_CHECKING:
    from types import ModuleType


class Tool(NamedTuple):
    """A tool's reader and judge."""

    parser: ModuleType
    rules: ModuleType

    def judged(self, text: str, **context: Any) -> Any:
        return self.rules.judge(fuzz.read(self.parser, text), context)

    def verdict(self, text: str, **context: Any) -> tuple[str, str]:
        found = self.judged(text, **context)
        return found.verdict, found.cause

    def facts(self, text: str, **context: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.judged(text, **context).facts
        return found

    def survives(self, text: str, **context: Any) -> None:
        fuzz.survives(self.parser, text, judge=self.rules.judge, context=context)

    def never_ok_when_cut(self, text: str, step: int = 7, **context: Any) -> None:
        """Assert that no beginning of a text with a fault is ok."""
        assert self.verdict(text, **context)[0] != "ok"
        for at in range(0, len(text), step):
            assert self.verdict(text[:at], **context)[0] != "ok", text[max(0, at - 80) : at]


def tool(module: str) -> Tool:
    return Tool(
        importlib.import_module(f"weaklink.observe.tools.{module}"),
        importlib.import_module(f"weaklink.checks.tools.{module}"),
    )
