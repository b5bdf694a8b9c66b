"""A fabric as data: nodes with their HCAs, switches, every link with its cable and modules, routing. Pure.

``fabric_file`` reads and writes it as JSON, ``topology`` wires one from a few numbers.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Optional, Union

Port = Union[int, str]

ROUTING_MODES = ("source-chosen", "static", "adaptive")
# Links by the tiers of their ends; 0 is a node.
TIER_NAMES = {(0, 1): "node-leaf", (1, 2): "leaf-spine", (2, 3): "spine-core"}


class FabricError(ValueError):
    """What is wrong with a fabric: the ``place``, what was ``found`` there and what would be ``wanted``."""

    def __init__(self, place: str, found: str, wanted: str) -> None:
        super().__init__(f"{place}: found {found}, wanted {wanted}")
        self.place = place
        self.found = found
        self.wanted = wanted


class Hca(NamedTuple):
    """An HCA port of a node: its rail and plane, the leaf switch and the port of that switch it is plugged into."""

    name: str
    rail: int
    plane: int
    leaf: Optional[str]
    port: Optional[Port]


class Node(NamedTuple):
    """A machine. ``extra``: it takes ports but has no GPUs (a fabric manager, storage)."""

    name: str
    hcas: tuple[Hca, ...]
    extra: bool = False


class Switch(NamedTuple):
    """A switch: tier 1 is a leaf; ``group`` is its pod or group within the plane, None where there is none."""

    name: str
    tier: int
    plane: int
    group: Optional[int] = None


class Link(NamedTuple):
    """A link: a is the HCA (``node/hca``) or the switch of the lower tier. Rate in Gb/s, each direction."""

    id: str
    a: str
    a_port: Port
    b: str
    b_port: Port
    gbps: float
    cable: Optional[str]
    module_a: Optional[str]
    module_b: Optional[str]

    @property
    def up(self) -> str:
        """The directed id from a to b."""
        return self.id + "+"

    @property
    def down(self) -> str:
        """The directed id from b to a."""
        return self.id + "-"

    def other(self, end: str) -> str:
        """The end that is not ``end``."""
        return self.b if end == self.a else self.a

    def leaving(self, end: str) -> str:
        """The directed id that starts at ``end``."""
        return self.up if end == self.a else self.down


class Fabric:
    """Nodes, switches, links and routing (None = unknown), with look-ups by name that are built when first asked."""

    def __init__(
        self,
        nodes: Iterable[Node],
        switches: Iterable[Switch],
        links: Iterable[Link],
        routing: Optional[Mapping[str, Any]] = None,
    ) -> None:
        """Take the parts as they are; ``validate`` judges them."""
        self.nodes = tuple(nodes)
        self.switches = tuple(switches)
        self.links = tuple(links)
        self.routing = routing
        self._at: dict[str, list[Link]] = {}
        self._by_id: dict[str, Link] = {}
        self._switch: dict[str, Switch] = {switch.name: switch for switch in self.switches}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fabric):
            return NotImplemented
        return (self.nodes, self.switches, self.links, self.routing) == (
            other.nodes,
            other.switches,
            other.links,
            other.routing,
        )

    def __hash__(self) -> int:
        return hash((len(self.nodes), len(self.switches), len(self.links)))

    @property
    def ends(self) -> Iterator[tuple[str, Node, Hca]]:
        """Every end point: its name ``node/hca``, its node, its HCA."""
        return ((f"{node.name}/{hca.name}", node, hca) for node in self.nodes for hca in node.hcas)

    def switch(self, name: str) -> Optional[Switch]:
        """The switch of that name, None if it is none (an HCA, say)."""
        return self._switch.get(name)

    def links_of(self, end: str) -> tuple[Link, ...]:
        """The links of a switch or of an HCA (``node/hca``), in the order of the file; empty if it has none."""
        if not self._at:
            for link in self.links:
                self._at.setdefault(link.a, []).append(link)
                self._at.setdefault(link.b, []).append(link)
        return tuple(self._at.get(end, ()))

    def neighbours(self, end: str) -> tuple[str, ...]:
        """What is on the other side of the links of ``end``, each once, in the order of the links."""
        return tuple(dict.fromkeys(link.other(end) for link in self.links_of(end)))

    def link(self, name: str) -> Link:
        """The link of an id, directed (``…+``, ``…-``) or not. Raise KeyError if there is none."""
        if not self._by_id:
            self._by_id.update((link.id, link) for link in self.links)
        found = self._by_id.get(name)
        return found if found is not None else self._by_id[name[:-1] if name.endswith(("+", "-")) else name]

    def directed(self) -> Iterator[str]:
        """Every directed id: of each link a → b, then b → a."""
        for link in self.links:
            yield link.up
            yield link.down

    def direction(self, directed: str) -> tuple[str, str]:
        """From where to where a directed id goes. Raise KeyError if there is no such link."""
        link = self.link(directed)
        if directed == link.up:
            return link.a, link.b
        if directed == link.down:
            return link.b, link.a
        raise KeyError(directed)

    def tier_of(self, link: Link) -> str:
        """The name of a link's place: node-leaf, leaf-spine, spine-core, group-local, global, cube."""
        below, above = self._switch.get(link.a), self._switch[link.b]
        tiers = (0 if below is None else below.tier, above.tier)
        if below is None or (tiers[0] != tiers[1]):
            return TIER_NAMES.get(tiers, f"tier{tiers[0]}-tier{tiers[1]}" if below else "node-leaf")
        if below.group is None:
            return "cube"
        return "group-local" if below.group == above.group else "global"


