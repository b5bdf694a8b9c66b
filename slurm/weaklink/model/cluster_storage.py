"""The mounts of a cluster file: NFS over RDMA or TCP, Lustre, WekaFS, VAST; what mount(8) is told of each."""

from __future__ import annotations

from typing import Any

import netaddr

from weaklink.model.cluster_file import Document
from weaklink.model.cluster_types import Host, Mount, Network
from weaklink.model.words import nearest

NFS_RDMA_PORT = 20049
# Keys that a type of mount must have, and those it may have besides.
_KEYS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "nfs": (frozenset({"server", "export", "transport"}), frozenset()),
    "vast": (frozenset({"server", "export", "transport"}), frozenset({"nconnect", "remote_ports"})),
    "lustre": (frozenset({"mgs", "fsname"}), frozenset()),
    "wekafs": (frozenset({"backends", "filesystem"}), frozenset()),
}
_COMMON = frozenset({"path", "type", "network", "options"})


def read(document: Document, networks: dict[str, Network], hosts: dict[str, Host]) -> tuple[Mount, ...]:
    """Return the mounts in the order of the file."""
    mounts: list[Mount] = []
    for index, entry in enumerate(document.data.get("mounts", [])):
        path = ("mounts", index)
        if entry["path"] in {mount.path for mount in mounts}:
            raise document.error((*path, "path"), f"{entry['path']} for the second time", "one file system a path")
        _check_keys(document, path, entry)
        network = entry["network"]
        if network not in networks:
            raise document.error((*path, "network"), repr(network), ", ".join(networks), nearest(network, networks))
        _check_server(document, path, entry, networks, hosts)
        mounts.append(_mount(entry, networks[network]))
    return tuple(mounts)


def _check_keys(document: Document, path: tuple[Any, ...], entry: dict[str, Any]) -> None:
    kind = entry.get("type", "nfs")
    needs, may = _KEYS[kind]
    for key in sorted(needs - entry.keys()):
        raise document.error((*path, key), "nothing", f"required of a mount of type {kind}: {', '.join(sorted(needs))}")
    for key in sorted(entry.keys() - needs - may - _COMMON):
        known = sorted(needs | may | _COMMON)
        raise document.error((*path, key), f"{key} with type {kind}", ", ".join(known), nearest(key, known))


def _check_server(
    document: Document,
    path: tuple[Any, ...],
    entry: dict[str, Any],
    networks: dict[str, Network],
    hosts: dict[str, Host],
) -> None:
    network = entry["network"]
    if entry.get("transport") == "rdma" and networks[network].transport == "tcp":
        raise document.error(
            (*path, "transport"), f"rdma over {network}", "a network with transport roce or infiniband"
        )
    server = entry.get("server", "")
    if not server or _is_address(server):
        return
    if server not in hosts:
        wanted = "a host of this file, or an address"
        raise document.error((*path, "server"), repr(server), wanted, nearest(server, hosts))
    if hosts[server].nic(network) is None:
        raise document.error((*path, "network"), f"{network}, where {server} has no NIC", f"a network of {server}")


def _is_address(text: str) -> bool:
    return bool(netaddr.valid_ipv4(text) or netaddr.valid_ipv6(text))


def _mount(entry: dict[str, Any], network: Network) -> Mount:
    kind = entry.get("type", "nfs")
    more = [entry["options"]] if entry.get("options") else []
    if kind == "lustre":
        source = f"{':'.join(entry['mgs'])}:/{entry['fsname']}"
        # What LNet runs over is LNet's business; the model says which network it should be.
        transport = "tcp" if network.transport == "tcp" else "rdma"
        options = ",".join(["_netdev", "flock", *more])
        return Mount(entry["path"], "", source, network.name, transport, kind, options)
    if kind == "wekafs":
        source = f"{','.join(entry['backends'])}/{entry['filesystem']}"
        return Mount(entry["path"], "", source, network.name, "tcp", kind, ",".join(["_netdev", *more]))
    transport = entry["transport"]
    words = ["vers=3" if kind == "vast" else "vers=4.2", f"proto={transport}"]
    if transport == "rdma":
        words.append(f"port={NFS_RDMA_PORT}")
    if "nconnect" in entry:
        words.append(f"nconnect={entry['nconnect']}")
    if "remote_ports" in entry:
        words.append(f"remoteports={entry['remote_ports']}")
    # Without retry=0 a mount of a dead server holds the boot for two minutes.
    words += ["hard", "retry=0", *more]
    return Mount(entry["path"], entry["server"], entry["export"], network.name, transport, kind, ",".join(words))
