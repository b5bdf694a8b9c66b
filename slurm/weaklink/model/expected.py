"""Reader of expected.json: what this node should look like, what may be done about it, and within which time.

Written by the role guard; see FORMATS. A file that is broken is an ``ExpectedError`` that says where; hooks take it as
unknown.
"""

import json
from typing import Any, NamedTuple, Optional

PATH = "/etc/weaklink/expected.json"
FORMAT = 1
OBSERVE = "observe"
ENFORCE = "enforce"
# Seconds. A site with slow tools says its own.
_DEADLINES = {"prolog": 10.0, "epilog": 60.0, "health": 50.0, "check": 5.0, "slurm": 8.0}
_STRIKES = 2


class ExpectedError(Exception):
    """expected.json is not there, is no JSON, or lacks something; the text says where."""


class RdmaWant(NamedTuple):
    """What an RDMA port should be; None where the site says nothing."""

    device: str
    kind: str
    rate_gbps: Optional[float]
    active_mtu: Optional[int]
    gid_type: Optional[str]
    link_layer: str


class NicWant(NamedTuple):
    """What a NIC should be: found by ``pci``, with ``address`` ("10.77.1.11/24") and ``mtu`` in bytes."""

    pci: str
    network: str
    role: str
    address: Optional[str]
    mtu: Optional[int]
    rdma: Optional[RdmaWant]


class MountWant(NamedTuple):
    """A mount that should be there; ``proto`` is the transport it should use, None where it does not matter."""

    path: str
    fstype: str
    source: str
    proto: Optional[str]


class Expected(NamedTuple):
    """expected.json. ``policy`` is kept as it is written: budget, nonbatch, health_strikes.

    ``partitions`` and ``leaves`` hold host lists (``c[1-3]``) as they are written; ``budget_view`` expands them.
    """

    cluster: str
    node: str
    role: str
    mode: str
    service_user: str
    nics: tuple[NicWant, ...]
    mounts: tuple[MountWant, ...]
    daemons: tuple[str, ...]
    partitions: dict[str, list[str]]
    leaves: dict[str, list[str]]
    policy: dict[str, Any]
    deadlines: dict[str, float]

    @property
    def enforce(self) -> bool:
        """True when findings may be acted on; anything but the word itself observes."""
        return self.mode == ENFORCE

    @property
    def strikes(self) -> int:
        """How many bad runs in a row the health check waits for."""
        return max(1, int(self.policy.get("health_strikes", _STRIKES)))

    def deadline(self, name: str) -> float:
        """Return a deadline in seconds."""
        return self.deadlines.get(name, _DEADLINES[name])

    def budget_view(self) -> dict[str, Any]:
        """Return what the drain budget needs to know."""
        from weaklink.model.hostlist import expand

        # Thousands of names are written as ranges; only a decision to drain needs them one by one.
        def names(groups: dict[str, list[str]]) -> dict[str, list[str]]:
            return {name: [host for part in parts for host in expand(part)] for name, parts in groups.items()}

        return {"partitions": names(self.partitions), "leaves": names(self.leaves), "policy": self.policy}


class _Reader:
    """Takes typed values out of one JSON object; ``where`` is its place in the file, for messages."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, dict):
            raise ExpectedError(f"{where} is not an object")
        self.data = data
        self.where = where

    def get(self, key: str, kind: Any, default: Any = ...) -> Any:
        """Return a value of type ``kind``; without a default it must be there."""
        value = self.data.get(key)
        if value is None:
            if default is ...:
                raise ExpectedError(f"{self.where}.{key} is missing")
            return default
        # JSON's true is Python's 1: a number is wanted where a number is wanted.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ExpectedError(f"{self.where}.{key} is {str(value)[:40]!r}, which is not of the right kind")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        values = self.get(key, list, [])
        if not all(isinstance(value, str) for value in values):
            raise ExpectedError(f"{self.where}.{key} is not a list of names")
        return tuple(values)

    def groups(self, key: str) -> dict[str, list[str]]:
        """Return an object of host lists, each of one text or of several."""
        inner = _Reader(self.get(key, dict, {}), f"{self.where}.{key}")
        return {
            name: [value] if isinstance(value, str) else list(inner.strings(name)) for name, value in inner.data.items()
        }

    def objects(self, key: str) -> list["_Reader"]:
        """Return a list of objects."""
        return [_Reader(item, f"{self.where}.{key}[{at}]") for at, item in enumerate(self.get(key, list, []))]


_NUMBER = (int, float)


def _nic(reader: _Reader) -> NicWant:
    port = reader.get("rdma", dict, None)
    want = None
    if port is not None:
        inner = _Reader(port, f"{reader.where}.rdma")
        want = RdmaWant(
            device=inner.get("device", str, ""),
            kind=inner.get("kind", str, "hca"),
            rate_gbps=inner.get("rate_gbps", _NUMBER, None),
            active_mtu=inner.get("active_mtu", int, None),
            gid_type=inner.get("gid_type", str, None),
            link_layer=inner.get("link_layer", str, "Ethernet"),
        )
    return NicWant(
        pci=reader.get("pci", str),
        network=reader.get("network", str, ""),
        role=reader.get("role", str, ""),
        address=reader.get("address", str, None),
        mtu=reader.get("mtu", int, None),
        rdma=want,
    )


def parse(text: str, where: str = "expected.json") -> Expected:
    """Return the expectation out of the file's text; ``where`` names the file in errors."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ExpectedError(f"{where} is not JSON: {error}; run site.yml on this node") from error
    top = _Reader(data, where)
    if top.get("format", int) != FORMAT:
        raise ExpectedError(f"{where} has format {data['format']}, this weaklink reads {FORMAT}; run site.yml")
    policy = top.get("policy", dict)
    _Reader(policy, f"{where}.policy").get("budget", dict)
    _Reader(policy, f"{where}.policy").get("health_strikes", int, _STRIKES)
    deadlines = _Reader(top.get("deadlines", dict, {}), f"{where}.deadlines")
    return Expected(
        cluster=top.get("cluster", str, ""),
        node=top.get("node", str),
        role=top.get("role", str, "compute"),
        mode=top.get("mode", str, OBSERVE),
        service_user=top.get("service_user", str, ""),
        nics=tuple(_nic(reader) for reader in top.objects("nics")),
        mounts=tuple(
            MountWant(r.get("path", str), r.get("fstype", str, ""), r.get("source", str, ""), r.get("proto", str, None))
            for r in top.objects("mounts")
        ),
        daemons=top.strings("daemons"),
        partitions=top.groups("partitions"),
        leaves=top.groups("leaves"),
        policy=policy,
        deadlines={name: float(deadlines.get(name, _NUMBER)) for name in deadlines.data},
    )


def read(path: str = PATH) -> Expected:
    """Return the expectation in the file ``path``."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slow to load
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ExpectedError(f"{path} cannot be read: {error}; run site.yml on this node") from error
    return parse(text, path)
