"""Area ``nccl``: the node's NCCL file, with the HCAs and the interface that are really there.

Desired::

    {"path"?: "/etc/nccl.conf", "nics": [as expected.json lists them], "traffic_class"?: int|null,
     "socket_network"?: "management", "extra"?: {variable: value}, "nccl_version"?: "2.27.3"}

Names of devices are found by PCI address; a Soft-RoCE device that is still to be made has the name that it will get.
A NIC of the compute network without an RDMA device is a problem, and then nothing is written.
"""

from __future__ import annotations

import re
from typing import Any

from weaklink.apply import files, nics
from weaklink.apply.host import Host
from weaklink.apply.plan import Json, Plan, Problem
from weaklink.model import nccl

_CLASS = "/sys/class/infiniband"
_PCI = "/sys/bus/pci/devices"
_IPV4_GID = re.compile(r"0000:0000:0000:0000:0000:ffff:[0-9a-f]{4}:[0-9a-f]{4}")


def observe(host: Host, desired: Json) -> Json:
    """Return the devices and interfaces found, what cannot be rendered, and the file."""
    problems: list[Problem] = []
    hcas = []
    for nic in desired["nics"]:
        if nic.get("rdma"):
            hca, problem = _hca(host, nic)
            hcas += [hca] if hca else []
            problems += [Problem(f"nccl {nic['rdma']['device']}", problem)] if problem else []
    interface, problem = _interface(host, desired)
    problems += [Problem("nccl interface", problem)] if problem else []
    wanted: Json = {"files": []}
    if not problems:
        try:
            wanted = {"files": [{"path": desired.get("path", nccl.PATH), "content": _render(desired, hcas, interface)}]}
        except nccl.RenderError as error:
            problems.append(Problem("nccl file", str(error)))
    return {"problems": problems, "wanted": wanted, "files": files.observe(host, wanted)}


def _render(desired: Json, hcas: list[nccl.Hca], interface: str) -> str:
    extra = tuple((str(name), str(value)) for name, value in (desired.get("extra") or {}).items())
    version = _version(desired.get("nccl_version"))
    return nccl.render(nccl.Node(tuple(hcas), interface, desired.get("traffic_class"), version, extra))


def _version(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.match(r"(\d+)\.(\d+)", text)
    if not match:
        raise ValueError(f"nccl_version {text!r}, wanted one such as 2.27.3")
    return int(match[1]), int(match[2])


def _hca(host: Host, nic: Json) -> tuple[nccl.Hca | None, str]:
    """Return the RDMA device of a NIC, or why there is none (only where a job would miss it)."""
    rdma: Json = nic["rdma"]
    name = device(host, nic["pci"])
    if not name and rdma["kind"] == "rxe":
        name = rdma["device"]
    if not name:
        text = f"{rdma['device']}: no RDMA device at PCI {nic['pci']} ({nic['network']}); load its driver, see dmesg"
        return None, text if nic["role"] == nccl.COMPUTE else ""
    layer = host.text(f"{_CLASS}/{name}/ports/1/link_layer").strip() or rdma.get("link_layer", nccl.ETHERNET)
    rail = nic.get("rail")
    return nccl.Hca(name, nic["role"], layer, rail if isinstance(rail, int) else 0, gid_index(host, name)), ""


def device(host: Host, pci: str) -> str:
    """Return the RDMA device of the NIC at ``pci``, empty where it has none."""
    names = host.list(f"{_PCI}/{pci}/infiniband")
    if names:
        return names[0]
    netdev = nics.netdev(host, pci)
    software = [name for name in host.list(_CLASS) if netdev and host.text(f"{_CLASS}/{name}/parent").strip() == netdev]
    return software[0] if software else ""


def gid_index(host: Host, name: str) -> int | None:
    """Return the first index of port 1 that is RoCE v2 with an IPv4 address, None where there is none."""
    port = f"{_CLASS}/{name}/ports/1"
    for index in sorted(int(number) for number in host.list(f"{port}/gids") if number.isdigit()):
        if host.text(f"{port}/gid_attrs/types/{index}").strip() != "RoCE v2":
            continue
        if _IPV4_GID.fullmatch(host.text(f"{port}/gids/{index}").strip()):
            return index
    return None


def _interface(host: Host, desired: Json) -> tuple[str, str]:
    network = desired.get("socket_network")
    if not network:
        return "", ""
    nic = next((entry for entry in desired["nics"] if entry["network"] == network), None)
    if nic is None:
        return "", f"no NIC in the network {network!r}; name one of the node's in socket_network"
    name = nics.netdev(host, nic["pci"])
    if not name:
        return "", f"{network}: no network interface at PCI {nic['pci']}; check the card (lspci -s {nic['pci']} -k)"
    return name, ""


def plan(_desired: Json, observed: Json) -> Plan:
    """Return the steps from ``observed`` to the wanted file. Pure."""
    if observed["problems"]:
        return Plan([], observed["problems"])
    return files.plan(observed["wanted"], observed["files"])


OPERATIONS: dict[str, Any] = files.OPERATIONS
