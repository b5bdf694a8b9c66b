"""A whole sweep on the controller: from idle nodes to a drain with proof, or to nothing, and why."""

from pathlib import Path
from typing import Any

import pytest
from weaklink.guard.sweeps import run_sweep
from weaklink.model.round import EndReport, FlowSpec, RoundSpec
from weaklink.scheduler.ownership import format_reason, owns
from weaklink.sweep.coordinator import merge

from tests.unit.fleet_fake import KEY, Fleet, broken, slow

ALICE = "alice: RMA 4711"


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


@pytest.fixture
def taught(fleet: Fleet) -> Fleet:
    assert run_sweep(fleet.guard, baseline=True)["verdict"] == "ok"
    fleet.argvs.clear()
    return fleet


def test_without_a_baseline_nothing_is_judged(fleet: Fleet) -> None:
    fleet.fault = slow("c2", 0.02)
    outcome = run_sweep(fleet.guard)
    assert outcome["verdict"] == "unknown"
    assert "no baseline yet" in outcome["message"]
    assert fleet.argvs == []


def test_a_baseline_takes_as_many_passes_as_it_lacks(fleet: Fleet) -> None:
    outcome = run_sweep(fleet.guard, baseline=True)
    assert outcome["verdict"] == "ok"
    assert outcome["baseline"] == {"sweeps": 3, "of": 3}
    assert len(fleet.store.accepted_sweeps()) == 3
    assert len([argv for argv in fleet.argvs if "srun" in argv]) == 18
    references = {one.benchmark: one for one in fleet.store.references()}
    assert set(references) == {"ib_write_bw", "ib_send_lat", "retransmits"}
    assert references["ib_write_bw"].sigma == pytest.approx(0.15, abs=0.1)
    assert fleet.job is None


@pytest.mark.parametrize("factor", [0.02, 0.2])
def test_a_broken_node_does_not_become_normal(fleet: Fleet, factor: float) -> None:
    fleet.fault = slow("c2", factor)
    outcome = run_sweep(fleet.guard, baseline=True)
    assert outcome["verdict"] == "unknown"
    assert "does not look healthy" in outcome["message"]
    assert fleet.store.references() == []
    assert fleet.slurm.nodes(["c2"])["c2"].states == {"IDLE"}


def test_a_healthy_sweep_accuses_nobody(taught: Fleet) -> None:
    taught.common = 0.2  # the machines are five times slower today, all alike
    outcome = run_sweep(taught.guard)
    assert outcome["verdict"] in ("ok", "degraded")
    assert not any(one["accused"] for one in outcome["suspects"])
    assert outcome["common_mode"]["ib_write_bw"] == pytest.approx(0.2, rel=0.5)
    assert outcome["actions"] == []
    assert taught.job is None


@pytest.mark.parametrize("benchmark", ["ib_write_bw", "ib_send_lat"])
def test_the_right_node_is_drained_with_proof_after_a_retest(taught: Fleet, benchmark: str) -> None:
    taught.fault = slow("c2", 0.05, benchmark)
    outcome = run_sweep(taught.guard)
    assert outcome["verdict"] == "fail"
    assert [(one["node"], one["what"]) for one in outcome["actions"]] == [("c2", "drained")]
    info = taught.slurm.nodes()
    reason = info["c2"].reason
    assert owns(KEY, "c2", reason)
    assert reason.startswith("weaklink:sweep.")
    assert "c1, c3" in reason
    assert len(reason) <= 200
    assert not info["c1"].taken
    assert not info["c3"].taken
    assert any(one["retest"] for one in outcome["measurements"])
    suspect = outcome["suspects"][0]
    assert suspect["retested"]
    assert suspect["alternatives"]
    record = taught.store.evidence("c2")[0]
    assert (record.action, record.source, record.token) == ("drained", "sweep", outcome["actions"][0]["token"])
    assert taught.log()[-1]["action"] == "drained"
    assert taught.job is None


def test_the_drain_comes_before_the_allocation_ends(taught: Fleet) -> None:
    taught.fault = slow("c2", 0.05)
    held: list[bool] = []
    taught.slurm.before["drain"] = lambda: held.append(taught.job is not None)
    run_sweep(taught.guard)
    assert held == [True]


