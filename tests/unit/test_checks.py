"""Every check: ok, bad, unknown, not applicable. And no check may say the same of good and bad."""

from __future__ import annotations

import json
from typing import Any, Callable, NamedTuple

import pytest
from weaklink.checks import base, registry
from weaklink.checks.base import NotApplicable
from weaklink.model.expected import Expected, parse
from weaklink.model.finding import DEGRADED, FAIL, OK, UNKNOWN
from weaklink.observe.rdma import address_gid
from weaklink.observe.records import Gid, Mount, Netdev, Nic, Observation, RdmaPort
from weaklink.scheduler.ownership import MAX_REASON

from tests.fakenode import COMPUTE_PCI, MANAGEMENT_PCI, STORAGE_PCI, expected

WANT = parse(json.dumps(expected()))


def port(device: str, netdev: str, address: str) -> RdmaPort:
    gid = address_gid(address)
    assert gid is not None
    return RdmaPort(
        device=device,
        port=1,
        netdev=netdev,
        state="ACTIVE",
        phys_state="LinkUp",
        rate_gbps=400.0,
        link_layer="Ethernet",
        active_mtu=4096,
        mtu_source="ibv_devinfo",
        gids=(Gid(0, "fe80::", "RoCE v2", netdev), Gid(3, gid, "RoCE v2", netdev)),
        counters={"link_downed": 2},
    )


def good() -> Observation:
    home = Mount("/home", "nfs4", "10.77.2.1:/home", {"rw": "", "proto": "rdma"})
    return Observation(
        nics={
            MANAGEMENT_PCI: Nic(MANAGEMENT_PCI, True, Netdev("enp0s16", 1500, "up", True), None),
            COMPUTE_PCI: Nic(
                COMPUTE_PCI, True, Netdev("enp0s17", 4200, "up", True), port("rxe_compute", "enp0s17", "10.77.1.11")
            ),
            STORAGE_PCI: Nic(
                STORAGE_PCI, True, Netdev("enp0s18", 4200, "up", True), port("rxe_storage", "enp0s18", "10.77.2.11")
            ),
        },
        addresses={
            "enp0s16": ("10.77.0.11/24",),
            "enp0s17": ("10.77.1.11/24", "fe80::1/64"),
            "enp0s18": ("10.77.2.11/24",),
        },
        mounts={"/home": home},
        daemons={"munge": "active", "slurmd": "active"},
        earlier={"rxe_compute/1": {"link_downed": 2}, "rxe_storage/1": {"link_downed": 2}},
        trouble={},
    )


def with_nic(**changes: Any) -> Observation:
    seen = good()
    assert seen.nics is not None
    return seen._replace(nics={**seen.nics, COMPUTE_PCI: seen.nics[COMPUTE_PCI]._replace(**changes)})


def with_port(**changes: Any) -> Observation:
    seen = good()
    assert seen.nics is not None
    rdma = seen.nics[COMPUTE_PCI].rdma
    assert rdma is not None
    return with_nic(rdma=rdma._replace(**changes))


def with_mtu(mtu: int | None) -> Observation:
    return with_nic(netdev=Netdev("enp0s17", mtu, "up", True))


def with_mount(**changes: Any) -> Observation:
    seen = good()
    assert seen.mounts is not None
    return seen._replace(mounts={"/home": seen.mounts["/home"]._replace(**changes)})


def want(**changes: Any) -> Expected:
    return parse(json.dumps(expected(**changes)))


def want_rdma(**changes: Any) -> Expected:
    data = expected()
    for nic in data["nics"]:
        if nic["rdma"]:
            nic["rdma"].update(changes)
    return parse(json.dumps(data))


NO_SYSFS = good()._replace(nics=None, trouble={"nics": "/sys/bus/pci/devices is not there"})
NO_MOUNTS = good()._replace(mounts=None, trouble={"mounts": "/proc/mounts cannot be read"})


