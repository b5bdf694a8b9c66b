"""Read ``lldpcli -f json`` and ``-f json0``."""

from collections.abc import Iterable, Iterator
from typing import Any, Optional

from weaklink.observe.tools import mlx_json
from weaklink.observe.tools.lldpcli_records import Neighbour, Record
from weaklink.observe.tools.mlx_common import note
from weaklink.observe.tools.text import Trouble

_MOST = 20_000


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    found, trouble = mlx_json.documents(lines)
    troubles = list(trouble)
    neighbours: list[Neighbour] = []
    known = False
    version = "json"
    for document in found:
        for item in mlx_json.objects(document):
            if "lldp" not in item:
                continue
            known = True
            if isinstance(item["lldp"], list):
                version = "json0"
            for top in mlx_json.objects(item["lldp"]):
                for netdev, body in _interfaces(top.get("interface")):
                    if len(neighbours) < _MOST:
                        neighbours.append(_neighbour(netdev, body, troubles))
    if not known and not troubles:
        note(troubles, 0, "no object 'lldp' was found")
    return Record(tuple(neighbours), version, tuple(troubles))


def _interfaces(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and body of each interface, in all three shapes: named objects, a list of them, json0's rows."""
    for item in mlx_json.objects(value):
        name = item.get("name")
        if isinstance(name, str) and ("chassis" in item or "port" in item or "via" in item):
            yield name, item
            continue
        for key, body in item.items():
            for row in mlx_json.objects(body):
                yield str(key), row


def _neighbour(netdev: str, body: dict[str, Any], troubles: list[Trouble]) -> Neighbour:
    switch, chassis = _chassis(body.get("chassis"))
    ids: dict[str, str] = {}
    descr: Optional[str] = None
    for port in mlx_json.objects(body.get("port")):
        for row in mlx_json.objects(port.get("id")):
            kind, value = row.get("type"), _text(row.get("value"))
            if value:
                ids.setdefault(str(kind), value)
        descr = descr or _text(port.get("descr"))
    if switch is None or not (ids or descr):
        note(troubles, 0, f"{netdev}: no name of a switch and port")
    return Neighbour(netdev, 0, switch, chassis, ids, descr)


def _chassis(value: Any) -> tuple[Optional[str], Optional[str]]:
    """Return name and id; ``json`` has the name as the key, and none where the switch sends none."""
    for item in mlx_json.objects(value):
        if "id" in item or "name" in item:
            return _text(item.get("name")), _id(item.get("id"))
        for name, body in item.items():
            for row in mlx_json.objects(body):
                return str(name), _id(row.get("id"))
    return None, None


def _id(value: Any) -> Optional[str]:
    return next((_text(row.get("value")) for row in mlx_json.objects(value)), None)


def _text(value: Any) -> Optional[str]:
    """Return a text that may be wrapped as json0 does it: ``[{"value": "…"}]``."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        value = value.get("value")
    return value.strip() or None if isinstance(value, str) else None
