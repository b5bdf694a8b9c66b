"""Readers and parsers: from the text a kernel or a tool gives, to records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from weaklink.model import expected as expected_file
from weaklink.model.mtu import rdma_mtu
from weaklink.model.process import EXITED, MISSING, TIMEOUT, RunResult
from weaklink.observe import netdev, node, rdma
from weaklink.observe.daemons import parse_is_active
from weaklink.observe.host import Host
from weaklink.observe.mounts import parse_mounts

from tests.fakenode import COMPUTE_PCI, EMPTY_GID, FakeNode, expected

DEVINFO = """hca_id:\trxe_compute
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t0.0.0
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t4096 (5)
\t\t\tsm_lid:\t\t\t0
\t\t\tlink_layer:\t\tEthernet

hca_id:\tmlx5_7
\tphys_port_cnt:\t\t\t2
\t\tport:\t1
\t\t\tactive_mtu:\t\t1024 (3)
\t\tport:\t2
\t\t\tactive_mtu:\t\t2048 (4)
"""


def answer(argv: Sequence[str], out: str = "", rc: int = 0, status: str = EXITED) -> RunResult:
    return RunResult(tuple(argv), rc if status == EXITED else None, out, "", status, 0.01)


class FakeTools:
    """Answers by the first word of a command; others are not installed."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.asked: list[list[str]] = []

    def __call__(self, argv: Sequence[str], _timeout: float) -> RunResult:
        self.asked.append(list(argv))
        if argv[0] not in self.answers:
            return answer(argv, status=MISSING)
        return answer(argv, self.answers[argv[0]])


@pytest.fixture
def fake(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path)


def test_states_and_rates() -> None:
    assert rdma.parse_state("4: ACTIVE\n") == "ACTIVE"
    assert rdma.parse_state("5: LinkUp") == "LinkUp"
    assert [rdma.parse_state(text) for text in (None, "", "ACTIVE")] == [None, None, None]
    assert rdma.parse_rate("400 Gb/sec (4X NDR)") == 400
    assert rdma.parse_rate("2.5 Gb/sec (1X SDR)") == 2.5
    assert [rdma.parse_rate(text) for text in (None, "", "unknown")] == [None, None, None]


def test_devinfo_by_device_and_port() -> None:
    assert rdma.parse_devinfo(DEVINFO) == {("rxe_compute", 1): 4096, ("mlx5_7", 1): 1024, ("mlx5_7", 2): 2048}
    assert rdma.parse_devinfo(DEVINFO.replace("rxe_compute", "a b")) != {}
    assert rdma.parse_devinfo("") == {}
    assert rdma.parse_devinfo(DEVINFO[:150]) == {}  # cut before the MTU


@pytest.mark.parametrize(
    ("mtu", "wanted"), [(4200, 4096), (4192, 4096), (4191, 2048), (1500, 1024), (9000, 4096), (300, None)]
)
def test_the_kernels_rule_for_the_rdma_mtu(mtu: int, wanted: int | None) -> None:
    assert rdma_mtu(mtu) == wanted


def test_gid_of_an_address() -> None:
    assert rdma.address_gid("10.77.1.11/24") == "0000:0000:0000:0000:0000:ffff:0a4d:010b"
    assert rdma.address_gid("fd00::1") == "fd00:0000:0000:0000:0000:0000:0000:0001"
    assert [rdma.address_gid(text) for text in ("", "10.77.1", "10.77.1.300", "x", "1.2.3.4.5")] == [None] * 5


def test_the_gid_index_is_found_wherever_it_is(fake: FakeNode, tmp_path: Path) -> None:
    host = Host(str(tmp_path), FakeTools())
    assert rdma.gid_index(host, "rxe_compute", "10.77.1.11/24", "RoCE v2") == 1
    assert rdma.gid_index(host, "rxe_compute", "10.77.1.12", "RoCE v2") is None
    assert rdma.gid_index(host, "nosuch", "10.77.1.11", "RoCE v2") is None
    # A card that lists every address twice, the older type first, as mlx5 does.
    base = fake.port("rxe_compute")
    gid = (tmp_path / base.lstrip("/") / "gids/1").read_text()
    fake.write(f"{base}/gid_attrs/types/1", "IB/RoCE v1\n")
    fake.write(f"{base}/gids/5", gid)
    fake.write(f"{base}/gid_attrs/types/5", "RoCE v2\n")
    assert rdma.gid_index(host, "rxe_compute", "10.77.1.11", "RoCE v2") == 5
    assert rdma.gid_index(host, "rxe_compute", "10.77.1.11", "IB/RoCE v1") == 1


