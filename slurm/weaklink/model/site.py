"""cluster.json: what the controller knows of the cluster. Pure; the role guard writes the file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

PATH = "/etc/weaklink/cluster.json"
OBSERVE = "observe"
ENFORCE = "enforce"


class SiteError(Exception):
    """cluster.json cannot be used; the text says where and what was found."""


class Hca(NamedTuple):
    """An RDMA device that sweeps test: ``name`` is ``node/device``, ``address`` that of its NIC."""

    name: str
    node: str
    rail: int
    address: str


class SiteNode(NamedTuple):
    """A compute node: ``management`` is the address for the tests' rendezvous over TCP."""

    name: str
    leaf: str
    management: str
    hcas: tuple[Hca, ...]


class SweepRules(NamedTuple):
    """How sweeps measure and judge: seconds, iterations, a fraction, standard errors, counts, minutes."""

    bw_seconds: int = 2
    lat_iterations: int = 200
    min_loss: float = 0.15
    sigmas: float = 5.0
    baseline_sweeps: int = 3
    retests: int = 3
    setup_seconds: float = 20.0
    minutes: int = 30


class Site(NamedTuple):
    """The cluster as the controller sees it. ``policy`` is passed on to the drain budget as it is."""

    cluster: str
    mode: str
    service_user: str
    account: str
    qos: str
    partition: str
    store: str
    nodes: tuple[SiteNode, ...]
    policy: Mapping[str, Any]
    deadlines: Mapping[str, float]
    sweep: SweepRules

    @property
    def leaves(self) -> dict[str, list[str]]:
        """Return the nodes by leaf."""
        found: dict[str, list[str]] = {}
        for node in self.nodes:
            found.setdefault(node.leaf, []).append(node.name)
        return found

    def hcas(self) -> list[Hca]:
        """Return all HCAs that sweeps test."""
        return [hca for node in self.nodes for hca in node.hcas]


def parse_site(text: str, where: str = PATH) -> Site:
    """Return the site that ``text`` describes; SiteError when it does not. Only HCAs of role compute are kept."""
    try:
        data: Any = json.loads(text)
    except ValueError as error:
        raise SiteError(f"{where}: no JSON: {error}; run site.yml again") from error
    if not isinstance(data, dict) or data.get("format") != 1:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise SiteError(f"{where}: format {found!r}, wanted 1; run the site.yml that came with this weaklink")
    if data.get("mode") not in (OBSERVE, ENFORCE):
        raise SiteError(f"{where}: mode {data.get('mode')!r}, wanted {OBSERVE} or {ENFORCE}")
    try:
        known = {key: value for key, value in data.get("sweep", {}).items() if key in SweepRules._fields}
        return Site(
            str(data["cluster"]),
            data["mode"],
            str(data["service_user"]),
            str(data.get("account", "")),
            str(data.get("qos", "")),
            str(data.get("partition", "")),
            str(data["store"]),
            tuple(_node(entry) for entry in data["nodes"]),
            data["policy"],
            {str(key): float(value) for key, value in data.get("deadlines", {}).items()},
            SweepRules(**known),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SiteError(f"{where}: {type(error).__name__}: {error}; run site.yml again") from error


def _node(entry: Mapping[str, Any]) -> SiteNode:
    name = str(entry["name"])
    hcas = tuple(
        Hca(f"{name}/{hca['name']}", name, int(hca.get("rail") or 0), str(hca["address"]))
        for hca in entry["hcas"]
        if hca.get("role", "compute") == "compute" and hca.get("address")
    )
    return SiteNode(name, str(entry.get("leaf", "")), str(entry["management"]), hcas)


def load_site(path: str = PATH) -> Site:
    """Read cluster.json; SiteError when it is not there or not right."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SiteError(f"{path}: {error}; is this the controller? site.yml writes the file there") from error
    return parse_site(text, path)
