"""What others read of the cluster: Ansible's variables, expected.json of a node, cluster.json. Pure."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from weaklink.model import cluster_slurm, nccl
from weaklink.model.cluster_types import Cluster, Host, Mount, Nic

Json = dict[str, Any]

DAEMONS = {
    "compute": ["munge", "slurmd"],
    "controller": ["munge", "slurmdbd", "slurmctld"],
    "login": ["munge"],
    "storage": [],
}
# With an existing Slurm it is not known which of its daemons run where.
_GUARD_DAEMONS = {"compute": ["slurmd"]}
_FSTYPES = {"nfs": "nfs4", "vast": "nfs", "lustre": "lustre", "wekafs": "wekafs"}


def _address_of(host: Host, network: str) -> str:
    nic = host.nic(network)
    return "" if nic is None else nic.ip


def _source(cluster: Cluster, mount: Mount) -> str:
    if not mount.server:
        return mount.export
    server = cluster.hosts.get(mount.server)
    return f"{_address_of(server, mount.network) if server else mount.server}:{mount.export}"


def _rdma(cluster: Cluster, nic: Nic) -> Json | None:
    network = cluster.networks[nic.network]
    if nic.rdma_device is None:
        return None
    return {
        "device": nic.rdma_device,
        "kind": nic.rdma_kind,
        "rate_gbps": network.rate_gbps,
        "active_mtu": network.active_mtu,
        "gid_type": network.gid_type,
        "link_layer": "InfiniBand" if network.transport == "infiniband" else "Ethernet",
    }


def _mtu(cluster: Cluster, nic: Nic) -> int | None:
    """An InfiniBand port without an address has no IPoIB interface whose MTU would matter."""
    network = cluster.networks[nic.network]
    return None if network.transport == "infiniband" and not nic.address else network.mtu


def nics(cluster: Cluster, host: Host) -> list[Json]:
    """Return a host's NICs as expected.json lists them."""
    several = {nic.network for nic in host.nics if nic.rail}
    return [
        {
            "name": f"{nic.network}{nic.rail}" if nic.network in several else nic.network,
            "pci": nic.pci,
            "network": nic.network,
            "role": cluster.networks[nic.network].role,
            "rail": nic.rail,
            "address": nic.address or None,
            "mtu": _mtu(cluster, nic),
            "gateway": cluster.networks[nic.network].gateway or None,
            "rdma": _rdma(cluster, nic),
        }
        for nic in host.nics
    ]


def mounts(cluster: Cluster, host: Host) -> list[Json]:
    """Return the network file systems that a host mounts: compute and login nodes all that are not their own."""
    if host.role not in ("compute", "login"):
        return []
    return [
        {
            "path": mount.path,
            "type": mount.type,
            "fstype": _FSTYPES[mount.type],
            "source": _source(cluster, mount),
            "options": mount.options,
            # Of Lustre and WekaFS the mount table does not tell what they run over.
            "proto": mount.transport if mount.type in ("nfs", "vast") else None,
        }
        for mount in cluster.mounts
        if mount.server != host.name
    ]


def exports(cluster: Cluster, host: Host) -> list[Json]:
    """Return what a host serves: path, the network that may mount it, transport."""
    return [
        {"path": mount.export, "clients": cluster.networks[mount.network].cidr, "transport": mount.transport}
        for mount in cluster.mounts
        if mount.server == host.name
    ]


class Shared(NamedTuple):
    """What expected.json of every host says alike; computed once, since a cluster has thousands of hosts."""

    partitions: dict[str, str]
    leaves: dict[str, str]


def shared(cluster: Cluster) -> Shared:
    """Return what all hosts are told alike."""
    partitions = {entry["name"]: entry["nodes"] for entry in cluster_slurm.partitions(cluster)}
    return Shared(partitions, cluster_slurm.leaves(cluster))


def expected(cluster: Cluster, host: Host, common: Shared | None = None) -> Json:
    """Return expected.json of one node: what its checks compare with. No secrets."""
    common = common or shared(cluster)
    return {
        "format": 1,
        "cluster": cluster.name,
        "node": host.name,
        "role": host.role,
        "mode": cluster.mode,
        "service_user": cluster.service_user,
        "nics": nics(cluster, host),
        "mounts": [{key: m[key] for key in ("path", "fstype", "source", "proto")} for m in mounts(cluster, host)],
        "daemons": (DAEMONS if cluster.manage == "all" else _GUARD_DAEMONS).get(host.role, []),
        "partitions": common.partitions,
        "leaves": common.leaves,
        "versions": versions(cluster, host),
        "policy": cluster.policy,
        "deadlines": cluster.deadlines,
    }


