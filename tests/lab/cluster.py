"""The lab's cluster as the story's people see it: through ssh, Slurm's commands and weaklink's."""

import json
import re
import shlex
import time
from pathlib import Path
from typing import Any, NamedTuple

from lab import Lab


class StoryError(AssertionError):
    """Something in the story did not happen as it should."""


class NodeState(NamedTuple):
    """What Slurm says of a node; ``since`` and ``by`` belong to the reason."""

    states: frozenset[str]
    reason: str
    by: str
    since: int

    @property
    def drained(self) -> bool:
        """Whether Slurm gives the node no new jobs."""
        return "DRAIN" in self.states

    @property
    def drain(self) -> tuple[bool, str, str, int]:
        """The drain alone: a job that is completing meanwhile changes the states, and nothing of this."""
        return self.drained, self.reason, self.by, self.since


class Cluster:
    """Asks and tells the lab; every look-up is a real command on a real machine."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def ctl(self, command: str, timeout: float = 120, check: bool = True) -> str:
        """Run a shell command on the controller as root and return its stdout."""
        return str(self.lab.ssh("ctl", command, timeout=timeout, check=check).stdout)

    def on(self, node: str, command: str, timeout: float = 120, check: bool = True) -> str:
        """Run a shell command on ``node`` as root and return its stdout."""
        return str(self.lab.ssh(node, command, timeout=timeout, check=check).stdout)

    def weaklink(self, *argv: str, timeout: float = 600) -> tuple[int, Any, str]:
        """Run a weaklink command with --json on the controller; return (exit code, object, stderr)."""
        command = shlex.join(["weaklink", *argv, "--json"])
        result = self.lab.ssh("ctl", command, timeout=timeout, check=False)
        try:
            return result.returncode, json.loads(result.stdout), result.stderr
        except json.JSONDecodeError:
            raise StoryError(
                f"{command}: no JSON on stdout (rc {result.returncode})\n{result.stdout}\n{result.stderr}"
            ) from None

    def node(self, name: str) -> NodeState:
        """Return what Slurm says of a node."""
        record = json.loads(self.ctl(f"scontrol show node {name} --json=v0.0.42"))["nodes"][0]
        changed = record["reason_changed_at"]
        since = changed["number"] if isinstance(changed, dict) else changed
        return NodeState(frozenset(record["state"]), record["reason"], record["reason_set_by_user"], int(since))

    def snapshot(self) -> dict[str, tuple[Any, ...]]:
        """Return everything about the compute nodes that a drain, a note or a return would change."""
        nodes = json.loads(self.ctl("scontrol show node --json=v0.0.42"))["nodes"]
        return {
            n["name"]: (
                "DRAIN" in n["state"],
                n["reason"],
                n["reason_set_by_user"],
                str(n["reason_changed_at"]),
                n["extra"],
            )
            for n in nodes
        }

    def wait(self, what: str, ready: Any, timeout: float) -> Any:
        """Call ``ready`` until it returns something true; StoryError after ``timeout`` seconds."""
        end = time.monotonic() + timeout
        while True:
            value = ready()
            if value:
                return value
            if time.monotonic() > end:
                raise StoryError(
                    f"{what}: not so after {timeout:g} s\n{self.ctl('squeue; sinfo -N -l; sinfo -R', check=False)}"
                )
            time.sleep(1)

    def wait_idle(self, *names: str, timeout: float = 120) -> None:
        """Wait until each named node is idle and takes jobs."""
        for name in names:
            self.wait(
                f"{name} idle", lambda n=name: self.node(n).states in ({"IDLE"}, {"IDLE", "DYNAMIC_NORM"}), timeout
            )

    def submit(self, user: str, arguments: str, script: str) -> int:
        """Submit a batch job as ``user`` and return its id."""
        text = f"#!/bin/bash\n{script}\n"
        command = (
            f"cd /home/{user} && runuser -u {user} -- sbatch --parsable --output=/home/{user}/job-%j.out {arguments}"
        )
        out = self.ctl(f"{command} <<'END'\n{text}END")
        match = re.search(r"\d+", out)
        if not match:
            raise StoryError(f"sbatch printed no job id: {out!r}")
        return int(match.group())

    def job(self, job_id: int) -> dict[str, Any]:
        """Return Slurm's record of a job (state, nodes, restarts, admin comment, hold)."""
        job = json.loads(self.ctl(f"scontrol show job {job_id} --json=v0.0.42"))["jobs"][0]
        return {
            "state": job["job_state"][0],
            "nodes": job["nodes"],
            "restarts": job["restart_cnt"],
            "admin_comment": job["admin_comment"],
            "hold": job["hold"],
            "reason": job["state_reason"],
        }

    def hw_counter(self, node: str, name: str, device: str = "rxe_compute") -> int:
        """Read one RDMA counter in a guest."""
        return int(self.on(node, f"cat /sys/class/infiniband/{device}/ports/1/hw_counters/{name}"))

    def port_state(self, node: str, device: str = "rxe_compute") -> str:
        """Read the RDMA port state as a port-state check would."""
        return self.on(node, f"cat /sys/class/infiniband/{device}/ports/1/state").strip()

    def networks(self, node: str) -> dict[str, str]:
        """Return the network (the first three numbers of the address) of each NIC that has an IPv4 address."""
        links = json.loads(self.on(node, "ip -j -4 addr show scope global"))
        return {link["ifname"]: link["addr_info"][0]["local"].rpartition(".")[0] for link in links}

    def compute_address(self, node: str) -> str:
        """Return the node's address on the compute network, asked of the node."""
        netdev = self.on(node, "cat /sys/class/infiniband/rxe_compute/parent").strip()
        addresses = json.loads(self.on(node, f"ip -j -4 addr show dev {netdev}"))
        return str(addresses[0]["addr_info"][0]["local"])

    def guard_log(self, node: str, lines: int = 50) -> list[dict[str, Any]]:
        """Return the last entries of the node's own log."""
        text = self.on(node, f"tail -n {lines} /var/log/weaklink/guard.log", check=False)
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def playbook(self, *argv: str, log: Path | None = None, timeout: float = 1500) -> str:
        """Run ansible-playbook from the checkout with the lab's environment; return its output."""
        import os
        import subprocess
        import sys

        root = self.lab.root
        command = [str(Path(sys.executable).with_name("ansible-playbook")), *argv]
        environment = {**os.environ, **self.lab.ansible_env()}
        result = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
        if log:
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(result.stdout + result.stderr, encoding="utf-8")
        if result.returncode != 0:
            raise StoryError(
                f"{shlex.join(argv)}: exit {result.returncode}\n{result.stdout[-6000:]}\n{result.stderr[-2000:]}"
            )
        return result.stdout