def test_rdma_that_fails_between_two_living_ends_is_a_fail(taught: Fleet) -> None:
    taught.fault = broken("c3", "rdma-failed", "rdma-retry-exceeded: Failed status 12")
    outcome = run_sweep(taught.guard)
    assert [(one["node"], one["what"]) for one in outcome["actions"]] == [("c3", "drained")]
    assert outcome["suspects"][0]["cause"] == "rdma-retry-exceeded"
    assert "RDMA fails (rdma-retry-exceeded)" in taught.slurm.nodes(["c3"])["c3"].reason


@pytest.mark.parametrize("failure", ["timeout", "rendezvous-failed", "tool-missing", "device-missing"])
def test_what_could_not_be_measured_is_unknown_and_drains_nobody(taught: Fleet, failure: str) -> None:
    taught.fault = broken("c3", failure, "no luck")
    outcome = run_sweep(taught.guard)
    assert outcome["actions"] == []
    assert outcome["coverage"]["unknown"][failure] >= 4
    assert all(not info.taken for info in taught.slurm.nodes().values())


def test_in_mode_observe_nothing_is_touched_and_the_log_says_it(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, mode="observe")
    run_sweep(fleet.guard, baseline=True)
    fleet.fault = slow("c2", 0.02)
    outcome = run_sweep(fleet.guard)
    assert [(one["node"], one["what"]) for one in outcome["actions"]] == [("c2", "would-drain")]
    assert not fleet.slurm.nodes(["c2"])["c2"].taken
    assert fleet.log()[-1]["message"].startswith("would have drained: c2 rxe_compute:")
    assert not any(call[0] in ("drain", "exchange_drain") for call in fleet.slurm.calls)


def test_an_admins_drain_is_left_out_and_left_alone(taught: Fleet) -> None:
    taught.slurm.put_state("c1", "IDLE", "DRAIN", reason=ALICE, user="alice")
    taught.fault = slow("c2", 0.02)
    outcome = run_sweep(taught.guard)
    assert ALICE in outcome["left_out"]["c1"]
    assert outcome["nodes"] == ["c2", "c3"]
    assert outcome["actions"] == []  # one pair alone: nobody can be blamed
    suspect = outcome["suspects"][0]
    assert not suspect["accused"]
    assert {suspect["id"], *(one["id"] for one in suspect["alternatives"])} == {"c2/rxe_compute", "c3/rxe_compute"}
    assert taught.slurm.nodes(["c1"])["c1"].reason == ALICE


def test_over_budget_there_is_an_incident_and_no_drain(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, names=["c1", "c2", "c3", "c4", "c5"])
    run_sweep(fleet.guard, baseline=True)
    for name in ("c4", "c5"):
        fleet.slurm.put_state(name, "IDLE", "DRAIN", reason=format_reason(KEY, name, "net.mtu", "1500 for 4200"))
    fleet.fault = slow("c2", 0.02)
    outcome = run_sweep(fleet.guard)
    assert [(one["node"], one["what"]) for one in outcome["actions"]] == [("c2", "over-budget")]
    assert not fleet.slurm.nodes(["c2"])["c2"].taken
    assert [(one.check, one.nodes) for one in fleet.store.incidents()] == [("sweep.bandwidth", ["c2"])]


def test_a_tool_that_crashed_once_is_run_again(taught: Fleet) -> None:
    crashed: list[str] = []

    def crash(benchmark: str, flow: FlowSpec) -> "float | tuple[str, str]":
        if benchmark == "ib_write_bw" and flow.src == "c1/rxe_compute" and not crashed:
            crashed.append(flow.dst)
            return "tool-failed", "killed by signal 11"
        return 1.0

    taught.fault = crash
    outcome = run_sweep(taught.guard)
    assert crashed
    assert outcome["verdict"] == "ok"
    assert outcome["coverage"]["unknown"] == {}
    lines = [(one["src"], one["dst"]) for one in outcome["measurements"] if one["benchmark"] == "ib_write_bw"]
    assert lines.count(("c1/rxe_compute", crashed[0])) == 1
    # Both tries are on record.
    tried = [one for one in taught.store.measurements(outcome["sweep"]) if one.benchmark == "ib_write_bw"]
    assert [one.failure for one in tried if (one.src, one.dst) == ("c1/rxe_compute", crashed[0])] == [
        "test-did-not-run",
        "",
    ]


