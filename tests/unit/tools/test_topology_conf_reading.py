"""topology.conf for tree and block, topology.yaml."""

from __future__ import annotations

from typing import Any

import pytest
from weaklink.checks.tools import topology_conf as checks
from weaklink.observe.tools import topology_conf
from weaklink.observe.tools.text import clean

from tests.unit.tools import fuzz
from tests.unit.tools.cases import case_of, check_case, text_of

CASE = "047-"
TREE = "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-4]\nSwitchName=top Switches=s[1-2] LinkSpeed=400\n"
BLOCK = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n"
YAML = """\
---
- topology: default
  cluster_default: true
  tree:
    switches:
      - switch: top
        children: s[1-2]
      - switch: s1
        nodes: n[1-2]
      - switch: s2
        nodes: n[3-4]
"""
NAMES = [f"n{number}" for number in range(1, 5)]


def judge(text: str, **context: Any) -> Any:
    return checks.judge(topology_conf.parse(clean(text.split("\n"))), context)


def concluded(text: str, **context: Any) -> tuple[str, str]:
    judged = judge(text, **context)
    return judged.verdict, judged.cause


def test_the_known_case_is_judged_right() -> None:
    check_case(CASE, judge(text_of(CASE), **case_of(CASE)["context"]))
    assert topology_conf.recognise(text_of(CASE)) >= 85


@pytest.mark.parametrize("text", [TREE, YAML], ids=["conf", "yaml"])
def test_a_tree_is_read_in_both_forms(text: str) -> None:
    judged = judge(text, plugin="topology/tree", slurm_nodes=NAMES)
    assert judged.verdict == "ok", judged.findings
    assert (judged.facts["switches"], judged.facts["root"]) == (3, "top")
    assert judged.facts["leaf_nodes"] == {"s1": 2, "s2": 2}
    assert topology_conf.recognise(text) >= 85


def test_nodes_that_differ_from_slurms_only_degrade() -> None:
    lacking = judge(TREE, plugin="topology/tree", slurm_nodes=[*NAMES, "n5"])
    assert (lacking.verdict, lacking.cause, lacking.facts["unlisted_nodes"]) == ("degraded", "topology-invalid", ["n5"])
    strange = judge(TREE, plugin="topology/tree", slurm_nodes=NAMES[:3])
    assert (strange.verdict, strange.facts["unknown_nodes"]) == ("degraded", ["n4"])
    assert concluded(TREE)[0] == "ok"


@pytest.mark.parametrize(
    "text",
    [
        TREE.replace("s[1-2] ", "s[1-3] "),
        TREE + "SwitchName=s1 Nodes=n9\n",
        TREE + "SwitchName=s9\n",
        TREE + "SwitchName=s9 Nodez=n9\n",
        TREE + "SwitchName=s9 Nodes=n[9\n",
        TREE + "SwitchName=s9 Nodes=\n",
        "SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Nodes=n1\n",
        TREE + "SwitchName=s3 Nodes=n1\nSwitchName=all Switches=top,s3\n",
        BLOCK,
    ],
    ids=["bad child", "twice", "childless", "bad key", "bad list", "empty", "loop", "two leaves", "other plugin"],
)
def test_what_slurmctld_refuses_is_a_fault(text: str) -> None:
    assert concluded(text, plugin="topology/tree") == ("fail", "topology-invalid")


def test_bad_children_are_named() -> None:
    assert judge(TREE.replace("s[1-2] ", "s[1-3] ")).facts["bad_children"] == ["s3"]


def test_several_roots_degrade_and_are_named() -> None:
    judged = judge(TREE + "SwitchName=island Nodes=n9\n", plugin="topology/tree")
    assert (judged.verdict, judged.facts["root"], judged.facts["roots"]) == ("degraded", None, ["top", "island"])


def test_blocks_are_read() -> None:
    judged = judge(BLOCK, plugin="topology/block", slurm_nodes=[f"n{number}" for number in range(1, 9)])
    assert judged.verdict == "ok", judged.findings
    assert judged.facts["block_nodes"] == {"b1": 4, "b2": 4}
    assert judged.facts["block_sizes"] == [4, 8]
    assert concluded(TREE, plugin="topology/block") == ("fail", "topology-invalid")
    assert concluded(BLOCK + "BlockName=b3 Nodes=n1\n", plugin="topology/block")[0] == "fail"
    assert concluded(BLOCK.replace("n[5-8]", "n[5-6]"), plugin="topology/block") == ("degraded", "topology-invalid")


def test_names_in_any_case_with_underscores_and_continuations() -> None:
    text = (
        "switchname=leaf_1 nodes=gpu_[1-2] \\\n  linkspeed=400 comment=x\n"
        "SWITCHNAME=leaf_2 NODES=gpu_3 # last\nSwitchName=r Switches=leaf_[1-2]\n"
    )
    judged = judge(text, plugin="topology/tree", slurm_nodes=["gpu_1", "gpu_2", "gpu_3"])
    assert judged.verdict == "ok", judged.findings
    assert judged.facts["leaf_nodes"] == {"leaf_1": 2, "leaf_2": 1}


def test_the_file_of_a_plugin_that_reads_none_does_not_matter() -> None:
    assert concluded("SwitchName=a Switches=b\n", plugin="topology/flat")[0] == "ok"


def test_an_empty_file_is_unknown() -> None:
    assert concluded("# nothing yet\n", plugin="topology/tree") == ("unknown", "test-did-not-run")


def test_a_cut_file_is_no_missing_node() -> None:
    cut = "SwitchName=s1 Nodes=n1 \\"
    assert concluded(cut, plugin="topology/tree", slurm_nodes=NAMES) == ("unknown", "output-truncated")


def test_a_deep_chain_of_switches_is_no_recursion() -> None:
    text = "\n".join(f"SwitchName=s{n} Switches=s{n + 1}" for n in range(5000)) + "\nSwitchName=s5000 Nodes=n1\n"
    assert judge(text).facts["root"] == "s0"


@pytest.mark.parametrize("sample", [TREE, BLOCK, YAML, text_of(CASE)])
def test_damage_never_raises_nor_takes_long(sample: str) -> None:
    fuzz.survives(topology_conf, sample, judge=checks.judge, context={"plugin": "topology/tree", "slurm_nodes": NAMES})


def test_a_context_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(ValueError, match="slurm_nodes"):
        judge(TREE, slurm_nodes="n1")