class Case(NamedTuple):
    """What a check says of ``subject``: ``status``, or None for not applicable; ``words`` are in the message."""

    check: str
    seen: Observation
    status: str | None
    words: str = ""
    wanted: Expected = WANT
    subject: str = "rxe_compute"


CASES = [
    Case("rdma.device", good(), OK),
    Case("rdma.device", with_nic(rdma=None), FAIL, "wanted rxe_compute; start its rxe link"),
    Case("rdma.device", with_nic(rdma=None), FAIL, "reload the driver", want_rdma(kind="hca")),
    Case("rdma.device", with_nic(present=False, netdev=None, rdma=None), FAIL, "PCI function is gone"),
    Case("rdma.device", NO_SYSFS, UNKNOWN, "is not there"),
    Case("rdma.device", good(), None, "no RDMA is expected", subject="enp0s16"),
    Case("rdma.state", good(), OK),
    Case("rdma.state", with_port(phys_state=None), OK),
    Case("rdma.state", with_port(state="DOWN", phys_state="Polling"), FAIL, "DOWN/Polling, wanted ACTIVE"),
    Case("rdma.state", with_port(state="DOWN", phys_state="Disabled"), FAIL, "DOWN/Disabled"),
    Case("rdma.state", with_port(state="INIT"), FAIL, "no subnet manager"),
    Case("rdma.state", with_port(state="ACTIVE", phys_state="LinkErrorRecovery"), FAIL, "LinkErrorRecovery"),
    Case("rdma.state", with_port(state=None, phys_state=None), UNKNOWN, "cannot be read"),
    Case("rdma.state", NO_SYSFS, UNKNOWN, "is not there"),
    Case("rdma.state", with_nic(rdma=None), None, "no RDMA device to judge"),
    Case("rdma.rate", good(), OK),
    Case("rdma.rate", with_port(rate_gbps=399.9), OK),
    Case("rdma.rate", with_port(rate_gbps=200.0), DEGRADED, "200 Gb/s, wanted 400"),
    Case("rdma.rate", with_port(rate_gbps=None), UNKNOWN, "cannot be read"),
    Case("rdma.rate", with_port(state="DOWN", rate_gbps=10.0), None, "not up"),
    Case("rdma.rate", good(), None, "no rate is expected", want_rdma(rate_gbps=None)),
    Case("rdma.active_mtu", good(), OK),
    Case("rdma.active_mtu", with_port(active_mtu=1024), FAIL, "1024, wanted 4096; set the NIC's MTU to 4200"),
    Case("rdma.active_mtu", with_port(active_mtu=2048), OK, "", want_rdma(active_mtu=1024)),
    Case("rdma.active_mtu", with_port(active_mtu=None), UNKNOWN, "not known"),
    Case(
        "rdma.active_mtu",
        with_port(active_mtu=None)._replace(trouble={"mtus": "ibv_devinfo is not installed"}),
        UNKNOWN,
        "not installed",
    ),
    Case("rdma.active_mtu", good(), None, "no MTU is expected", want_rdma(active_mtu=None)),
    Case("rdma.gid", good(), OK, "GID index 3 is RoCE v2"),
    Case(
        "rdma.gid", with_port(gids=(Gid(0, "fe80::", "RoCE v2", "enp0s17"),)), FAIL, "no RoCE v2 GID for 10.77.1.11/24"
    ),
    Case("rdma.gid", good(), FAIL, "no IB/RoCE v1 GID", want_rdma(gid_type="IB/RoCE v1")),
    Case("rdma.gid", with_port(gids=()), UNKNOWN, "cannot be read"),
    Case("rdma.gid", with_port(link_layer="InfiniBand"), None, "on Ethernet"),
    Case("rdma.gid", good(), None, "on Ethernet", want_rdma(gid_type=None)),
    Case("rdma.counters", good(), OK),
    Case("rdma.counters", with_port(counters={"link_downed": 5}), DEGRADED, "went down 3 times"),
    Case("rdma.counters", with_port(counters={"link_downed": 0}), OK),  # made anew
    Case("rdma.counters", good()._replace(earlier=None), UNKNOWN, "could not be read"),
    Case("rdma.counters", good()._replace(earlier={}), None, "first reading"),
    Case("rdma.counters", with_port(counters={}), None, "does not count"),
    Case("net.mtu", good(), OK, subject="enp0s17"),
    Case("net.mtu", with_mtu(9000), OK, subject="enp0s17"),
    Case("net.mtu", with_mtu(1500), FAIL, "MTU 1500, wanted 4200; run site.yml", subject="enp0s17"),
    Case("net.mtu", with_mtu(None), UNKNOWN, "cannot be read", subject="enp0s17"),
    Case("net.mtu", NO_SYSFS, UNKNOWN, "is not there", subject=COMPUTE_PCI),
    Case("net.mtu", good(), None, "no MTU is expected", subject="enp0s16"),
    Case("net.mtu", with_nic(netdev=None), None, "no net device", subject=COMPUTE_PCI),
    Case("net.address", good(), OK, subject="enp0s17"),
    Case(
        "net.address",
        good()._replace(addresses={"enp0s17": ("10.77.1.12/24",)}),
        FAIL,
        "10.77.1.12/24, wanted 10.77.1.11/24",
        subject="enp0s17",
    ),
    Case("net.address", good()._replace(addresses={}), FAIL, "address none", subject="enp0s17"),
    Case(
        "net.address",
        good()._replace(addresses=None, trouble={"addresses": "ip is not installed"}),
        UNKNOWN,
        "not installed",
        subject="enp0s17",
    ),
    Case("net.address", good(), None, "no address", want(nics=[{"pci": COMPUTE_PCI}]), subject="enp0s17"),
    Case("mount.present", good(), OK, subject="/home"),
    Case("mount.present", with_mount(fstype="nfs"), OK, subject="/home"),
    Case("mount.present", good()._replace(mounts={}), FAIL, "not mounted, wanted 10.77.2.1:/home", subject="/home"),
    Case(
        "mount.present",
        with_mount(source="10.77.2.9:/home"),
        FAIL,
        "10.77.2.9:/home (nfs4) is mounted",
        subject="/home",
    ),
    Case("mount.present", with_mount(fstype="ext4"), FAIL, "(ext4) is mounted", subject="/home"),
    Case("mount.present", with_mount(fstype="autofs"), UNKNOWN, "first use", subject="/home"),
    Case("mount.present", NO_MOUNTS, UNKNOWN, "cannot be read", subject="/home"),
    Case("mount.present", good(), None, "no mounts are expected", want(mounts=[]), subject="c1"),
    Case("mount.transport", good(), OK, subject="/home"),
    Case("mount.transport", with_mount(options={"proto": "tcp"}), FAIL, "proto=tcp, wanted rdma", subject="/home"),
    Case("mount.transport", with_mount(options={}), UNKNOWN, "does not say", subject="/home"),
    Case("mount.transport", NO_MOUNTS, UNKNOWN, "cannot be read", subject="/home"),
    Case("mount.transport", good()._replace(mounts={}), None, "not mounted", subject="/home"),
    Case("mount.transport", good(), None, "any transport", want(mounts=[{"path": "/home"}]), subject="/home"),
    Case("slurm.daemons", good(), OK, subject="slurmd"),
    Case(
        "slurm.daemons",
        good()._replace(daemons={"munge": "active", "slurmd": "failed"}),
        FAIL,
        "journalctl -u slurmd",
        subject="slurmd",
    ),
    Case(
        "slurm.daemons",
        good()._replace(daemons={"munge": "active", "slurmd": "inactive"}),
        FAIL,
        "inactive",
        subject="slurmd",
    ),
    Case(
        "slurm.daemons",
        good()._replace(daemons={"munge": "active", "slurmd": "activating"}),
        UNKNOWN,
        "settled",
        subject="slurmd",
    ),
    Case(
        "slurm.daemons",
        good()._replace(daemons=None, trouble={"daemons": "no systemd"}),
        UNKNOWN,
        "no systemd",
        subject="slurmd",
    ),
    Case("slurm.daemons", good(), None, "no daemons", want(daemons=[]), subject="c1"),
]


