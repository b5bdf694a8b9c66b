"""Area ``verify``: changes nothing; names everything that is not as wanted.

Desired, every key optional::

    {"node": "c1", "python": "3.9", "modules": [name], "pci": [address], "packages": [name],
     "nics": [{"name", "pci", "address", "mtu", "rdma": {"device", "active_mtu"}|null}],
     "mounts": [{"path", "source", "proto"}], "services": [name], "paths": [path],
     "slurm_nodes": [host list], "wait": seconds}

Missing packages are told as a fact and are no problem: the caller installs them. With ``wait`` it looks again until all
is well or the time is up.
"""

from __future__ import annotations

import re
import sys
import time
from typing import Any

from weaklink.apply import mounts, nics, services
from weaklink.apply.host import Host
from weaklink.apply.plan import Json, Plan, Problem
from weaklink.model.hostlist import expand

_ACTIVE_MTU = re.compile(r"active_mtu:\s+(\d+)")
_SLURM_BAD = ("down", "unknown", "inval", "fail", "no_respond", "not_responding", "future")
OPERATIONS: dict[str, Any] = {}


def observe(host: Host, desired: Json) -> Json:
    """Return what the wanted things look like now, after waiting for them where asked to."""
    end = time.monotonic() + float(desired.get("wait", 0))
    while True:
        seen = _look(host, desired)
        if time.monotonic() >= end or not plan(desired, seen).problems:
            return seen
        time.sleep(2.0)


def _look(host: Host, desired: Json) -> Json:
    mounted = {
        entry.path: entry for entry in mounts.parse_mounts(host.text("/proc/mounts")) if entry.fstype != "autofs"
    }
    links = nics.links(host) if desired.get("nics") else {}
    wanted_services = [{"name": name} for name in desired.get("services", [])]
    return {
        "node": host.text("/proc/sys/kernel/hostname").strip().partition(".")[0],
        "python": list(sys.version_info[:2]),
        "modules": {name: _module(host, name) for name in desired.get("modules", [])},
        "pci": {pci: bool(nics.netdev(host, pci)) for pci in desired.get("pci", [])},
        "links": {link["name"]: links.get(nics.netdev(host, link["pci"])) for link in desired.get("nics", [])},
        "rdma": {entry["device"]: _rdma(host, entry["device"]) for entry in _devices(desired)},
        "mounts": {mount["path"]: mounted.get(mount["path"]) for mount in desired.get("mounts", [])},
        "services": services.observe(host, wanted_services)["units"],
        "paths": {path: host.stat(path) is not None for path in desired.get("paths", [])},
        "slurm": _slurm(host) if desired.get("slurm_nodes") else {},
    }


def _devices(desired: Json) -> list[Json]:
    """Return the wanted RDMA devices: {"device", "active_mtu", "pci"}."""
    return [{"pci": nic["pci"], **nic["rdma"]} for nic in desired.get("nics", []) if nic["rdma"]]


def _module(host: Host, name: str) -> bool:
    return host.stat(f"/sys/module/{name}") is not None or host.run("modinfo", "-F", "filename", name).ok


def _rdma(host: Host, device: str) -> Json | None:
    if host.stat(f"/sys/class/infiniband/{device}") is None:
        return None
    state = host.text(f"/sys/class/infiniband/{device}/ports/1/state").partition(":")[2].strip()
    match = _ACTIVE_MTU.search(host.run("ibv_devinfo", "-d", device).out)
    return {"state": state, "active_mtu": int(match.group(1)) if match else None}


def _slurm(host: Host) -> Json:
    found = host.run("sinfo", "--noheader", "--Node", "--format=%N|%T|%E")
    if not found.ok:
        return {"": found.failure()}
    rows = [line.split("|", 2) for line in found.out.splitlines()]
    return {row[0]: row[1:] for row in rows if row[2:]}


def plan(desired: Json, observed: Json) -> Plan:
    """Return no steps, and a problem for everything that is not as wanted. Pure."""
    problems = _node(desired, observed)
    for link in desired.get("nics", []):
        problems += _link(link, observed["links"][link["name"]])
    problems += _shared(observed["links"])
    for entry in _devices(desired):
        problems += _device(entry, observed["rdma"][entry["device"]])
    for mount in desired.get("mounts", []):
        problem = mounts.verify(mount, observed["mounts"][mount["path"]])
        problems += [problem] if problem else []
    for name, state in observed["services"].items():
        if state.get("ActiveState") != "active":
            found = state.get("ActiveState", "unknown")
            problems.append(
                Problem(f"service {name}", f"{name}: is {found}, wanted active; `journalctl -u {name}` says why")
            )
    problems += [
        Problem(f"path {path}", f"{path}: missing; run site.yml on this node")
        for path, there in observed["paths"].items()
        if not there
    ]
    return Plan([], problems + _slurm_problems(desired, observed["slurm"]))


