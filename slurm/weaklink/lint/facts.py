"""The facts of a node's fabric that NCCL settings are held against: read from JSON and checked. Pure."""

from typing import Any, NamedTuple, Optional

from weaklink.lint.parse import InputError
from weaklink.lint.version import version

ETHERNET = "Ethernet"
INFINIBAND = "InfiniBand"
COMPUTE = "compute"

_LAYERS = {"ethernet": ETHERNET, "roce": ETHERNET, "infiniband": INFINIBAND, "ib": INFINIBAND}
_ROLES = ("compute", "storage", "management", "none")
_INTER_RAIL = ("full", "slow", "none")
_DSCPS = 64
_PRIORITIES = 8


class Hca(NamedTuple):
    """An RDMA device: link layer, what it is for, its rail, its NUMA node, the GPU beside it, its interface."""

    name: str
    link_layer: str
    role: str
    rail: Optional[int]
    numa: Optional[int]
    gpu: Optional[int]
    netdev: str


class Netdev(NamedTuple):
    """A network interface: what it is for and its addresses ("10.77.0.1/24")."""

    name: str
    role: str
    addresses: tuple[str, ...]


class Gid(NamedTuple):
    """A row of a GID table: its number, type ("RoCE v2"), address, interface."""

    number: int
    type: str
    address: str
    netdev: str


class Facts(NamedTuple):
    """Everything that was said of the node; None or empty where nothing was."""

    hcas: dict[str, Hca]
    netdevs: dict[str, Netdev]
    gids: dict[str, tuple[Gid, ...]]
    gpus: Optional[int]
    nccl_version: Optional[str]
    bootstrap_interface: str
    lossless_priority: Optional[int]
    trust: str
    dscp2prio: dict[int, int]
    rdma_dscp: Optional[int]
    cnp_dscp: Optional[int]
    forced_traffic_class: Optional[int]
    adaptive_routing: Optional[bool]
    adaptive_routing_sls: tuple[int, ...]
    inter_rail: str
    unknown_keys: tuple[str, ...]

    def compute(self) -> list[Hca]:
        """Return the HCAs that jobs should use."""
        return [hca for hca in self.hcas.values() if hca.role == COMPUTE]

    def layer(self) -> str:
        """Return the link layer of the compute HCAs, empty where it is not known or mixed."""
        layers = {hca.link_layer for hca in self.compute()}
        return layers.pop() if len(layers) == 1 else ""

    def priority(self, dscp: int) -> int:
        """Return the priority that a DSCP is sorted into: by the table where it says so, else DSCP / 8."""
        return self.dscp2prio.get(dscp, dscp >> 3)