def said_of(case: Case, check: base.Check) -> tuple[str | None, str]:
    """Return (status or None, message or why) of what the check says of the case's subject."""
    [said] = [word for word in check.decides(case.seen, case.wanted) if word.subject == case.subject]
    return (None, said.why) if isinstance(said, NotApplicable) else (said.status, said.message)


def holds(case: Case, check: base.Check) -> bool:
    status, text = said_of(case, check)
    return status == case.status and case.words in text


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}-{case.status or 'n/a'}-{case.words[:20]}")
def test_a_check_says(case: Case) -> None:
    status, text = said_of(case, registry.BY_NAME[case.check])
    assert status == case.status, text
    assert case.words in text


@pytest.mark.parametrize("name", [check.name for check in registry.CHECKS])
def test_every_check_has_all_four(name: str) -> None:
    statuses = {case.status for case in CASES if case.check == name}
    assert {OK, UNKNOWN, None} <= statuses
    assert statuses & {FAIL, DEGRADED}


_SWAPS: dict[str, dict[str, str]] = {
    "always ok": {FAIL: OK, DEGRADED: OK, UNKNOWN: OK},
    "always bad": {OK: FAIL, UNKNOWN: FAIL},
    "inverted": {OK: FAIL, FAIL: OK, DEGRADED: OK},
    "unknown is bad": {UNKNOWN: FAIL},
    "unknown is ok": {UNKNOWN: OK},
    "bad is unknown": {FAIL: UNKNOWN, DEGRADED: UNKNOWN},
}


