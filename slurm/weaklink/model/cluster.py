"""cluster.yml as data: hosts, addresses, NICs, switches, mounts, partitions. Pure but for reading the file.

For the controller only. Host ranges are expanded, addresses computed, contradictions refused with file and line.
``cluster_render`` and ``cluster_slurm`` make of it what Ansible, the nodes, Slurm and the guard read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weaklink.model import cluster_fabric, cluster_hosts, cluster_networks, cluster_storage
from weaklink.model.cluster_file import ClusterError, Document, validate
from weaklink.model.cluster_types import Cluster, Group, Host, Mount, Network, Nic, Partition, SwitchGroup
from weaklink.model.words import nearest

__all__ = [
    "Cluster",
    "ClusterError",
    "Group",
    "Host",
    "Mount",
    "Network",
    "Nic",
    "Partition",
    "SwitchGroup",
    "build",
    "load",
    "parse",
    "read",
]

DEFAULT_BUDGET = {
    "total_nodes": None,
    "total_fraction": 0.10,
    "check_nodes": None,
    "check_fraction": 0.05,
    "leaf_fraction": 0.25,
    "reserve_fraction": 0.10,
    "window_seconds": 3600,
}
DEFAULT_POLICY = {"nonbatch": "cancel", "health_strikes": 2}
DEFAULT_DEADLINES = {"prolog": 10, "epilog": 60, "health": 50, "check": 5, "slurm": 8}
DEFAULT_SWEEP = {"bw_seconds": 2, "lat_iterations": 200, "min_loss": 0.15, "sigmas": 5, "baseline_sweeps": 3}


def read(path: str | Path) -> Document:
    """Read a cluster file and check it against the schema."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError((str(path), 1), "(file)", str(error), "a readable cluster file in UTF-8") from error
    document = Document(str(path), text)
    validate(document)
    return document


def load(path: str | Path) -> Cluster:
    """Read and check a cluster file."""
    return build(read(path))


def parse(file: str, text: str) -> Cluster:
    """Return the cluster that ``text`` describes; ``file`` is for messages. Pure."""
    document = Document(file, text)
    validate(document)
    return build(document)


def build(document: Document) -> Cluster:
    """Return the cluster of a document that the schema accepts. Pure."""
    data = document.data
    networks = cluster_networks.read(document)
    groups, machines = cluster_hosts.read(document, networks)
    switches = cluster_fabric.switches(document, networks, machines)
    warnings = cluster_fabric.check(document, networks, groups, machines, switches)
    partitions = _partitions(document, groups)
    return Cluster(
        name=data["cluster"],
        mode=data.get("mode", "observe"),
        service_user=data.get("service_user", "weaklink"),
        networks=networks,
        groups=groups,
        hosts=machines,
        partitions=partitions,
        mounts=cluster_storage.read(document, networks, machines),
        policy={
            **DEFAULT_POLICY,
            **data.get("policy", {}),
            "budget": {**DEFAULT_BUDGET, **data.get("policy", {}).get("budget", {})},
        },
        deadlines={**DEFAULT_DEADLINES, **data.get("deadlines", {})},
        sweep={**DEFAULT_SWEEP, **data.get("sweep", {})},
        manage=data.get("manage", "all"),
        switches=switches,
        fabric=cluster_fabric.settings_of(document),
        slurm=_slurm(document, machines),
        expected=data.get("expected", {}),
        warnings=warnings,
    )


def _slurm(document: Document, hosts: dict[str, Host]) -> dict[str, Any]:
    """Return the section ``slurm`` with its defaults; block topology needs blocks of nodes."""
    found: dict[str, Any] = {"topology": "tree", "block_sizes": [], "options": {}, **document.data.get("slurm", {})}
    compute = [host for host in hosts.values() if host.role == "compute"]
    if found["topology"] != "block":
        if found["block_sizes"]:
            raise document.error(
                ("slurm", "block_sizes"), f"with topology {found['topology']}", "block_sizes with topology block only"
            )
        return found
    without = next((host for host in compute if not host.block), None)
    if without:
        raise document.error(
            ("slurm", "topology"), f"block, and group {without.group} says no block_nodes", "block_nodes of each group"
        )
    counts: dict[str, int] = {}
    for host in compute:
        counts[host.block] = counts.get(host.block, 0) + 1
    smallest = min(counts.values())
    sizes = found["block_sizes"] or [max(counts.values())]
    if sizes[0] > smallest:
        name = min(counts, key=lambda block: counts[block])
        text = f"{sizes[0]}, and {name} has {smallest} nodes"
        raise document.error(
            ("slurm", "block_sizes"), text, f"at most {smallest}: every block must hold one base block"
        )
    for size, following in zip(sizes, sizes[1:]):
        times = following // size
        if following % size or times < 2 or times & (times - 1):  # noqa: PLR2004 - powers of two
            text = f"{following} after {size}"
            raise document.error(("slurm", "block_sizes"), text, "each one a power of two times the one before")
    return {**found, "block_sizes": sizes}


def _partitions(document: Document, groups: dict[str, Group]) -> dict[str, Partition]:
    partitions = {}
    spelled = {
        "min_nodes": "MinNodes",
        "max_nodes": "MaxNodes",
        "qos": "QOS",
        "priority_tier": "PriorityTier",
    }
    for name, entry in document.data["partitions"].items():
        hosts: list[str] = []
        for index, group in enumerate(entry["groups"]):
            compute = [known for known, value in groups.items() if value.role == "compute"]
            if group not in compute:
                path = ("partitions", name, "groups", index)
                raise document.error(
                    path, repr(group), f"compute groups: {', '.join(compute)}", nearest(group, compute)
                )
            if group in entry["groups"][:index]:
                raise document.error(("partitions", name, "groups", index), f"{group} twice", "each group once")
            hosts += groups[group].hosts
        options = {word: str(entry[key]) for key, word in spelled.items() if key in entry}
        if "allow_accounts" in entry:
            options["AllowAccounts"] = ",".join(entry["allow_accounts"])
        options.update({key: str(value) for key, value in entry.get("options", {}).items()})
        partitions[name] = Partition(
            name, tuple(hosts), entry.get("default", False), entry.get("max_time", "INFINITE"), options
        )
    defaults = [name for name, partition in partitions.items() if partition.default]
    if len(defaults) > 1:
        found = f"a second default partition (the first is {defaults[0]})"
        raise document.error(("partitions", defaults[1], "default"), found, "one default partition")
    return partitions
