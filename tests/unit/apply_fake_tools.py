"""Tools with a state of their own, for the fake node: networkd with the kernel's links, sacctmgr, MariaDB."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

Answer = tuple[int, str, str]


class Networkd:
    """Links of the kernel by PCI address, and networkd: it follows the files that it has read, not those on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pci: dict[str, str] = {}  # PCI address -> interface
        self.links: dict[str, dict[str, Any]] = {}
        self.read: dict[str, str] = {}  # PCI address -> text of its file

    def plug(self, pci: str, netdev: str, mtu: int = 1500, addresses: tuple[str, ...] = (), *, up: bool = True) -> None:
        """Put a NIC in: virtio ones have their interface one level deeper."""
        (self.root / f"sys/bus/pci/devices/{pci}/virtio0/net/{netdev}").mkdir(parents=True)
        self.pci[pci] = netdev
        self.links[netdev] = {"mtu": mtu, "addresses": list(addresses), "up": up}

    def show(self) -> list[dict[str, Any]]:
        """Return what ``ip -json address show`` prints."""
        return [
            {
                "ifname": name,
                "mtu": link["mtu"],
                "flags": ["BROADCAST", *(["UP"] if link["up"] else [])],
                "addr_info": [
                    {
                        "family": "inet",
                        "local": address.split("/")[0],
                        "prefixlen": int(address.split("/")[1]),
                        "scope": "global",
                    }
                    for address in link["addresses"]
                ],
            }
            for name, link in self.links.items()
        ]

    def networkctl(self, verb: str, netdev: str = "") -> Answer:
        """Read changed files and follow them; or bring one interface in line with the files that were read."""
        if verb == "reload":
            before = dict(self.read)
            self.read = {}
            for path in sorted((self.root / "etc/systemd/network").glob("*.network")):
                text = path.read_text()
                found = re.search(r"^Path=pci-(.*)\*$", text, re.MULTILINE)
                if found and found[1] in self.pci:
                    self.read.setdefault(found[1], text)
            for pci, text in self.read.items():
                if before.get(pci) != text:
                    self._follow(pci)
            return 0, "", ""
        for pci, name in self.pci.items():
            if name == netdev:
                self._follow(pci)
        return 0, "", ""

    def _follow(self, pci: str) -> None:
        text = self.read.get(pci, "")
        address = re.search(r"^Address=(.*)$", text, re.MULTILINE)
        mtu = re.search(r"^MTUBytes=(.*)$", text, re.MULTILINE)
        if address and mtu:
            self.links[self.pci[pci]] = {"mtu": int(mtu[1]), "addresses": [address[1]], "up": True}

    def ip(self, *words: str) -> Answer:
        """Set an MTU or delete an address."""
        if words[:3] == ("link", "set", "dev"):
            self.links[words[3]]["mtu"] = int(words[5])
        elif words[:2] == ("address", "delete"):
            self.links[words[4]]["addresses"].remove(words[2])
        else:
            return 255, "", "unknown"
        return 0, "", ""


class Sacctmgr:
    """The accounting database: clusters, QOS with priority, accounts and users of one cluster."""

    def __init__(self) -> None:
        self.clusters: list[str] = []
        self.qos: dict[str, int] = {"normal": 0}
        self.accounts: dict[str, set[str]] = {}
        self.users: dict[str, set[str]] = {}

    def run(self, words: list[str]) -> Answer:
        """Answer one command line, options left away."""
        if words[0] == "show":
            return 0, "".join(f"{row}\n" for row in self._rows(words[1])), ""
        verb, kind, name = words[:3]
        values = dict(word.split("=", 1) for word in words[3:] if "=" in word)
        wanted = set(values.get("qos", "").split(",")) - {""}
        if wanted - set(self.qos):
            return 1, "", f"no such qos {wanted - set(self.qos)}"
        if kind == "cluster":
            self.clusters.append(name)
        elif kind == "qos":
            self.qos[name] = int(values["priority"])
        elif kind == "account":
            self.accounts[name] = wanted
            self.users.setdefault(name, set())
        elif kind == "user" and values["account"] in self.accounts:
            self.users[values["account"]].add(name)
        else:
            return 1, "", f"cannot {verb} {kind} {name}"
        return 0, "", ""

    def _rows(self, kind: str) -> list[str]:
        if kind == "cluster":
            return self.clusters
        if kind == "qos":
            return [f"{name}|{priority}" for name, priority in self.qos.items()]
        if kind == "account":
            return list(self.accounts)
        rows = [f"{name}||{','.join(sorted(qos))}" for name, qos in self.accounts.items()]
        return rows + [f"{name}|{user}|" for name, users in self.users.items() for user in sorted(users)]


class Database:
    """MariaDB's databases and grants."""

    def __init__(self) -> None:
        self.grants: list[str] = []

    def run(self, statement: str) -> Answer:
        """Run one statement; a batch client doubles the backslashes that it prints."""
        if statement.startswith("SELECT"):
            return 0, "".join(f"{grant}\n".replace("\\", "\\\\") for grant in self.grants), ""
        found = re.search(r"GRANT ALL ON `([^`]+)`\.\* TO (\w+)@localhost", statement)
        if found is None:
            return 1, "", "syntax error"
        self.grants.append(f"{found[2]} {found[1]}")
        return 0, "", ""
