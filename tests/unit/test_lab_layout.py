"""The lab's numbers and names, and what is made of them: command lines, ssh settings, inventory."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import layout, network, ssh
from lab.errors import LabError
from lab.image import Image
from lab.inventory import for_compute
from lab.vm import Machine, parse_snapshots

IMAGE = Image(*(Path("/cache", name) for name in ("rootfs", "base.ext4", "vmlinux", "initrd", "key", "host.pub")))


@pytest.mark.parametrize(("text", "number"), [(None, 3), ("", 3), ("1", 1), ("8", 8)])
def test_compute_count(text: str | None, number: int) -> None:
    assert layout.parse_compute(text) == number


@pytest.mark.parametrize("text", ["0", "9", "-1", "three", "3.0", "²", " 3"])
def test_compute_count_refused(text: str) -> None:
    with pytest.raises(LabError, match=r"LAB_COMPUTE.*wanted: a number from 1 to 8"):
        layout.parse_compute(text)


def test_nodes_have_distinct_addresses_macs_taps_and_machine_ids() -> None:
    nodes = layout.nodes(8)
    assert [node.name for node in nodes] == ["ctl", *(f"c{i}" for i in range(1, 9))]
    for values in (
        {node.address(net) for node in nodes for net in layout.NETWORKS},
        {node.mac(net) for node in nodes for net in layout.NETWORKS},
        {node.tap(net) for node in nodes for net in layout.NETWORKS},
    ):
        assert len(values) == 27
    assert all(len(node.tap(net)) <= 15 for node in nodes for net in layout.NETWORKS)  # the kernel's limit
    assert all(len(node.machine_id) == 32 for node in nodes)
    assert nodes[1].address(layout.COMPUTE) == "10.77.1.11"


def test_hosts_file_knows_every_possible_node() -> None:
    lines = layout.hosts_file().splitlines()
    assert "10.77.0.1 ctl" in lines
    assert "10.77.0.18 c8" in lines


def test_unknown_network_names_the_known_ones() -> None:
    with pytest.raises(LabError, match="mgmt, compute, storage"):
        layout.network("ib0")


def test_machine_command_line() -> None:
    node = layout.nodes(2)[2]
    machine = Machine(node, Path("/checkout/.lab"), IMAGE)
    argv = machine.argv()
    text = " ".join(argv)
    assert argv[0] == "qemu-system-x86_64"
    assert "tcg,thread=multi" in text
    for slot, net in (("0x10", "mgmt"), ("0x11", "compute"), ("0x12", "storage")):
        assert f"tap,id={net},ifname=t12-{net}," in text
        assert f"netdev={net},mac={node.mac(layout.network(net))},addr={slot}" in text
    assert text.count("host_mtu=4200") == 2
    assert "lab.id=12 lab.name=c2" in text
    assert "-no-reboot" not in argv
    assert str(machine.files.pid) in argv  # what the pid file is checked against
    assert len(str(machine.files.monitor)) < 100  # socket names are short, however deep the checkout lies
    assert Machine(node, Path("/checkout/.lab"), IMAGE).argv("kvm")[6] == "kvm"


def test_unknown_accelerator() -> None:
    with pytest.raises(LabError, match=r"LAB_ACCEL.*found: hvf.*wanted: tcg or kvm"):
        Machine(layout.nodes(1)[0], Path("/x"), IMAGE).argv("hvf")


def test_pid_file_of_another_process_is_not_believed(tmp_path: Path) -> None:
    machine = Machine(layout.nodes(1)[0], tmp_path, IMAGE)
    machine.files.pid.parent.mkdir(parents=True)
    assert machine.pid() is None
    machine.files.pid.write_text("1\n")  # process 1 runs, and is no machine of ours
    assert machine.pid() is None
    machine.files.pid.write_text("not a number")
    assert machine.pid() is None


def test_network_plan_makes_one_port_a_nic() -> None:
    lines = network.plan(layout.nodes(3)).splitlines()
    assert sum("type bridge" in line for line in lines) == 3
    assert sum("mode tap" in line for line in lines) == 12
    assert "link set t11-compute mtu 4200 master br-compute up" in lines
    assert "link set t11-mgmt mtu 1500 master br-mgmt up" in lines


def test_ssh_config_reaches_nodes_by_name_and_address() -> None:
    text = ssh.render_config(layout.nodes(2), Path("/a b/.lab"))
    assert "Host c2 10.77.0.12\n    HostName 10.77.0.12" in text
    assert 'IdentityFile "/a b/.lab/id_ed25519"' in text
    assert "ip netns exec weaklink-lab socat" in text
    assert "StrictHostKeyChecking yes" in text


def test_ssh_command_quotes_argument_lists_and_passes_shell_text() -> None:
    state = Path("/x/.lab")
    assert ssh.command_line(state, "c1", ["echo", "a b", "$HOME"])[-1] == "echo 'a b' '$HOME'"
    assert ssh.command_line(state, "c1", "echo $HOME | wc")[-1] == "echo $HOME | wc"


def test_inventory_for_another_number_of_nodes() -> None:
    text = 'groups:\n  compute:\n    hosts: "c[1-3]"\n    leaf: leaf1\n'
    assert 'hosts: "c[1-5]"' in for_compute(text, 5)
    assert 'hosts: "c1"' in for_compute(text, 1)
    with pytest.raises(LabError, match=r"wanted: c\[1-3\]"):
        for_compute("hosts: n[1-3]", 5)


def test_snapshot_table() -> None:
    text = (
        "Snapshot list:\n"
        "ID        TAG               VM SIZE                DATE     VM CLOCK     ICOUNT\n"
        "1         booted            157 MiB 2026-11-29 14:44:33 00:00:48.123           \n"
        "2         provisioned       260 MiB 2026-11-29 14:59:33 00:15:48.123           \n"
    )
    assert parse_snapshots(text) == ["booted", "provisioned"]
    assert parse_snapshots("") == []
