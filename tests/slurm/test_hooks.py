"""The real hooks, started by real slurmd at their installed paths, against a real slurmctld."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from typing import Any

import pytest
from weaklink.scheduler import digest, ownership
from weaklink.scheduler.slurm import SlurmClient
from weaklink.scheduler.types import NodeInfo  # noqa: TC002 - as above

from tests.slurm.cluster import KEY, NODES, WORKDIR, Cluster

pytestmark = pytest.mark.slurm
SECRET = bytes.fromhex(KEY)
HEALTH = ["/usr/lib/weaklink/current/health"]


def node(cluster: Cluster, name: str) -> NodeInfo:
    return SlurmClient(cluster.run, 15.0).nodes([name])[name]


def actions(cluster: Cluster, name: str) -> list[str]:
    return [line["action"] for line in cluster.log(name)]


def edit(cluster: Cluster, name: str, **changes: Any) -> None:
    """Change top-level keys of a node's expected.json."""
    path = cluster.place(name, "/etc/weaklink/expected.json")
    data = json.loads(path.read_text())
    data.update(changes)
    path.write_text(json.dumps(data))


def policy(cluster: Cluster, name: str, **changes: Any) -> None:
    path = cluster.place(name, "/etc/weaklink/expected.json")
    data = json.loads(path.read_text())
    data["policy"].update(changes)
    path.write_text(json.dumps(data))


def test_a_healthy_node_runs_the_job_and_nothing_is_said(cluster: Cluster) -> None:
    job = cluster.submit("-w", "c1")
    cluster.wait(lambda: cluster.job_state(job).startswith("COMPLETED"), 60, "the job ends")
    assert cluster.log("c1") == []
    assert cluster.evidence("c1") == []
    assert node(cluster, "c1").extra == ""


def test_a_batch_job_is_requeued_not_held_and_runs_elsewhere(cluster: Cluster) -> None:
    for name in ("c1", "c2"):
        cluster.fake[name].mtu("enp0s17", 1500)
    job = cluster.submit("-N1", "-w", "c1")
    # The digest is the last thing that the prolog leaves, after the job is sent away.
    cluster.wait(lambda: digest.read(node(cluster, "c1").extra) is not None, 60, "the prolog has left its digest")
    assert "job-requeued" in actions(cluster, "c1")
    info = node(cluster, "c1")
    reason = ownership.owned(SECRET, "c1", info.reason)
    assert reason is not None, info.reason
    assert reason.check == "net.mtu"
    assert "MTU 1500, wanted 4200" in reason.message
    assert info.drained
    [evidence] = cluster.evidence("c1")
    assert (evidence["action"], evidence["token"], evidence["context"]) == ("drained", reason.token, "prolog")
    assert evidence["job"] == str(job)
    assert {f["check"] for f in evidence["findings"] if f["status"] == "fail"} == {"net.mtu", "rdma.active_mtu"}
    found = digest.read(info.extra)
    assert found is not None
    assert (found["id"], found["action"], found["cause"]) == (evidence["id"], "drained", "mtu-too-small")
    cluster.wait(lambda: cluster.job_state(job).startswith("PENDING"), 60, "the job is pending again")
    shown = cluster.must(["scontrol", "show", "job", str(job)])
    assert "weaklink: requeued, c1 was drained" in shown
    assert "Reason=BeginTime" in shown
    assert "Reason=JobHeldAdmin" not in shown
    assert "Priority=0 " not in shown
    # Free to go elsewhere it does, and only c2's own fault, not c1's, is met there.
    # Slurm itself makes a requeued job wait two minutes. The test does not, but lets slurmctld forget the first launch:
    # started again at once, the job can be taken for the one that was sent away.
    time.sleep(3)
    cluster.must(["scontrol", "update", f"jobid={job}", "reqnodelist=c3", "starttime=now"])
    cluster.wait(lambda: cluster.job_state(job).startswith("COMPLETED"), 60, "the job runs elsewhere")
    assert "Restarts=1" in cluster.must(["scontrol", "show", "job", str(job)])
    assert not node(cluster, "c2").drained


def test_an_interactive_job_is_cancelled_or_runs_as_the_policy_says(cluster: Cluster) -> None:
    cluster.fake["c1"].down("rxe_compute")
    result = cluster.run(["srun", "-w", "c1", "-D", WORKDIR, "hostname"], 60, user="alice")
    assert result.rc not in (0, None), result
    cluster.wait(lambda: "job-cancelled" in actions(cluster, "c1"), 60, "the prolog has said so")
    info = node(cluster, "c1")
    assert ownership.owns(SECRET, "c1", info.reason), info.reason  # not Slurm's "Prolog error"

    cluster.fake["c2"].down("rxe_compute")
    policy(cluster, "c2", nonbatch="run")
    result = cluster.run(["srun", "-w", "c2", "-D", WORKDIR, "echo", "it ran"], 60, user="alice")
    assert result.out.strip() == "it ran", result
    assert ownership.owns(SECRET, "c2", node(cluster, "c2").reason)
    assert "job-runs" in actions(cluster, "c2")


