"""Area ``networks``: one systemd-networkd file per NIC, matched by its PCI path, and the kernel in line with it.

Desired: ``{"links": [{"name", "pci", "address": "10.0.0.1/24"|null, "mtu", "gateway"?: "10.0.0.254"|null}]}``; ``name``
is the network's. A link without an address (an InfiniBand port without IPoIB) is left alone.
A NIC that carries an address too many loses it; one whose MTU alone is off gets it set without a reconfiguration.
"""

from __future__ import annotations

import time
from typing import Any

from weaklink.apply import files, nics
from weaklink.apply.host import CommandError, Host
from weaklink.apply.plan import Json, Plan, Problem, Step, join

SETTLE = 20.0
_FOLDER = "/etc/systemd/network"
_WAIT_SECONDS = 15.0


def render(link: Json) -> str:
    """Return the .network file of one link."""
    gateway = f"Gateway={link['gateway']}\n" if link.get("gateway") else ""
    return (
        f"# {link['name']} network. Written by weaklink's playbooks; changes are overwritten.\n"
        f"[Match]\nPath=pci-{link['pci']}*\n\n"
        f"[Link]\nMTUBytes={link['mtu']}\nRequiredForOnline=no\n\n"
        f"[Network]\nAddress={link['address']}\n{gateway}LinkLocalAddressing=ipv6\nIPv6AcceptRA=no\nDHCP=no\n"
    )


def path_of(link: Json) -> str:
    """Return where a link's .network file lies: early in the order, so that it wins over an image's own."""
    return f"{_FOLDER}/05-weaklink-{link['name']}.network"


def _files(desired: Json) -> Json:
    keep = {path_of(link) for link in desired["links"]}
    return {
        "files": [{"path": path_of(link), "content": render(link)} for link in desired["links"]],
        "absent": [f"{_FOLDER}/{name}" for name in desired.get("stale", []) if f"{_FOLDER}/{name}" not in keep],
    }


def _addressed(desired: Json) -> Json:
    return {**desired, "links": [link for link in desired["links"] if link["address"]]}


def _with_stale(host: Host, desired: Json) -> Json:
    stale = [name for name in host.list(_FOLDER) if name.startswith("05-weaklink-")]
    return {**desired, "stale": stale}


def observe(host: Host, desired: Json) -> Json:
    """Return the files, and per NIC its interface and that interface's state."""
    wanted = _with_stale(host, _addressed(desired))
    links = nics.links(host)
    found: dict[str, Any] = {}
    for link in wanted["links"]:
        name = nics.netdev(host, link["pci"])
        found[link["name"]] = links.get(name)
    return {"stale": wanted["stale"], "files": files.observe(host, _files(wanted)), "links": found}


def plan(desired: Json, observed: Json) -> Plan:
    """Return the steps from ``observed`` to ``desired``. Pure."""
    desired = _addressed(desired)
    wanted = _files({**desired, "stale": observed["stale"]})
    problems = [
        Problem(
            f"link {link['name']}",
            f"{link['name']}: no network interface at PCI {link['pci']}; check the address in the cluster file, "
            f"the card and its driver (lspci -s {link['pci']} -k)",
        )
        for link in desired["links"]
        if observed["links"][link["name"]] is None
    ]
    steps = [step for link in desired["links"] for step in _link(link, observed["links"][link["name"]])]
    return join([files.plan(wanted, observed["files"]), Plan(steps, problems)])


def _link(link: Json, found: nics.Link | None) -> list[Step]:
    if found is None:
        return []
    name, steps = link["name"], []
    moved = link["address"] not in found.addresses
    if not found.up or moved:
        before = ", ".join(found.addresses) or ("no address" if found.up else "down")
        # a NIC without any address carries nothing yet
        steps.append(
            Step(
                f"link {name} address",
                before,
                link["address"],
                ("reconfigure", found.netdev, link),
                bool(found.addresses),
            )
        )
    if found.mtu != link["mtu"]:
        busy = bool(found.addresses) and not moved
        steps.append(Step(f"link {name} mtu", found.mtu, link["mtu"], ("mtu", found.netdev, link["mtu"]), busy))
    steps += [
        Step(f"link {name} extra address {extra}", extra, None, ("drop", found.netdev, extra), disruptive=True)
        for extra in found.addresses
        if extra != link["address"]
    ]
    return steps


# ---- operations


def _reload(host: Host) -> None:
    if not host.run("systemctl", "is-active", "--quiet", "systemd-networkd.service").ok:
        raise CommandError(
            "systemd-networkd is not active; `systemctl enable --now systemd-networkd`, and stop what else sets up NICs"
        )
    host.must("networkctl", "reload")


def _write(host: Host, path: str, content: bytes, owner: str, group: str, mode: int) -> None:
    host.write(path, content, owner, group, mode)
    host.stale_networks = True


def _remove(host: Host, path: str) -> None:
    host.remove(path)
    host.stale_networks = True


def _reconfigure(host: Host, netdev: str, link: Json) -> None:
    """Let networkd bring the address up; it does so by itself after reading a new file."""
    if host.stale_networks:
        _reload(host)
        host.stale_networks = False
    if not _wait(host, netdev, link, 3.0):
        _reload(host)  # an earlier run may have been killed between writing the file and this
        host.must("networkctl", "reconfigure", netdev)
        if not _wait(host, netdev, link, _WAIT_SECONDS):
            raise CommandError(
                f"{netdev}: networkd did not set {link['address']} within {_WAIT_SECONDS:.0f} s; "
                f"`networkctl status {netdev}` names the file that it follows"
            )


def _wait(host: Host, netdev: str, link: Json, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while True:
        found = nics.links(host).get(netdev)
        if found is not None and found.up and link["address"] in found.addresses:
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.3)


def _mtu(host: Host, netdev: str, mtu: int) -> None:
    if host.stale_networks:
        _reload(host)
        host.stale_networks = False
    found = nics.links(host).get(netdev)
    if found is None or found.mtu != mtu:
        host.must("ip", "link", "set", "dev", netdev, "mtu", str(mtu))


def _drop(host: Host, netdev: str, address: str) -> None:
    found = nics.links(host).get(netdev)
    if found is not None and address in found.addresses:  # networkd may have dropped it with the old file
        host.must("ip", "address", "delete", address, "dev", netdev)


def finish(host: Host) -> None:
    """Let networkd read files that were written while the kernel's state was in line already."""
    if host.stale_networks:
        _reload(host)
        host.stale_networks = False


OPERATIONS = {
    **files.OPERATIONS,
    "write": _write,
    "remove": _remove,
    "reconfigure": _reconfigure,
    "mtu": _mtu,
    "drop": _drop,
}