def versions(cluster: Cluster, host: Host) -> Json:
    """Return the versions expected on a host: the cluster's, and over them those of its hardware and group."""
    own = cluster.groups[host.group].settings.get("expected", {})
    merged: Json = {}
    for part in (cluster.expected, own):
        for key, value in part.items():
            merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return {key: value for key, value in merged.items() if key != "switches"}


def controller(cluster: Cluster) -> Json:
    """Return cluster.json of the controller: nodes and HCAs for sweeps, policy for the guard."""
    partition = next(
        (name for name, entry in cluster.partitions.items() if entry.default), next(iter(cluster.partitions))
    )
    return {
        "format": 1,
        "cluster": cluster.name,
        "mode": cluster.mode,
        "service_user": cluster.service_user,
        "account": "weaklink",
        "qos": "weaklink",
        "partition": partition,
        "store": "sqlite:////var/lib/weaklink/store.sqlite",
        "nodes": [
            {
                "name": host.name,
                "leaf": host.leaf,
                "management": _address_of(host, cluster.management) or host.name,
                "hcas": [_hca(cluster, nic) for nic in host.nics if nic.rdma_device],
            }
            for host in cluster.compute
        ],
        "policy": cluster.policy,
        "deadlines": cluster.deadlines,
        "sweep": cluster.sweep,
    }


def _hca(cluster: Cluster, nic: Nic) -> Json:
    network = cluster.networks[nic.network]
    return {
        "name": nic.rdma_device,
        "network": nic.network,
        "role": network.role,
        "rail": nic.rail,
        "address": nic.ip,
        "rate_gbps": network.rate_gbps,
    }


def host_variables(cluster: Cluster, host: Host, common: Shared | None = None) -> dict[str, str]:
    """Return the variables that the inventory gives to one host; role defaults refer to them.

    What is nested is given as JSON text (``…_json``): Ansible walks every value of every host, and with thousands of
    hosts that takes minutes.
    """
    wanted = expected(cluster, host, common)
    variables = {
        "ansible_host": _address_of(host, cluster.management) or host.name,
        "weaklink_node": host.name,
        "weaklink_role": host.role,
        "weaklink_nics_json": json.dumps(wanted["nics"]),
        "weaklink_mounts_json": json.dumps(mounts(cluster, host)),
        "weaklink_expected_json": json.dumps(wanted),
    }
    served = exports(cluster, host)
    if served:
        variables["weaklink_exports_json"] = json.dumps(served)
    if host.role == "controller":
        variables["weaklink_cluster_json"] = json.dumps(controller(cluster))
    return variables


def controller_variables(cluster: Cluster) -> Json:
    """Return the variables that the controller has for all: what Slurm and NCCL are told, deadlines."""
    return {
        "weaklink_slurm_topology": cluster_slurm.topology(cluster),
        "weaklink_slurm_nodes": cluster_slurm.nodes(cluster),
        "weaklink_slurm_options": cluster.slurm.get("options", {}),
        "weaklink_partitions": cluster_slurm.partitions(cluster),
        "weaklink_deadlines": cluster.deadlines,
        "weaklink_nccl": nccl_settings(cluster),
    }


def nccl_settings(cluster: Cluster) -> Json:
    """Return what the NCCL file of every node says alike: traffic class (RoCE), bootstrap network, version."""
    roce = next((n for n in cluster.networks.values() if n.role == "compute" and n.transport == "roce"), None)
    dscp = roce.qos.get("dscp") if roce else None
    traffic_class = roce.qos.get("traffic_class") if roce else None
    if traffic_class is None and dscp is not None:
        traffic_class = nccl.traffic_class(dscp)
    version = cluster.expected.get("nccl")
    return {"traffic_class": traffic_class, "socket_network": cluster.management, "version": version}


def group_variables(cluster: Cluster) -> Json:
    """Return the variables that hold for every host."""
    return {
        "weaklink_cluster_name": cluster.name,
        "weaklink_manage": cluster.manage,
        "weaklink_mode": cluster.mode,
        "weaklink_service_user": cluster.service_user,
        "weaklink_controller": cluster.controller.name,
        "weaklink_controller_address": _address_of(cluster.controller, cluster.management) or cluster.controller.name,
        "weaklink_management_cidr": cluster.networks[cluster.management].cidr,
    }