def test_a_batch_job_that_may_not_be_requeued_is_cancelled(cluster: Cluster) -> None:
    cluster.fake["c1"].down("rxe_compute")
    job = cluster.submit("-w", "c1", "--no-requeue")
    cluster.wait(lambda: cluster.job_state(job).startswith("CANCELLED"), 60, "the job is cancelled")
    assert ownership.owns(SECRET, "c1", node(cluster, "c1").reason)
    # Given back, it stays so: slurmd has no failed prolog to report again.
    assert ownership.release(SlurmClient(cluster.run, 15.0, cluster.feed), SECRET, "c1").what == "released"
    time.sleep(1)
    assert not node(cluster, "c1").drained
    assert "prolog failed" not in (cluster.work / "upper/var/log/slurm/slurmd-c1.log").read_text()


def test_over_budget_the_job_runs_and_an_incident_is_left(cluster: Cluster) -> None:
    cluster.must(["scontrol", "update", "nodename=c2", "state=drain", "reason=alice: RMA 4711"])
    cluster.must(["scontrol", "update", "nodename=c3", "state=drain", "reason=bob: memory"])
    cluster.fake["c1"].mtu("enp0s17", 1500)
    job = cluster.submit("-w", "c1")
    cluster.wait(lambda: cluster.job_state(job).startswith("COMPLETED"), 60, "the job runs")
    info = node(cluster, "c1")
    assert not info.drained
    found = digest.read(info.extra)
    assert found is not None
    assert (found["action"], found["check"], found["job"]) == ("over-budget", "net.mtu", str(job))
    assert "over-budget" in actions(cluster, "c1")
    assert [node(cluster, name).reason for name in ("c2", "c3")] == ["alice: RMA 4711", "bob: memory"]


def test_observe_changes_nothing_and_says_what_it_would_have_done(cluster: Cluster) -> None:
    edit(cluster, "c1", mode="observe")
    cluster.fake["c1"].mtu("enp0s17", 1500)
    before = node(cluster, "c1")
    job = cluster.submit("-w", "c1")
    cluster.wait(lambda: cluster.job_state(job).startswith("COMPLETED"), 60, "the job runs")
    cluster.wait(lambda: cluster.states()["c1"] == {"IDLE"}, 60, "the node is idle")
    assert node(cluster, "c1") == before
    [line] = [line for line in cluster.log("c1") if line["context"] == "prolog"]
    assert line["action"] == "would-drain"
    assert line["message"].startswith("would have drained c1: enp0s17")
    assert cluster.evidence("c1") == []


def test_an_admins_drain_is_untouched_by_every_hook(cluster: Cluster) -> None:
    job = cluster.submit("-w", "c1", script="sleep 3")
    cluster.wait(lambda: cluster.job_state(job).startswith("RUNNING"), 60, "the job starts")
    cluster.must(["scontrol", "update", "nodename=c1", "state=drain", "reason=alice: RMA 4711"])
    before = node(cluster, "c1")
    cluster.fake["c1"].mtu("enp0s17", 1500)
    for _ in range(3):
        assert cluster.on_node("c1", HEALTH).rc == 0
    cluster.wait(lambda: cluster.job_state(job).startswith("COMPLETED"), 60, "the job ends, its epilog too")
    cluster.wait(lambda: "COMPLETING" not in node(cluster, "c1").states, 60, "the epilog has ended")
    now = node(cluster, "c1")
    assert (now.reason, now.reason_user, now.reason_time) == (before.reason, before.reason_user, before.reason_time)
    assert now.extra == ""
    assert "foreign" in actions(cluster, "c1")


def test_health_drains_after_the_strikes_and_never_undrains(cluster: Cluster) -> None:
    cluster.fake["c1"].down("rxe_storage")
    assert cluster.on_node("c1", HEALTH).rc == 0
    assert not node(cluster, "c1").drained
    assert cluster.on_node("c1", HEALTH).rc == 0
    reason = ownership.owned(SECRET, "c1", node(cluster, "c1").reason)
    assert reason is not None
    assert reason.check == "rdma.state"
    cluster.reset_fault("c1")
    assert cluster.on_node("c1", HEALTH).rc == 0
    assert node(cluster, "c1").drained
    assert ownership.release(SlurmClient(cluster.run, 15.0, cluster.feed), SECRET, "c1").what == "released"
    # One bad run, a good one, one bad run: never two in a row.
    for bad in (True, False, True):
        cluster.fake["c1"].down("rxe_storage") if bad else cluster.reset_fault("c1")
        assert cluster.on_node("c1", HEALTH).rc == 0
    assert not node(cluster, "c1").drained