def mutant(check: base.Check, swap: dict[str, str]) -> base.Check:
    def decides(seen: Observation, wanted: Expected) -> list[base.Said]:
        words = check.decides(seen, wanted)
        return [w if isinstance(w, NotApplicable) else w._replace(status=swap.get(w.status, w.status)) for w in words]

    return check._replace(decides=decides)


def deaf(check: base.Check) -> base.Check:
    """A check that says of everything that it does not apply."""
    return check._replace(
        decides=lambda seen, wanted: [
            NotApplicable(check.name, word.subject, "") for word in check.decides(seen, wanted)
        ]
    )


@pytest.mark.parametrize("name", [check.name for check in registry.CHECKS])
@pytest.mark.parametrize("how", [*_SWAPS, "deaf"])
def test_a_wrong_decision_would_be_seen(name: str, how: str) -> None:
    """Turn the check's decision round: at least one row of the table above must notice."""
    check = registry.BY_NAME[name]
    wrong = deaf(check) if how == "deaf" else mutant(check, _SWAPS[how])
    rows = [case for case in CASES if case.check == name]
    assert all(holds(case, check) for case in rows)
    assert not all(holds(case, wrong) for case in rows)


def test_a_good_node_is_ok_and_says_what_does_not_apply() -> None:
    judged = registry.judge(registry.CHECKS, good(), WANT)
    assert judged.verdict == OK
    assert judged.draining == ()
    assert all(finding.cause == "" for finding in judged.findings)
    assert {item.check for item in judged.not_applicable} >= {"rdma.state", "net.mtu"}


