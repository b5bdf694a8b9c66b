"""How long a cluster file takes to become an inventory, from 64 to 65,536 end points (eight a node), how it grows.

Absolute times are this machine's; the growth per doubling is what holds anywhere: about 2 is linear.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from weaklink.model import cluster, cluster_render

from tests.scale import RAILS, cluster_text

ROOT = Path(__file__).resolve().parents[2]
NODES = (8, 64, 512, 1024, 2048, 4096, 8192)


def expand(text: str) -> float:
    """Return the seconds from the file's text to every host's expected.json."""
    begun = time.perf_counter()
    site = cluster.parse("cluster.yml", text)
    common = cluster_render.shared(site)
    for host in site.hosts.values():
        cluster_render.host_variables(site, host, common)
    return time.perf_counter() - begun


def list_inventory(path: Path) -> tuple[float, float]:
    """Return seconds and MiB of ``ansible-inventory --list``."""
    command = [str(Path(sys.executable).with_name("ansible-inventory")), "--list", "-i", str(path)]
    env = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    begun = time.perf_counter()
    child = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return time.perf_counter() - begun, used.ru_maxrss / 1024


def test_inventory_grows_with_the_nodes_and_no_faster(tmp_path: Path) -> None:
    print("\n    nodes  end points   expand s   growth  --list s   growth   --list MiB")
    before: tuple[float, float] | None = None
    for nodes in NODES:
        text = cluster_text(nodes)
        path = tmp_path / str(nodes) / "cluster.yml"
        path.parent.mkdir()
        path.write_text(text)
        model = min(expand(text) for _ in range(3 if nodes < NODES[-2] else 1))
        listed, memory = list_inventory(path)
        growth = (model / before[0], listed / before[1]) if before else (0.0, 0.0)
        words = f"{growth[0]:8.1f}" if before else "       -"
        others = f"{growth[1]:8.1f}" if before else "       -"
        print(f"{nodes:9} {nodes * RAILS:11} {model:10.2f} {words} {listed:9.1f} {others} {memory:12.0f}")
        if nodes == 4096:
            assert model < 6.0
            assert listed < 15.0
            assert memory < 1536
        if before and nodes > 1024:
            # Twice the nodes: four times the time would be quadratic.
            assert growth[0] < 3.0
        before = (model, listed)
    print(f"peak of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
