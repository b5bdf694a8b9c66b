"""The lab as one object: up, down, ssh, snapshots, faults."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from . import faults, image, inventory, layout, network, owner, ssh
from .errors import LabError
from .layout import Network, Node
from .tools import Progress, Silence, parallel
from .vm import Machine

BOOT_TIMEOUT = 600.0  # seconds; a busy host without hardware virtualisation needs about 80


class Lab:
    """The lab of one checkout.

    ``root`` is the checkout. ``progress`` hears about long steps; a plain callable gets one line each.
    """

    def __init__(self, root: Path, progress: Progress | Callable[[str], None] | None = None) -> None:
        self.root = root.resolve()
        self.state = self.root / ".lab"
        self.progress = _as_progress(progress)

    # -- what there is ----------------------------------------------------------------------------------------------

    @property
    def compute(self) -> int:
        """The number of compute nodes: of the running lab, else what LAB_COMPUTE asks for."""
        holder = owner.read()
        if holder is not None and holder.checkout == self.root:
            return holder.compute
        return layout.parse_compute(os.environ.get("LAB_COMPUTE"))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, the controller first."""
        return layout.nodes(self.compute)

    @property
    def compute_nodes(self) -> tuple[Node, ...]:
        """The compute nodes."""
        return self.nodes[1:]

    @property
    def inventory_path(self) -> Path:
        """The cluster file to give to Ansible: the committed one, or its copy for another number of nodes."""
        return inventory.path(self.root, self.state, self.compute)

    def node(self, name: str) -> Node:
        """Return the node called ``name``; a LabError where there is none."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise LabError("no such node", found=name, wanted=", ".join(node.name for node in self.nodes))

    def running(self) -> dict[str, int | None]:
        """Return the process id of each node, None for those that are off."""
        return {node.name: self._machine(node).pid() for node in self.nodes}

    def is_up(self) -> bool:
        """Tell whether all nodes run and are cabled."""
        return network.complete(self.nodes) and all(self.running().values())

    def _machine(self, node: Node | str) -> Machine:
        return Machine(self.node(node) if isinstance(node, str) else node, self.state, image.locate())

    def machines(self) -> list[Machine]:
        """Return the machines of all nodes."""
        return [self._machine(node) for node in self.nodes]

    # -- up and down ------------------------------------------------------------------------------------------------

    def up(self, compute: int | None = None) -> dict[str, float]:
        """Bring the lab up; return the seconds until ssh worked of each machine that was waited for.

        From any state: what runs stays, what is missing is added. A fresh lab gets the snapshot "booted".
        """
        wanted = compute if compute is not None else layout.parse_compute(os.environ.get("LAB_COMPUTE"))
        with owner.exclusive():
            owner.refuse_foreign(self.root)
            holder = owner.read()
            if holder is not None and holder.checkout == self.root and holder.compute != wanted:
                if any(self.running().values()):
                    self.progress(f"lab: it has {holder.compute} compute nodes, {wanted} are wanted: starting anew")
                self._down()
            built = image.ensure(self.progress)
            owner.claim(self.root, wanted)
            ssh.write_files(self.nodes, self.state, built)
            inventory.write(self.root, self.state, wanted)
            times = self._start_missing()
            if not self.has_snapshot("booted"):
                self._snapshot("booted")
            return times

    def _start_missing(self) -> dict[str, float]:
        machines = self.machines()
        if not network.complete(self.nodes):
            for machine in machines:  # machines without cables are of no use
                machine.kill()
            network.destroy()
        network.create(self.nodes)
        missing = [machine for machine in machines if machine.pid() is None]
        first = not self.has_snapshot("booted")
        if not missing and not first:
            return {}
        if first and len(missing) == len(machines):
            shutil.rmtree(self.state / "vm", ignore_errors=True)  # disks of a first start that never ended
            faults.forget_inside(self.state)
        # a first start that was interrupted has left machines that still boot: then all are waited for
        awaited = machines if first else missing
        with self.progress.step(f"boot {', '.join(machine.node.name for machine in awaited)}"):
            parallel(self._switch_on, missing)
            times = parallel(self._wait, awaited)
        result = {machine.node.name: seconds for machine, seconds in zip(awaited, times, strict=True)}
        self.progress("lab: ssh after " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in result.items()))
        return result

    def _switch_on(self, machine: Machine) -> None:
        if machine.pid() is None:
            ssh.forget(self.state, machine.node)
            machine.start()

    def _wait(self, machine: Machine) -> float:
        return ssh.wait_ready(self.state, machine.node, BOOT_TIMEOUT, machine.files.pid)

    def down(self, *, force: bool = False) -> None:
        """End the lab and remove its disks; quiet when there is none. ``force`` ends another checkout's lab too."""
        with owner.exclusive():
            if not force:
                owner.refuse_foreign(self.root)
            self._down()

    def _down(self) -> None:
        holder = owner.read()
        for state in {self.state, (holder.checkout / ".lab") if holder else self.state}:
            for node in layout.nodes(layout.MAX_COMPUTE):
                Machine(node, state, image.locate()).kill()
            shutil.rmtree(state / "vm", ignore_errors=True)
            if state.is_dir():
                faults.forget_inside(state)
        network.destroy()  # ends what is left in it by its process id, also after a crash of ours
        shutil.rmtree(Path(layout.RUN_DIR, "ssh"), ignore_errors=True)
        for socket in Path(layout.RUN_DIR).glob("*.qmp"):
            socket.unlink(missing_ok=True)
        owner.release()

    # -- single machines --------------------------------------------------------------------------------------------

    def start(self, node: str) -> float:
        """Switch a machine on, wait for ssh, and return the seconds that took."""
        owner.require(self.root)
        machine = self._machine(node)
        self._switch_on(machine)
        return self._wait(machine)

    def kill(self, node: str) -> None:
        """Pull a machine's plug."""
        owner.require(self.root)
        machine = self._machine(node)
        machine.kill()
        ssh.forget(self.state, machine.node)

    def reboot(self, node: str, timeout: float = BOOT_TIMEOUT) -> float:
        """Reboot a machine from within, wait for ssh, and return the seconds that took."""
        machine = self._machine(node)
        start = time.monotonic()
        before = self._boot_id(node)
        self.ssh(node, "systemctl reboot --no-block", check=False)
        while time.monotonic() - start < timeout:
            ssh.wait_ready(self.state, machine.node, timeout, machine.files.pid)
            try:
                if self._boot_id(node) != before:
                    return time.monotonic() - start
            except LabError:  # it went down between the two questions
                continue
            time.sleep(0.5)
        raise LabError(f"{node}: not rebooted after {timeout:.0f} s", todo=f"read {machine.files.console}")

    def _boot_id(self, node: str) -> str:
        return self.ssh(node, "cat /proc/sys/kernel/random/boot_id", timeout=20.0).stdout.strip()

    # -- ssh --------------------------------------------------------------------------------------------------------

    def ssh(
        self,
        node: str,
        command: str | Sequence[str],
        *,
        timeout: float = 60.0,
        check: bool = True,
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as root on ``node``: shell text, or an argument list that gets quoted. Seconds of timeout."""
        owner.require(self.root)
        self.node(node)
        return ssh.run(self.state, node, command, timeout=timeout, check=check, stdin=stdin)

    def ssh_all(
        self, command: str | Sequence[str], nodes: Sequence[Node] | None = None, *, timeout: float = 60.0
    ) -> dict[str, subprocess.CompletedProcess[str]]:
        """Run a command on ``nodes`` (all by default) at the same time; return the results by node."""
        chosen = list(self.nodes if nodes is None else nodes)
        results = parallel(lambda node: self.ssh(node.name, command, timeout=timeout), chosen)
        return {node.name: result for node, result in zip(chosen, results, strict=True)}

    def ansible_env(self) -> dict[str, str]:
        """Return the environment for ansible-playbook against this lab.

        The fast strategy (mitogen) is used unless LAB_STRATEGY=stock.
        """
        env = {
            **os.environ,
            "ANSIBLE_CONFIG": str(self.root / "ansible.cfg"),
            "ANSIBLE_INVENTORY": str(self.inventory_path),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": f"{layout.RUN_DIR}/ssh",
            "ANSIBLE_TIMEOUT": "60",  # a machine in emulation that has just come back takes its time to answer
            "PATH": f"{Path(sys.prefix) / 'bin'}:{os.environ.get('PATH', '/usr/sbin:/usr/bin:/sbin:/bin')}",
        }
        strategies = Path(sysconfig.get_paths()["purelib"]) / "ansible_mitogen/plugins/strategy"
        if os.environ.get("LAB_STRATEGY", "") != "stock" and strategies.is_dir():
            env |= {
                "ANSIBLE_STRATEGY": "mitogen_linear",
                "ANSIBLE_STRATEGY_PLUGINS": str(strategies),
                "ANSIBLE_DEPRECATION_WARNINGS": "False",  # they are about mitogen's own calls
            }
        return env

    # -- snapshots --------------------------------------------------------------------------------------------------

    def has_snapshot(self, name: str) -> bool:
        """Tell whether all machines have the snapshot ``name``."""
        return all(name in machine.snapshots() for machine in self.machines())

    def snapshot(self, name: str) -> float:
        """Save memory and disk of all machines under ``name``; return the seconds that took."""
        with owner.exclusive():
            owner.require(self.root)
            return self._snapshot(name)

    def _snapshot(self, name: str) -> float:
        if not name.replace("-", "").replace("_", "").isalnum() or name.isdigit():
            raise LabError("not a name for a snapshot", found=repr(name), wanted="letters, digits, - and _")
        start = time.monotonic()
        machines = self.machines()
        with self.progress.step(f"save snapshot {name}"):
            parallel(_pause, machines)
            try:
                parallel(lambda machine: _human(machine, f"savevm {name}"), machines)
            finally:
                parallel(_resume, machines)
        return time.monotonic() - start

    def reset(self, name: str, *, set_clocks: bool = True) -> float:
        """Take all machines back to snapshot ``name``, heal all cables, and return the seconds that took.

        The guests' clocks are set to this host's time unless ``set_clocks`` is false; then they go on from the time
        at which the snapshot was made (all of them alike).
        """
        with owner.exclusive():
            owner.require(self.root)
            if not self.has_snapshot(name):
                raise LabError(
                    f"no snapshot {name} on all machines", todo=f"make lab-up; python -m lab snapshot {name}"
                )
            start = time.monotonic()
            with self.progress.step(f"reset to snapshot {name}"):
                if not self.is_up():
                    self._revive()
                machines = self.machines()
                parallel(_pause, machines)
                self._heal_outside(machines)
                parallel(lambda machine: _human(machine, f"loadvm {name}"), machines)
                ssh.forget_masters()
                faults.forget_inside(self.state)
                parallel(_resume, machines)
                parallel(self._wait, machines)
                if set_clocks:
                    self.set_clocks()
            return time.monotonic() - start

    def _revive(self) -> None:
        """Start machines that are off, without waiting: a snapshot is loaded over them at once."""
        machines = self.machines()
        if not network.complete(self.nodes):
            for machine in machines:
                machine.kill()
            network.destroy()
        network.create(self.nodes)
        parallel(Machine.start, machines)

    def set_clocks(self) -> None:
        """Set the clocks of all guests to this host's time."""

        def set_one(node: Node) -> None:
            ssh.run(self.state, node.name, "read t; date -u -s @$t >/dev/null", stdin=f"{time.time():.3f}\n")

        parallel(set_one, self.nodes)

    # -- faults -----------------------------------------------------------------------------------------------------

    def fault(self, node: str, kind: str, value: float | None = None, net: Network = layout.COMPUTE) -> float:
        """Put a fault on the node's cable in network ``net`` (see the module faults); return the value used."""
        owner.require(self.root)
        return faults.inject(self._machine(node), self.state, kind, value, net)

    def heal(self, node: str | None = None) -> None:
        """Take away all faults of ``node``, or of all nodes."""
        owner.require(self.root)
        machines = self.machines() if node is None else [self._machine(node)]
        self._heal_outside(machines)
        for machine in machines:
            for net in (layout.COMPUTE, layout.STORAGE):
                faults.heal_inside(machine.node, self.state, net)

    def _heal_outside(self, machines: Sequence[Machine]) -> None:
        def heal_one(machine: Machine) -> None:
            for net in (layout.COMPUTE, layout.STORAGE):
                faults.heal_outside(machine, net)

        parallel(heal_one, machines)


def _as_progress(progress: Progress | Callable[[str], None] | None) -> Progress:
    if progress is None:
        return Silence()
    return progress if isinstance(progress, Progress) else _Lines(progress)


class _Lines(Progress):
    """A progress that gives its lines to a function."""

    def __init__(self, function: Callable[[str], None]) -> None:
        super().__init__(open(os.devnull, "w"))  # noqa: SIM115, PTH123 - never written to
        self._function = function

    def __call__(self, text: str) -> None:
        self._function(text)


def _human(machine: Machine, line: str) -> None:
    with machine.monitor() as monitor:
        monitor.human(line)


def _pause(machine: Machine) -> None:
    with machine.monitor() as monitor:
        monitor.execute("stop")


def _resume(machine: Machine) -> None:
    with machine.monitor() as monitor:
        monitor.execute("cont")
