"""A node as a tree of files: sysfs and /proc/mounts of two RDMA NICs, as a kernel shows them, to be bent by a test."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

COMPUTE_PCI, STORAGE_PCI, MANAGEMENT_PCI = "0000:00:11.0", "0000:00:12.0", "0000:00:10.0"
EMPTY_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
MOUNTS = (
    "/dev/vda / ext4 rw,relatime 0 0\n"
    "10.77.2.1:/home /home nfs4 rw,relatime,vers=4.2,hard,proto=rdma,port=20049,clientaddr=10.77.2.11 0 0\n"
)

_RDMA = {
    "kind": "rxe",
    "rate_gbps": 400,
    "active_mtu": 4096,
    "gid_type": "RoCE v2",
    "link_layer": "Ethernet",
}
EXPECTED: dict[str, Any] = {
    "format": 1,
    "cluster": "lab",
    "node": "c1",
    "role": "compute",
    "mode": "enforce",
    "service_user": "weaklink",
    "nics": [
        {
            "pci": MANAGEMENT_PCI,
            "network": "management",
            "role": "management",
            "address": "10.77.0.11/24",
            "rdma": None,
        },
        {
            "pci": COMPUTE_PCI,
            "network": "compute",
            "role": "compute",
            "address": "10.77.1.11/24",
            "mtu": 4200,
            "rdma": {"device": "rxe_compute", **_RDMA},
        },
        {
            "pci": STORAGE_PCI,
            "network": "storage",
            "role": "storage",
            "address": "10.77.2.11/24",
            "mtu": 4200,
            "rdma": {"device": "rxe_storage", **_RDMA},
        },
    ],
    "mounts": [{"path": "/home", "fstype": "nfs4", "source": "10.77.2.1:/home", "proto": "rdma"}],
    "daemons": ["munge", "slurmd"],
    "partitions": {"main": ["c1", "c2", "c3"]},
    "leaves": {"leaf1": ["c1", "c2", "c3"]},
    "policy": {
        "budget": {
            "total_nodes": 2,
            "total_fraction": 0.10,
            "check_nodes": None,
            "check_fraction": 0.05,
            "leaf_fraction": 0.25,
            "reserve_fraction": 0.10,
            "window_seconds": 3600,
        },
        "nonbatch": "cancel",
        "health_strikes": 2,
    },
    "deadlines": {"prolog": 10, "epilog": 60, "health": 50, "check": 5, "slurm": 8},
}


def expected(**changes: Any) -> dict[str, Any]:
    """Return a copy of what is expected of c1, with top-level keys replaced."""
    return {**copy.deepcopy(EXPECTED), **changes}


class FakeNode:
    """A tree under ``root``; the methods change it as faults do."""

    def __init__(self, root: Path, addresses: tuple[str, str] = ("10.77.1.11", "10.77.2.11")) -> None:
        self.root = root
        self._netdev("enp0s16", MANAGEMENT_PCI, 1500)
        self._netdev("enp0s17", COMPUTE_PCI, 4200)
        self._netdev("enp0s18", STORAGE_PCI, 4200)
        self._rdma("rxe_compute", "enp0s17", addresses[0])
        self._rdma("rxe_storage", "enp0s18", addresses[1])
        self.write("/proc/mounts", MOUNTS)
        self.write("/proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n")

    def write(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def remove(self, path: str) -> None:
        file = self.root / path.lstrip("/")
        if file.is_dir():
            for child in sorted(file.rglob("*"), reverse=True):
                child.rmdir() if child.is_dir() else child.unlink()
            file.rmdir()
        else:
            file.unlink()

    def _netdev(self, name: str, pci: str, mtu: int) -> None:
        (self.root / f"sys/bus/pci/devices/{pci}/virtio1/net/{name}").mkdir(parents=True, exist_ok=True)
        self.write(f"/sys/class/net/{name}/mtu", f"{mtu}\n")
        self.write(f"/sys/class/net/{name}/operstate", "up\n")
        self.write(f"/sys/class/net/{name}/carrier", "1\n")

    def port(self, device: str) -> str:
        return f"/sys/class/infiniband/{device}/ports/1"

    def _rdma(self, device: str, netdev: str, address: str) -> None:
        base = self.port(device)
        self.write(f"/sys/class/infiniband/{device}/parent", f"{netdev}\n")
        self.write(f"{base}/state", "4: ACTIVE\n")
        self.write(f"{base}/phys_state", "5: LinkUp\n")
        self.write(f"{base}/rate", "400 Gb/sec (4X NDR)\n")
        self.write(f"{base}/link_layer", "Ethernet\n")
        a, b, c, d = (int(part) for part in address.split("."))
        gids = [
            "fe80:0000:0000:0000:5054:00ff:fe4d:010b",
            f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}",
        ]
        for index in range(8):
            self.write(f"{base}/gids/{index}", (gids[index] if index < len(gids) else EMPTY_GID) + "\n")
            if index < len(gids):
                self.write(f"{base}/gid_attrs/types/{index}", "RoCE v2\n")
                self.write(f"{base}/gid_attrs/ndevs/{index}", f"{netdev}\n")
        self.counter(device, "link_downed", 0)
        self.counter(device, "retry_exceeded_err", 0)

    def counter(self, device: str, name: str, value: int) -> None:
        self.write(f"{self.port(device)}/hw_counters/{name}", f"{value}\n")

    def mtu(self, netdev: str, value: int) -> None:
        self.write(f"/sys/class/net/{netdev}/mtu", f"{value}\n")

    def down(self, device: str) -> None:
        self.write(f"{self.port(device)}/state", "1: DOWN\n")
        self.write(f"{self.port(device)}/phys_state", "2: Polling\n")


def dump(data: dict[str, Any], path: Path) -> Path:
    """Write JSON to ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path
