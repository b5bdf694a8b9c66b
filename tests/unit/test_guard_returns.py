"""Return: only what is ours, only after its tests, and never open to users untested, whatever dies when."""

from pathlib import Path
from typing import Any

import pytest
from weaklink.guard.returns import clean_up, return_node
from weaklink.guard.sweeps import run_sweep
from weaklink.scheduler.ownership import format_reason, owns
from weaklink.scheduler.text import SlurmError

from tests.unit.fleet_fake import KEY, Fleet, broken, finding, slow

ALICE = "alice: RMA 4711"


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path)
    run_sweep(fleet.guard, baseline=True)
    take_out(fleet)
    fleet.slurm.calls.clear()
    fleet.argvs.clear()
    return fleet


def take_out(fleet: Fleet, node: str = "c2", check: str = "sweep.bandwidth") -> str:
    reason = format_reason(KEY, node, check, f"{node} rxe_compute: 0.02 of 0.5 Gb/s")
    fleet.slurm.put_state(node, "IDLE", "DRAIN", reason=reason)
    return reason


def assert_kept_out(fleet: Fleet, node: str = "c2") -> None:
    info = fleet.slurm.nodes([node])[node]
    assert info.drained
    assert owns(KEY, node, info.reason)
    assert fleet.slurm.reservations() == {}
    assert fleet.job is None
    assert fleet.store.returns(node, unfinished=True) == []


def test_a_healed_node_comes_back(fleet: Fleet) -> None:
    fleet.store.note_incident("sweep.bandwidth", "x", "c2", "m")
    done = return_node(fleet.guard, "c2")
    assert (done.verdict, done.state) == ("ok", "done")
    assert not fleet.slurm.nodes(["c2"])["c2"].taken
    assert fleet.slurm.reservations() == {}
    assert fleet.store.incidents() == []
    assert fleet.store.returns("c2")[0].state == "done"
    assert {row["metric"] for row in done.measured} >= {"bandwidth", "latency"}
    assert fleet.log()[-1]["action"] == "done"


def test_a_good_node_with_an_unlucky_pass_is_measured_once_more(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, seed=194)  # of the seeds tried, one whose first passes accuse the healthy node
    fleet.guard = fleet.guard._replace(seed=lambda: 194)
    run_sweep(fleet.guard, baseline=True)
    take_out(fleet)
    done = return_node(fleet.guard, "c2")
    assert any("measured once more before it is refused" in line for line in fleet.told), fleet.told
    assert (done.verdict, done.state) == ("ok", "done")


def test_it_is_reserved_before_it_is_undrained_and_tested_before_it_is_open(fleet: Fleet) -> None:
    return_node(fleet.guard, "c2")
    order = [
        call[0] for call in fleet.slurm.calls if call[0] in ("create_reservation", "undrain", "delete_reservation")
    ]
    assert order == ["create_reservation", "undrain", "delete_reservation"]
    create = next(call for call in fleet.slurm.calls if call[0] == "create_reservation")
    assert create[1:] == ("weaklink-c2", "c2")
    allocations = [argv for argv in fleet.argvs if "salloc" in argv]
    assert all("--reservation=weaklink-c2" in argv for argv in allocations)
    updates = [call[2:] for call in fleet.slurm.calls if call[0] == "update_reservation"]
    assert updates == [("c2", "c1", "c3"), ("c2",)]


@pytest.mark.parametrize(("benchmark", "factor"), [("ib_write_bw", 0.05), ("ib_send_lat", 0.1)])
def test_a_node_that_is_still_slow_is_drained_again(fleet: Fleet, benchmark: str, factor: float) -> None:
    fleet.fault = slow("c2", factor, benchmark)
    done = return_node(fleet.guard, "c2")
    assert (done.verdict, done.state) == ("fail", "failed")
    assert "still loses" in done.message
    assert_kept_out(fleet)
    assert "return:" in fleet.slurm.nodes(["c2"])["c2"].reason