def test_without_a_key_a_controller_or_an_expectation_the_job_runs(cluster: Cluster) -> None:
    cluster.fake["c1"].mtu("enp0s17", 1500)
    cluster.place("c1", "/etc/weaklink/token.key").unlink()
    cluster.place("c2", "/etc/weaklink/expected.json").write_text('{"format": 1, "no')
    for name in ("c1", "c2"):
        job = cluster.submit("-w", name)
        cluster.wait(lambda job=job: cluster.job_state(job).startswith("COMPLETED"), 60, "the job runs")
        assert actions(cluster, name)[0] == "unknown"
        assert {"drained", "job-requeued", "job-cancelled"}.isdisjoint(actions(cluster, name))
        assert not node(cluster, name).drained
    # A prolog by hand whose scontrol asks a controller that is not there.
    cluster.fake["c3"].mtu("enp0s17", 1500)
    start = time.monotonic()
    edit(cluster, "c3", deadlines={"prolog": 5, "slurm": 1})
    result = cluster.on_node(
        "c3", ["SLURM_CONF=/nodes/away.conf", "SLURM_JOB_ID=1", "/usr/lib/weaklink/current/prolog"]
    )
    assert result.rc == 0
    assert time.monotonic() - start < 8
    assert actions(cluster, "c3") == ["unknown"]


def test_our_own_jobs_reach_a_bad_node(cluster: Cluster) -> None:
    cluster.fake["c1"].mtu("enp0s17", 1500)
    edit(cluster, "c1", service_user="alice")
    job = cluster.submit("-w", "c1")
    cluster.wait(lambda: cluster.job_state(job).startswith("COMPLETED"), 60, "the job runs")
    assert not node(cluster, "c1").drained
    assert cluster.log("c1") == []


def test_three_nodes_at_once_within_a_budget_of_one(cluster: Cluster) -> None:
    for name in NODES:
        cluster.fake[name].mtu("enp0s17", 1500)
        budget = json.loads(cluster.place(name, "/etc/weaklink/expected.json").read_text())["policy"]["budget"]
        policy(cluster, name, budget={**budget, "total_nodes": 1})
    job = cluster.submit("-N3")
    cluster.wait(
        lambda: all({"drained", "over-budget"} & set(actions(cluster, name)) for name in NODES), 60, "all prologs"
    )
    cluster.wait(lambda: any("job-requeued" in actions(cluster, name) for name in NODES), 60, "the job is sent away")
    cluster.must(["scancel", str(job)])
    assert sorted(actions(cluster, name)[0] for name in NODES) == ["drained", "over-budget", "over-budget"]
    assert [node(cluster, name).drained for name in NODES] == ["drained" in actions(cluster, name) for name in NODES]


def test_of_an_array_only_the_task_that_met_the_fault_is_requeued(cluster: Cluster) -> None:
    """The last task of an array to start has the number of the whole array: an update of that number means all."""
    cluster.fake["c3"].mtu("enp0s17", 1500)
    array = cluster.submit("--array=1-3", script="sleep 60")
    cluster.wait(lambda: "job-requeued" in actions(cluster, "c3"), 60, "the prolog on c3 has sent its task away")
    [line] = [line for line in cluster.log("c3") if line["action"] == "job-requeued"]
    assert line["job"] == str(array)  # or this test shows nothing
    cluster.wait(lambda: "COMPLETING" not in node(cluster, "c3").states, 60, "c3 is rid of it")
    rows = cluster.must(["squeue", "-h", "-r", "-j", str(array), "-O", "ArrayTaskID:|,State:|,NodeList:|"])
    found = sorted(tuple(word.strip() for word in row.split("|")[:3]) for row in rows.splitlines())
    assert [row[1:] for row in found] == [("RUNNING", "c1"), ("RUNNING", "c2"), ("PENDING", "")], found
    notes = cluster.must(["scontrol", "-o", "show", "job", str(array)]).splitlines()
    assert sum("AdminComment=weaklink: requeued" in text for text in notes) == 1
    assert sum("Restarts=1" in text for text in notes) == 1


