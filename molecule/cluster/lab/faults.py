"""Faults on a node's cable, injected from outside of the node, so that nothing in the guest gives them away.

=========== ============================================== =============================================
kind        value                                          where
=========== ============================================== =============================================
rate        Mbit/s towards the node                        token bucket on the switch's port
loss        percent of the frames towards the node         nftables in front of the switch's port
delay       ms in each direction                           a buffer between cable and NIC
down        -                                              carrier off
silent      -                                              the switch's port off, carrier on
switch-mtu  bytes (1500)                                   the switch's port: bigger frames vanish
mtu         bytes (1500)                                   in the guest: somebody set the wrong MTU
=========== ============================================== =============================================
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from . import layout, network, ssh
from .errors import LabError
from .layout import Network, Node
from .tools import run
from .vm import Machine

_DEFAULTS: dict[str, float | None] = {
    "rate": 10.0,
    "loss": 5.0,
    "delay": 10.0,
    "down": None,
    "silent": None,
    "switch-mtu": 1500.0,
    "mtu": 1500.0,
}
KINDS = tuple(_DEFAULTS)
_BURST = 16384  # bytes a token bucket lets through at once; above the MTU, small enough to be felt
_QUEUE_MS = 200  # how long the bucket's queue is: beyond it frames are dropped, as a congested port does


def check_value(kind: str, value: float | None) -> float:
    """Return the value to use for ``kind`` (its default for None); a LabError for an unknown kind or a bad value."""
    if kind not in _DEFAULTS:
        raise LabError("no such fault", found=kind, wanted=", ".join(KINDS))
    default = _DEFAULTS[kind]
    if default is None:
        if value is not None:
            raise LabError(f"fault {kind} takes no value", found=str(value))
        return 0.0
    chosen = default if value is None else value
    limits = {
        "rate": (0.1, 10000),
        "loss": (0.01, 100),
        "delay": (0.1, 1000),
        "switch-mtu": (256, 4200),
        "mtu": (256, 4200),
    }
    low, high = limits[kind]
    if not low <= chosen <= high:
        raise LabError(f"fault {kind} cannot have this value", found=f"{chosen:g}", wanted=f"{low:g} to {high:g}")
    return chosen


def rate_command(tap: str, rate: float) -> list[str]:
    """Return the tc command that limits what the switch sends out of port ``tap`` to ``rate`` Mbit/s."""
    bucket = ["rate", f"{rate * 1000:.0f}kbit", "burst", str(_BURST), "latency", f"{_QUEUE_MS}ms"]
    return ["tc", "-n", layout.NAMESPACE, "qdisc", "replace", "dev", tap, "root", "tbf", *bucket]


def loss_rules(tap: str, percent: float) -> str:
    """Return the nftables rules that drop ``percent`` of the frames forwarded to port ``tap``, at random."""
    return f"""table bridge loss-{tap} {{
    chain forward {{
        type filter hook forward priority 0; policy accept;
        oifname "{tap}" numgen random mod 10000 < {percent * 100:.0f} counter drop
    }}
}}
"""


def inject(machine: Machine, state: Path, kind: str, value: float | None, net: Network) -> float:
    """Put a fault on the node's cable in network ``net``; return the value used."""
    chosen = check_value(kind, value)
    node, tap = machine.node, machine.node.tap(net)
    if kind == "rate":
        run(rate_command(tap, chosen))
    elif kind == "loss":
        _drop_loss(tap)
        run(network.inside(["nft", "-f", "-"]), stdin=loss_rules(tap, chosen))
    elif kind == "delay":
        _drop_delay(machine, net)
        with machine.monitor() as monitor:
            micros = round(chosen * 1000)
            monitor.execute("object-add", qom_type="filter-buffer", id=_filter(net), netdev=net.name, interval=micros)
    elif kind == "down":
        with machine.monitor() as monitor:
            monitor.execute("set_link", name=net.name, up=False)
    elif kind == "silent":
        run(["ip", "-n", layout.NAMESPACE, "link", "set", tap, "down"])
    elif kind == "switch-mtu":
        run(["ip", "-n", layout.NAMESPACE, "link", "set", tap, "mtu", f"{chosen:.0f}"])
    else:
        _set_guest_mtu(node, state, net, round(chosen))
    return chosen


def heal_outside(machine: Machine, net: Network) -> None:
    """Take away all faults on the host's side of the node's cable in ``net``; quiet when there are none."""
    tap = machine.node.tap(net)
    links = ["ip", "-n", layout.NAMESPACE, "link", "set", tap]
    run([*links, "mtu", str(net.mtu), "up"])
    run(["tc", "-n", layout.NAMESPACE, "qdisc", "del", "dev", tap, "root"], check=False)
    _drop_loss(tap)
    if machine.pid() is not None:
        _drop_delay(machine, net)
        with machine.monitor() as monitor:
            monitor.execute("set_link", name=net.name, up=True)


def heal_inside(node: Node, state: Path, net: Network) -> None:
    """Give the guest's NIC the MTU back that it had before a fault ``mtu``."""
    record = _record(state, node, net)
    if not record.exists():
        return
    before = json.loads(record.read_text())["mtu"]
    ssh.run(state, node.name, f"ip link set {_interface(net)} mtu {int(before)}")
    record.unlink()


def forget_inside(state: Path) -> None:
    """Forget what was changed inside of guests: a snapshot or a fresh disk has undone it."""
    for record in state.glob("fault-mtu-*.json"):
        record.unlink()


def _filter(net: Network) -> str:
    return f"delay-{net.name}"


def _interface(net: Network) -> str:
    return f"enp0s{net.slot}"


def _record(state: Path, node: Node, net: Network) -> Path:
    return state / f"fault-mtu-{node.name}-{net.name}.json"


def _drop_loss(tap: str) -> None:
    run(network.inside(["nft", "delete", "table", "bridge", f"loss-{tap}"]), check=False)


def _drop_delay(machine: Machine, net: Network) -> None:
    with machine.monitor() as monitor:
        names = {entry["name"] for entry in monitor.execute("qom-list", path="/objects")}
        if _filter(net) in names:
            with suppress(LabError):
                monitor.execute("object-del", id=_filter(net))


def _set_guest_mtu(node: Node, state: Path, net: Network, mtu: int) -> None:
    interface = _interface(net)
    before = ssh.run(state, node.name, f"cat /sys/class/net/{interface}/mtu").stdout.strip()
    record = _record(state, node, net)
    if not record.exists():
        record.write_text(json.dumps({"mtu": int(before)}))
    ssh.run(state, node.name, f"ip link set {interface} mtu {mtu}")
