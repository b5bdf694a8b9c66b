"""The list of cables: both ends of every link, the cable and modules it runs through, about how long it is. Pure.

Lengths are assumptions, for a count of copper and optics before there is a floor plan: ``Floor`` says what is assumed.
A node stands in rack number (node // nodes_per_rack); a switch stands in the rack of the middle one of what is plugged
into it from below (a router without end points with the router before it).
"""

import csv
import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Optional, TextIO

from weaklink.model.fabric import Fabric, Link, Port


class LengthClass(NamedTuple):
    """A class of cables: its longest in metres, and what such a cable usually is."""

    name: str
    metres: float
    kind: str


# Assumed: passive copper up to 3 m, active copper or optics within a row, optics beyond.
LENGTH_CLASSES = (
    LengthClass("in-rack", 3.0, "passive copper"),
    LengthClass("in-row", 20.0, "active copper or optics"),
    LengthClass("cross-row", 50.0, "optics"),
    LengthClass("hall", 500.0, "optics"),
)


class Floor(NamedTuple):
    """What is assumed of the hall: nodes a rack, racks a row, metres from rack to rack, row to row, and spare a cable.

    ``spare_m`` is the way up and down again and the slack; it does not count within a rack.
    """

    nodes_per_rack: int = 4
    racks_per_row: int = 16
    rack_pitch_m: float = 0.6
    row_pitch_m: float = 3.0
    spare_m: float = 5.0
    in_rack_m: float = 2.0


class Cable(NamedTuple):
    """One link of the list. Side a is a node's HCA (``a_hca`` set) or the switch of the lower tier.

    Two links with the same ``cable`` run in one (twin-port modules on both ends); no port stands in the list twice.
    """

    cable: str
    link: str
    tier: str
    gbps: float
    a: str
    a_hca: str
    a_port: Port
    a_module: str
    a_rack: str
    b: str
    b_port: Port
    b_module: str
    b_rack: str
    length: str
    metres: float


def cables(fabric: Fabric, floor: Optional[Floor] = None) -> Iterator[Cable]:
    """Every link of ``fabric`` as a line of the list, in the order of the fabric."""
    floor = floor or Floor()
    racks = _racks(fabric, floor)
    for link in fabric.links:
        node, _, hca = link.a.partition("/")
        metres = _metres(floor, racks[node], racks[link.b])
        yield Cable(
            cable=link.cable or link.id,
            link=link.id,
            tier=fabric.tier_of(link),
            gbps=link.gbps,
            a=node,
            a_hca=hca,
            a_port=link.a_port,
            a_module=link.module_a or "",
            a_rack=_rack_name(floor, racks[node]),
            b=link.b,
            b_port=link.b_port,
            b_module=link.module_b or "",
            b_rack=_rack_name(floor, racks[link.b]),
            length=length_class(metres),
            metres=metres,
        )


def length_class(metres: float) -> str:
    """The first class that is long enough; beyond all of them the last."""
    return next((found.name for found in LENGTH_CLASSES if metres <= found.metres), LENGTH_CLASSES[-1].name)


def summary(lines: Iterable[Cable]) -> dict[str, dict[str, int]]:
    """Cables (those that two links share once) by tier and length class."""
    seen: set[str] = set()
    found: dict[str, dict[str, int]] = {}
    for line in lines:
        if line.cable not in seen:
            seen.add(line.cable)
            tier = found.setdefault(line.tier, {})
            tier[line.length] = tier.get(line.length, 0) + 1
    return found


def write_csv(lines: Iterable[Cable], file: TextIO) -> None:
    """Write the list as CSV with a header."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(Cable._fields)
    writer.writerows(lines)


def write_jsonl(lines: Iterable[Cable], file: TextIO) -> None:
    """Write the list as JSON, one object a line."""
    file.writelines(json.dumps(line._asdict(), separators=(",", ":")) + "\n" for line in lines)


def write_table(lines: Iterable[Cable], file: TextIO) -> None:
    """Write the list for people: the widths are fixed, so that it streams."""
    shape = "{:<12} {:<26} {:<26} {:<14} {:<14} {:<10} {:>6}\n"
    file.write(shape.format("tier", "from", "to", "rack", "rack", "length", "m"))
    for line in lines:
        start = f"{line.a}/{line.a_hca}" if line.a_hca else line.a
        ends = (f"{start} port {line.a_port}", f"{line.b} port {line.b_port}", line.a_rack, line.b_rack)
        file.write(shape.format(line.tier, *ends, line.length, f"{line.metres:.1f}"))
    assumed = ", ".join(f"{found.name} up to {found.metres:g} m ({found.kind})" for found in LENGTH_CLASSES)
    file.write(f"lengths are assumed: {assumed}\n")


def _racks(fabric: Fabric, floor: Floor) -> dict[str, int]:
    """The rack number of every node and switch."""
    racks = {node.name: index // floor.nodes_per_rack for index, node in enumerate(fabric.nodes)}
    below: dict[str, list[Link]] = {}
    tiers = {switch.name: switch.tier for switch in fabric.switches}
    for link in fabric.links:
        if tiers.get(link.a, 0) < tiers[link.b]:
            below.setdefault(link.b, []).append(link)
    before = 0
    for switch in sorted(fabric.switches, key=lambda switch: switch.tier):
        under = sorted(racks[link.a.partition("/")[0]] for link in below.get(switch.name, ()))
        before = under[len(under) // 2] if under else before
        racks[switch.name] = before
    return racks


def _metres(floor: Floor, one: int, other: int) -> float:
    if one == other:
        return floor.in_rack_m
    (row, place), (other_row, other_place) = divmod(one, floor.racks_per_row), divmod(other, floor.racks_per_row)
    along = abs(place - other_place) * floor.rack_pitch_m
    return round(along + abs(row - other_row) * floor.row_pitch_m + floor.spare_m, 1)


def _rack_name(floor: Floor, rack: int) -> str:
    row, place = divmod(rack, floor.racks_per_row)
    return f"row{row + 1}-rack{place + 1}"
