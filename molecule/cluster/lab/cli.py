"""The lab's command line: ``python -m lab COMMAND``, which the Makefile's lab targets call."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from . import faults, image, layout, owner, ssh
from .core import Lab
from .errors import LabError
from .tools import Progress

_PACKAGE_DEPTH = 3  # this file lies in molecule/cluster/lab/ of the checkout


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description="The lab: a small real cluster on this host.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, function: Callable[[Lab, argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(function=function)
        return command

    up = add("up", _up, "start what is missing of the lab")
    up.add_argument("--compute", type=int, help="number of compute nodes (default: LAB_COMPUTE, else 3)")
    down = add("down", _down, "end the lab and remove its disks")
    down.add_argument("--force", action="store_true", help="also when another checkout started it")
    add("status", _status, "say what runs")
    add("image", _image, "build the image where it is missing and print its paths as JSON")
    shell = add("ssh", _ssh, "run a command on a node, or a shell")
    shell.add_argument("node")
    shell.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    add("snapshot", _snapshot, "save all machines").add_argument("name")
    reset = add("reset", _reset, "take all machines back to a snapshot")
    reset.add_argument("name", nargs="?", help="default: provisioned where it exists, else booted")
    reset.add_argument("--keep-clocks", action="store_true", help="leave the guests' time where the snapshot has it")
    for name, function, text in (
        ("start", _start, "switch a node on"),
        ("kill", _kill, "pull a node's plug"),
        ("reboot", _reboot, "reboot a node from within"),
    ):
        add(name, function, text).add_argument("node")
    fault = add("fault", _fault, "put a fault on a node's cable")
    fault.add_argument("node")
    fault.add_argument("kind", choices=faults.KINDS)
    fault.add_argument("value", type=float, nargs="?", help="Mbit/s, percent, ms or bytes, by kind")
    fault.add_argument("--network", choices=["compute", "storage"], default="compute")
    heal = add("heal", _heal, "take a node's faults away")
    heal.add_argument("node", nargs="?")
    heal.add_argument("--all", action="store_true")
    return parser


def _up(lab: Lab, arguments: argparse.Namespace) -> int:
    lab.up(arguments.compute)
    names = " ".join(node.name for node in lab.nodes)
    lab.progress(f"lab: up: {names}; ssh -F {lab.state}/ssh_config c1")
    return 0


def _down(lab: Lab, arguments: argparse.Namespace) -> int:
    lab.down(force=arguments.force)
    lab.progress("lab: down")
    return 0


def _status(lab: Lab, _: argparse.Namespace) -> int:
    holder = owner.read()
    if holder is None:
        print("lab: none on this machine; make lab-up starts it")
        return 1
    if holder.checkout != lab.root:
        print(f"lab: belongs to {holder.checkout}")
        return 1
    for name, pid in lab.running().items():
        node = lab.node(name)
        print(f"{name:4} {node.address():12} {f'process {pid}' if pid else 'off'}")
    saved = [set(machine.snapshots()) for machine in lab.machines()]
    print("snapshots: " + (", ".join(sorted(set.intersection(*saved))) or "none"))
    return 0 if lab.is_up() else 1


def _image(lab: Lab, _: argparse.Namespace) -> int:
    built = image.ensure(lab.progress)
    print(json.dumps({key: str(value) for key, value in built._asdict().items()}, indent=2))
    return 0


def _ssh(lab: Lab, arguments: argparse.Namespace) -> int:
    owner.require(lab.root)
    lab.node(arguments.node)
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    argv = ssh.command_line(lab.state, arguments.node, " ".join(words))
    if not words:
        argv = [*argv[:-2], "-t", argv[-2]]
    os.execvp(argv[0], argv)  # noqa: S606 - ssh takes this process over, terminal and all


def _snapshot(lab: Lab, arguments: argparse.Namespace) -> int:
    lab.snapshot(arguments.name)
    return 0


def _reset(lab: Lab, arguments: argparse.Namespace) -> int:
    name = arguments.name or ("provisioned" if lab.has_snapshot("provisioned") else "booted")
    lab.reset(name, set_clocks=not arguments.keep_clocks)
    return 0


def _start(lab: Lab, arguments: argparse.Namespace) -> int:
    lab.progress(f"lab: {arguments.node}: ssh after {lab.start(arguments.node):.0f} s")
    return 0


def _kill(lab: Lab, arguments: argparse.Namespace) -> int:
    lab.kill(arguments.node)
    return 0


def _reboot(lab: Lab, arguments: argparse.Namespace) -> int:
    lab.progress(f"lab: {arguments.node}: back after {lab.reboot(arguments.node):.0f} s")
    return 0


def _fault(lab: Lab, arguments: argparse.Namespace) -> int:
    value = lab.fault(arguments.node, arguments.kind, arguments.value, layout.network(arguments.network))
    lab.progress(f"lab: {arguments.node}: {arguments.kind} {value:g} on the {arguments.network} network")
    return 0


def _heal(lab: Lab, arguments: argparse.Namespace) -> int:
    if (arguments.node is None) != arguments.all:
        raise LabError("say what to heal", wanted="one node, or --all")
    lab.heal(arguments.node)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status: 0 good, 1 not, 130 interrupted."""
    arguments = _parser().parse_args(argv)
    lab = Lab(Path(__file__).resolve().parents[_PACKAGE_DEPTH], Progress())
    try:
        return int(arguments.function(lab, arguments))
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nlab: interrupted; make lab-down clears away what is there", file=sys.stderr)
        return 130