def _node(desired: Json, observed: Json) -> list[Problem]:
    problems = []
    if desired.get("node") and observed["node"] != desired["node"]:
        found, name = observed["node"], desired["node"]
        text = f"hostname is {found!r}, wanted {name!r}: Slurm and weaklink know the node by it; set it (hostnamectl)"
        problems.append(Problem("hostname", text))
    wanted = [int(part) for part in str(desired.get("python", "3.9")).split(".")]
    if observed["python"] < wanted:
        found = ".".join(str(part) for part in observed["python"])
        problems.append(
            Problem("python", f"Python is {found}, wanted {desired['python']} or newer; set ansible_python_interpreter")
        )
    for name, there in observed["modules"].items():
        if not there:
            text = (
                f"kernel module {name}: not there for the running kernel; install the full kernel package and boot it"
            )
            problems.append(Problem(f"module {name}", text))
    for pci, there in observed["pci"].items():
        if not there:
            text = f"no network interface at PCI {pci}; check the cluster file and the card (lspci -s {pci} -k)"
            problems.append(Problem(f"nic {pci}", text))
    return problems


def _link(link: Json, found: nics.Link | None) -> list[Problem]:
    name = link["name"]
    if found is None:
        return [
            Problem(f"link {name}", f"{name}: no network interface at PCI {link['pci']}; check the card (lspci -k)")
        ]
    problems = []
    if not found.up or link["address"] not in found.addresses:
        now = ", ".join(found.addresses) or "no address"
        text = f"{name} ({found.netdev}): has {now}, wanted {link['address']}; `networkctl status {found.netdev}`"
        problems.append(Problem(f"link {name}", text))
    if found.mtu != link["mtu"]:
        text = f"{name} ({found.netdev}): MTU is {found.mtu}, wanted {link['mtu']}; run site.yml --tags networks"
        problems.append(Problem(f"link {name}", text))
    return problems


def _shared(links: dict[str, nics.Link | None]) -> list[Problem]:
    by_netdev: dict[str, list[str]] = {}
    for name, link in links.items():
        if link is not None:
            by_netdev.setdefault(link.netdev, []).append(name)
    return [
        Problem(
            f"nic {netdev}",
            f"{netdev}: carries {' and '.join(names)}, wanted one network a NIC; correct the cluster file",
        )
        for netdev, names in by_netdev.items()
        if len(names) > 1
    ]


def _device(entry: Json, found: Json | None) -> list[Problem]:
    device = entry["device"]
    if found is None:
        return [
            Problem(
                f"rdma {device}", f"{device}: no such RDMA device, wanted one on PCI {entry['pci']}; `rdma link`, dmesg"
            )
        ]
    problems = []
    if found["state"] != "ACTIVE":
        problems.append(
            Problem(f"rdma {device}", f"{device}: port is {found['state']}, wanted ACTIVE; check cable and switch port")
        )
    if found["active_mtu"] != entry["active_mtu"]:
        now, wanted = found["active_mtu"], entry["active_mtu"]
        text = f"{device}: active MTU is {now}, wanted {wanted}; check the NIC's MTU on both ends"
        problems.append(Problem(f"rdma {device}", text))
    return problems


def _slurm_problems(desired: Json, found: Json) -> list[Problem]:
    wanted = [name for names in desired.get("slurm_nodes", []) for name in expand(names)]
    if "" in found:
        return [Problem("slurm", f"Slurm does not answer: {found['']}; `journalctl -u slurmctld` says why")]
    problems = []
    for name in wanted:
        if name not in found:
            problems.append(
                Problem(f"slurm {name}", f"{name}: Slurm does not know it; compare slurm.conf with the cluster file")
            )
            continue
        state, reason = found[name]
        if "*" in state or any(word in state.lower() for word in _SLURM_BAD):
            text = f"{name}: Slurm says {state} ({reason}), wanted idle or busy; `journalctl -u slurmd` there says why"
            problems.append(Problem(f"slurm {name}", text))
    return problems


def facts(host: Host, desired: Json) -> Json:
    """Return the wanted packages that are not installed (Debian and RPM families)."""
    wanted = desired.get("packages", [])
    if not wanted:
        return {"missing_packages": []}
    if host.stat("/var/lib/dpkg/status") is not None:
        out = host.run("dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *wanted).out
        there = {line.split()[0] for line in out.splitlines() if line.endswith(" installed")}
        return {"missing_packages": [name for name in wanted if name not in there]}
    return {"missing_packages": [name for name in wanted if not host.run("rpm", "--query", "--quiet", name).ok]}
