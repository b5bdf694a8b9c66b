"""Switches and links as they are laid: names, ports, modules, cables."""

from collections.abc import Iterator
from typing import Optional

from weaklink.model.fabric import FabricError, Link, Switch
from weaklink.model.topology.shape import Names, Shape

# A cage of a switch takes a twin-port module; ports 1 and 2 are cage 1.
CAGE_PORTS = 2


class Wiring:
    """A fabric in the making.

    Ports of switches are numbered from 1. A link's id is its side a with the port, which no other link can have. Two
    links between the same two modules share a cable.
    """

    def __init__(self, shape: Shape, names: Optional[Names]) -> None:
        """Start with nothing; ``names`` gives switches other names than their tier and number."""
        self.shape = shape
        self.switches: list[Switch] = []
        self.links: list[Link] = []
        self._given: dict[int, Iterator[str]] = {
            tier: iter(given) for tier, given in (names.switches.items() if names else ())
        }

    def switch(self, name: str, tier: int, plane: int, group: Optional[int] = None) -> str:
        """Add a switch and return its name: the given one, or ``name`` with the plane before it."""
        if tier in self._given:
            found = next(self._given[tier], None)
            if found is None:
                raise FabricError(f"names of tier {tier}", "too few", "a name for every switch of the tier")
            name = found
        elif self.shape.planes > 1:
            name = f"p{plane + 1}-{name}"
        self.switches.append(Switch(name, tier, plane, group))
        return name

    def row(self, word: str, count: int, tier: int, plane: int, group: Optional[int] = None) -> list[str]:
        """Add ``count`` switches of one tier, numbered from 1."""
        return [self.switch(f"{word}{index + 1}", tier, plane, group) for index in range(count)]

    def plug(self, end: str, leaf: str, port: int) -> None:
        """Link an HCA (``node/hca``) with a port of its leaf."""
        self._add(end, 1, f"{end}:m1", leaf, port)

    def join(self, below: str, below_port: int, above: str, above_port: int) -> None:
        """Link two switches, the lower tier first."""
        self._add(below, below_port, _module(below, below_port), above, above_port)

    def bundle(self, below: str, below_port: int, above: str, above_port: int, width: int) -> None:
        """Link two switches ``width`` times, over consecutive ports."""
        for step in range(width):
            self.join(below, below_port + step, above, above_port + step)

    def _add(self, a: str, a_port: int, module: str, b: str, b_port: int) -> None:
        other = _module(b, b_port)
        cable = f"{module}--{other}"
        self.links.append(Link(f"{a}:p{a_port}", a, a_port, b, b_port, self.shape.gbps, cable, module, other))

    def names_left(self) -> None:
        """Raise if more names were given than switches built."""
        for tier, rest in self._given.items():
            if next(rest, None) is not None:
                raise FabricError(f"names of tier {tier}", "too many", "a name for every switch of the tier, no more")


def _module(switch: str, port: int) -> str:
    return f"{switch}:m{(port - 1) // CAGE_PORTS + 1}"
