"""The lab's cluster file: whole, it gives the nodes' files to the letter; damaged, it is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.model import cluster, cluster_render
from weaklink.model.cluster import ClusterError

LAB = Path(__file__).resolve().parents[2] / "inventory/lab/cluster.yml"
TEXT = LAB.read_text(encoding="utf-8")
BUDGET = {
    "total_nodes": 2,
    "total_fraction": 0.10,
    "check_nodes": None,
    "check_fraction": 0.05,
    "leaf_fraction": 0.25,
    "reserve_fraction": 0.10,
    "window_seconds": 3600,
}
POLICY = {"budget": BUDGET, "nonbatch": "cancel", "health_strikes": 2}
DEADLINES = {"prolog": 45, "epilog": 60, "health": 50, "check": 10, "slurm": 20}


def rdma(device: str) -> dict[str, Any]:
    return {
        "device": device,
        "kind": "rxe",
        "rate_gbps": 400,
        "active_mtu": 4096,
        "gid_type": "RoCE v2",
        "link_layer": "Ethernet",
    }


def nic(network: str, slot: int, role: str, subnet: int, host: int) -> dict[str, Any]:
    return {
        "name": network,
        "pci": f"0000:00:{slot}.0",
        "network": network,
        "role": role,
        "rail": 0,
        "address": f"10.77.{subnet}.{host}/24",
        "mtu": 1500 if role == "management" else 4200,
        "gateway": None,
        "rdma": None if role == "management" else rdma(f"rxe_{network}"),
    }


def nics(host: int) -> list[dict[str, Any]]:
    networks = (("management", 10), ("compute", 11), ("storage", 12))
    return [nic(name, slot, name, number, host) for number, (name, slot) in enumerate(networks)]


def test_expected_json_to_the_letter() -> None:
    lab = cluster.load(LAB)
    common = {
        "format": 1,
        "cluster": "lab",
        "mode": "enforce",
        "service_user": "weaklink",
        "partitions": {"main": "c[1-3]"},
        "leaves": {"leaf1": "c[1-3]"},
        "versions": {},
        "policy": POLICY,
        "deadlines": DEADLINES,
    }
    assert cluster_render.expected(lab, lab.hosts["c2"]) == {
        **common,
        "node": "c2",
        "role": "compute",
        "nics": nics(12),
        "mounts": [{"path": "/home", "fstype": "nfs4", "source": "10.77.2.1:/home", "proto": "rdma"}],
        "daemons": ["munge", "slurmd"],
    }
    assert cluster_render.expected(lab, lab.hosts["ctl"]) == {
        **common,
        "node": "ctl",
        "role": "controller",
        "nics": nics(1),
        "mounts": [],
        "daemons": ["munge", "slurmdbd", "slurmctld"],
    }


def test_cluster_json_to_the_letter() -> None:
    def hca(network: str, subnet: int, host: int) -> dict[str, Any]:
        address = f"10.77.{subnet}.{host}"
        base = {"name": f"rxe_{network}", "network": network, "role": network, "rail": 0}
        return {**base, "address": address, "rate_gbps": 400}

    assert cluster_render.controller(cluster.load(LAB)) == {
        "format": 1,
        "cluster": "lab",
        "mode": "enforce",
        "service_user": "weaklink",
        "account": "weaklink",
        "qos": "weaklink",
        "partition": "main",
        "store": "sqlite:////var/lib/weaklink/store.sqlite",
        "nodes": [
            {
                "name": f"c{number}",
                "leaf": "leaf1",
                "management": f"10.77.0.{10 + number}",
                "hcas": [hca("compute", 1, 10 + number), hca("storage", 2, 10 + number)],
            }
            for number in (1, 2, 3)
        ],
        "policy": POLICY,
        "deadlines": DEADLINES,
        "sweep": {"bw_seconds": 2, "lat_iterations": 100, "min_loss": 0.15, "sigmas": 5, "baseline_sweeps": 3},
    }


def test_the_nodes_reader_takes_what_is_rendered() -> None:
    from weaklink.model import expected

    lab = cluster.load(LAB)
    for host in lab.hosts.values():
        rendered = cluster_render.expected(lab, host)
        assert expected.parse(json.dumps(rendered)).node == host.name


# ---- refusals


@pytest.mark.parametrize(("mtu", "fits"), [(4191, False), (4192, True), (9000, True), (1500, False)])
def test_an_mtu_must_hold_the_rdma_packet(mtu: int, fits: bool) -> None:
    text = TEXT.replace("role: compute, mtu: 4200", f"role: compute, mtu: {mtu}")
    assert text != TEXT
    if fits:
        assert cluster.parse("f.yml", text).networks["compute"].mtu == mtu
        return
    with pytest.raises(ClusterError, match=rf"networks\.compute\.mtu: found {mtu}; allowed: at least 4192"):
        cluster.parse("f.yml", text)


def test_a_typo_names_file_line_key_and_the_nearest_word() -> None:
    with pytest.raises(ClusterError) as caught:
        cluster.parse("site/cluster.yml", TEXT.replace("  controller:\n    role:", "  controller:\n    rloe:"))
    error = caught.value
    line = TEXT.splitlines().index("  controller:") + 2
    assert (error.file, error.line, error.key, error.hint) == (
        "site/cluster.yml",
        line,
        "groups.controller.rloe",
        "role",
    )
    assert str(error) == (
        f"site/cluster.yml:{line}: groups.controller.rloe: found the unknown key 'rloe'; allowed: block_nodes, cores, "
        "cpus, expected, features, first_address, gpus, hardware, hosts, leaf, memory_mb, nics, rack_nodes, role, "
        "sockets, su_nodes, threads, weight; did you mean 'role'?"
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mode: enforce", "1: x", "the key 1; allowed: words as keys"),
        ("mode: enforce", "? [a, b]\n: x", "the key ['a', 'b']; allowed: words as keys"),
        ("mode: enforce", "mode: 2020-01-01", "datetime.date(2020, 1, 1); allowed: observe, enforce"),
        ("cluster: lab", "cluster: 2020-01-01", "allowed: text such as"),
        ("mode: enforce", "mode: !python/object:os.system x", "could not determine a constructor"),
        ("mode: enforce", "mode: &a [*a]", "a value that holds itself"),
        ("hosts: ctl", "hosts: [ctl]", "allowed: text"),
        ("first_address: 1\n", "first_address: one\n", "allowed: a whole number from 1 or a mapping"),
        ('hosts: "c[1-3]"', 'hosts: "c[1-90000][1-90000]"', "more than 100000 hosts"),
        ("  compute:\n    role: compute", "  compute:\n    role: controller", "another name"),
        ("  controller:\n    role: controller", "  all:\n    role: controller", "another name"),
    ],
)
def test_odd_values_are_refused_in_words(old: str, new: str, words: str) -> None:
    assert old in TEXT
    with pytest.raises(ClusterError) as caught:
        cluster.parse("f.yml", TEXT.replace(old, new, 1))
    assert words in str(caught.value)
    assert str(caught.value).startswith("f.yml:")
    assert "\n" not in str(caught.value)


def readable(text: str) -> None:
    """Parse; the only way to fail is one line that begins with file and line."""
    error: ClusterError | None = None
    try:
        cluster.parse("f.yml", text)
    except ClusterError as caught:
        error = caught
    if error is not None:
        assert str(error).startswith(f"f.yml:{error.line}: ")
        assert "\n" not in str(error)
        assert 1 <= error.line <= len(text.splitlines()) + 1


@settings(max_examples=60, deadline=None, derandomize=True)
@given(end=st.integers(0, len(TEXT)))
def test_a_truncated_file_is_refused_in_one_line(end: int) -> None:
    readable(TEXT[:end])


VALUES = st.sampled_from([None, 0, -1, 1.5, True, "", "x", [], {}, [None], {"x": 1}, "a\nb"])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_wrong_value_anywhere_is_refused_in_one_line(data: st.DataObject) -> None:
    tree = yaml.safe_load(TEXT)
    node: Any = tree
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(node[key], (dict, list)) and node[key] and data.draw(st.booleans()):
            node = node[key]
            continue
        node[key] = data.draw(VALUES)
        break
    readable(yaml.safe_dump(tree))