def test_gids_are_sorted_by_number_and_empty_ones_left_out(fake: FakeNode, tmp_path: Path) -> None:
    base = fake.port("rxe_compute")
    fake.write(f"{base}/gids/10", "fe80:0000:0000:0000:0000:0000:0000:0010\n")
    fake.write(f"{base}/gids/2", f"{EMPTY_GID}\n")
    assert [gid.number for gid in rdma.read_gids(Host(str(tmp_path)), "rxe_compute", 1)] == [0, 1, 10]


def test_counters_of_both_kinds_and_none(fake: FakeNode, tmp_path: Path) -> None:
    base = fake.port("rxe_compute")
    fake.write(f"{base}/counters/symbol_error", "7\n")
    fake.write(f"{base}/hw_counters/lifespan", "10\n")
    fake.write(f"{base}/hw_counters/odd", "n/a\n")
    host = Host(str(tmp_path))
    assert rdma.read_counters(host, "rxe_compute", 1) == {"symbol_error": 7, "link_downed": 0, "retry_exceeded_err": 0}
    assert rdma.read_counters(host, "nosuch", 1) == {}


def test_addresses() -> None:
    text = json.dumps(
        [{"ifname": "lo", "addr_info": []}, {}, {"ifname": "x", "addr_info": [{"local": "10.0.0.1", "prefixlen": 8}]}]
    )
    assert netdev.parse_addresses(text) == {"lo": (), "x": ("10.0.0.1/8",)}
    assert [netdev.parse_addresses(bad) for bad in ("", "[", "{}x", '["a"]', '[{"ifname": 1, "addr_info": [{}]}]')] == [
        None
    ] * 5


def test_mounts_with_spaces_and_one_on_top_of_another() -> None:
    mounts = parse_mounts(
        "srv:/a /data\\040x nfs4 rw,proto=tcp,addr=1.2.3.4 0 0\n"
        "srv:/b /data\\040x nfs4 rw,proto=rdma 0 0\nbroken line\n\n"
    )
    assert list(mounts) == ["/data x"]
    assert (mounts["/data x"].source, mounts["/data x"].options["proto"]) == ("srv:/b", "rdma")


def test_daemons() -> None:
    units = ["munge", "slurmd"]
    assert parse_is_active(units, answer([], "active\nfailed\n", 3)) == {"munge": "active", "slurmd": "failed"}
    for bad in (
        answer([], "active\n"),
        answer([], "active\nweird\n"),
        answer([], status=TIMEOUT),
        answer([], "a\nb\nc\n"),
    ):
        assert parse_is_active(units, bad) is None


def test_a_whole_node(fake: FakeNode, tmp_path: Path) -> None:
    del fake
    tools = FakeTools(ibv_devinfo=DEVINFO, ip="[]", systemctl="active\nactive\n")
    want = expected_file.parse(json.dumps(expected()))
    seen = node.observe(Host(str(tmp_path), tools), want)
    assert seen.trouble == {}
    assert seen.nics is not None
    nic = seen.nics[COMPUTE_PCI]
    assert nic.netdev is not None
    assert (nic.netdev.name, nic.netdev.mtu, nic.netdev.carrier) == ("enp0s17", 4200, True)
    assert nic.rdma is not None
    assert (nic.rdma.device, nic.rdma.state, nic.rdma.rate_gbps, nic.rdma.active_mtu) == (
        "rxe_compute",
        "ACTIVE",
        400,
        4096,
    )
    assert nic.rdma.mtu_source == "ibv_devinfo"
    storage = seen.nics["0000:00:12.0"].rdma
    assert storage is not None
    assert storage.mtu_source == "the net device's MTU"  # this tool did not tell of it
    assert json.loads(json.dumps(seen.as_dict()))["nics"][COMPUTE_PCI]["rdma"]["device"] == "rxe_compute"


