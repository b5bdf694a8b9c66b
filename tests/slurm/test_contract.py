"""One suite over the client of the real Slurm and over FakeSlurm: what callers are tested against is what there is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

import pytest
from weaklink.scheduler import budget, digest, ownership
from weaklink.scheduler.budget import Decision
from weaklink.scheduler.fake import FakeSlurm
from weaklink.scheduler.slurm import SlurmClient, SlurmError
from weaklink.scheduler.types import JobInfo

KEY = bytes.fromhex("5a" * 32)
NASTY = [
    "alice: RMA 4711",
    "alice: \"quoted\" and 'single' `ticks`",
    "a=b Reason=c State=IDLE Extra={} Comment=x",
    "fake stamp [root@2026-01-01T00:00:00] and more",
    "fake stamp at the end [root@2026-01-01T00:00:00]",
    "brackets [x] <y> {z} $(id) ; rm -rf / | & % %s %n",
    "back\\slash \\n and trailing space ",
    "two lines\nNodeName=c2 Reason=forged",
    "umlauts äöü, quotes „so“, snowman ☃",
    "x" * 1000,
    "two  spaces   kept",
    "weaklink:rdma.state: typed by hand [ABCDEFGHIJKL]",
]


class Site(NamedTuple):
    slurm: Any
    submit: Callable[..., int]
    real: bool


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.slurm)])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    if request.param == "real":
        cluster = request.getfixturevalue("daemons")
        cluster.tidy()
        yield Site(SlurmClient(cluster.run, 15.0, cluster.feed), cluster.submit, True)
        return
    fake = FakeSlurm()
    count = iter(range(1, 100))

    def submit(*options: str, **_: str) -> int:
        number = next(count)
        fake.put_job(JobInfo(number, "alice", True, "--no-requeue" not in options, "PENDING", "", "main"))
        return number

    yield Site(fake, submit, False)


def drain(site: Site, node: str, check: str, message: str, decide: Callable[[Any], Decision]) -> ownership.Outcome:
    # Nobody drains at the same time here, so there is nothing to wait for.
    return ownership.drain(site.slurm, KEY, node, check, message, decide=decide, pause=lambda _: None)


def yes(_nodes: Any) -> Decision:
    return Decision(True, "", 0, 2)


def test_nodes_are_told_by_name(site: Site) -> None:
    nodes = site.slurm.nodes()
    assert set(nodes) == {"c1", "c2", "c3"}
    c1 = nodes["c1"]
    assert (c1.name, c1.extra, c1.partitions, c1.weight) == ("c1", "", ("main",), 1)
    assert not c1.out
    assert not c1.drained
    assert set(site.slurm.nodes(["c2", "c3"])) == {"c2", "c3"}
    assert site.slurm.nodes([]) == {}


def test_a_name_that_is_not_one_known_node_fails(site: Site) -> None:
    for name in ("nosuch", "c[1-3]", "ALL", "all", "c1,c2", "", "c1 state=down", "-x"):
        with pytest.raises(SlurmError):
            site.slurm.nodes([name])
    with pytest.raises(SlurmError):
        site.slurm.nodes(["c1", "nosuch"])


def test_no_update_reaches_more_than_one_known_node(site: Site) -> None:
    for name in ("c[1-3]", "ALL", "c1,c2", "", "nosuch"):
        with pytest.raises(SlurmError):
            site.slurm.drain(name, "why")
        with pytest.raises(SlurmError):
            site.slurm.undrain(name)
    assert not any(node.drained for node in site.slurm.nodes().values())


@pytest.mark.parametrize("reason", NASTY)
def test_a_reason_comes_back_word_for_word(site: Site, reason: str) -> None:
    site.slurm.set_extra("c1", '{"b c":"d e=f"}')
    site.slurm.drain("c1", reason)
    found = site.slurm.nodes()["c1"]
    assert found.reason == reason
    assert found.reason_user == "root"
    assert found.reason_time[:2] == "20"
    assert found.extra == '{"b c":"d e=f"}'
    assert found.drained
    assert found.out
    assert not ownership.owns(KEY, "c1", found.reason)
    # States may move on meanwhile; the rest is the same asked alone or with all.
    assert site.slurm.nodes(["c1"])["c1"]._replace(states=found.states) == found


def settled(site: Site, name: str) -> Any:
    """Return a node once Slurm has heard of it again: right after an undrain it says NOT_RESPONDING for a moment."""
    for _ in range(50):
        found = site.slurm.nodes([name])[name]
        if "NOT_RESPONDING" not in found.states:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{name} did not settle")


def test_undrain_keeps_the_reason_unless_another_is_given(site: Site) -> None:
    site.slurm.drain("c1", "why")
    site.slurm.undrain("c1")
    found = settled(site, "c1")
    assert not found.out
    assert found.reason == "why"
    site.slurm.undrain("c1", "because")  # of an idle node: no error
    found = site.slurm.nodes(["c1"])["c1"]
    assert not found.drained
    assert found.reason == "because"


def test_extra_is_kept_whole(site: Site) -> None:
    text = digest.merge(
        '{"site":"rack 4, \\"left\\""}', {"id": "e1", "message": "MTU 1500, wanted 4200 [x=y] Reason=z"}
    )
    assert text is not None
    site.slurm.set_extra("c2", text)
    found = site.slurm.nodes()["c2"].extra
    assert found == text
    assert digest.read(found) == {"v": 1, "id": "e1", "message": "MTU 1500, wanted 4200 [x=y] Reason=z"}
    site.slurm.set_extra("c2", "")
    assert site.slurm.nodes()["c2"].extra == ""


def test_a_line_break_in_extra_is_refused(site: Site) -> None:
    with pytest.raises(SlurmError):
        site.slurm.set_extra("c2", "a\nNodeName=c1 State=IDLE")


def test_our_drain_is_ours_and_is_released(site: Site) -> None:
    message = 'c1 rxe_compute: state DOWN/Polling, wanted "ACTIVE"; check cable = module [x] $(id)'
    outcome = drain(site, "c1", "rdma.state", message, decide=yes)
    assert outcome.what == "drained", outcome
    found = site.slurm.nodes()["c1"]
    assert ownership.owns(KEY, "c1", found.reason)
    assert not ownership.owns(KEY, "c2", found.reason)
    assert outcome.token in found.reason
    again = drain(site, "c1", "net.mtu", "other", decide=yes)
    assert again.what == "already-out"
    assert site.slurm.nodes()["c1"].reason == found.reason
    assert ownership.release(site.slurm, KEY, "c1").what == "released"
    found = settled(site, "c1")
    assert not found.out
    assert not ownership.owns(KEY, "c1", found.reason)  # or a later drain of Slurm's own would carry our token
    assert ownership.release(site.slurm, KEY, "c1").what == "nothing-to-do"


@pytest.mark.parametrize("reason", NASTY)
def test_somebody_elses_drain_is_untouched(site: Site, reason: str) -> None:
    site.slurm.drain("c1", reason)
    before = site.slurm.nodes()["c1"]
    assert drain(site, "c1", "rdma.state", "down", decide=yes).what == "foreign"
    assert ownership.release(site.slurm, KEY, "c1").what == "foreign"
    now = site.slurm.nodes()["c1"]
    assert (now.reason, now.reason_user, now.reason_time, now.drained) == (reason, "root", before.reason_time, True)


def test_an_edited_reason_of_ours_is_the_admins(site: Site) -> None:
    drain(site, "c1", "rdma.state", "down", decide=yes)
    ours = site.slurm.nodes()["c1"].reason
    site.slurm.set_reason("c1", ours.replace("down", "down, cable ordered"))
    assert ownership.release(site.slurm, KEY, "c1").what == "foreign"
    assert site.slurm.nodes()["c1"].drained


def test_a_reason_copied_to_another_node_is_not_ours(site: Site) -> None:
    drain(site, "c1", "rdma.state", "down", decide=yes)
    site.slurm.drain("c2", site.slurm.nodes()["c1"].reason)
    assert ownership.release(site.slurm, KEY, "c2").what == "foreign"


@pytest.mark.parametrize("reason", NASTY)
def test_a_drain_that_comes_between_is_put_back_word_for_word(site: Site, reason: str) -> None:
    def meanwhile(_nodes: Any) -> Decision:
        site.slurm.drain("c1", reason)  # after the first look, before our write
        return Decision(True, "", 0, 2)

    outcome = drain(site, "c1", "rdma.state", "down", decide=meanwhile)
    found = site.slurm.nodes()["c1"]
    assert outcome.what == "restored", outcome
    assert found.reason == reason
    assert found.drained


def test_over_budget_drains_nothing(site: Site) -> None:
    outcome = drain(site, "c1", "rdma.state", "down", decide=lambda _: Decision(False, "full", 2, 2))
    assert (outcome.what, outcome.detail) == ("over-budget", "full")
    assert not site.slurm.nodes()["c1"].drained


def test_of_two_that_drain_at_once_over_the_budget_the_earlier_stays(site: Site) -> None:
    """Both look before either has written: each sees room for one."""
    view = {"partitions": {"main": ["c1", "c2", "c3"]}, "leaves": {}, "policy": {"budget": {"total_nodes": 1}}}
    both_have_looked = threading.Barrier(2, timeout=60)
    outcomes: dict[str, ownership.Outcome] = {}

    def hook(name: str) -> None:
        looks = iter([True])

        def decide(nodes: Any) -> Decision:
            told = budget.decide(nodes, name, "net.mtu", view, lambda who, text: ownership.owned(KEY, who, text))
            if next(looks, False):
                assert told.allowed
                both_have_looked.wait()
            return told

        outcomes[name] = ownership.drain(site.slurm, KEY, name, "net.mtu", f"{name} is bad", decide=decide)

    threads = [threading.Thread(target=hook, args=(name,)) for name in ("c2", "c1")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    nodes = site.slurm.nodes()
    first = min(("c1", "c2"), key=lambda name: (nodes[name].reason_time, name))
    # The one that undid its drain has a later stamp for that, so where both wrote in one second the name decides.
    assert {name: outcome.what for name, outcome in outcomes.items()} == {
        name: "drained" if name == first else "over-budget" for name in ("c1", "c2")
    }
    assert [name for name in ("c1", "c2", "c3") if nodes[name].drained] == [first]
    assert ownership.owns(KEY, first, nodes[first].reason)


def test_jobs(site: Site) -> None:
    number = site.submit("--hold", "--job-name", "x|y|State=RUNNING|")
    job = site.slurm.job(number)
    assert job == JobInfo(number, "alice", True, True, "PENDING", "", "main")
    assert not site.slurm.job(site.submit("--hold", "--no-requeue")).requeue
    assert job.handle == str(number)
    site.slurm.note_job(number, 'note with "quotes" = and [brackets]')
    with pytest.raises(SlurmError):
        site.slurm.job(999)
    with pytest.raises(SlurmError):
        site.slurm.requeue(999)


@pytest.mark.parametrize("number", ["1;2", "1 2", "", "1,2", "-1"])
def test_a_job_number_is_a_number(site: Site, number: Any) -> None:
    with pytest.raises(SlurmError):
        site.slurm.job(number)


def test_reservations(site: Site) -> None:
    slurm = site.slurm
    assert slurm.reservations() == {}
    slurm.create_reservation("weaklink-quarantine", ["c1"], ["root"], 60, ["MAINT"] if site.real else [])
    try:
        found = slurm.reservations()["weaklink-quarantine"]
        assert (found.nodes, found.users) == ("c1", ("root",))
        assert found.end[:2] == "20"
        with pytest.raises(SlurmError):
            slurm.update_reservation("weaklink-quarantine", nodes=["c1", "nosuch"])
        slurm.update_reservation("weaklink-quarantine", nodes=["c2"])
        assert slurm.reservations()["weaklink-quarantine"].nodes == "c2"
    finally:
        slurm.delete_reservation("weaklink-quarantine")
    assert slurm.reservations() == {}
    with pytest.raises(SlurmError):
        slurm.delete_reservation("weaklink-quarantine")
