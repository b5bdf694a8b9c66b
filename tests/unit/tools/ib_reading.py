"""Read and judge a text as explain does, and what every InfiniBand tool's reader keeps to under a cut."""

from __future__ import annotations

import importlib
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.unit.tools import fuzz
from tests.unit.tools.cases import case_of, check_case, text_of

if TYPE_CHECKING:
    from weaklink.checks.tools.base import Judged

DATA = Path(__file__).with_name("data") / "ib"


def data(name: str) -> str:
    """Return what a real tool printed, run against a simulated fabric of two switches and four hosts."""
    return (DATA / f"{name}.txt").read_text(encoding="utf-8")


def reader(tool: str) -> Any:
    return importlib.import_module(f"weaklink.observe.tools.{tool}")


def judged(tool: str, text: str, context: dict[str, Any] | None = None) -> Judged:
    found: Judged = judge_of(tool)(fuzz.read(reader(tool), text), context or {})
    return found


def judge_of(tool: str) -> Any:
    return importlib.import_module(f"weaklink.checks.tools.{tool}").judge


def said(tool: str, text: str, context: dict[str, Any] | None = None) -> tuple[str, str]:
    found = judged(tool, text, context)
    return found.verdict, found.cause


def holds_case(name: str) -> None:
    case = case_of(name)
    tool = case["tool"].replace(".", "_")
    assert reader(tool).recognise(text_of(name)) >= 90
    check_case(name, judged(tool, text_of(name), case["context"]))


def survives(tool: str, sample: str, context: dict[str, Any]) -> None:
    fuzz.survives(reader(tool), sample, judge=judge_of(tool), context=context)


def a_cut_never_heals(tool: str, sample: str, context: dict[str, Any], *, at_line_ends: bool = True) -> None:
    """Assert that no beginning of a bad sample is ok; ``at_line_ends`` False where no line tells that more follows."""
    assert judged(tool, sample, context).verdict != "ok"
    dice = random.Random(7)  # noqa: S311 - places to cut, not secrets
    places = set(range(0, len(sample), max(1, len(sample) // 300))) | {dice.randrange(len(sample)) for _ in range(100)}
    for at in sorted(places):
        part = sample[:at]
        if not at_line_ends and (not part.strip() or sample[at - 1 : at + 1].count("\n")):
            continue
        assert judged(tool, part, context).verdict != "ok", part[-120:]


def a_cut_never_invents(tool: str, sample: str, context: dict[str, Any], *keys: str) -> None:
    """Assert that facts of a beginning of the sample are those of the whole, or not known."""
    whole = judged(tool, sample, context).facts
    for at in range(0, len(sample), max(1, len(sample) // 400)):
        facts = judged(tool, sample[:at], context).facts
        for key in keys:
            for name, value in facts[key].items():
                assert value is None or value == whole[key].get(name), (sample[:at][-80:], key, name, value)