def test_a_node_whose_rdma_fails_is_drained_again(fleet: Fleet) -> None:
    fleet.fault = broken("c2", "rdma-failed", "rdma-retry-exceeded: status 12")
    assert return_node(fleet.guard, "c2").verdict == "fail"
    assert_kept_out(fleet)


def test_a_node_that_could_not_be_measured_stays_out_as_unknown(fleet: Fleet) -> None:
    fleet.fault = broken("c2", "timeout", "no end")
    assert return_node(fleet.guard, "c2").verdict == "unknown"
    assert_kept_out(fleet)


def test_a_failing_check_keeps_it_out_without_a_sweep(fleet: Fleet) -> None:
    fleet.checks["c2"] = [finding("net.mtu", "fail", "enp0s17 has MTU 1500, wanted 4200")]
    done = return_node(fleet.guard, "c2")
    assert (done.verdict, done.message) == ("fail", "drained again: enp0s17 has MTU 1500, wanted 4200")
    assert_kept_out(fleet)
    assert not any("measure" in argv for argv in fleet.argvs)


def test_the_check_it_was_drained_for_must_be_well_again(fleet: Fleet) -> None:
    take_out(fleet, check="mount.present")
    done = return_node(fleet.guard, "c2")
    assert done.verdict == "unknown"
    assert "mount.present, for which the node was drained, could not be judged again" in done.message
    assert_kept_out(fleet)


def test_checks_that_did_not_run_are_unknown(fleet: Fleet) -> None:
    fleet.check_fails = True
    assert return_node(fleet.guard, "c2").verdict == "unknown"
    assert_kept_out(fleet)


def test_an_admins_drain_is_refused_word_for_word(fleet: Fleet) -> None:
    fleet.slurm.put_state("c2", "IDLE", "DRAIN", reason=ALICE, user="alice")
    done = return_node(fleet.guard, "c2")
    assert (done.verdict, done.state) == ("fail", "refused")
    assert ALICE in done.message
    assert fleet.slurm.nodes(["c2"])["c2"].reason == ALICE
    assert not any(call[0] in ("undrain", "create_reservation", "drain") for call in fleet.slurm.calls)


def test_an_edited_reason_of_ours_is_the_admins(fleet: Fleet) -> None:
    fleet.slurm.put_state("c2", "IDLE", "DRAIN", reason=take_out(fleet).replace("0.02", "0.01"))
    assert return_node(fleet.guard, "c2").state == "refused"


def test_slurms_own_verdict_is_refused(fleet: Fleet) -> None:
    fleet.slurm.put_state("c2", "DOWN", "NOT_RESPONDING", reason="Not responding", user="slurm")
    assert return_node(fleet.guard, "c2").state == "refused"


def test_a_node_with_jobs_waits(fleet: Fleet) -> None:
    fleet.slurm.put_state("c2", "MIXED", "DRAIN", reason=take_out(fleet))
    done = return_node(fleet.guard, "c2")
    assert (done.verdict, done.state) == ("unknown", "refused")


def test_a_node_in_service_needs_nothing(fleet: Fleet) -> None:
    assert return_node(fleet.guard, "c1").state == "nothing-to-do"


def test_without_a_healthy_partner_nothing_is_done(fleet: Fleet) -> None:
    for name in ("c1", "c3"):
        fleet.slurm.put_state(name, "ALLOCATED")
    assert return_node(fleet.guard, "c2").state == "refused"
    assert fleet.slurm.nodes(["c2"])["c2"].drained


def test_one_partner_is_enough_when_the_fleet_is_as_usual(fleet: Fleet) -> None:
    fleet.slurm.put_state("c3", "IDLE", "DRAIN", reason=ALICE, user="alice")
    assert return_node(fleet.guard, "c2").verdict == "ok"
    take_out(fleet)
    fleet.fault = slow("c2", 0.05)
    done = return_node(fleet.guard, "c2")
    assert done.verdict == "fail"
    assert "with one partner alone" in done.message
    assert_kept_out(fleet)