def test_fewer_than_two_nodes_is_unknown(taught: Fleet) -> None:
    taught.slurm.put_state("c1", "ALLOCATED")
    taught.slurm.put_state("c2", "DOWN", reason="Not responding")
    outcome = run_sweep(taught.guard)
    assert outcome["verdict"] == "unknown"
    assert "1 usable nodes, at least 2 wanted" in outcome["message"]
    assert "busy: allocated" in outcome["message"]


def test_a_chosen_node_must_exist(taught: Fleet) -> None:
    outcome = run_sweep(taught.guard, wanted=["c1", "nope"])
    assert outcome["left_out"]["nope"] == "not a compute node of this cluster"
    assert outcome["verdict"] == "unknown"


def test_no_allocation_is_unknown(taught: Fleet) -> None:
    taught.grant = False
    outcome = run_sweep(taught.guard)
    assert outcome["verdict"] == "unknown"
    assert "Requested nodes are busy" in outcome["message"]
    assert any("scancel" in argv for argv in taught.argvs)


def test_the_nodes_are_given_back_before_it_ends(taught: Fleet) -> None:
    taught.lingers = 2
    run_sweep(taught.guard)
    assert [argv[0] for argv in taught.argvs[-4:]] == ["scancel", "squeue", "squeue", "squeue"]


def test_an_allocation_in_which_nothing_runs_ends_early_and_judges_nobody(taught: Fleet) -> None:
    taught.dead = True
    outcome = run_sweep(taught.guard)
    assert outcome["verdict"] == "unknown"
    assert "no word from the nodes in 2 rounds: " in outcome["message"]
    assert "already completing" in outcome["message"]
    assert len([argv for argv in taught.argvs if "srun" in argv]) == 2
    assert taught.job is None


def test_a_dry_run_allocates_nothing(taught: Fleet) -> None:
    outcome = run_sweep(taught.guard, dry_run=True)
    assert len(outcome["rounds"]) == 6
    assert taught.argvs == []


def test_ctrl_c_gives_the_allocation_back_and_is_recorded(taught: Fleet) -> None:
    def interrupt(_argv: list[str]) -> None:
        raise KeyboardInterrupt

    taught.during = interrupt
    with pytest.raises(KeyboardInterrupt):
        run_sweep(taught.guard)
    assert taught.job is None
    assert taught.store.sweeps()[0].state == "cancelled"


def test_a_sweep_that_a_kill_ended_is_marked_by_the_next(taught: Fleet) -> None:
    taught.store.begin_sweep("old", "sweep", ["c1"])
    run_sweep(taught.guard)
    assert {one.id: one.state for one in taught.store.sweeps()}["old"] == "failed"


FLOW = FlowSpec(0, "c1/a", "c2/a", "10.0.0.1", "10.0.0.2", "10.1.0.2", 20000)
SPEC = RoundSpec(3, (FLOW,), ("ib_write_bw",))


def end(name: str, failure: str = "", value: Any = None) -> EndReport:
    return EndReport(0, name, "ib_write_bw", value, failure=failure, detail=f"{name} said so")


@pytest.mark.parametrize(
    ("reports", "failure"),
    [
        ([end("src", value=0.5), end("dst")], ""),
        ([end("src", value=0.5)], ""),
        ([end("dst")], "not-reported"),
        ([], "not-reported"),
        ([end("src", "rdma-failed"), end("dst", "timeout")], "rdma-failed"),
        ([end("src", "rdma-failed")], "not-reported"),
        ([end("src", "rdma-failed"), end("dst", "device-missing")], "device-missing"),
        ([end("src", "rendezvous-failed"), end("dst", "tool-missing")], "tool-missing"),
        ([end("src", "rendezvous-failed"), end("dst", "timeout")], "rendezvous-failed"),
        ([end("src", "timeout"), end("dst", "rdma-failed")], "rdma-failed"),
    ],
)
def test_both_ends_together_say_what_happened(reports: list[EndReport], failure: str) -> None:
    found = merge(SPEC, reports, "srun did not end", retest=False, now=1.0)
    assert [one.failure for one in found] == [failure]
    assert (found[0].value is None) == bool(failure)
