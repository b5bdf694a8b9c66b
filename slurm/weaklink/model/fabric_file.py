"""A fabric as JSON (``fabric.schema.json``): written object by object, read with every mistake named by its place."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional, TextIO

from weaklink.model.fabric import Fabric, FabricError, Hca, Link, Node, Port, Switch, validate

_COMPACT = (",", ":")


def write(fabric: Fabric, file: TextIO) -> None:
    """Write ``fabric`` as JSON, one object a line, without holding the text in memory."""
    file.writelines(lines(fabric))


def lines(fabric: Fabric) -> Iterator[str]:
    """The JSON text of ``fabric`` in pieces."""
    yield '{"nodes":['
    yield from _joined(_node(node) for node in fabric.nodes)
    yield '],\n"switches":['
    yield from _joined(_switch(switch) for switch in fabric.switches)
    yield '],\n"links":['
    yield from _joined(_link(link) for link in fabric.links)
    yield "]"
    if fabric.routing is not None:
        yield ',\n"routing":' + json.dumps(fabric.routing, separators=_COMPACT)
    yield "}\n"


def load(path: str) -> Fabric:
    """Read and check a fabric file. Raise FabricError with the file and the place in it."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FabricError(path, str(error), "a readable fabric file in UTF-8") from error
    try:
        return parse(json.loads(text))
    except json.JSONDecodeError as error:
        raise FabricError(f"{path}:{error.lineno}", error.msg, "JSON") from error
    except RecursionError as error:
        raise FabricError(path, "arrays or objects nested too deeply", "a fabric") from error
    except FabricError as error:
        raise FabricError(f"{path}: {error.place}", error.found, error.wanted) from error


def parse(data: object) -> Fabric:
    """Return the checked fabric that decoded JSON describes."""
    top = _Place("fabric", data)
    nodes = [_read_node(entry) for entry in top.each("nodes")]
    switches = [_read_switch(entry) for entry in top.each("switches")]
    links = [_read_link(entry) for entry in top.each("links")]
    routing = top.object("routing") if top.has("routing") else None
    fabric = Fabric(_plugged(nodes, links), switches, links, routing)
    validate(fabric)
    return fabric


def _joined(objects: Iterator[Mapping[str, Any]]) -> Iterator[str]:
    before = "\n"
    for entry in objects:
        yield before + json.dumps(entry, separators=_COMPACT)
        before = ",\n"


def _node(node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": node.name, "hcas": [hca._asdict() for hca in node.hcas]}
    if node.extra:
        entry["extra"] = True
    return entry


def _switch(switch: Switch) -> dict[str, Any]:
    entry = switch._asdict()
    if switch.group is None:
        del entry["group"]
    return entry


def _link(link: Link) -> dict[str, Any]:
    return {
        "id": link.id,
        "a": {"name": link.a, "port": link.a_port},
        "b": {"name": link.b, "port": link.b_port},
        "gbps": link.gbps,
        "cable": link.cable,
        "module_a": link.module_a,
        "module_b": link.module_b,
    }


class _Place(NamedTuple):
    """A piece of the file and where it stands."""

    at: str
    value: Any

    def has(self, key: str) -> bool:
        return self.fields().get(key) is not None

    def fields(self) -> Mapping[str, Any]:
        if not isinstance(self.value, dict):
            raise FabricError(self.at, type(self.value).__name__, "an object")
        return self.value

    def error(self, key: str, wanted: str) -> FabricError:
        found = self.fields()
        return FabricError(f"{self.at}.{key}", repr(found[key]) if key in found else "nothing", wanted)

    def text(self, key: str) -> str:
        value = self.fields().get(key)
        if not isinstance(value, str) or not value:
            raise self.error(key, "a text")
        return value

    def maybe(self, key: str) -> Optional[str]:
        return self.text(key) if self.has(key) else None

    def number(self, key: str, least: int, default: Optional[int] = None) -> int:
        value = self.fields().get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.error(key, f"a whole number from {least}")
        return value

    def port(self, key: str) -> Port:
        value = self.fields().get(key)
        if isinstance(value, bool) or not isinstance(value, (int, str)) or value == "":
            raise self.error(key, "a port's number or name")
        return value

    def object(self, key: str) -> Mapping[str, Any]:
        return _Place(f"{self.at}.{key}", self.fields().get(key)).fields()

    def inner(self, key: str) -> "_Place":
        return _Place(f"{self.at}.{key}", self.object(key))

    def each(self, key: str) -> "Iterator[_Place]":
        value = self.fields().get(key)
        if not isinstance(value, list):
            raise self.error(key, "a list")
        for index, entry in enumerate(value):
            yield _Place(f"{key if self.at == 'fabric' else self.at + '.' + key}[{index}]", entry)


def _read_node(place: _Place) -> Node:
    name = place.text("name")
    if "/" in name:
        raise place.error("name", "a name without /, which parts node and HCA")
    hcas = tuple(
        Hca(
            entry.text("name"),
            entry.number("rail", 0, 0),
            entry.number("plane", 0, 0),
            entry.maybe("leaf"),
            entry.port("port") if entry.has("port") else None,
        )
        for entry in place.each("hcas")
    )
    return Node(name, hcas, place.value.get("extra") is True)


def _read_switch(place: _Place) -> Switch:
    group = place.number("group", 0) if place.has("group") else None
    name = place.text("name")
    if "/" in name:
        raise place.error("name", "a name without /, which parts node and HCA")
    return Switch(name, place.number("tier", 1), place.number("plane", 0, 0), group)


def _read_link(place: _Place) -> Link:
    gbps = place.value.get("gbps") if isinstance(place.value, dict) else None
    if isinstance(gbps, bool) or not isinstance(gbps, (int, float)) or not 0 < gbps < float("inf"):
        raise place.error("gbps", "a rate above 0 in Gb/s")
    below, above = place.inner("a"), place.inner("b")
    return Link(
        place.text("id"),
        below.text("name"),
        below.port("port"),
        above.text("name"),
        above.port("port"),
        gbps,
        place.maybe("cable"),
        place.maybe("module_a"),
        place.maybe("module_b"),
    )


def _plugged(nodes: list[Node], links: list[Link]) -> Iterator[Node]:
    """Nodes whose HCAs say where they are plugged in, even if the file leaves that to the links."""
    at = {link.a: link for link in links}
    for node in nodes:
        hcas = []
        for hca in node.hcas:
            link = at.get(f"{node.name}/{hca.name}")
            if link is not None and hca.leaf is None:
                hcas.append(hca._replace(leaf=link.b, port=link.b_port))
            else:
                hcas.append(hca)
        yield node._replace(hcas=tuple(hcas))
