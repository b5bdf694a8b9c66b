"""Area ``rdma``: an RDMA device on every NIC that should have one, now and after a reboot.

Desired: ``{"nics": [{"pci", "rdma": {"device", "kind": "rxe"|"hca"}|null}], "before"?: [unit]}``.
Soft-RoCE (rxe) links do not survive a boot, so each gets a unit that makes it as soon as its interface is there, before
network file systems are mounted and the units in ``before`` start. A real HCA brings its own device: where it is
missing, that is a problem to solve by hand.
"""

from __future__ import annotations

from typing import Any

from weaklink.apply import files, nics, services
from weaklink.apply.host import Host
from weaklink.apply.plan import Json, Plan, Problem, Step, join

_CLASS = "/sys/class/infiniband"
_MODULES = "/etc/modules-load.d/weaklink-rdma.conf"


def unit_of(link: Json) -> str:
    """Return the name of the unit that makes one rxe link."""
    return f"weaklink-{link['device']}.service"


def _links(desired: Json) -> list[Json]:
    """Return the wanted devices: {"device", "kind", "pci"}."""
    return [{"pci": nic["pci"], **nic["rdma"]} for nic in desired["nics"] if nic["rdma"]]


def render(link: Json, netdev: str, units: list[str]) -> str:
    """Return the unit that makes one rxe link on the interface ``netdev``."""
    device = link["device"]
    before = " ".join(["remote-fs-pre.target", *units])
    return (
        "# Written by weaklink's playbooks; changes are overwritten.\n"
        f"[Unit]\nDescription=Soft-RoCE device {device} on {netdev}\n"
        f"BindsTo=sys-subsystem-net-devices-{netdev}.device\n"
        f"After=sys-subsystem-net-devices-{netdev}.device systemd-modules-load.service systemd-networkd.service\n"
        f"Before={before}\nWants=remote-fs-pre.target\n\n"
        "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
        "ExecStartPre=/sbin/modprobe rdma_rxe\n"
        # a link that is there already (made by hand, or left by a stopped unit) is what is wanted
        f"ExecStart=/bin/sh -c 'test -e {_CLASS}/{device} || exec rdma link add {device} type rxe netdev {netdev}'\n"
        # nothing undoes it: deleting a link hangs as long as a mount over it waits for a dead server, at every shutdown
        "[Install]\nWantedBy=multi-user.target\n"
    )


def _rxe(desired: Json) -> list[Json]:
    return [link for link in _links(desired) if link["kind"] == "rxe"]


def _files(desired: Json, netdevs: dict[str, str]) -> Json:
    links = [link for link in _rxe(desired) if netdevs[link["pci"]]]
    paths = {unit_of(link): f"/etc/systemd/system/{unit_of(link)}" for link in links}
    wanted: Json = {"files": [], "services": []}
    if links:
        wanted["files"].append({"path": _MODULES, "content": "# Written by weaklink's playbooks.\nrdma_rxe\n"})
    for link in links:
        name = unit_of(link)
        wanted["files"].append(
            {"path": paths[name], "content": render(link, netdevs[link["pci"]], desired.get("before", []))}
        )
        # no restart on a changed unit: it would take the device from under whoever uses it, and matters at boot only
        wanted["services"].append({"name": name, "enabled": True, "state": "started"})
    return wanted


def observe(host: Host, desired: Json) -> Json:
    """Return the interfaces, the RDMA devices by interface, and the files and units."""
    netdevs = {link["pci"]: nics.netdev(host, link["pci"]) for link in _links(desired)}
    devices = {name: _netdev_of(host, name) for name in host.list(_CLASS)}
    return {"netdevs": netdevs, "devices": devices, "files": files.observe(host, _files(desired, netdevs))}


def _netdev_of(host: Host, device: str) -> str:
    """Return the interface that an RDMA device belongs to, empty where it has none."""
    parent = host.text(f"{_CLASS}/{device}/parent").strip()  # rxe and siw
    if parent:
        return parent
    names = host.list(f"{_CLASS}/{device}/device/net")
    return names[0] if names else host.text(f"{_CLASS}/{device}/ports/1/gid_attrs/ndevs/0").strip()


def plan(desired: Json, observed: Json) -> Plan:
    """Return the steps from ``observed`` to ``desired``. Pure."""
    netdevs: dict[str, str] = observed["netdevs"]
    devices: dict[str, str] = observed["devices"]
    problems: list[Problem] = []
    steps: list[Step] = []
    for link in _links(desired):
        problem = _problem(link, netdevs[link["pci"]], devices)
        if problem:
            problems.append(Problem(f"rdma {link['device']}", problem))
        elif link["kind"] == "rxe" and link["device"] not in devices:
            name = unit_of(link)
            found = observed["files"]["services"]["units"].get(name, {})
            if found.get("ActiveState") == "active":  # the unit did its work, then somebody deleted the link
                steps.append(Step(f"rdma {link['device']}", None, netdevs[link["pci"]], ("remake", name)))
    return join([files.plan(_files(desired, netdevs), observed["files"]), Plan(steps, problems)])


def _problem(link: Json, netdev: str, devices: dict[str, str]) -> str:
    device, pci = link["device"], link["pci"]
    if not netdev:
        return f"{device}: no network interface at PCI {pci}; check the card and its driver (lspci -s {pci} -k)"
    if link["kind"] == "hca" and netdev not in devices.values():
        return f"{device}: {netdev} ({pci}) has no RDMA device; load its driver's RDMA module, see `rdma link`, dmesg"
    if link["kind"] == "rxe" and devices.get(device, netdev) != netdev:
        todo = f"`rdma link delete {device}` when nothing uses it, then run again"
        return f"{device}: sits on {devices[device]}, wanted on {netdev}; {todo}"
    return ""


def _remake(host: Host, name: str) -> None:
    services.settle(host)
    host.must("systemctl", "restart", name, seconds=services.START_SECONDS)


OPERATIONS: dict[str, Any] = {**files.OPERATIONS, "remake": _remake}
