"""What a judgement is: its classes, its record, its order, and the exit code of many."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.model.finding import EXIT_FOUND, EXIT_OK, EXIT_UNKNOWN
from weaklink.model.words import safe

OK = "ok"
UNKNOWN = "unknown"
NO_OP = "no-op"
DEBUG = "debug"
DISCOURAGED = "discouraged"
PREFIX_MATCH = "prefix-match"
UNIT = "unit"
DEPRECATED = "deprecated"
CONTRADICTION = "contradiction"

# From what matters least to what matters most.
CLASSES = (OK, UNKNOWN, NO_OP, DEBUG, DISCOURAGED, PREFIX_MATCH, UNIT, DEPRECATED, CONTRADICTION)

HIDDEN = "(hidden)"
_MAX_VALUE = 400
_MAX_MESSAGE = 1000


class Judgement(NamedTuple):
    """One judgement of one setting.

    ``subject`` is the variable's name or the dotted key; ``value`` what it is set to, None where it is missing;
    ``klass`` one of ``CLASSES``; ``message`` says what, why and what to do; ``source`` where the rule comes from.
    ``file`` and ``line`` say where the setting stands (line 0: it does not); ``effective`` is False where another
    setting wins.
    """

    subject: str
    value: Optional[str]
    klass: str
    message: str
    source: str
    file: str = ""
    line: int = 0
    effective: bool = True

    def as_dict(self, key: str) -> dict[str, Any]:
        """Return the judgement as the object that FORMATS names; ``key`` is "variable" or "key"."""
        return {
            key: self.subject,
            "value": None if self.value is None else printable(self.value, _MAX_VALUE),
            "class": self.klass,
            "message": printable(self.message, _MAX_MESSAGE),
            "source": self.source,
            "file": self.file,
            "line": self.line,
            "effective": self.effective,
        }


def printable(text: str, limit: int) -> str:
    """Return ``text`` without what could steer a terminal, cut to ``limit`` characters."""
    clean = safe(text)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def weight(klass: str) -> int:
    """Return how much a class matters; more is worse."""
    return CLASSES.index(klass)


def exit_code(judgements: Iterable[Judgement]) -> int:
    """Return 0 when nothing is wrong, 1 when something is, 3 when there are only unknowns beside what is right."""
    classes = {judgement.klass for judgement in judgements}
    if classes - {OK, UNKNOWN}:
        return EXIT_FOUND
    return EXIT_UNKNOWN if UNKNOWN in classes else EXIT_OK
