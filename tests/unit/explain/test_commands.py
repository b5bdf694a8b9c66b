"""Command lines in front of outputs: which lines are, and what they announce."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weaklink.explain.commands import prompt, tool_of, tool_of_complaint, tool_of_file

from tests.unit.tools.cases import NAMES, text_of


@pytest.mark.parametrize(
    ("line", "host", "tool"),
    [
        ("$ ibstat", "", "ibstat"),
        ("# ethtool -S eth0", "", "ethtool-S"),
        ("# ethtool -m eth0", "", "ethtool-m"),
        ("# ethtool eth0", "", "ethtool"),
        ("[root@n1 ~]# nvidia-smi", "n1", "nvidia-smi"),
        ("[root@n1 ~]# ", "n1", None),
        ("[root@n1 /var/log]# uname -a", "n1", None),
        ("ops@gpu-7.example.org:/tmp$ sudo nvidia-smi -q -i 3", "gpu-7.example.org", "nvidia-smi-q"),
        ("ops@gpu-7:~$ nvidia-smi --query-gpu=uuid --format=csv", "gpu-7", "nvidia-smi-csv"),
        ("ops@gpu-7:~$ nvidia-smi topo -m", "gpu-7", "nvidia-smi-topo"),
        ("ops@gpu-7:~$ nvidia-smi nvlink -s", "gpu-7", "nvidia-smi-nvlink"),
        ("node-01# scontrol show node n1", "node-01", "scontrol-node"),
        ("$ srun -N 2 -l ./build/all_reduce_perf -g 1", "", "nccl-tests"),
        ("$ ssh n2 ib_write_bw -d mlx5_0", "", "perftest"),
        ("$ cat /proc/mounts", "", "mounts"),
        ("$ cat /etc/slurm/slurm.conf", "", "slurm.conf"),
        ("$ mstflint -d 0a:00.0 q", "", "flint"),
        ("$ journalctl -u nvidia-fabricmanager", "", "fabricmanager"),
        ("$ journalctl -k", "", "syslog"),
        ("$ ip -d link show", "", "ip-link"),
        ("$ ip route", "", None),
        ("++ ibdev2netdev", "", "ibdev2netdev"),
        ("=== lspci -vvv ===", "", "lspci"),
        ("Running: sudo lspci -vvv", "", "lspci"),
        ("### Output of `ip -d link`: ###", "", "ip-link"),
        ("Command: /usr/sbin/ibstat", "", "ibstat"),
        ("==> /var/log/messages <==", "", "syslog"),
        ("$ lctl list_nids | head", "", "lctl"),
    ],
)
def test_prompts(line: str, host: str, tool: str | None) -> None:
    found = prompt(line, hashes=True)
    assert found is not None
    assert (found.host, found.tool) == (host, tool)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "# Out of bounds values : 0 OK",
        "#   Rank  0 Group  0 Pid   7741 on    node-04 device  0",
        "# Number of nodes in leaf1: 4",
        "# Port counters: Lid 3 port 1",
        "[ 2917.604418] NVRM: The NVIDIA GPU",
        "==============NVSMI LOG==============",
        "------------[ cut here ]------------",
        "---------------------------------------------------------------------------------------",
        "10.71.8.40@o2ib:10.71.8.41@o2ib:/lfs1 /lfs1 lustre rw,flock 0 0",
        "$ echo ibstat",
        "Running : Yes",
        "command ibstat not found",
        "bash: ibstat: command not found",
    ],
)
def test_lines_that_are_none(line: str) -> None:
    assert prompt(line, hashes=True) is None


def test_a_hash_within_a_file_is_a_comment() -> None:
    assert prompt("# scontrol show node", hashes=False) is None
    assert prompt("$ scontrol show node", hashes=False) is not None


@pytest.mark.parametrize("name", NAMES)
def test_no_line_of_a_tool_is_taken_for_a_prompt(name: str) -> None:
    for line in text_of(name).split("\n"):
        assert prompt(line, hashes=True) is None, line


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("bash: lnetctl: command not found", "lnetctl"),
        ("-bash: line 3: ibstat: command not found", "ibstat"),
        ("ibwarn: [1] mad_rpc: failed\nibqueryerrors: iberror: failed: Failed to open port", "ibqueryerrors"),
        ("Node:       n1\nExecutable: ./build/all_reduce_perf", "nccl-tests"),
        ("please mount the disk", None),
        ("bash: frobnicate: command not found", None),
        ("", None),
    ],
)
def test_what_an_error_message_names(text: str, tool: str | None) -> None:
    assert tool_of_complaint(text) == tool


@given(st.text(max_size=200))
def test_no_line_stumbles(line: str) -> None:
    for start in ("", "# ", "$ ", "[root@n1 ~]# ", "==> ", "=== "):
        prompt(start + line, hashes=True)
    tool_of(line)


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("n1/ibstat.txt", "ibstat"),
        ("nvidia-smi-q.log", "nvidia-smi-q"),
        ("nvidia-smi.txt", "nvidia-smi"),
        ("ethtool_S_eth0", "ethtool-S"),
        ("ethtool_m_eth0", "ethtool-m"),
        ("ethtool_eth0.txt", "ethtool"),
        ("var/log/messages", "syslog"),
        ("etc/slurm/slurm.conf", "slurm.conf"),
        ("slurm-1234.out", None),
        ("input.txt", None),
        ("", None),
    ],
)
def test_file_names(name: str, tool: str | None) -> None:
    assert tool_of_file(name) == tool
