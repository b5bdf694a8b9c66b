"""Who took a node out, why, and what the digests of the nodes say."""

import json
from pathlib import Path
from typing import Any

import pytest
from weaklink.guard.collect import collect, from_digest
from weaklink.guard.context import BusyError, owner_of, printable, sole
from weaklink.guard.nodes import rows, table
from weaklink.guard.sweeps import run_sweep
from weaklink.guard.why import explain, text
from weaklink.scheduler.ownership import format_reason

from tests.unit.fleet_fake import KEY, Fleet, slow

ALICE = "alice: RMA 4711"


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def leave_digest(fleet: Fleet, node: str, **more: Any) -> None:
    digest = {
        "v": 1,
        "id": f"{node}-1",
        "time": "2026-11-29T14:00:00Z",
        "verdict": "fail",
        "action": "drained",
        "check": "net.mtu",
        "cause": "mtu-too-small",
        "message": "enp0s17 has MTU 1500, wanted 4200",
        "job": 7,
        **more,
    }
    fleet.slurm.set_extra(node, json.dumps({"weaklink": digest, "rack": "r1"}))


def test_a_digest_is_stored_once(fleet: Fleet) -> None:
    leave_digest(fleet, "c3")
    assert [one.node for one in collect(fleet.guard, fleet.slurm.nodes())] == ["c3"]
    assert collect(fleet.guard, fleet.slurm.nodes()) == []
    record = fleet.store.evidence("c3")[0]
    assert (record.check, record.cause, record.action) == ("net.mtu", "mtu-too-small", "drained")
    assert record.time == 1795960800.0


def test_over_budget_opens_one_incident_for_a_check_with_its_nodes(fleet: Fleet) -> None:
    leave_digest(fleet, "c3", action="over-budget")
    leave_digest(fleet, "c1", action="over-budget", id="c1-1")
    collect(fleet.guard, fleet.slurm.nodes())
    assert [(one.check, one.nodes) for one in fleet.store.incidents()] == [("net.mtu", ["c1", "c3"])]
    leave_digest(fleet, "c1", action="", verdict="ok", id="c1-2")
    leave_digest(fleet, "c3", action="", verdict="ok", id="c3-2")
    collect(fleet.guard, fleet.slurm.nodes())
    assert fleet.store.incidents() == []


@pytest.mark.parametrize(
    "extra", ["", "rack 7", "[]", '{"weaklink": 3}', '{"weaklink": {"v": 9}}', '{"weaklink": {"v": 1}}']
)
def test_other_peoples_extra_is_no_digest(fleet: Fleet, extra: str) -> None:
    fleet.slurm.set_extra("c1", extra)
    assert collect(fleet.guard, fleet.slurm.nodes()) == []


def test_hostile_text_is_cut_and_made_printable() -> None:
    record = from_digest(
        "c1", {"id": "x" * 500, "message": "a\x1b[31mb\nc" * 100, "check": 5, "time": "never", "body": {}}
    )
    assert record is not None
    assert len(record.id) <= 80
    assert len(record.message) <= 200
    assert record.message.isprintable()
    assert (record.check, record.time) == ("", 0.0)
    assert printable("a\x1b[2J\u202eb\n") == "a [2J b"


@pytest.mark.parametrize(
    ("states", "reason", "user", "who"),
    [
        (["IDLE"], "", "", ""),
        (["IDLE", "DRAIN"], ALICE, "alice", "admin"),
        (["IDLE", "DRAIN"], "weaklink:net.mtu: I say so [ABCDEFGHIJKL]", "mallory", "admin"),
        (["DOWN", "NOT_RESPONDING"], "Not responding", "slurm", "slurm"),
        (["IDLE", "DRAIN"], "Prolog error", "root", "slurm"),
        (["IDLE", "DRAIN"], "OURS", "root", "weaklink"),
    ],
)
def test_the_owner_of_a_drain(fleet: Fleet, states: list[str], reason: str, user: str, who: str) -> None:
    if reason == "OURS":
        reason = format_reason(KEY, "c1", "net.mtu", "1500")
    fleet.slurm.put_state("c1", *states, reason=reason, user=user)
    owner = owner_of(KEY, fleet.slurm.nodes(["c1"])["c1"])
    assert owner.who == who
    if "weaklink:" in reason and who == "admin":
        assert "treated as an admin's" in owner.note