@pytest.mark.parametrize("moment", ["create_reservation", "undrain", "update_reservation"])
def test_slurm_failing_on_the_way_keeps_it_out(fleet: Fleet, moment: str) -> None:
    fleet.slurm.fail.add(moment)
    assert return_node(fleet.guard, "c2").verdict == "unknown"
    assert_kept_out(fleet)


def test_ctrl_c_on_the_way_keeps_it_out(fleet: Fleet) -> None:
    def interrupt(argv: list[str]) -> None:
        if "measure" in argv:
            raise KeyboardInterrupt

    fleet.during = interrupt
    with pytest.raises(KeyboardInterrupt):
        return_node(fleet.guard, "c2")
    assert_kept_out(fleet)


class Killed(BaseException):
    """Stands for kill -9: nothing of ours runs after it."""


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["create_reservation", "undrain", "update_reservation", "delete_reservation"])
def test_a_killed_return_is_cleaned_up_by_the_next(fleet: Fleet, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def dead(*_args: Any, **_more: Any) -> Any:
        raise Killed

    def kill() -> None:
        monkeypatch.setattr("weaklink.guard.returns._conclude", dead)
        raise Killed

    fleet.slurm.before[moment] = kill
    with pytest.raises(Killed):
        return_node(fleet.guard, "c2")
    monkeypatch.undo()
    fleet.job = None  # its time limit
    info = fleet.slurm.nodes(["c2"])["c2"]
    assert info.taken or "weaklink-c2" in fleet.slurm.reservations(), "open to users untested"
    clean_up(fleet.guard, "c2")
    assert_kept_out(fleet)
    assert return_node(fleet.guard, "c2").verdict == "ok"


def test_when_it_cannot_be_drained_again_the_quarantine_stands(fleet: Fleet) -> None:
    def lose(argv: list[str]) -> None:
        if "measure" in argv:
            fleet.slurm.fail.update({"drain", "exchange_drain"})

    fleet.during = lose
    fleet.fault = slow("c2", 0.05)
    done = return_node(fleet.guard, "c2")
    assert (done.verdict, done.state) == ("unknown", "unfinished")
    assert "weaklink-c2" in fleet.slurm.reservations()
    assert fleet.store.returns("c2", unfinished=True)
    fleet.slurm.fail.clear()
    fleet.during = lambda _argv: None
    clean_up(fleet.guard, "c2")
    assert_kept_out(fleet)


def test_a_drain_of_its_own_prolog_stands(fleet: Fleet) -> None:
    reason = format_reason(KEY, "c2", "rdma.state", "rxe_compute/1 is DOWN, wanted ACTIVE")

    def prolog(_argv: list[str]) -> None:
        fleet.slurm.put_state("c2", "IDLE", "DRAIN", reason=reason)

    fleet.during = prolog
    done = return_node(fleet.guard, "c2")
    assert done.verdict == "fail"
    assert "drained by its own check" in done.message
    assert fleet.slurm.nodes(["c2"])["c2"].reason == reason
    assert_kept_out(fleet)


def test_clean_up_of_nothing_does_nothing(fleet: Fleet) -> None:
    assert clean_up(fleet.guard, "c2") is False
    assert not any(call[0] in ("drain", "undrain", "delete_reservation") for call in fleet.slurm.calls)


def test_without_a_key_nothing_is_ours(fleet: Fleet) -> None:
    guard = fleet.guard._replace(key=None)
    done = return_node(guard, "c2")
    assert done.state == "refused"
    assert "no token key" in done.message


def test_slurm_away_is_told(fleet: Fleet) -> None:
    fleet.slurm.fail.add("nodes")
    with pytest.raises(SlurmError):
        return_node(fleet.guard, "c2")
