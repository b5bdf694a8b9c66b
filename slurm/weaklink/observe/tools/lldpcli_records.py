"""What every form of lldpcli's output is read into."""

from typing import NamedTuple, Optional

from weaklink.observe.tools.text import Trouble

# The kinds of port id that are names of a port, the likeliest first (IEEE 802.1AB, port id subtypes).
_NAMED = ("ifname", "local", "ifalias")


class Neighbour(NamedTuple):
    """One neighbour of one interface: the switch's name, its port's ids by kind, the port's description."""

    netdev: str
    line: int
    switch: Optional[str]
    chassis: Optional[str]
    ids: dict[str, str]
    descr: Optional[str]

    @property
    def port(self) -> Optional[str]:
        """The port's name: its id where that is a name, its description where the id is a MAC address."""
        for kind in _NAMED:
            if kind in self.ids:
                return self.ids[kind]
        if self.descr and " " not in self.descr:
            return self.descr
        return next(iter(self.ids.values()), self.descr)


class Record(NamedTuple):
    """All neighbours in their order; ``version`` is the output's form, ``complaints`` the tool's own errors."""

    neighbours: tuple[Neighbour, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]
    complaints: tuple[str, ...] = ()