def validate(fabric: Fabric) -> None:
    """Raise FabricError at the first thing that cannot be: a name or id twice, an unknown end, a port used twice."""
    names: dict[str, str] = {}
    for place, name in _names(fabric):
        if name in names:
            raise FabricError(place, f"{name!r}, which {names[name]} has", "a name of its own")
        names[name] = place
    ends = {end: f"nodes[{node.name}].hcas" for end, node, _ in fabric.ends}
    if len(ends) != sum(len(node.hcas) for node in fabric.nodes):
        twice = next(node for node in fabric.nodes if len({hca.name for hca in node.hcas}) < len(node.hcas))
        raise FabricError(f"nodes[{twice.name}].hcas", "an HCA's name twice", "each HCA once")
    _links(fabric, ends)
    _hcas(fabric)
    if fabric.routing is not None:
        _routing(fabric, ends)


def _names(fabric: Fabric) -> Iterator[tuple[str, str]]:
    for index, node in enumerate(fabric.nodes):
        yield f"nodes[{index}].name", node.name
    for index, switch in enumerate(fabric.switches):
        yield f"switches[{index}].name", switch.name


def _links(fabric: Fabric, ends: Mapping[str, str]) -> None:
    ids: dict[str, int] = {}
    used: dict[tuple[str, str], int] = {}
    for index, link in enumerate(fabric.links):
        place = f"links[{index}] ({link.id})"
        if link.id in ids:
            raise FabricError(f"{place}.id", f"the id of links[{ids[link.id]}]", "an id of its own")
        ids[link.id] = index
        below, above = fabric.switch(link.a), fabric.switch(link.b)
        if below is None and link.a not in ends:
            raise FabricError(f"{place}.a", f"{link.a!r}, which is neither node/hca nor a switch", "one of the fabric")
        if above is None:
            what = "an HCA" if link.b in ends else "no switch of this fabric"
            raise FabricError(f"{place}.b", f"{link.b!r}, {what}", "a switch (an HCA is side a)")
        if below is not None and (below.tier > above.tier or link.a == link.b):
            wanted = "another switch on side b, the lower tier on side a"
            raise FabricError(place, f"{link.a} (tier {below.tier}) to {link.b} (tier {above.tier})", wanted)
        for end, port in ((link.a, link.a_port), (link.b, link.b_port)):
            # An HCA is one port, whatever its number is called.
            key = (end, "" if end in ends else str(port))
            if key in used:
                other = fabric.links[used[key]].id
                raise FabricError(place, f"port {port} of {end}, which link {other} uses", "one link a port")
            used[key] = index


def _hcas(fabric: Fabric) -> None:
    """An HCA's leaf and port, where given, are those of its link."""
    plugged = {link.a: link for link in fabric.links if fabric.switch(link.a) is None}
    for end, node, hca in fabric.ends:
        link = plugged.get(end)
        place = f"nodes[{node.name}].hcas[{hca.name}]"
        if hca.leaf is not None and fabric.switch(hca.leaf) is None:
            raise FabricError(f"{place}.leaf", f"{hca.leaf!r}", "a switch of this fabric")
        if hca.leaf is None:
            continue
        if link is None:
            raise FabricError(place, f"leaf {hca.leaf}, but no link from {end}", "a link, or no leaf")
        if link.b != hca.leaf or (hca.port is not None and str(hca.port) != str(link.b_port)):
            found = f"leaf {hca.leaf} port {hca.port}, but link {link.id} goes to {link.b} port {link.b_port}"
            raise FabricError(place, found, "the same in both")


def _routing(fabric: Fabric, ends: Mapping[str, str]) -> None:
    routing = fabric.routing or {}
    if routing.get("mode") not in ROUTING_MODES:
        raise FabricError("routing.mode", repr(routing.get("mode")), ", ".join(ROUTING_MODES))
    if routing["mode"] != "static":
        return
    if not isinstance(routing.get("next_hop"), Mapping):
        raise FabricError("routing.next_hop", type(routing.get("next_hop")).__name__, "an object by switch")
    for switch, table in routing["next_hop"].items():
        if fabric.switch(switch) is None:
            raise FabricError("routing.next_hop", repr(switch), "a switch of this fabric")
        own = {link.id for link in fabric.links_of(switch)}
        for end, link in table.items():
            if end not in ends:
                raise FabricError(f"routing.next_hop[{switch}]", repr(end), "node/hca of this fabric")
            if link not in own:
                raise FabricError(f"routing.next_hop[{switch}][{end}]", repr(link), f"the id of a link of {switch}")
