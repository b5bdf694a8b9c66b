"""What others read of the cluster: Ansible's variables, expected.json of a node, cluster.json. Pure."""

from __future__ import annotations

from typing import Any

from weaklink.model.cluster import Cluster, Host, Mount, Nic

Json = dict[str, Any]

NFS_RDMA_PORT = 20049
_OPTIONS = {"rdma": f"vers=4.2,proto=rdma,port={NFS_RDMA_PORT},hard,retry=0", "tcp": "vers=4.2,proto=tcp,hard,retry=0"}
DAEMONS = {"compute": ["munge", "slurmd"], "controller": ["munge", "slurmdbd", "slurmctld"]}


def _address_of(host: Host, network: str) -> str:
    nic = host.nic(network)
    return "" if nic is None else nic.ip


def _source(cluster: Cluster, mount: Mount) -> str:
    return f"{_address_of(cluster.hosts[mount.server], mount.network)}:{mount.export}"


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


def nics(cluster: Cluster, host: Host) -> list[Json]:
    """Return a host's NICs as expected.json lists them."""
    several = {nic.network for nic in host.nics if nic.rail}
    return [
        {
            "name": f"{nic.network}{nic.rail}" if nic.network in several else nic.network,
            "pci": nic.pci,
            "network": nic.network,
            "role": cluster.networks[nic.network].role,
            "address": nic.address,
            "mtu": cluster.networks[nic.network].mtu,
            "rdma": _rdma(cluster, nic),
        }
        for nic in host.nics
    ]


def mounts(cluster: Cluster, host: Host) -> list[Json]:
    """Return the network file systems that a host mounts: compute nodes all that are not their own."""
    if host.role != "compute":
        return []
    return [
        {
            "path": mount.path,
            "fstype": "nfs4",
            "source": _source(cluster, mount),
            "options": _OPTIONS[mount.transport],
            "proto": mount.transport,
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


def leaves(cluster: Cluster) -> dict[str, list[str]]:
    """Return the compute nodes by leaf."""
    result: dict[str, list[str]] = {}
    for host in cluster.compute:
        result.setdefault(host.leaf, []).append(host.name)
    return result


def expected(cluster: Cluster, host: Host) -> Json:
    """Return expected.json of one node: what its checks compare with. No secrets."""
    return {
        "format": 1,
        "cluster": cluster.name,
        "node": host.name,
        "role": host.role,
        "mode": cluster.mode,
        "service_user": cluster.service_user,
        "nics": nics(cluster, host),
        "mounts": [{key: m[key] for key in ("path", "fstype", "source", "proto")} for m in mounts(cluster, host)],
        "daemons": DAEMONS[host.role],
        "partitions": {name: list(partition.hosts) for name, partition in cluster.partitions.items()},
        "leaves": leaves(cluster),
        "policy": cluster.policy,
        "deadlines": cluster.deadlines,
    }


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
                "management": _address_of(host, cluster.management),
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


def host_variables(cluster: Cluster, host: Host) -> Json:
    """Return the variables that the inventory gives to one host; role defaults refer to them."""
    variables: Json = {
        "ansible_host": _address_of(host, cluster.management),
        "weaklink_node": host.name,
        "weaklink_role": host.role,
        "weaklink_nics": nics(cluster, host),
        "weaklink_mounts": mounts(cluster, host),
        "weaklink_exports": exports(cluster, host),
        "weaklink_expected": expected(cluster, host),
    }
    if host.role == "controller":
        variables["weaklink_cluster"] = controller(cluster)
    return variables


def group_variables(cluster: Cluster) -> Json:
    """Return the variables that hold for every host."""
    return {
        "weaklink_cluster_name": cluster.name,
        "weaklink_mode": cluster.mode,
        "weaklink_service_user": cluster.service_user,
        "weaklink_deadlines": cluster.deadlines,
        "weaklink_controller": cluster.controller.name,
        "weaklink_controller_address": _address_of(cluster.controller, cluster.management),
        "weaklink_management_cidr": cluster.networks[cluster.management].cidr,
        "weaklink_leaves": leaves(cluster),
        "weaklink_slurm_nodes": [
            {
                "name": host.name,
                "address": _address_of(host, cluster.management),
                "cpus": host.cpus,
                "memory_mb": host.memory_mb,
                "gpus": host.gpus,
            }
            for host in cluster.compute
        ],
        "weaklink_partitions": [
            {"name": p.name, "nodes": list(p.hosts), "default": p.default, "max_time": p.max_time}
            for p in cluster.partitions.values()
        ],
    }
