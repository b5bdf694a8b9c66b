"""site.yml on the lab's machines: honest check mode, idempotence, healing exactly what was broken, reboot.

The tests run in order: each starts from what the one before left.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lab import Lab

from .cluster import Cluster

pytestmark = pytest.mark.lab

MOST_TASKS = 35
# Everything that site.yml may write to, hashed by content, owner and mode.
TREE = (
    "find /etc /usr/lib/weaklink /usr/bin/weaklink /srv /home -xdev "
    r"-not -path '/etc/.updated' -printf '%p %m %u %g %y %l\n' 2>/dev/null | sort; "
    "find /etc /usr/lib/weaklink /usr/bin/weaklink -xdev -type f -exec sha256sum {} + 2>/dev/null | sort; "
    "ip -j link | tr ',' '\\n' | grep -E 'ifname|mtu|operstate'; ip -4 -o addr | sed 's/valid_lft.*//'; "
    "rdma link; systemctl list-units --type=service,mount --state=active --plain --no-legend"
    " | awk '{print $1}' | grep -v -E 'user@|session|systemd-'"
)


class Run(NamedTuple):
    """What one ansible-playbook run brought: tasks by host and the set of (host, change)."""

    tasks: dict[str, int]
    changes: set[tuple[str, str]]
    output: str
    seconds: float


@pytest.fixture(scope="module")
def play(lab: Lab, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tally")
    count = 0

    def run(*argv: str) -> Run:
        nonlocal count
        count += 1
        tally = folder / f"{count}.json"
        os.environ["WEAKLINK_TALLY"] = str(tally)
        begun = time.monotonic()
        output = cluster.playbook("site.yml", "-i", str(lab.inventory_path), *argv, log=lab.state / f"site-{count}.log")
        seconds = time.monotonic() - begun
        del os.environ["WEAKLINK_TALLY"]
        record = json.loads(tally.read_text(encoding="utf-8"))
        changes = {(host, change) for host, h in record["hosts"].items() for change in h["changes"]}
        tasks = {host: h["tasks"] for host, h in record["hosts"].items()}
        print(f"\nsite.yml {' '.join(argv)}: {seconds:.0f} s, tasks {tasks}, {len(changes)} changes")
        return Run(tasks, changes, output, seconds)

    return run


def trees(cluster: Cluster) -> dict[str, str]:
    return {name: result.stdout for name, result in cluster.lab.ssh_all(TREE, timeout=180).items()}


@pytest.fixture(scope="module")
def predicted(lab: Lab, cluster: Cluster, play: Any) -> Run:
    lab.reset("booted")
    before = trees(cluster)
    result: Run = play("--check", "--diff")
    assert trees(cluster) == before, "--check changed something on a fresh machine"
    return result


@pytest.fixture(scope="module")
def first(predicted: Run, play: Any) -> Run:
    result: Run = play()
    return result


def test_check_on_fresh_machines_predicts_what_the_run_changes(predicted: Run, first: Run) -> None:
    assert predicted.changes, "a fresh machine needs changes"
    assert first.changes == predicted.changes


def test_no_more_tasks_on_a_compute_node_than_allowed(lab: Lab, first: Run) -> None:
    for node in lab.compute_nodes:
        assert 0 < first.tasks[node.name] <= MOST_TASKS


def test_second_run_changes_nothing(play: Any, first: Run, lab: Lab) -> None:
    again = play()
    assert again.changes == set()
    assert "changed=0" in again.output
    assert not re.search(r"changed=[1-9]", again.output)
    lab.snapshot("provisioned")


def test_one_broken_setting_is_predicted_and_healed_alone(cluster: Cluster, play: Any, first: Run) -> None:
    netdev = cluster.on("c2", "cat /sys/class/infiniband/rxe_compute/parent").strip()
    cluster.on("c2", f"ip link set {netdev} mtu 1500")
    cluster.on("c1", "echo '# edited by hand' >> /etc/slurm/gres.conf")
    before = trees(cluster)
    check = play("--check", "--diff")
    assert trees(cluster) == before, "--check changed something"
    assert {host for host, _ in check.changes} == {"c1", "c2"}
    assert any("gres.conf" in change for host, change in check.changes if host == "c1")
    assert any("mtu" in change.lower() for host, change in check.changes if host == "c2")
    assert "edited by hand" in check.output, "--diff does not show the edit"
    healed = play()
    assert healed.changes == check.changes
    assert "edited by hand" not in cluster.on("c1", "cat /etc/slurm/gres.conf")
    assert '"mtu":4200' in cluster.on("c2", f"ip -j link show dev {netdev}")


def test_validation_fails_loudly_when_storage_is_not_rdma(cluster: Cluster, lab: Lab) -> None:
    cluster.on("c3", "systemctl stop home.mount && mount -t nfs -o vers=4.2,proto=tcp 10.77.2.1:/home /home")
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        "playbooks/90-accept.yml",
        "-i",
        str(lab.inventory_path),
    ]
    result = subprocess.run(
        command,
        cwd=lab.root,
        env={**os.environ, **lab.ansible_env()},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    cluster.on("c3", "umount /home && systemctl start home.mount")
    assert result.returncode != 0
    assert "c3" in result.stdout
    assert "rdma" in result.stdout


@pytest.mark.parametrize("node", ["c1", "ctl"])
def test_everything_survives_a_reboot(cluster: Cluster, lab: Lab, node: str) -> None:
    names = [n.name for n in lab.compute_nodes]
    lab.reboot(node)
    cluster.wait("all nodes idle", lambda: all(cluster.node(n).states == {"IDLE"} for n in names), 240)
    for name in names:
        expect_rdma_home(cluster, name)
        assert "ACTIVE" in cluster.port_state(name)
        assert json.loads(cluster.on(name, "weaklink check --json"))["verdict"] == "ok"


def expect_rdma_home(cluster: Cluster, node: str) -> None:
    cluster.on(node, "ls /home/bob", timeout=180)
    assert "proto=rdma" in cluster.on(node, "grep ' /home ' /proc/mounts")


def test_run_after_reboots_changes_nothing(play: Any, first: Run) -> None:
    assert play().changes == set()