def test_an_admin_who_drains_while_the_prolog_runs_keeps_the_drain_and_the_job_runs(cluster: Cluster) -> None:
    cluster.fake["c1"].mtu("enp0s17", 1500)
    reason = 'alice: "RMA" 4711 = [x] [root@2026-01-01T00:00:00]'
    with cluster.slow_tool("ibv_devinfo") as runs:
        job = cluster.submit("-w", "c1")
        cluster.wait(runs, 60, "the prolog has begun")
        cluster.must(["scontrol", "update", "nodename=c1", "state=drain", f"reason={reason}"])
        before = node(cluster, "c1")
    cluster.wait(lambda: cluster.job_state(job).startswith("COMPLETED"), 60, "the job runs")
    now = node(cluster, "c1")
    assert (now.reason, now.reason_user, now.reason_time) == (reason, before.reason_user, before.reason_time)
    assert now.drained
    assert actions(cluster, "c1")[0] == "foreign"


def test_with_a_controller_that_hangs_the_prolog_ends_in_time_and_the_job_runs(cluster: Cluster) -> None:
    cluster.fake["c1"].mtu("enp0s17", 1500)
    edit(cluster, "c1", deadlines={"prolog": 8, "health": 8, "slurm": 2, "check": 5})
    stopped = contextlib.ExitStack()
    with cluster.slow_tool("ibv_devinfo") as runs:
        job = cluster.submit("-w", "c1")
        cluster.wait(runs, 60, "the prolog has begun")
        stopped.enter_context(cluster.controller_away())  # before the tool ends, for longer than it
    with stopped:
        begun = time.monotonic()
        cluster.wait(lambda: "unknown" in actions(cluster, "c1"), 8, "the prolog has given up")
        assert time.monotonic() - begun < 8
        assert cluster.on_node("c1", HEALTH).rc == 0
        assert cluster.on_node("c1", HEALTH).rc == 0
        assert set(actions(cluster, "c1")) - {"noted"} == {"unknown", "strike"}
        cluster.reset_fault("c1")  # or the epilog, with the controller there again, is right to drain
    cluster.wait(lambda: cluster.job_state(job).startswith("COMPLETED"), 60, "the job runs")
    now = node(cluster, "c1")
    assert "weaklink" not in now.reason + now.extra
    assert not now.drained


POLICIES = {
    "missing": None,
    "empty": "",
    "malformed": "no policy at all\n",
    "no mode": "weaklink-policy 1 NOW\nmessage=never shown\n",
    "stale": "weaklink-policy 1 12\nmode=enforce\nmessage=never shown\n",
    "binary": "weaklink-policy 1 NOW\n\x01\x02\xff" * 50,
    "huge": "weaklink-policy 1 NOW\nmode=enforce\nmessage=never shown\n" + "key=value\n" * 300_000,
    "one long line": "weaklink-policy 1 NOW\nmode=enforce\nmessage=never shown" + "x" * 3_000_000,
}


def test_job_submit_accepts_jobs_whatever_lies_in_the_place_of_the_policy(cluster: Cluster) -> None:
    cluster.must(["mkdir", "-p", "/var/lib/weaklink-policy"])
    log = cluster.work / "upper/var/log/slurm/slurmctld.log"
    # A script that has become newer is loaded anew: the test need not wait for what the old one has in memory.
    put = 'rm -f "$1"; if [ "$2" ]; then cat "/nodes/$2" > "$1"; fi; touch -d "+$3 day" /etc/slurm/job_submit.lua'
    days = itertools.count(1)

    def submit(text: str | None) -> tuple[str, str, float]:
        """Return what the person who submits sees, what slurmctld logs, and the seconds it took."""
        given = ""
        if text is not None:
            given = "policy"
            text = text.replace("NOW", str(int(time.time())))
            (cluster.work / "nodes/policy").write_text(text, encoding="latin-1")
        cluster.must(["sh", "-c", put, "sh", "/var/lib/weaklink-policy/policy", given, str(next(days))])
        before, begun = len(log.read_text(errors="replace")), time.monotonic()
        argv = ["sbatch", "-D", WORKDIR, "-o", "/dev/null", "--hold", "--wrap", "true"]
        result = cluster.run(argv, user="alice")
        assert result.ok, result
        return result.err, log.read_text(errors="replace")[before:], time.monotonic() - begun

    good = "weaklink-policy 1 NOW\nmode=enforce\nmessage=c2 is slow today: 50% (%s %d)\n"
    assert "c2 is slow today: 50% (%s %d)" in submit(good)[0]
    seen, logged, _ = submit(good.replace("enforce", "observe"))
    assert seen == ""
    assert "policy file" not in logged
    for what, text in POLICIES.items():
        seen, logged, seconds = submit(text)
        assert seen == "", what
        assert ("policy file is not used" in logged) is (text is not None), (what, logged)
        assert seconds < 10, what
        assert "rror" not in logged, (what, logged)
    assert "c2 is slow today" in submit(good)[0]
    assert submit(None)[0] == ""
