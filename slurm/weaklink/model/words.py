"""Words for people: the nearest of the known ones, and text that cannot steer a terminal. Pure."""

from collections.abc import Iterable


def nearest(word: str, words: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the word of ``words`` that is most like ``word``, empty where none is as like as ``cutoff`` (0 to 1)."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(words), n=1, cutoff=cutoff)), "")


def safe(text: str) -> str:
    """Return ``text`` without what could steer a terminal or break an encoding."""
    return "".join(char if char.isprintable() else "?" for char in text)