def test_the_root_cause_comes_first() -> None:
    seen = with_port(active_mtu=1024)
    assert seen.nics is not None
    seen = seen._replace(
        nics={**seen.nics, COMPUTE_PCI: seen.nics[COMPUTE_PCI]._replace(netdev=Netdev("enp0s17", 1500, "up", True))}
    )
    assert [f.check for f in registry.judge(registry.CHECKS, seen, WANT).draining] == ["net.mtu", "rdma.active_mtu"]
    down = with_port(state="DOWN", phys_state="Polling", gids=())
    assert registry.judge(registry.CHECKS, down, WANT).draining[0].check == "rdma.state"


def test_nothing_that_is_only_noted_drains() -> None:
    seen = good()._replace(daemons={"munge": "failed", "slurmd": "failed"}, addresses={})
    judged = registry.judge(registry.CHECKS, seen, WANT)
    assert judged.verdict == FAIL
    assert judged.draining == ()


def test_a_node_of_which_nothing_could_be_read_is_unknown_and_never_drains() -> None:
    blind = Observation(None, None, None, None, None, {})
    judged = registry.judge(registry.CHECKS, blind, WANT)
    assert judged.verdict == UNKNOWN
    assert judged.draining == ()


def test_a_check_that_breaks_is_unknown_and_the_others_still_speak() -> None:
    def breaks(_seen: Observation, _wanted: Expected) -> list[base.Said]:
        raise KeyError("surprise")

    first, *others = registry.CHECKS
    judged = registry.judge([first._replace(decides=breaks), *others], good(), WANT)
    assert [f.check for f in judged.findings if f.status == UNKNOWN] == [first.name]
    assert judged.draining == ()


def test_contexts_and_needs() -> None:
    assert {check.name for check in registry.CHECKS if check.action == base.DRAIN} == {
        "rdma.device",
        "rdma.state",
        "rdma.rate",
        "rdma.active_mtu",
        "rdma.gid",
        "net.mtu",
        "mount.present",
        "mount.transport",
    }
    prolog = registry.in_context(base.PROLOG)
    # What costs a process of its own is not done before every job, but for the one tool that tells the active MTU.
    assert registry.needs(prolog) == {"nics", "mtus", "mounts"}
    assert {check.name for check in registry.in_context(base.CLI)} == {check.name for check in registry.CHECKS}
    assert all(check.remedy and check.cause and check.contexts for check in registry.CHECKS)


def test_messages_fit_into_a_reason_and_say_found_and_wanted() -> None:
    for case in CASES:
        if case.status in (FAIL, DEGRADED):
            _, text = said_of(case, registry.BY_NAME[case.check])
            assert len(f"weaklink:{case.check}: {text} [ABCDEFGHIJKL]") <= MAX_REASON, text
            assert ";" in text
            assert "\n" not in text


def rename(seen: Observation, how: Callable[[str], str]) -> Observation:
    assert seen.nics is not None
    nics = {}
    for pci, nic in reversed(list(seen.nics.items())):
        device = nic.netdev._replace(name=how(nic.netdev.name)) if nic.netdev else None
        rdma = nic.rdma._replace(device=how(nic.rdma.device), netdev=how(nic.rdma.netdev)) if nic.rdma else None
        nics[pci] = nic._replace(netdev=device, rdma=rdma)
    addresses = {how(name): found for name, found in (seen.addresses or {}).items()}
    earlier = {f"{how(name.partition('/')[0])}/1": found for name, found in (seen.earlier or {}).items()}
    return seen._replace(nics=nics, addresses=addresses, earlier=earlier)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.status in (OK, FAIL, DEGRADED)][::2], ids=lambda c: f"{c.check}-{c.status}"
)
def test_other_names_and_another_order_change_no_verdict(case: Case) -> None:
    if case.seen.nics is None:
        return
    check = registry.BY_NAME[case.check]
    before = sorted(str(getattr(word, "status", None)) for word in check.decides(case.seen, case.wanted))
    after = sorted(
        str(getattr(word, "status", None)) for word in check.decides(rename(case.seen, lambda n: f"x{n}9"), case.wanted)
    )
    assert before == after
