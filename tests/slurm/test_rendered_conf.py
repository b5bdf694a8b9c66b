"""slurm.conf, topology.conf and gres.conf as the role writes them, loaded by a real slurmctld."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from weaklink.model import cluster as model

from tests.scale import cluster_text
from tests.slurm.cluster import ADDRESS, REPO, Cluster

pytestmark = pytest.mark.slurm
FILES = ("slurm.conf", "topology.conf", "gres.conf", "cgroup.conf")

# Written behind the rendered text or over it: what a controller without machines, database and hooks needs.
_OVER = {
    "SlurmctldHost": f"ctl({ADDRESS})",
    "StateSaveLocation": "/tmp/big/state",  # noqa: S108 - the namespaces' own
    "SlurmctldLogFile": "/tmp/big/slurmctld.log",  # noqa: S108 - the same
    "AccountingStorageType": "accounting_storage/none",
    "JobSubmitPlugins": "",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/none",
}

# In a network of its own, so that the ports are free; slurmctld ends with the shell.
_SCRIPT = """
set -e
export SLURM_CONF=/tmp/big/slurm.conf
ip link set lo up; ip addr add $ADDRESS/32 dev lo
mkdir -p /tmp/big/state; chown -R slurm /tmp/big
/usr/sbin/slurmctld -D -c -f $SLURM_CONF >/tmp/big/out 2>&1 & pid=$!
trap "kill $pid; wait $pid" EXIT
for _ in $(seq 100); do
    scontrol ping 2>/dev/null | grep -q UP && break
    kill -0 $pid || { cat /tmp/big/out; exit 9; }
    sleep 0.2
done
echo "=== nodes"; sinfo -h -N -o "%N|%P|%G|%b"
echo "=== topology"; scontrol show topology
echo "=== config"; scontrol show config
echo "=== log"; cat /tmp/big/slurmctld.log
"""


def render(inventory: Path, folder: Path) -> dict[str, str]:
    """Let Ansible render the role's templates for the controller of an inventory."""
    play = [
        {
            "hosts": "controller",
            "connection": "local",
            "gather_facts": False,
            "vars_files": [str(REPO / "roles/slurm/defaults/main.yml")],
            "vars": {"ansible_python_interpreter": sys.executable},
            "tasks": [
                {
                    "name": "Render",
                    "ansible.builtin.template": {
                        "src": f"{REPO}/roles/slurm/templates/{{{{ item }}}}.j2",
                        "dest": f"{folder}/{{{{ item }}}}",
                    },
                    "loop": list(FILES),
                }
            ],
        }
    ]
    (folder / "play.yml").write_text(yaml.safe_dump(play))
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory), str(folder / "play.yml")]
    env = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    done = subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return {name: (folder / name).read_text() for name in FILES}


def adapted(text: str) -> str:
    lines = [line for line in text.splitlines() if line.partition("=")[0] not in {*_OVER, "AccountingStorageHost"}]
    for hook in ("Prolog", "Epilog", "HealthCheckProgram", "HealthCheckInterval", "HealthCheckNodeState"):
        lines = [line for line in lines if line.partition("=")[0] != hook]
    at = next(index for index, line in enumerate(lines) if line.startswith("NodeName="))
    return "\n".join([*lines[:at], *(f"{key}={value}" for key, value in _OVER.items() if value), *lines[at:], ""])


def load(cluster: Cluster, files: dict[str, str]) -> dict[str, str]:
    """Start a slurmctld on the files; return what it says, by section."""
    cluster.must(["sh", "-c", "rm -rf /tmp/big; mkdir /tmp/big"])
    for name, text in files.items():
        path = f"/tmp/big/{name}"  # noqa: S108 - the namespaces' own
        result = cluster.feed(
            ["sh", "-c", 'cat > "$1"', "sh", path], 15, adapted(text) if name == "slurm.conf" else text
        )
        assert result.ok, result
    result = cluster.run(["env", f"ADDRESS={ADDRESS}", "unshare", "--net", "bash", "-c", _SCRIPT], 120)
    assert result.ok, result.out[-3000:] + result.err[-1000:]
    parts = re.split(r"^=== (\w+)\n", result.out, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


# A first start finds no state, no mail program is installed, and a busy machine is told to be slow.
_EXPECTED = ("High latency for", "MailProg", "Could not open", "state file", "state may be lost", "state save file")


def complaints(log: str) -> list[str]:
    """Return what slurmctld complains of, but for what a first start on this root always says."""
    bad = [line for line in log.splitlines() if re.search(r"\b(?:error|fatal): ", line)]
    return [line for line in bad if not any(words in line for words in _EXPECTED)]


def test_4096_nodes_are_ranges_and_load(daemons: Cluster, tmp_path: Path) -> None:
    (tmp_path / "cluster.yml").write_text(cluster_text(4096))
    files = render(tmp_path / "cluster.yml", tmp_path)
    assert {name: len(text) < 12_000 for name, text in files.items()} == dict.fromkeys(FILES, True)
    said = load(daemons, files)
    rows = [line.split("|") for line in said["nodes"].splitlines()]
    assert {row[0] for row in rows} == {f"gpu{number:04d}" for number in range(1, 4097)}
    assert {row[2] for row in rows} == {"gpu:h100:8"}
    leaves = re.findall(r"SwitchName=(su\d+) Level=0 .*Nodes=(\S+)", said["topology"])
    assert len(leaves) == 128
    assert ("su128", "gpu[4065-4096]") in leaves
    assert complaints(said["log"]) == []


@pytest.mark.parametrize("name", ["superpod-h100", "roce-64", "minimal", "nvl72", "lab"])
def test_the_examples_load(daemons: Cluster, tmp_path: Path, name: str) -> None:
    described = model.load(REPO / f"inventory/{name}/cluster.yml")
    said = load(daemons, render(REPO / f"inventory/{name}/cluster.yml", tmp_path))
    names = {line.split("|")[0] for line in said["nodes"].splitlines()}
    assert names == {host.name for host in described.compute}
    assert complaints(said["log"]) == []
    plugin = described.slurm["topology"]
    assert re.search(rf"TopologyPlugin\s+= topology/{plugin}", said["config"])
    if plugin == "block":
        blocks = re.findall(r"BlockName=(\S+) BlockIndex=\d+ .*?Nodes=(\S+) BlockSize=18", said["topology"])
        assert len(blocks) == 8, said["topology"]
        assert blocks[0][1] == "tray[001-018]"
        assert "BlockSize=144" in said["topology"]
