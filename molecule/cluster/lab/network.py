"""The lab's cables and switches: one network namespace with a bridge a network and a tap a NIC."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from . import layout
from .errors import LabError
from .layout import NAMESPACE, NETWORKS, Node
from .tools import run

_CLONE_NEWNET = 0x40000000


def inside(argv: Sequence[str]) -> list[str]:
    """Return the command line that runs ``argv`` in the lab's namespace."""
    return ["ip", "netns", "exec", NAMESPACE, *argv]


def exists() -> bool:
    """Tell whether the namespace is there."""
    return Path("/run/netns", NAMESPACE).exists()


def plan(nodes: Sequence[Node]) -> str:
    """Return the ``ip -batch`` lines that make the bridges and taps of ``nodes`` in a fresh namespace. Pure."""
    lines = ["link set lo up"]
    for network in NETWORKS:
        lines.append(f"link add {network.bridge} mtu {network.mtu} type bridge forward_delay 0 mcast_snooping 0")
        lines.append(f"link set {network.bridge} up")
        lines += [line for node in nodes for line in port_plan(node, network)]
    lines.append(f"addr add {layout.SWITCH_ADDRESS}/24 dev {layout.MANAGEMENT.bridge}")
    return "\n".join(lines) + "\n"


def port_plan(node: Node, network: layout.Network) -> list[str]:
    """Return the ``ip -batch`` lines that make one tap."""
    tap = node.tap(network)
    return [
        f"tuntap add dev {tap} mode tap vnet_hdr",
        f"link set {tap} mtu {network.mtu} master {network.bridge} up",
    ]


def create(nodes: Sequence[Node]) -> None:
    """Make the namespace with everything in it; a namespace that exists is extended by missing taps."""
    if not exists():
        run(["ip", "netns", "add", NAMESPACE])
        run(inside(["sysctl", "-q", *(f"net.ipv6.conf.{name}.disable_ipv6=1" for name in ("all", "default"))]))
        _batch(plan(nodes))
        # a switch does not look into packets: with this on, bridges would defragment, and fragment too big frames
        calls = [f"net.bridge.bridge-nf-call-{kind}=0" for kind in ("iptables", "ip6tables", "arptables")]
        run(inside(["sysctl", "-q", "-e", *calls]))
        return
    present = _links()
    missing = [
        line
        for node in nodes
        for network in NETWORKS
        if node.tap(network) not in present
        for line in port_plan(node, network)
    ]
    if missing:
        _batch("\n".join(missing) + "\n")


def _batch(text: str) -> None:
    run(["ip", "-n", NAMESPACE, "-batch", "-"], stdin=text)


def _links() -> set[str]:
    output = run(["ip", "-n", NAMESPACE, "-o", "link", "show"]).stdout
    return {line.split(": ")[1].split("@")[0] for line in output.splitlines() if ": " in line}


def complete(nodes: Sequence[Node]) -> bool:
    """Tell whether the namespace has all bridges and the taps of ``nodes``."""
    if not exists():
        return False
    wanted = {network.bridge for network in NETWORKS}
    wanted |= {node.tap(network) for node in nodes for network in NETWORKS}
    return wanted <= _links()


def processes() -> list[int]:
    """Return the ids of the processes that live in the namespace: machines and the legs of ssh connections."""
    if not exists():
        return []
    return [int(word) for word in run(["ip", "netns", "pids", NAMESPACE]).stdout.split()]


def command_of(pid: int) -> list[str]:
    """Return the command line of process ``pid``; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def drop_connections(address: str = "") -> None:
    """End the relays of the ssh connections to ``address`` (or all), and with them any ssh master, whoever started it.

    Needed after a snapshot is loaded: the guests know nothing of connections made since.
    """
    for pid in processes():
        command = command_of(pid)
        if command[:1] == ["socat"] and address in command[-1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def destroy() -> None:
    """Remove the namespace and end what is left in it; quiet when there is none."""
    if not exists():
        return
    _end_all(processes())
    run(["ip", "netns", "del", NAMESPACE])


def _end_all(pids: Sequence[int]) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, sign)
        end = time.monotonic() + 3.0
        while time.monotonic() < end:
            if not processes():
                return
            time.sleep(0.05)
    raise LabError("processes in the lab's namespace cannot be ended", found=str(processes()), todo="see ps -fp PID")


def connect(address: str, port: int, timeout: float) -> socket.socket:
    """Return a TCP connection to ``address`` from within the namespace; OSError as the socket module has it."""
    result: list[socket.socket | OSError] = []
    worker = threading.Thread(target=_connect, args=(address, port, timeout, result))
    worker.start()
    worker.join()
    outcome = result[0]
    if isinstance(outcome, OSError):
        raise outcome
    return outcome


def _connect(address: str, port: int, timeout: float, result: list[socket.socket | OSError]) -> None:
    """Thread body: only this thread moves into the namespace, and it ends afterwards."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        with Path("/run/netns", NAMESPACE).open("rb") as handle:
            failed = libc.setns(handle.fileno(), _CLONE_NEWNET) != 0
        number = ctypes.get_errno()
        result.append(
            OSError(number, os.strerror(number))
            if failed
            else socket.create_connection((address, port), timeout=timeout)
        )
    except OSError as error:
        result.append(error)
