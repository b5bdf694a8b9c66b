"""``weaklink cluster``: what a person sees of a cluster file without a cluster."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from weaklink.cli import UsageError
from weaklink.cli import cluster as command
from weaklink.model import cluster, cluster_wiring, fabric
from weaklink.model.fabric import FabricError

from tests.unit.full_cluster import FULL

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("lab", "superpod-h100", "roce-64", "minimal", "nvl72")


def path(name: str) -> str:
    return str(ROOT / f"inventory/{name}/cluster.yml")


def shown(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert command.run(list(argv)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("part", ["summary", "hosts", "slurm", "controller"])
def test_every_example_can_be_looked_at(name: str, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, path(name), "--show", part)
    data = json.loads(shown(capsys, path(name), "--show", part, "--json"))
    described = cluster.load(path(name))
    assert text
    if part == "summary":
        assert data["gpus"] == sum(host.gpus for host in described.compute)
        assert text.startswith(f"{described.name}: ")
    if part == "hosts":
        assert [host["name"] for host in data] == list(described.hosts)
        assert all(f"\n{host.name} (" in f"\n{text}" for host in described.hosts.values())


def test_what_a_node_will_be_compared_with(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(shown(capsys, path("roce-64"), "--show", "expected", "--host", "gpu07"))
    assert (data["node"], data["leaves"]["su01"]) == ("gpu07", "gpu[01-32]")


def test_a_host_says_where_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    assert "tray144 (tray, compute, su01, block08, rack08)" in shown(
        capsys, path("nvl72"), "--show", "hosts", "--host", "tray144"
    )


def test_a_warning_goes_to_stderr_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cluster.yml"
    file.write_text(FULL.replace("rate_gbps: 400", "rate_gbps: 100"))
    assert command.run([str(file), "--json"]) == 0
    captured = capsys.readouterr()
    assert "under 400" in captured.err
    assert json.loads(captured.out)["warnings"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["/nowhere/cluster.yml"], "/nowhere/cluster.yml:1"),
        ([path("lab"), "--host", "c11"], "no host 'c11'; did you mean 'c1'?"),
        ([path("lab"), "--show", "expected"], "needs --host NAME"),
        ([path("lab"), "--show", "fabric"], "switches"),
    ],
)
def test_wrong_use_says_what_to_do(argv: list[str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        command.run(argv)
    assert words in str(caught.value)


# ---- the fabric


@pytest.mark.parametrize("name", ["superpod-h100", "roce-64", "nvl72"])
def test_the_fabric_has_every_hca_on_the_leaf_of_its_rail(name: str) -> None:
    described = cluster.load(path(name))
    made = cluster_wiring.fabric_of(described)
    fabric.validate(made)
    leaves: dict[str, set[int]] = {}
    for end, node, hca in made.ends:
        assert hca.leaf is not None, end
        leaves.setdefault(hca.leaf, set()).add(hca.rail)
        assert node.name in described.hosts
    assert all(len(rails) == 1 for rails in leaves.values())
    assert set(leaves) == set(described.switches["leaf"].names)
    if "spine" in described.switches:
        between = Counter(tuple(sorted((link.a, link.b))) for link in made.links if "/" not in link.a)
        assert len(set(between.values())) == 1
        assert len(between) == len(described.switches["leaf"].names) * len(described.switches["spine"].names)


def test_the_fabric_as_json_is_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    from weaklink.model import fabric_file

    data = json.loads(shown(capsys, path("nvl72"), "--show", "fabric"))
    assert fabric_file.parse(data) == cluster_wiring.fabric_of(cluster.load(path("nvl72")))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("topology: rail,", "topology: dragonfly,", "at least the 8 that are used"),
        ("topology: rail,", "topology: dragonfly, groups: 4,", "as many in each of 4 groups"),
        ("topology: rail,", "topology: dragonfly, groups: 6,", "2 links of a group to 5 others"),
        ("topology: rail,", "topology: dragonfly+, groups: 3,", "1 uplinks|3 that are used|to 2 others"),
        ("topology: rail,", "topology: hypercube,", "6 routers for 6 nodes"),
        ("uplinks: 2,", "uplinks: 1,", "1 uplinks of a leaf for 3 spines"),
        ("su_nodes: 2", "su_nodes: 1", "units of"),
    ],
)
def test_a_wiring_that_cannot_be_told_is_refused(old: str, new: str, words: str) -> None:
    text = FULL.replace(old, new, 1)
    if "su_nodes" in old:
        text = (
            text.replace('"leaf[1-6]"', '"leaf[1-10]"').replace("downlinks: 4, ", "").replace("ports: 4}", "ports: 8}")
        )
    with pytest.raises(FabricError, match=words):
        cluster_wiring.fabric_of(cluster.parse("f.yml", text))