def test_a_copied_reason_is_not_ours_on_another_node(fleet: Fleet) -> None:
    fleet.slurm.put_state("c1", "IDLE", "DRAIN", reason=format_reason(KEY, "c2", "net.mtu", "1500"))
    assert owner_of(KEY, fleet.slurm.nodes(["c1"])["c1"]).who == "admin"


def test_why_shows_measured_baseline_counters_and_alternatives_of_a_dead_node(fleet: Fleet) -> None:
    run_sweep(fleet.guard, baseline=True)
    fleet.fault = slow("c2", 0.05)
    run_sweep(fleet.guard)
    info = fleet.slurm.nodes(["c2"])["c2"]
    fleet.slurm.put_state("c2", "DOWN", "DRAIN", "NOT_RESPONDING", reason=info.reason)
    found = explain(fleet.guard, fleet.slurm.nodes(["c2"])["c2"])
    assert found["by"] == "weaklink"
    assert found["check"] == "sweep.bandwidth"
    assert found["counters"]["sent_pkts"] > 0
    assert found["suspect"]["alternatives"]
    said = text(found)
    assert "taken out by weaklink" in said
    assert "bandwidth 0.0" in said
    assert "baseline 0." in said
    assert "confirmed by c1, c3, in the retest by c1, c3" in said
    assert "counters   sent_pkts +" in said
    assert "cable c2/rxe_compute" in said
    assert "weaklink return c2" in said


def test_why_shows_an_admins_drain_word_for_word(fleet: Fleet) -> None:
    leave_digest(fleet, "c1")
    collect(fleet.guard, fleet.slurm.nodes())
    fleet.slurm.put_state("c1", "IDLE", "DRAIN", reason=ALICE, user="alice")
    found = explain(fleet.guard, fleet.slurm.nodes(["c1"])["c1"])
    assert (found["by"], found["reason"], found["evidence"]) == ("admin", ALICE, None)
    said = text(found)
    assert "taken out by an admin (alice)" in said
    assert ALICE in said
    assert "weaklink never touches this drain" in said


def test_why_of_a_prolog_drain_finds_the_digest_by_its_token(fleet: Fleet) -> None:
    reason = format_reason(KEY, "c3", "net.mtu", "enp0s17 has MTU 1500, wanted 4200")
    leave_digest(fleet, "c3", token=reason[-13:-1])
    leave_digest(fleet, "c3", token=reason[-13:-1])
    collect(fleet.guard, fleet.slurm.nodes())
    fleet.slurm.put_state("c3", "IDLE", "DRAIN", reason=reason)
    found = explain(fleet.guard, fleet.slurm.nodes(["c3"])["c3"])
    assert found["evidence"]["id"] == "c3:c3-1"
    assert "found      enp0s17 has MTU 1500, wanted 4200" in text(found)


def test_why_of_a_node_in_service(fleet: Fleet) -> None:
    found = explain(fleet.guard, fleet.slurm.nodes(["c1"])["c1"])
    assert found["in_service"]
    assert text(found).startswith("c1 is in service (IDLE)")


def test_the_list_of_nodes(fleet: Fleet) -> None:
    leave_digest(fleet, "c3")
    collect(fleet.guard, fleet.slurm.nodes())
    fleet.slurm.put_state("c2", "IDLE", "DRAIN", reason=ALICE, user="alice")
    found = {row["node"]: row for row in rows(fleet.guard, fleet.slurm.nodes())}
    assert (found["c1"]["by"], found["c2"]["by"]) == ("", "admin")
    assert found["c2"]["reason"] == ALICE
    assert found["c3"]["last"].startswith("drained net.mtu 2026-11-29T14:00:00Z")


def test_a_table_is_aligned_and_printable() -> None:
    assert table(("A", "B"), [("x\n", "y"), ("long", "z")]) == "A     B\nx     y\nlong  z"


def test_the_lock_is_held_by_one_and_dies_with_it(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with sole(path), pytest.raises(BusyError), sole(path):
        pass
    with sole(path):
        pass
