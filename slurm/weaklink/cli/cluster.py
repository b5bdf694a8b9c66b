"""``weaklink cluster``: check a cluster.yml and show what follows from it. Needs no cluster."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from weaklink.cli import UsageError
from weaklink.model import cluster, cluster_render, cluster_slurm
from weaklink.model.words import nearest

PARTS = ("summary", "hosts", "slurm", "expected", "controller", "fabric")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="weaklink cluster", description=__doc__)
    parser.add_argument("file", metavar="FILE", help="the cluster file")
    parser.add_argument(
        "--show",
        choices=PARTS,
        default="summary",
        help="summary (default), addresses of all hosts, what Slurm is told, expected.json of --host, cluster.json, "
        "the fabric (JSON)",
    )
    parser.add_argument("--host", metavar="NAME", help="the host whose expected.json to show, or the only one to list")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def run(argv: list[str]) -> int:
    """Run the command; return its exit code."""
    args = _parser().parse_args(argv)
    try:
        described = cluster.load(args.file)
    except cluster.ClusterError as error:
        raise UsageError(str(error)) from error
    for warning in described.warnings:
        print(f"{args.file}: warning: {warning}", file=sys.stderr)
    if args.host and args.host not in described.hosts:
        hint = nearest(args.host, described.hosts)
        raise UsageError(f"{args.file}: no host {args.host!r}" + (f"; did you mean {hint!r}?" if hint else ""))
    if args.show == "expected" and not args.host:
        raise UsageError("--show expected needs --host NAME: each host has its own")
    if args.show == "fabric":
        return _print_fabric(args.file, described)
    data = _data(described, args.show, args.host)
    if args.json or args.show in ("expected", "controller"):
        print(json.dumps(data, indent=2))
    else:
        for line in _SHOWS[args.show](data):
            print(line)
    return 0


def _print_fabric(file: str, described: cluster.Cluster) -> int:
    from weaklink.model import fabric_file
    from weaklink.model.cluster_wiring import fabric_of
    from weaklink.model.fabric import FabricError

    try:
        fabric = fabric_of(described)
    except FabricError as error:
        raise UsageError(f"{file}: {error}") from error
    fabric_file.write(fabric, sys.stdout)
    return 0


def _data(described: cluster.Cluster, show: str, host: str | None) -> Any:
    if show == "hosts":
        hosts = [described.hosts[host]] if host else described.hosts.values()
        return [
            {
                "name": item.name,
                "group": item.group,
                "role": item.role,
                "leaf": item.leaf,
                "block": item.block or None,
                "rack": item.rack or None,
                "nics": cluster_render.nics(described, item),
            }
            for item in hosts
        ]
    if show == "slurm":
        return {
            "nodes": cluster_slurm.nodes(described),
            "partitions": cluster_slurm.partitions(described),
            "topology": cluster_slurm.topology(described),
            "options": described.slurm.get("options", {}),
        }
    if show == "expected":
        return cluster_render.expected(described, described.hosts[host or ""])
    if show == "controller":
        return cluster_render.controller(described)
    return _summary(described)


def _summary(described: cluster.Cluster) -> dict[str, Any]:
    gpus = sum(host.gpus for host in described.compute)
    return {
        "cluster": described.name,
        "manage": described.manage,
        "mode": described.mode,
        "controller": described.controller.name,
        "groups": [
            {
                "name": group.name,
                "role": group.role,
                "hosts": len(group.hosts),
                "leaves": len({described.hosts[name].leaf for name in group.hosts}) if group.role == "compute" else 0,
            }
            for group in described.groups.values()
        ],
        "gpus": gpus,
        "networks": [
            {
                "name": network.name,
                "role": network.role,
                "transport": network.transport,
                "cidr": network.cidr,
                "mtu": network.mtu,
                "nics": sum(nic.network == network.name for host in described.hosts.values() for nic in host.nics),
            }
            for network in described.networks.values()
        ],
        "switches": [
            {"name": group.name, "network": group.network, "tier": group.tier, "count": len(group.names)}
            for group in described.switches.values()
        ],
        "mounts": [
            {"path": mount.path, "type": mount.type, "transport": mount.transport} for mount in described.mounts
        ],
        "partitions": {name: len(partition.hosts) for name, partition in described.partitions.items()},
        "warnings": list(described.warnings),
    }


def _summary_lines(data: dict[str, Any]) -> Iterator[str]:
    roles = Counter({group["role"]: 0 for group in data["groups"]})
    for group in data["groups"]:
        roles[group["role"]] += group["hosts"]
    yield f"{data['cluster']}: {', '.join(f'{count} {role}' for role, count in roles.items())}, {data['gpus']} GPUs"
    yield f"weaklink manages: {'everything' if data['manage'] == 'all' else 'its guard alone'}, mode {data['mode']}"
    yield f"{'NETWORK':<14} {'ROLE':<11} {'TRANSPORT':<11} {'ADDRESSES':<18} {'MTU':>5} {'NICS':>6}"
    for network in data["networks"]:
        cidr = network["cidr"] or "-"
        text = f"{network['name']:<14} {network['role']:<11} {network['transport']:<11} {cidr:<18}"
        yield f"{text} {network['mtu']:>5} {network['nics']:>6}"
    for switch in data["switches"]:
        yield f"switches {switch['name']}: {switch['count']} in {switch['network']}, tier {switch['tier']}"
    for mount in data["mounts"]:
        yield f"mount {mount['path']}: {mount['type']} over {mount['transport']}"
    for name, count in data["partitions"].items():
        yield f"partition {name}: {count} nodes"


def _host_lines(data: list[dict[str, Any]]) -> Iterator[str]:
    for host in data:
        places = [host["group"], host["role"], host["leaf"], host["block"], host["rack"]]
        yield f"{host['name']} ({', '.join(place for place in places if place)})"
        for nic in host["nics"]:
            device = nic["rdma"]["device"] if nic["rdma"] else "-"
            yield f"  {nic['name']:<14} {nic['pci']:<13} {nic['address'] or '-':<19} {device}"


def _slurm_lines(data: dict[str, Any]) -> Iterator[str]:
    for node in data["nodes"]:
        yield f"nodes {node['name']} at {node['address'] or 'their names'}: {node['cpus']} CPUs, {node['gpus']} GPUs"
    for partition in data["partitions"]:
        yield f"partition {partition['name']}: {partition['nodes']}"
    topology = data["topology"]
    yield f"topology/{topology['plugin']}"
    for name, nodes in {**topology["leaves"], **topology["blocks"]}.items():
        yield f"  {name}: {nodes}"


_SHOWS: dict[str, Any] = {"summary": _summary_lines, "hosts": _host_lines, "slurm": _slurm_lines}
