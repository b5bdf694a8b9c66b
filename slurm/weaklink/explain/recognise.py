"""Which tool printed this: the readers are asked, a command line in front and a file's name are hints."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from weaklink.explain import commands, tools

SURE_ENOUGH = 30
NEAR = 5
_BY_COMMAND = 50
_BY_FILE = 30
_HINT = 40


class Guess(NamedTuple):
    """The tool (None where nothing is known), how sure (0..100), and what else was nearly as sure."""

    tool: Optional[str]
    score: int
    near: tuple[str, ...] = ()
    tried: tuple[tuple[str, int], ...] = ()
    by_name: bool = False

    def said(self) -> str:
        """Return what is worth saying of the guess; empty where it was plain."""
        if self.tool is None:
            weak = ", ".join(f"{name} ({score} of 100)" for name, score in self.tried[:3])
            return f"nothing of {len(tools.readers())} tools is recognised" + (f"; nearest: {weak}" if weak else "")
        if self.near:
            return f"taken for {self.tool}; it might also be {', '.join(self.near)} (--tool settles it)"
        return ""


def guess(head: str, command: Optional[str] = None, file: Optional[str] = None) -> Guess:
    """Return the likeliest tool of a text that begins with ``head``.

    ``command`` is the tool that a command line in front names, ``file`` the one that the file's name speaks of. A hint
    lifts what the text resembles at least faintly, and decides where the text resembles nothing; a conclusive
    signature of another tool beats it. An error message that no reader knows is the tool's that it names. The surest
    reader wins; among equals the order of ``tools.ORDER`` decides.
    """
    plain = {name: _score(module, head) for name, module in tools.readers().items()}
    scores = dict(plain)
    if file is not None and file in scores:
        scores[file] = scores[file] + 1 if scores[file] >= SURE_ENOUGH else _BY_FILE
    if command is not None and command in scores:
        scores[command] = scores[command] + _HINT if plain[command] else _BY_COMMAND
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    tried = tuple((name, score) for name, score in ranked if score > 0)
    if not tried or tried[0][1] < SURE_ENOUGH:
        named = commands.tool_of_complaint(head)
        if named is None or named not in scores:
            return Guess(None, 0, (), tried)
        return Guess(named, scores[named], (), tried, by_name=True)
    best, score = tried[0]
    near = tuple(name for name, other in tried[1:] if score - other < NEAR)
    return Guess(best, min(score, 100), near, tried)


def _score(module: Any, head: str) -> int:
    """Return the reader's own answer, held to 0..100; a reader that stumbles does not know the text."""
    try:
        found = module.recognise(head)
    except Exception:  # noqa: BLE001 - one reader's fault must not hide what the others know
        return 0
    return max(0, min(100, int(found)))


def surest(head: str, among: Optional[Sequence[str]] = None) -> tuple[int, Optional[str]]:
    """Return the highest score for a text, and whose it is; ``among`` restricts who is asked."""
    if among is not None:
        return max(((_score(tools.reader(name), head), name) for name in among), default=(0, None))
    found = guess(head)
    return (found.score, found.tool)
