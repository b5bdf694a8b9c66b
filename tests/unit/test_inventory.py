"""The inventory plugin, through ansible-inventory itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def inventory(*argv: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("ansible-inventory")), "--list", "--export", *argv]
    env = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=120)


def plain(value: Any) -> Any:
    """Take off the mark that Ansible puts on text it will not evaluate."""
    if isinstance(value, dict):
        return (
            value["__ansible_unsafe"] if set(value) == {"__ansible_unsafe"} else {k: plain(v) for k, v in value.items()}
        )
    return [plain(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def lab() -> dict[str, Any]:
    result = inventory()
    assert result.returncode == 0, result.stderr
    listed: dict[str, Any] = plain(json.loads(result.stdout))
    return listed


def test_plain_ansible_finds_the_lab(lab: dict[str, Any]) -> None:
    assert lab["controller"]["hosts"] == ["ctl"]
    assert lab["compute"]["hosts"] == ["c1", "c2", "c3"]


def test_hosts_know_their_addresses_and_what_is_expected_of_them(lab: dict[str, Any]) -> None:
    c2 = lab["_meta"]["hostvars"]["c2"]
    assert c2["ansible_host"] == "10.77.0.12"
    assert json.loads(c2["weaklink_expected_json"])["node"] == "c2"
    nics = json.loads(c2["weaklink_nics_json"])
    assert [nic["address"] for nic in nics] == ["10.77.0.12/24", "10.77.1.12/24", "10.77.2.12/24"]
    assert "weaklink_cluster_json" not in c2
    controller = lab["_meta"]["hostvars"]["ctl"]
    assert len(json.loads(controller["weaklink_cluster_json"])["nodes"]) == 3
    assert [run["name"] for run in controller["weaklink_slurm_nodes"]] == ["c[1-3]"]


def test_group_of_another_name_is_below_its_role(tmp_path: Path) -> None:
    text = (
        (ROOT / "inventory/lab/cluster.yml")
        .read_text()
        .replace("  compute:\n    role: compute", "  gpu:\n    role: compute")
    )
    (tmp_path / "cluster.yml").write_text(
        text.replace("groups: [compute]", "groups: [gpu]").replace("c[1-3]", "g[01-05]")
    )
    result = inventory("-i", str(tmp_path / "cluster.yml"))
    assert result.returncode == 0, result.stderr
    listed = plain(json.loads(result.stdout))
    assert listed["compute"]["children"] == ["gpu"]
    assert listed["gpu"]["hosts"] == ["g01", "g02", "g03", "g04", "g05"]


@pytest.mark.parametrize(
    ("name", "compute", "groups"),
    [("superpod-h100", 127, {"dgx"}), ("roce-64", 64, {"gpu"}), ("minimal", 2, {"gpu"}), ("nvl72", 144, {"tray"})],
)
def test_examples_are_inventories_without_a_warning(name: str, compute: int, groups: set[str]) -> None:
    result = inventory("-i", f"inventory/{name}/cluster.yml")
    assert result.returncode == 0, result.stderr
    assert "WARNING" not in result.stderr
    listed = plain(json.loads(result.stdout))
    assert set(listed["compute"]["children"]) == groups
    names = [host for group in groups for host in listed[group]["hosts"]]
    assert len(names) == compute
    managed = [host for group in listed["managed"]["children"] for host in listed[group]["hosts"]]
    assert set(managed) == set(listed["_meta"]["hostvars"])


def test_an_existing_slurm_gets_the_guard_alone(tmp_path: Path) -> None:
    """With nothing in the group managed, the plays that set up networks, file systems and Slurm have no hosts."""
    text = (ROOT / "inventory/minimal/cluster.yml").read_text().replace("format: 1", "format: 1\nmanage: guard")
    (tmp_path / "cluster.yml").write_text(text.replace("    first_address: 11\n", ""))
    result = inventory("-i", str(tmp_path / "cluster.yml"))
    assert result.returncode == 0, result.stderr
    listed = plain(json.loads(result.stdout))
    assert "children" not in listed.get("managed", {})
    assert listed["_meta"]["hostvars"]["gpu1"]["ansible_host"] == "gpu1"
    plays = [play for path in (ROOT / "playbooks").glob("[0-9]*.yml") for play in yaml.safe_load(path.read_text())]
    by_role = {role["role"].rpartition(".")[2]: play["hosts"] for play in plays for role in play["roles"]}
    managed = {role for role, hosts in by_role.items() if ":&managed" in hosts}
    assert managed == {"packages", "networks", "time", "rdma_nic", "nccl", "nfs_rdma", "slurm"}


def test_a_cluster_that_costs_speed_is_warned_about(tmp_path: Path) -> None:
    text = (ROOT / "inventory/minimal/cluster.yml").read_text().replace("gpus: 1", "gpus: 8")
    (tmp_path / "cluster.yml").write_text(text)
    result = inventory("-i", str(tmp_path / "cluster.yml"))
    assert result.returncode == 0, result.stderr
    words = " ".join(result.stderr.split())
    assert "1 compute HCAs for 8 GPUs" in words
    assert "50 Gb/s a GPU" in words


def test_a_mistake_is_told_with_line_and_remedy(tmp_path: Path) -> None:
    text = (ROOT / "inventory/lab/cluster.yml").read_text().replace("policy:", "polciy:")
    (tmp_path / "cluster.yml").write_text(text)
    result = inventory("-i", str(tmp_path / "cluster.yml"))
    assert result.returncode != 0
    assert "did you mean 'policy'" in result.stderr
    assert "cluster.yml:" in result.stderr


def test_molecules_own_inventory_is_read_too() -> None:
    """Molecule hands over one in plain YAML, which this checkout's ansible.cfg alone refuses."""
    scenario = (ROOT / "molecule/cluster/molecule.yml").read_text()
    enabled = re.search(r"ANSIBLE_INVENTORY_ENABLED: (.*)", scenario)
    assert enabled is not None
    assert "ansible.builtin.yaml" in enabled[1]
    assert enabled[1].startswith("weaklink.cluster.cluster,")