class _Reader:
    """Takes typed values out of the object; ``file`` is its name for messages."""

    def __init__(self, data: Any, file: str) -> None:
        self.file = file
        self.data = self.object(data, "the file")
        self.seen: set[str] = set()

    def fail(self, where: str, found: Any, wanted: str) -> InputError:
        return InputError(f"{self.file}: {where} is {str(found)[:60]!r}, wanted {wanted}")

    def object(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.fail(where, value, "an object")
        return value

    def take(self, key: str) -> Any:
        self.seen.add(key)
        return self.data.get(key)

    def number(self, value: Any, where: str, low: int, high: int) -> Optional[int]:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.fail(where, value, f"a whole number from {low} to {high}")
        return value

    def text(self, value: Any, where: str, allowed: tuple[str, ...] = ()) -> str:
        if value is None:
            return ""
        if not isinstance(value, str) or (allowed and value not in allowed):
            raise self.fail(where, value, "one of " + ", ".join(allowed) if allowed else "a text")
        return value

    def rows(self, value: Any, where: str) -> list[tuple[str, dict[str, Any]]]:
        """Return (name, object) of an object by name, or of a list of objects with a name."""
        if value is None:
            return []
        if isinstance(value, dict):
            return [(name, self.object(row, f"{where}.{name}")) for name, row in value.items()]
        if not isinstance(value, list):
            raise self.fail(where, value, "an object by name")
        rows = [self.object(row, f"{where}[{index}]") for index, row in enumerate(value)]
        for index, row in enumerate(rows):
            if not isinstance(row.get("name"), str):
                raise self.fail(f"{where}[{index}].name", row.get("name"), "a name")
        return [(row["name"], row) for row in rows]


def read_facts(data: Any, file: str = "facts") -> Facts:
    """Return the facts in ``data`` (parsed JSON; see lint.schema.json, "facts"). Raises InputError with the place."""
    reader = _Reader(data, file)
    layer = _layer(reader, reader.take("link_layer"), "link_layer", ETHERNET)
    hcas = {name: _hca(reader, name, row, layer) for name, row in reader.rows(reader.take("hcas"), "hcas")}
    netdevs = {name: _netdev(reader, name, row) for name, row in reader.rows(reader.take("netdevs"), "netdevs")}
    spoken = reader.text(reader.take("nccl_version"), "nccl_version")
    if spoken:
        try:
            version(spoken)
        except ValueError as error:
            raise InputError(f"{file}: nccl_version: {error}") from error
    adaptive = reader.take("adaptive_routing")
    if adaptive is not None and not isinstance(adaptive, bool):
        raise reader.fail("adaptive_routing", adaptive, "true or false")
    facts = Facts(
        hcas=hcas,
        netdevs=netdevs,
        gids=_gids(reader),
        gpus=reader.number(reader.take("gpus"), "gpus", 0, 1024),
        nccl_version=spoken or None,
        bootstrap_interface=reader.text(reader.take("bootstrap_interface"), "bootstrap_interface"),
        lossless_priority=_number(reader, "lossless_priority", _PRIORITIES - 1),
        trust=reader.text(reader.take("trust"), "trust", ("dscp", "pcp")),
        dscp2prio=_dscp2prio(reader),
        rdma_dscp=_number(reader, "rdma_dscp", _DSCPS - 1),
        cnp_dscp=_number(reader, "cnp_dscp", _DSCPS - 1),
        forced_traffic_class=_number(reader, "forced_traffic_class", 255),
        adaptive_routing=adaptive,
        adaptive_routing_sls=_sls(reader),
        inter_rail=reader.text(reader.take("inter_rail"), "inter_rail", _INTER_RAIL),
        unknown_keys=(),
    )
    return facts._replace(unknown_keys=tuple(sorted(set(reader.data) - reader.seen)))


def _number(reader: _Reader, key: str, high: int) -> Optional[int]:
    return reader.number(reader.take(key), key, 0, high)


def _layer(reader: _Reader, value: Any, where: str, default: str) -> str:
    text = reader.text(value, where)
    if not text:
        return default
    if text.lower() not in _LAYERS:
        raise reader.fail(where, text, f"{ETHERNET} or {INFINIBAND}")
    return _LAYERS[text.lower()]


def _hca(reader: _Reader, name: str, row: dict[str, Any], layer: str) -> Hca:
    where = f"hcas.{name}"
    return Hca(
        name,
        _layer(reader, row.get("link_layer"), f"{where}.link_layer", layer),
        reader.text(row.get("role"), f"{where}.role", _ROLES) or COMPUTE,
        reader.number(row.get("rail"), f"{where}.rail", 0, 1023),
        reader.number(row.get("numa"), f"{where}.numa", -1, 1023),
        reader.number(row.get("gpu"), f"{where}.gpu", 0, 1023),
        reader.text(row.get("netdev"), f"{where}.netdev"),
    )


def _netdev(reader: _Reader, name: str, row: dict[str, Any]) -> Netdev:
    addresses = row.get("addresses") or []
    if not isinstance(addresses, list) or not all(isinstance(address, str) for address in addresses):
        raise reader.fail(f"netdevs.{name}.addresses", addresses, "a list of addresses")
    return Netdev(name, reader.text(row.get("role"), f"netdevs.{name}.role"), tuple(addresses))


def _gids(reader: _Reader) -> dict[str, tuple[Gid, ...]]:
    found: dict[str, tuple[Gid, ...]] = {}
    for name, rows in reader.object(reader.take("gids") or {}, "gids").items():
        where = f"gids.{name}"
        if not isinstance(rows, list):
            raise reader.fail(where, rows, "a list of rows {index, type, address, netdev}")
        table = []
        for number, row in enumerate(rows):
            place = f"{where}[{number}]"
            index = reader.number(reader.object(row, place).get("index"), f"{place}.index", 0, 255)
            if index is None:
                raise reader.fail(f"{place}.index", None, "a whole number from 0 to 255")
            texts = [reader.text(row.get(key), f"{place}.{key}") for key in ("type", "address", "netdev")]
            table.append(Gid(index, *texts))
        found[name] = tuple(table)
    return found


def _dscp2prio(reader: _Reader) -> dict[int, int]:
    value = reader.take("dscp2prio")
    if value is None:
        return {}
    if isinstance(value, list):
        if len(value) != _DSCPS:
            raise reader.fail("dscp2prio", f"a list of {len(value)}", f"{_DSCPS} priorities, or an object by DSCP")
        value = {str(dscp): priority for dscp, priority in enumerate(value)}
    table: dict[int, int] = {}
    for dscp, priority in reader.object(value, "dscp2prio").items():
        if not dscp.isascii() or not dscp.isdigit() or int(dscp) >= _DSCPS:
            raise reader.fail("a key of dscp2prio", dscp, f"a DSCP from 0 to {_DSCPS - 1}")
        number = reader.number(priority, f"dscp2prio.{dscp}", 0, _PRIORITIES - 1)
        if number is not None:
            table[int(dscp)] = number
    return table


def _sls(reader: _Reader) -> tuple[int, ...]:
    value = reader.take("adaptive_routing_sls")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise reader.fail("adaptive_routing_sls", value, "a list of service levels")
    numbers = [reader.number(item, f"adaptive_routing_sls[{index}]", 0, 15) for index, item in enumerate(value)]
    return tuple(number for number in numbers if number is not None)
