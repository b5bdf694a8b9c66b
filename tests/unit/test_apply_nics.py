"""Areas networks and rdma: any state of a node's NICs is brought in line, and only what differs is touched."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.apply_fake import MEMORY, FakeNode

if TYPE_CHECKING:
    import pytest

PCI = {"management": "0000:00:10.0", "compute": "0000:00:11.0", "storage": "0000:00:12.0"}
NETDEV = {"management": "enp0s16", "compute": "enp0s17", "storage": "enp0s18"}
SUBNETS = {"management": 0, "compute": 1, "storage": 2}

MTU = st.sampled_from([1500, 4200, 9000])
LINKS = st.dictionaries(st.sampled_from(sorted(PCI)), st.tuples(st.integers(1, 20), MTU), max_size=3)
FOUND = st.tuples(MTU, st.lists(st.integers(1, 20), max_size=2, unique=True), st.booleans())


def wanted(links: dict[str, tuple[int, int]]) -> dict[str, Any]:
    return {
        "links": [
            {"name": name, "pci": PCI[name], "address": f"10.77.{SUBNETS[name]}.{number}/24", "mtu": mtu}
            for name, (number, mtu) in links.items()
        ]
    }


def plugged(root: Path, found: dict[str, tuple[int, list[int], bool]] | None = None) -> FakeNode:
    node = FakeNode(root)
    node.known = {"systemd-networkd.service", "slurmd.service"}
    node.active = {"systemd-networkd.service"}
    for name, pci in PCI.items():
        mtu, numbers, up = (found or {}).get(name, (1500, [], True))
        addresses = tuple(f"10.77.{SUBNETS[name]}.{number}/24" for number in numbers)
        node.networkd.plug(pci, NETDEV[name], mtu, addresses, up=up)
    return node


def twice(node: FakeNode, area: str, desired: dict[str, Any]) -> dict[str, Any]:
    before, calls = node.digest(), len(node.changes)
    predicted = node.apply(area, desired, check=True)
    assert (node.digest(), len(node.changes)) == (before, calls), "check mode wrote"
    result = node.apply(area, desired)
    assert result["failed"] == []
    assert [c["what"] for c in result["changes"]] == [c["what"] for c in predicted["changes"]]
    calls = len(node.changes)
    again = node.apply(area, desired)
    assert (again["changes"], again["failed"], len(node.changes)) == ([], [], calls)
    return result


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(first=LINKS, second=LINKS, found=st.fixed_dictionaries(dict.fromkeys(PCI, FOUND)), drift=st.sampled_from([0, 1]))
def test_any_state_is_reached_from_any_other(first: Any, second: Any, found: Any, drift: int) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        node = plugged(Path(folder), found)
        twice(node, "networks", wanted(first))
        for link in node.networkd.links.values():
            link["mtu"] -= drift * 100  # by hand
        twice(node, "networks", wanted(second))
        for link in wanted(second)["links"]:
            now = node.networkd.links[NETDEV[link["name"]]]
            assert now == {"mtu": link["mtu"], "addresses": [link["address"]], "up": True}
        names = {f"05-weaklink-{name}.network" for name in second}
        assert {path.name for path in (node.root / "etc/systemd/network").iterdir()} == names


def test_one_drifted_mtu_is_the_only_thing_that_is_touched(tmp_path: Path) -> None:
    node = plugged(tmp_path)
    desired = wanted({"compute": (11, 4200), "storage": (11, 4200)})
    twice(node, "networks", desired)
    node.networkd.links["enp0s17"]["mtu"] = 1500
    node.changes.clear()
    result = twice(node, "networks", desired)
    assert [(c["what"], c["from"], c["to"]) for c in result["changes"]] == [("link compute mtu", 1500, 4200)]
    assert node.changes == [("ip", "link", "set", "dev", "enp0s17", "mtu", "4200")]


def test_a_moved_address_and_an_extra_one_wait_for_jobs(tmp_path: Path) -> None:
    node = plugged(tmp_path)
    desired = wanted({"compute": (11, 4200)})
    twice(node, "networks", desired)
    node.networkd.links["enp0s17"]["addresses"].append("10.77.1.99/24")
    node.active.add("slurmd.service")
    node.jobs = ["17"]
    result = node.apply("networks", desired)
    assert [step["what"] for step in result["pending"]] == ["link compute extra address 10.77.1.99/24"]
    node.jobs = []
    twice(node, "networks", desired)
    assert node.networkd.links["enp0s17"]["addresses"] == ["10.77.1.11/24"]


def test_an_mtu_in_use_waits_for_jobs_and_a_fresh_nics_does_not(tmp_path: Path) -> None:
    node = plugged(tmp_path, {"compute": (1500, [11], True)})
    node.active.add("slurmd.service")
    node.jobs = ["17"]
    result = node.apply("networks", wanted({"compute": (11, 4200), "storage": (11, 4200)}))
    assert [step["what"] for step in result["pending"]] == ["link compute mtu"]
    storage = {"link storage address", "link storage mtu"}
    assert {c["what"] for c in result["changes"] if c["what"].startswith("link")} == storage


def test_a_run_killed_after_writing_is_made_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Networkctl's reconfigure follows the files that networkd has read, so they have to be read first."""
    monkeypatch.setattr("weaklink.apply.networks.time.sleep", lambda _seconds: None)
    ticks = iter(range(0, 100_000, 2))
    monkeypatch.setattr("weaklink.apply.networks.time.monotonic", lambda: float(next(ticks)))
    node = plugged(tmp_path)
    desired = wanted({"compute": (11, 4200)})
    with monkeypatch.context() as patch:
        patch.setattr(node.networkd, "networkctl", lambda *_: (1, "", "killed here"))
        assert node.apply("networks", desired)["failed"]
    result = node.apply("networks", desired)
    assert result["failed"] == []
    assert node.networkd.links["enp0s17"]["addresses"] == ["10.77.1.11/24"]


