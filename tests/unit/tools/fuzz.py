"""Damage to a tool's output, and what every parser must keep to under it."""

from __future__ import annotations

import random
import time
from types import ModuleType
from typing import Any

from weaklink.observe.tools.text import clean

GARBAGE = ("\x00\x01\ufffd", "]]]]:::{{{", "N/A N/A N/A", "=" * 500, "\t\t\t", "0x", "-", "%s%n%d", "\udcff\udc80")
SECONDS = 5.0


def damaged(sample: str, seed: int, count: int = 40) -> list[str]:
    """Return damaged forms of ``sample``: cut anywhere, CRLF, labelled, interleaved, lines lost or doubled, junk."""
    dice = random.Random(seed)  # noqa: S311 - damage is drawn, not secrets
    lines = sample.splitlines()
    forms = ["", "\n", "\ufeff" + sample, sample.replace("\n", "\r\n"), "\n".join(f"0: {line}" for line in lines)]
    for _ in range(count):
        at = dice.randrange(len(sample) + 1)
        forms.append(sample[:at])
        forms.append(sample[at:])
        shuffled = list(lines)
        for _ in range(dice.randint(1, 4)):
            place = dice.randrange(len(shuffled) + 1)
            what = dice.choice([*GARBAGE, *lines]) if lines else dice.choice(GARBAGE)
            shuffled.insert(place, what)
        forms.append("\n".join(shuffled))
        if lines:
            lost = dice.randrange(len(lines))
            forms.append("\n".join(lines[:lost] + lines[lost + 1 :]))
    return forms


def read(parser: ModuleType, text: str) -> Any:
    return parser.parse(clean(text.split("\n")))


def survives(parser: ModuleType, sample: str, *, judge: Any = None, context: dict[str, Any] | None = None) -> None:
    """Assert that no damage raises or takes long, in the parser and, where given, in ``judge``."""
    for seed in range(3):
        for text in damaged(sample, seed):
            begun = time.process_time()
            record = read(parser, text)
            assert 0 <= parser.recognise(text[:65_536]) <= 100
            if judge is not None:
                judge(record, context or {})
            assert time.process_time() - begun < SECONDS
    linear(parser, sample)


def linear(parser: ModuleType, sample: str) -> None:
    """Assert that ten times the text takes at most about ten times as long (quadratic would take a hundred)."""

    def seconds(text: str) -> float:
        begun = time.process_time()
        read(parser, text)
        return time.process_time() - begun

    # The better of two: the first may pay for what is built once.
    small, large = (min(seconds(sample * factor) for _ in range(2)) for factor in (20, 200))
    assert large < max(0.5, small * 40), (small, large)
