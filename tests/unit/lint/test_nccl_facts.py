"""Settings held against a node's facts: traffic class, GIDs, HCAs, interfaces, rails."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from weaklink.lint.facts import read_facts
from weaklink.lint.nccl import judge
from weaklink.lint.parse import InputError, read
from weaklink.lint.version import version

if TYPE_CHECKING:
    from weaklink.lint.base import Judgement

SCHEMA = json.loads(resources.files("weaklink.lint").joinpath("lint.schema.json").read_text(encoding="utf-8"))
FACTS_SCHEMA = Draft202012Validator({"$ref": "#/$defs/facts", "$defs": SCHEMA["$defs"]})

ROCE: dict[str, Any] = {
    "gpus": 4,
    "link_layer": "Ethernet",
    "hcas": {
        "mlx5_0": {"role": "compute", "rail": 0, "netdev": "rdma0"},
        "mlx5_1": {"role": "compute", "rail": 1, "netdev": "rdma1"},
        "mlx5_10": {"role": "storage"},
        "mlx5_2": {"role": "management"},
    },
    "netdevs": {
        "eth0": {"role": "management", "addresses": ["10.0.0.5/24"]},
        "eth1": {"role": "storage"},
        "rdma0": {},
        "rdma1": {},
    },
    "gids": {
        "mlx5_0": [
            {"index": 1, "type": "RoCE v2", "address": "fe80:0000:0000:0000:0000:0000:0000:0001", "netdev": "rdma0"},
            {"index": 2, "type": "RoCE v1", "address": "0000:0000:0000:0000:0000:ffff:0a01:0001", "netdev": "rdma0"},
            {"index": 3, "type": "RoCE v2", "address": "0000:0000:0000:0000:0000:ffff:0a01:0001", "netdev": "rdma0"},
        ],
        "mlx5_1": [{"index": 3, "type": "RoCE v2", "address": "10.1.0.2", "netdev": "rdma1"}],
        "mlx5_10": [{"index": 1, "type": "RoCE v1", "address": "10.2.0.2"}],
    },
    "bootstrap_interface": "eth0",
    "lossless_priority": 3,
    "trust": "dscp",
    "rdma_dscp": 26,
    "cnp_dscp": 48,
}
GOOD = "NCCL_IB_HCA==mlx5_0,mlx5_1\nNCCL_SOCKET_IFNAME==eth0\nNCCL_IB_TC=106\n"
BESIDE = {"gpus": 2, "hcas": {"mlx5_0": {"gpu": 0, "numa": 0}, "mlx5_1": {"gpu": 1, "numa": 1}}}
IB = {**ROCE, "link_layer": "InfiniBand", "trust": "dscp"}


def lint(text: str, facts: dict[str, Any], at: str = "2.27.3", name: str = "nccl.conf") -> list[Judgement]:
    FACTS_SCHEMA.validate(facts)
    return judge([read(name, text.encode())], version(at), read_facts(facts))


def found(text: str, facts: dict[str, Any], at: str = "2.27.3") -> dict[str, set[str]]:
    result: dict[str, set[str]] = {}
    for judgement in lint(text, facts, at):
        result.setdefault(judgement.subject, set()).add(judgement.klass)
    return result


def told(text: str, facts: dict[str, Any], at: str = "2.27.3") -> str:
    return " | ".join(judgement.message for judgement in lint(text, facts, at))


def line(text: str) -> str:
    """A good file with one line instead of its own for that variable."""
    name = text.partition("=")[0]
    return "".join(f"{row}\n" for row in GOOD.splitlines() if not row.startswith(name + "=")) + text + "\n"


def test_what_fits_the_node_is_fine() -> None:
    assert {klass for classes in found(GOOD, ROCE).values() for klass in classes} == {"ok"}


@pytest.mark.parametrize(
    ("value", "klass", "words"),
    [
        (26, "contradiction", "26 is DSCP 6, priority 0 (DSCP / 8); lossless is priority 3"),
        (26, "contradiction", "write 104 or, ECN capable, 106"),
        (104, "ok", "DSCP 26, priority 3"),
        (106, "ok", "DSCP 26, priority 3"),
        (96, "contradiction", "96 is DSCP 24"),
        (192, "contradiction", "DSCP 48, priority 6"),
        (0, "contradiction", "DSCP 0"),
    ],
)
def test_the_traffic_class_is_the_whole_byte(value: int, klass: str, words: str) -> None:
    judgements = [item for item in lint(line(f"NCCL_IB_TC={value}"), ROCE) if item.subject == "NCCL_IB_TC"]
    assert any(item.klass == klass and words in item.message for item in judgements), judgements
    assert (klass == "ok") == ({item.klass for item in judgements} == {"ok"})


def test_a_remapped_table_wins_over_dscp_by_eight() -> None:
    remapped = {**ROCE, "dscp2prio": {"6": 3, "26": 0}, "rdma_dscp": None}
    remapped.pop("rdma_dscp")
    assert found(line("NCCL_IB_TC=26"), remapped)["NCCL_IB_TC"] == {"ok"}
    assert found(line("NCCL_IB_TC=104"), remapped)["NCCL_IB_TC"] == {"contradiction"}
    assert "by this node's table" in told(line("NCCL_IB_TC=104"), remapped)
    whole = {**remapped, "dscp2prio": [3] * 64}
    assert found(line("NCCL_IB_TC=96"), whole)["NCCL_IB_TC"] == {"ok"}


@settings(max_examples=100, deadline=None)
@given(
    value=st.integers(0, 255),
    table=st.dictionaries(st.integers(0, 63), st.integers(0, 7), max_size=8),
    lossless=st.integers(0, 7),
)
def test_a_traffic_class_is_right_exactly_where_its_dscp_is_lossless(
    value: int, table: dict[int, int], lossless: int
) -> None:
    facts = {"hcas": ROCE["hcas"], "lossless_priority": lossless, "dscp2prio": {str(k): v for k, v in table.items()}}
    classes = found(f"NCCL_IB_HCA==mlx5_0,mlx5_1\nNCCL_IB_TC={value}\n", facts)["NCCL_IB_TC"]
    assert ("contradiction" in classes) == (table.get(value // 4, value // 32) != lossless)


def test_a_missing_traffic_class_is_said_unless_the_node_forces_one() -> None:
    bare = GOOD.replace("NCCL_IB_TC=106\n", "")
    assert found(bare, ROCE)["NCCL_IB_TC"] == {"contradiction"}
    assert "NCCL_IB_TC" not in found(bare, {**ROCE, "forced_traffic_class": 106})
    assert "NCCL_IB_TC" not in found(bare, IB)
    assert found(line("NCCL_IB_TC=104"), {**ROCE, "forced_traffic_class": 106})["NCCL_IB_TC"] == {"no-op"}


def test_what_is_missing_is_asked_of_files_not_of_a_job_script() -> None:
    assert lint("export NCCL_DEBUG=WARN\n", ROCE, name="job.sh")[0].klass == "ok"
    assert len(lint("export NCCL_DEBUG=WARN\n", ROCE, name="job.sh")) == 1
    assert {"NCCL_IB_HCA", "NCCL_IB_TC", "NCCL_SOCKET_IFNAME"} <= set(found("NCCL_DEBUG=WARN\n", ROCE))


@pytest.mark.parametrize(
    ("text", "facts", "klass", "words"),
    [
        ("NCCL_IB_TC=106", IB, "no-op", "NCCL_IB_SL"),
        ("NCCL_IB_TC=106", {**ROCE, "trust": "pcp"}, "contradiction", "no DSCP is looked at"),
        ("NCCL_IB_SL=3", ROCE, "contradiction", "do not look at it"),
        ("NCCL_IB_SL=3", {**ROCE, "trust": "pcp"}, "ok", "NCCL"),
        ("NCCL_IB_SL=2", {**ROCE, "trust": "pcp"}, "contradiction", "becomes PCP 2"),
        ("NCCL_IB_SL=1", IB, "ok", "NCCL"),
        ("NCCL_IB_SL=1", {**IB, "adaptive_routing_sls": [0, 2]}, "contradiction", "no adaptive routing"),
        ("NCCL_IB_ADAPTIVE_ROUTING=1", IB, "no-op", "default on InfiniBand"),
        ("NCCL_IB_ADAPTIVE_ROUTING=0", ROCE, "no-op", "default on RoCE"),
        ("NCCL_IB_ADAPTIVE_ROUTING=1", ROCE, "ok", "adaptively"),
        ("NCCL_IB_ADAPTIVE_ROUTING=1", {**ROCE, "adaptive_routing": False}, "contradiction", "no adaptive routing"),
        ("NCCL_IB_ADAPTIVE_ROUTING=0", {**IB, "adaptive_routing": True}, "discouraged", "does not use it"),
        ("NCCL_IB_GID_INDEX=3", IB, "contradiction", "on InfiniBand drop it"),
        ("NCCL_IB_GID_INDEX=3", ROCE, "discouraged", "accident"),
        ("NCCL_IB_GID_INDEX=1", ROCE, "contradiction", "wrong on 2 of 2 HCAs"),
        ("NCCL_IB_GID_INDEX=2", ROCE, "contradiction", "mlx5_0: RoCE v1"),
        ("NCCL_IB_GID_INDEX=7", ROCE, "contradiction", "mlx5_1: no such row, right: 3"),
        ("NCCL_IB_HCA==mlx5_0", ROCE, "contradiction", "leaves out 1 of 2 compute HCAs: mlx5_1"),
        ("NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_10", ROCE, "contradiction", "mlx5_10 (storage)"),
        ("NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_7", ROCE, "contradiction", "does not have: mlx5_7"),
        ("NCCL_IB_HCA=mlx5_0,mlx5_1", ROCE, "prefix-match", "mlx5_1 also matches mlx5_10"),
        ("NCCL_IB_HCA=mlx5_0,mlx5_1", ROCE, "contradiction", "mlx5_10 (storage)"),
        ("NCCL_IB_HCA=^=mlx5_2,mlx5_10", ROCE, "ok", "exactly the 2 compute HCAs"),
        ("NCCL_SOCKET_IFNAME==eth1", ROCE, "contradiction", "not the bootstrap interface eth0"),
        ("NCCL_SOCKET_IFNAME==eth7", ROCE, "contradiction", "no interface named eth7"),
        ("NCCL_SOCKET_IFNAME=eth", ROCE, "contradiction", "other networks too: eth1"),
        ("NCCL_IB_DISABLE=1", ROCE, "contradiction", "idle compute HCAs"),
        ("NCCL_NET=Socket", ROCE, "contradiction", "idle compute HCAs"),
        ("NCCL_NET_GDR_LEVEL=LOC", ROCE, "contradiction", "switches GPUDirect RDMA off"),
        ("NCCL_NET_GDR_LEVEL=5", BESIDE, "discouraged", "all 2 GPUs of this node"),
        ("NCCL_NET_GDR_LEVEL=PHB", {**BESIDE, "gpus": 3}, "discouraged", "GPU 2, without an HCA beside"),
        ("NCCL_CROSS_NIC=1", ROCE, "contradiction", "2 rails"),
        ("NCCL_CROSS_NIC=0", ROCE, "ok", "keeps to the 2 rails"),
        ("NCCL_CROSS_NIC=0", {**ROCE, "inter_rail": "full"}, "discouraged", "full rate"),
        ("NCCL_CROSS_NIC=2", {**ROCE, "inter_rail": "none"}, "contradiction", "not joined"),
        ("NCCL_CROSS_NIC=0", {"hcas": {"mlx5_0": {}}}, "no-op", "one compute HCA"),
    ],
)
def test_one_setting_against_the_node(text: str, facts: dict[str, Any], klass: str, words: str) -> None:
    name = text.partition("=")[0]
    judgements = [item for item in lint(line(text), facts) if item.subject == name]
    assert any(item.klass == klass and words in item.message for item in judgements), judgements
    if klass == "ok":
        assert {item.klass for item in judgements} == {"ok"}


def test_before_2_21_the_gid_index_is_needed_and_judged() -> None:
    assert found(GOOD, ROCE, "2.20")["NCCL_IB_GID_INDEX"] == {"contradiction"}
    assert found(GOOD + "NCCL_IB_GID_INDEX=3\n", ROCE, "2.20")["NCCL_IB_GID_INDEX"] == {"ok"}


def test_facts_are_held_against_what_wins() -> None:
    sources = [read("nccl.conf", b"NCCL_IB_TC=106\n"), read("job.sh", b"export NCCL_IB_TC=26\n")]
    system, job = [item for item in judge(sources, version("2.27"), read_facts(ROCE)) if item.subject == "NCCL_IB_TC"]
    assert (system.klass, job.klass) == ("ok", "contradiction")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"hcas": 3}, "hcas"),
        ({"hcas": {"a": 1}}, "hcas.a"),
        ({"hcas": [{"role": "compute"}]}, r"hcas\[0\].name"),
        ({"hcas": {"a": {"role": "gpu"}}}, "hcas.a.role"),
        ({"hcas": {"a": {"link_layer": "token ring"}}}, "hcas.a.link_layer"),
        ({"lossless_priority": 8}, "lossless_priority"),
        ({"lossless_priority": True}, "lossless_priority"),
        ({"dscp2prio": {"64": 1}}, "dscp2prio"),
        ({"dscp2prio": [1]}, "dscp2prio"),
        ({"gids": {"a": [{}]}}, r"gids.a\[0\].index"),
        ({"nccl_version": "new"}, "nccl_version"),
        ({"trust": "both"}, "trust"),
        ({"netdevs": {"eth0": {"addresses": "10.0.0.1"}}}, "netdevs.eth0.addresses"),
        ({"adaptive_routing": "yes"}, "adaptive_routing"),
        ({"adaptive_routing_sls": [16]}, "adaptive_routing_sls"),
    ],
)
def test_bad_facts_are_refused_with_the_place(change: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError, match=place):
        read_facts({**ROCE, **change})
    assert not FACTS_SCHEMA.is_valid({**ROCE, **change}) or "nccl_version" in change


def test_hcas_come_by_name_or_as_a_list() -> None:
    rows = [{"name": name, **row} for name, row in ROCE["hcas"].items()]
    assert read_facts({**ROCE, "hcas": rows}) == read_facts(ROCE)


def test_a_family_of_names_is_fine_where_it_takes_the_compute_hcas_alone() -> None:
    alone = {"hcas": {name: {} for name in ("ibp0", "ibp1")}}
    assert found("NCCL_IB_HCA=ibp", alone)["NCCL_IB_HCA"] == {"ok"}
    assert "=ibp0,ibp1 says the same" in told("NCCL_IB_HCA=ibp", alone)
    assert found("NCCL_IB_HCA=ibp0,ibp1", alone)["NCCL_IB_HCA"] == {"prefix-match"}
    storage = {"hcas": {**alone["hcas"], "ibp2": {"role": "storage"}}}
    assert found("NCCL_IB_HCA=ibp", storage)["NCCL_IB_HCA"] == {"prefix-match", "contradiction"}
    other = {"hcas": {**alone["hcas"], "mlx5_0": {}}}
    assert "contradiction" in found("NCCL_IB_HCA=ibp", other)["NCCL_IB_HCA"]


IB_PROVIDER = """export NCCL_SOCKET_IFNAME=eth0
export SHARP_COLL_ENABLE_PCI_RELAXED_ORDERING=1
export NCCL_COLLNET_ENABLE=0
export NCCL_IB_HCA=ibp
export UCX_NET_DEVICES=ibp0:1,ibp1:1
"""
ROCE_PROVIDER = """export NCCL_IB_QPS_PER_CONNECTION=4
export NCCL_IB_SPLIT_DATA_ON_QPS=0
export NCCL_IB_GID_INDEX=3
export NCCL_IB_TC=41
export NCCL_IB_SL=0
export NCCL_IB_TIMEOUT=22
export NCCL_NET_PLUGIN=none
export NCCL_SOCKET_IFNAME==eth0
export NCCL_IB_HCA==mlx5_0,mlx5_1
"""


def test_job_scripts_as_providers_have_them_get_no_more_than_is_documented() -> None:
    facts: dict[str, Any] = {"link_layer": "InfiniBand", "hcas": {f"ibp{n}": {} for n in range(8)}}
    assert flawed(IB_PROVIDER, facts) == {"NCCL_SOCKET_IFNAME": {"prefix-match"}, "NCCL_COLLNET_ENABLE": {"no-op"}}
    facts = {"link_layer": "Ethernet", "hcas": {"mlx5_0": {}, "mlx5_1": {}}, "lossless_priority": 1}
    assert flawed(ROCE_PROVIDER, facts) == {
        "NCCL_IB_SPLIT_DATA_ON_QPS": {"no-op"},
        "NCCL_IB_GID_INDEX": {"discouraged"},
        "NCCL_IB_SL": {"no-op"},
    }


def flawed(text: str, facts: dict[str, Any]) -> dict[str, set[str]]:
    result: dict[str, set[str]] = {}
    for judgement in lint(text, facts, name="job.sh"):
        if judgement.klass != "ok":
            result.setdefault(judgement.subject, set()).add(judgement.klass)
    return result
