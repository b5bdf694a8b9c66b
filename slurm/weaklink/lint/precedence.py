"""Which of several settings of a variable wins. Pure.

NCCL sets a variable from a file only where it is not set yet (``setenv`` without overwriting), and reads first the file
that NCCL_CONF_FILE names (since 2.23) or else ~/.nccl.conf, then /etc/nccl.conf. So the environment wins over the
user's file, that one over the system's, and in one file the first line wins. In a shell the last assignment wins.
"""

from typing import NamedTuple, Optional

from weaklink.lint.parse import CONF, Setting, Source
from weaklink.lint.version import Version

CONF_FILE_SINCE = Version(2, 23)
_ENVIRONMENT, _NAMED, _USER, _SYSTEM = range(4)
PLACES = {
    _ENVIRONMENT: "environment",
    _NAMED: "NCCL_CONF_FILE",
    _USER: "~/.nccl.conf",
    _SYSTEM: "/etc/nccl.conf",
}


class Lost(NamedTuple):
    """A setting that has no effect, the one that wins (None where its file is not read), and why."""

    setting: Setting
    winner: Optional[Setting]
    why: str


class Outcome(NamedTuple):
    """The winning setting of each variable, and what lost."""

    winners: dict[str, Setting]
    lost: list[Lost]


def rank(source: Source) -> int:
    """Return how early a source is looked at: 0 environment, 1 NCCL_CONF_FILE, 2 ~/.nccl.conf, 3 /etc/nccl.conf."""
    if source.form != CONF:
        return _ENVIRONMENT
    base = source.file.rsplit("/", 1)[-1]
    return {".nccl.conf": _USER, "nccl.conf": _SYSTEM}.get(base, _NAMED)


def resolve(sources: list[Source], at: Version) -> Outcome:
    """Return what NCCL of version ``at`` makes of the sources; among equals the one named first counts."""
    ranks = {rank(source) for source in sources}
    winners: dict[str, Setting] = {}
    lost: list[Lost] = []
    for source in sorted(sources, key=rank):
        place = rank(source)
        unread = _unread(place, ranks, at)
        own: dict[str, Setting] = {}
        for setting in source.settings if source.form == CONF else reversed(source.settings):
            if unread:
                lost.append(Lost(setting, None, unread))
            elif setting.name in own:
                which = "the first line" if source.form == CONF else "the last assignment"
                lost.append(Lost(setting, own[setting.name], f"{which} of a file wins"))
            elif setting.name in winners:
                own[setting.name] = setting
                why = f"{PLACES[rank_of(winners[setting.name], sources)]} comes before {PLACES[place]}"
                lost.append(Lost(setting, winners[setting.name], why))
            else:
                own[setting.name] = setting
        for name, setting in own.items():
            winners.setdefault(name, setting)
    return Outcome(winners, lost)


def rank_of(setting: Setting, sources: list[Source]) -> int:
    """Return the rank of the source that a setting stands in."""
    return next(rank(source) for source in sources if source.file == setting.file)


def _unread(place: int, ranks: set[int], at: Version) -> str:
    if place == _USER and _NAMED in ranks and at >= CONF_FILE_SINCE:
        return "~/.nccl.conf is not read where NCCL_CONF_FILE names another file"
    if place == _NAMED and ranks & {_USER, _SYSTEM} and at < CONF_FILE_SINCE:
        return f"NCCL reads the file that NCCL_CONF_FILE names since {CONF_FILE_SINCE}"
    return ""