def test_a_nic_that_is_not_there_stops_the_area_before_anything_is_written(tmp_path: Path) -> None:
    node = plugged(tmp_path)
    desired = wanted({"compute": (11, 4200)})
    desired["links"].append({"name": "rail1", "pci": "0000:99:00.0", "address": "10.78.0.1/24", "mtu": 4200})
    before = node.digest()
    result = node.apply("networks", desired)
    assert "no network interface at PCI 0000:99:00.0" in result["failed"][0]["message"]
    assert node.digest() == before


def test_without_networkd_the_message_says_so(tmp_path: Path) -> None:
    node = plugged(tmp_path)
    node.active.clear()
    result = node.apply("networks", wanted({"compute": (11, 4200)}))
    assert "systemd-networkd is not active" in result["failed"][0]["message"]


# ---- RDMA devices


def rdma(*names: str, kind: str = "rxe") -> dict[str, Any]:
    return {
        "nics": [
            {"pci": PCI[name], "rdma": {"device": f"rxe_{name}", "kind": kind} if name in names else None}
            for name in PCI
        ],
        "before": ["slurmd.service"],
    }


@settings(max_examples=15, deadline=None, derandomize=True)
@given(devices=st.sets(st.sampled_from(["compute", "storage"])), gone=st.sets(st.sampled_from(["compute", "storage"])))
def test_devices_are_made_and_made_again(devices: set[str], gone: set[str]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        node = plugged(Path(folder))
        twice(node, "rdma", rdma(*devices))
        folders = {name: node.root / f"sys/class/infiniband/rxe_{name}" for name in PCI}
        for name in gone & devices:  # deleted by hand, the unit still says active
            (folders[name] / "parent").unlink()
            folders[name].rmdir()
        result = twice(node, "rdma", rdma(*devices))
        assert {c["what"] for c in result["changes"]} == {f"rdma rxe_{name}" for name in gone & devices}
        assert {name for name in folders if folders[name].exists()} == devices
        assert all((folders[name] / "parent").read_text().strip() == NETDEV[name] for name in devices)
        assert {name for name in node.enabled if name.startswith("weaklink-")} == {
            f"weaklink-rxe_{name}.service" for name in devices
        }


def test_a_device_on_the_wrong_nic_is_not_taken_away(tmp_path: Path) -> None:
    node = plugged(tmp_path)
    node.write("/sys/class/infiniband/rxe_compute/parent", "enp0s18\n")
    result = node.apply("rdma", rdma("compute"))
    assert "rxe_compute: sits on enp0s18, wanted on enp0s17" in result["failed"][0]["message"]
    assert node.changes == []


def test_a_missing_hca_is_a_problem_and_a_present_one_is_found(tmp_path: Path) -> None:
    node = plugged(tmp_path)
    result = node.apply("rdma", rdma("compute", kind="hca"))
    assert "enp0s17 (0000:00:11.0) has no RDMA device" in result["failed"][0]["message"]
    (node.root / "sys/class/infiniband/mlx5_0/device/net/enp0s17").mkdir(parents=True)
    result = node.apply("rdma", rdma("compute", kind="hca"))
    assert (result["failed"], result["changes"]) == ([], [])