def test_names_may_be_anything(fake: FakeNode, tmp_path: Path) -> None:
    """Rename the devices: what is found follows the PCI address, not the name."""
    for old, new in (("enp0s17", "eth7"), ("rxe_compute", "zz9")):
        for path in sorted(tmp_path.rglob(old), reverse=True):
            path.rename(path.with_name(new))
    fake.write("/sys/class/infiniband/zz9/parent", "eth7\n")
    seen = node.observe(Host(str(tmp_path), FakeTools()), expected_file.parse(json.dumps(expected())), [node.NICS])
    assert seen.nics is not None
    nic = seen.nics[COMPUTE_PCI]
    assert nic.rdma is not None
    assert nic.netdev is not None
    assert (nic.netdev.name, nic.rdma.device) == ("eth7", "zz9")


def test_a_real_card_is_found_by_its_own_folder(fake: FakeNode, tmp_path: Path) -> None:
    (tmp_path / f"sys/bus/pci/devices/{COMPUTE_PCI}/infiniband/rxe_storage").mkdir(parents=True)
    del fake
    seen = node.observe(Host(str(tmp_path), FakeTools()), None, [node.NICS])
    assert seen.nics is not None
    nic = seen.nics[COMPUTE_PCI].rdma
    assert nic is not None
    assert nic.device == "rxe_storage"


def test_each_concern_fails_on_its_own(tmp_path: Path) -> None:
    seen = node.observe(Host(str(tmp_path), FakeTools()), expected_file.parse(json.dumps(expected())))
    assert (seen.nics, seen.addresses, seen.mounts, seen.daemons) == (None, None, None, None)
    assert set(seen.trouble) == {node.NICS, node.ADDRESSES, node.MOUNTS, node.DAEMONS}
    assert "not installed" in seen.trouble[node.ADDRESSES]


def test_only_what_is_asked_for_is_run(fake: FakeNode, tmp_path: Path) -> None:
    del fake
    tools = FakeTools()
    node.observe(Host(str(tmp_path), tools), expected_file.parse(json.dumps(expected())), [node.NICS, node.MOUNTS])
    assert tools.asked == []


def test_host_reads_only_whole_files_under_its_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(str(tmp_path))
    (tmp_path / "x").write_bytes(b"a\xff\n")
    assert host.read("/x") == "a\udcff\n"
    assert host.word("/x") == "a\udcff"
    assert host.read("/nosuch") is None
    assert host.read("/") is None
    assert host.listdir("/nosuch") == []
    assert host.listdir("/") == ["x"]
    assert host.exists("/x")
    monkeypatch.setattr("weaklink.observe.host.MAX_FILE", 2)
    assert host.read("/x") is None
    os_fifo = tmp_path / "fifo"
    import os

    os.mkfifo(os_fifo)
    assert host.read("/fifo") == ""  # does not wait for a writer


def test_a_nic_by_position_is_found_in_pci_order(tmp_path: Path) -> None:
    devices = {
        "0000:0b:00.0": ["net"],
        "0000:02:00.0": ["virtio1/net"],
        "0000:03:00.0": ["virtio2"],  # a disk
        "0000:0a:00.0": ["infiniband"],
        "0000:0a:00.1": ["infiniband", "physfn"],  # a virtual function
        "0000:01:00.0": [],
    }
    for pci, folders in devices.items():
        (tmp_path / "sys/bus/pci/devices" / pci).mkdir(parents=True)
        for folder in folders:
            (tmp_path / "sys/bus/pci/devices" / pci / folder).mkdir(parents=True)
    listdir = Host(str(tmp_path)).listdir
    found = [netdev.by_position(listdir, f"#{number}") for number in range(4)]
    assert found == ["0000:02:00.0", "0000:0a:00.0", "0000:0b:00.0", "#3"]
    assert netdev.by_position(listdir, "0000:99:00.0") == "0000:99:00.0"
