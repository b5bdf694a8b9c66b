"""Lists of names as NCCL matches them: NCCL_IB_HCA, NCCL_SOCKET_IFNAME, NCCL_OOB_NET_IFNAME. Pure.

``^`` in front excludes, ``=`` after it (or in front) matches whole names, otherwise each entry is a prefix
(``parseStringList`` and ``matchIfList`` in NCCL's src/misc/utils.cc).
"""

from typing import NamedTuple, Optional

MAX_ENTRIES = 32
_DRIVERS = ("mlx4", "mlx5")  # beginnings of all their devices' names, although a digit ends them


class Entry(NamedTuple):
    """One entry: its name as it is compared, its port (None: all), and what follows the port."""

    name: str
    port: Optional[int]
    rest: tuple[str, ...]


class Selection(NamedTuple):
    """A parsed list."""

    exclude: bool
    exact: bool
    entries: tuple[Entry, ...]

    def matches(self, name: str, port: int = 1) -> bool:
        """Return whether an entry matches, before exclusion turns it round."""
        return any(self._matches(entry, name, port) for entry in self.entries)

    def selects(self, name: str, port: int = 1) -> bool:
        """Return whether NCCL uses the device."""
        if not self.entries:
            return True
        return self.matches(name, port) != self.exclude

    def caught(self, names: list[str]) -> dict[str, list[str]]:
        """Return, for each entry that stands for more than its own name, the other names that it matches."""
        found: dict[str, list[str]] = {}
        if not self.exact:
            for entry in self.entries:
                others = [name for name in names if name != entry.name and name.startswith(entry.name)]
                if others:
                    found[entry.name] = others
        return found

    def families(self, names: list[str]) -> list[str]:
        """Return entries that are no device's whole name and stand for several: ``ibp`` for ibp0 to ibp7."""
        if self.exact:
            return []
        return [entry.name for entry in self.entries if _family(entry.name, names)]

    def _matches(self, entry: Entry, name: str, port: int) -> bool:
        if not (name == entry.name if self.exact else name.startswith(entry.name)):
            return False
        return entry.port is None or entry.port == port


def _family(entry: str, names: list[str]) -> bool:
    """Return whether an entry is a beginning alone; without the node's ``names`` its last character tells."""
    return entry not in names if names else entry in _DRIVERS or not entry[-1].isdigit()


def parse(value: str) -> Selection:
    """Return what NCCL makes of a list."""
    exclude = value.startswith("^")
    rest = value[1:] if exclude else value
    exact = rest.startswith("=")
    rest = rest[1:] if exact else rest
    entries = []
    for item in rest.split(","):
        name, _, fields = item.partition(":")
        if name:
            port, *more = fields.split(":")
            entries.append(Entry(name, int(port) if port.isascii() and port.isdigit() else None, tuple(more)))
    return Selection(exclude, exact, tuple(entries))


def fix(value: str) -> str:
    """Return the same list with whole names."""
    return value if parse(value).exact else ("^=" + value[1:] if value.startswith("^") else "=" + value)
