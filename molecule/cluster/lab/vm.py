"""One virtual machine: its command line, its start and its end."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from . import layout, network
from .errors import LabError
from .image import Image
from .layout import Node
from .monitor import Monitor
from .tools import run

# Nehalem leaves out the wide vector instructions, which are slow to emulate.
_ACCELERATORS = {"tcg": ("tcg,thread=multi,tb-size=256", "Nehalem"), "kvm": ("kvm", "host")}
_KERNEL_OPTIONS = (
    "root=/dev/vda rootfstype=ext4 rw console=ttyS0 quiet net.ifnames=1 mitigations=off audit=0 selinux=0 apparmor=0 "
    "tsc=reliable nokaslr lsm="
)


class Files(NamedTuple):
    """Where one machine's files are."""

    disk: Path
    console: Path
    pid: Path
    monitor: Path


class Machine:
    """One node as a process on this host.

    ``state`` is the checkout's .lab folder. The monitor socket lies under /run, since socket names are short.
    """

    def __init__(self, node: Node, state: Path, image: Image) -> None:
        self.node = node
        self.image = image
        folder = state / "vm" / node.name
        self.files = Files(
            disk=folder / "disk.qcow2",
            console=folder / "console",
            pid=folder / "pid",
            monitor=Path(layout.RUN_DIR, f"{node.name}.qmp"),
        )

    def argv(self, accelerator: str = "tcg") -> list[str]:
        """Return the machine's command line. Pure."""
        if accelerator not in _ACCELERATORS:
            raise LabError("LAB_ACCEL is not usable", found=accelerator, wanted=" or ".join(_ACCELERATORS))
        accel, cpu = _ACCELERATORS[accelerator]
        node, files = self.node, self.files
        argv = ["qemu-system-x86_64", "-name", f"{layout.NAMESPACE}-{node.name}", "-M", "q35,usb=off"]
        argv += ["-accel", accel, "-cpu", cpu, "-smp", str(node.cpus), "-m", str(node.memory)]
        argv += ["-nodefaults", "-no-user-config", "-display", "none"]
        argv += ["-kernel", str(self.image.kernel), "-initrd", str(self.image.initrd), "-append", self.kernel_options()]
        argv += ["-drive", f"file={files.disk},if=none,id=disk,cache=unsafe,discard=unmap"]
        argv += ["-device", "virtio-blk-pci,drive=disk,addr=0x8", "-device", "virtio-rng-pci,addr=0x9"]
        argv += ["-serial", f"file:{files.console}", "-qmp", f"unix:{files.monitor},server=on,wait=off"]
        argv += ["-pidfile", str(files.pid), "-daemonize"]
        for net in layout.NETWORKS:
            argv += ["-netdev", f"tap,id={net.name},ifname={node.tap(net)},script=no,downscript=no"]
            jumbo = "" if net is layout.MANAGEMENT else f",host_mtu={net.mtu},speed=400000,duplex=full"
            argv += [
                "-device",
                f"virtio-net-pci,netdev={net.name},mac={node.mac(net)},addr={net.slot:#x}{jumbo},romfile=",
            ]
        return argv

    def kernel_options(self) -> str:
        """Return the kernel command line: the common part and who this machine is."""
        node = self.node
        return (
            f"{_KERNEL_OPTIONS} systemd.machine_id={node.machine_id} systemd.hostname={node.name} "
            f"lab.id={node.number} lab.name={node.name}"
        )

    def pid(self) -> int | None:
        """Return the id of the running process, None when the machine is off.

        A pid file that survived its process is not believed: the process must name the very file in its arguments.
        """
        try:
            pid = int(self.files.pid.read_text())
        except (OSError, ValueError):
            return None
        return pid if str(self.files.pid) in network.command_of(pid) else None

    def start(self) -> None:
        """Switch the machine on; its disk is kept when it has one. Returns once the process runs."""
        if self.pid() is not None:
            return
        files = self.files
        files.disk.parent.mkdir(parents=True, exist_ok=True)
        files.monitor.unlink(missing_ok=True)
        if not files.disk.exists():
            fresh = files.disk.with_suffix(".new")
            base = ["-b", str(self.image.base_ext4), "-F", "raw"]
            run(["qemu-img", "create", "-q", "-f", "qcow2", *base, str(fresh)])
            fresh.rename(files.disk)
        run(network.inside(self.argv(os.environ.get("LAB_ACCEL", "tcg"))))

    def kill(self) -> None:
        """Pull the plug (SIGKILL) and wait until the process is gone; quiet when it is off."""
        pid = self.pid()
        if pid is None:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 10.0
        while self.pid() is not None:
            if time.monotonic() > end:
                raise LabError(f"{self.node.name}: process {pid} does not end", todo=f"see /proc/{pid}/status")
            time.sleep(0.02)
        self.files.pid.unlink(missing_ok=True)

    def monitor(self) -> Monitor:
        """Return a connection to the machine's monitor."""
        if self.pid() is None:
            raise LabError(f"{self.node.name} is off", todo=f"python -m lab start {self.node.name}, or make lab-up")
        return Monitor(self.files.monitor)

    def snapshots(self) -> list[str]:
        """Return the names of the snapshots on the machine's disk."""
        if not self.files.disk.exists():
            return []
        output = run(["qemu-img", "snapshot", "-U", "-l", str(self.files.disk)]).stdout
        return parse_snapshots(output)


def parse_snapshots(text: str) -> list[str]:
    """Read the names out of the table that ``qemu-img snapshot -l`` prints."""
    rows = [line.split(None, 2) for line in text.splitlines()]
    return [tag for number, tag, *_ in (row for row in rows if len(row) > 1) if number.isdigit()]
