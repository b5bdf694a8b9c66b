"""What Slurm is told of a cluster: nodes, partitions, topology and GPUs, with host lists folded to ranges. Pure.

A rail-optimised node touches one leaf a rail, which topology/tree does not allow: the nodes of a scalable unit are one
pseudo-leaf. The sizes here grow with the groups and the 256 addresses of a range, not with the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from weaklink.model.cluster_types import Cluster, Host
from weaklink.model.hostlist import fold

Json = dict[str, Any]


def leaves(cluster: Cluster) -> dict[str, str]:
    """Return the compute nodes by leaf group, each as a host list."""
    return _folded((host.leaf, host.name) for host in cluster.compute)


def blocks(cluster: Cluster) -> dict[str, str]:
    """Return the compute nodes by NVLink domain, each as a host list; those of none are left out."""
    return _folded((host.block, host.name) for host in cluster.compute if host.block)


def _folded(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for key, name in pairs:
        found.setdefault(key, []).append(name)
    return {key: fold(names) for key, names in found.items()}


def partitions(cluster: Cluster) -> list[Json]:
    """Return the partitions: name, nodes as a host list, default, max_time, further options."""
    return [
        {
            "name": partition.name,
            "nodes": fold(partition.hosts),
            "default": partition.default,
            "max_time": partition.max_time,
            "options": partition.options,
        }
        for partition in cluster.partitions.values()
    ]


def nodes(cluster: Cluster) -> list[Json]:
    """Return the compute nodes in runs of like ones: names and addresses as host lists, then what a node has."""
    return [run for group in cluster.groups.values() if group.role == "compute" for run in _runs(cluster, group.name)]


def _runs(cluster: Cluster, group: str) -> Iterator[Json]:
    settings = cluster.groups[group].settings
    hosts = [cluster.hosts[name] for name in cluster.groups[group].hosts]
    for _, run in groupby(hosts, key=lambda host: _address(cluster, host).rpartition(".")[0]):
        alike = list(run)
        first = alike[0]
        addresses = [address for host in alike if (address := _address(cluster, host))]
        yield {
            "name": fold(host.name for host in alike),
            "address": fold(addresses),
            "cpus": first.cpus,
            "sockets": settings.get("sockets", 0),
            "cores": settings.get("cores", 0),
            "threads": settings.get("threads", 0),
            "memory_mb": first.memory_mb,
            "gpus": first.gpus,
            "gpu_type": first.gpu_type,
            "features": settings.get("features", []),
            "weight": settings.get("weight", 1),
        }


def _address(cluster: Cluster, host: Host) -> str:
    nic = host.nic(cluster.management)
    return nic.ip if nic else ""


def topology(cluster: Cluster) -> Json:
    """Return what topology.conf says: plugin (tree, block, flat), leaves or blocks as host lists, block sizes."""
    plugin = cluster.slurm.get("topology", "tree")
    return {
        "plugin": plugin,
        "leaves": leaves(cluster) if plugin == "tree" else {},
        "blocks": blocks(cluster) if plugin == "block" else {},
        "block_sizes": cluster.slurm.get("block_sizes", []),
    }
