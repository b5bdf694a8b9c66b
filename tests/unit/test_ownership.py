"""Which drains are ours: nothing edited, copied, forged or merely alike; and nobody's words are lost."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.scheduler import ownership
from weaklink.scheduler.budget import Decision
from weaklink.scheduler.fake import FakeSlurm
from weaklink.scheduler.ownership import MAX_REASON, drain, format_reason, load_key, owns, parse_reason, release
from weaklink.scheduler.text import SlurmError

KEY = bytes(range(32))
OTHER = bytes(range(1, 33))
CHECKS = st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,30}", fullmatch=True)
NODES = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)


def yes(_nodes: Any) -> Decision:
    return Decision(True, "", 0, 2)


def now(_seconds: float) -> None:
    """No pause."""


@given(node=NODES, check=CHECKS, message=st.text(max_size=1000))
@settings(max_examples=200, deadline=None)
def test_what_we_write_is_ours_and_fits(node: str, check: str, message: str) -> None:
    reason = format_reason(KEY, node, check, message)
    assert len(reason.encode()) <= MAX_REASON
    assert reason.isascii()
    assert reason.isprintable()
    assert not set(reason) & set("\"'`\\")
    assert owns(KEY, node, reason)
    parsed = parse_reason(reason)
    assert parsed is not None
    assert parsed.check == check


@given(node=NODES, message=st.text(string.printable, min_size=1, max_size=80), data=st.data())
@settings(max_examples=300, deadline=None)
def test_one_edited_character_makes_it_the_admins(node: str, message: str, data: st.DataObject) -> None:
    reason = format_reason(KEY, node, "rdma.state", message)
    at = data.draw(st.integers(0, len(reason) - 1))
    char = data.draw(st.sampled_from(string.ascii_letters + string.digits + " .[]é"))
    edited = data.draw(
        st.sampled_from(
            [reason[:at] + char + reason[at + 1 :], reason[:at] + reason[at + 1 :], reason[:at] + char + reason[at:]]
        )
    )
    if edited != reason:
        assert not owns(KEY, node, edited)


@given(text=st.one_of(st.text(max_size=300), st.text(string.printable, max_size=300)))
@settings(max_examples=300, deadline=None)
def test_nobody_elses_words_are_ours(text: str) -> None:
    assert not owns(KEY, "c1", text)
    assert not owns(KEY, "c1", f"weaklink:rdma.state: {text} [ABCDEFGHIJKL]")
    assert not owns(KEY, "c1", f"[node_problem] {text}")


def test_another_node_another_key_and_no_key() -> None:
    reason = format_reason(KEY, "c1", "rdma.state", "down")
    assert owns(KEY, "c1", reason)
    assert not owns(KEY, "c2", reason)
    assert not owns(OTHER, "c1", reason)
    assert not owns(None, "c1", reason)
    for around in (f"{reason} ", f" {reason}", f"{reason}\n", f"{reason} {reason}", reason.upper(), reason.lower()):
        assert not owns(KEY, "c1", around)
    assert not owns(KEY, "c1", reason.replace("down", "x" * 1000))


def test_every_token_differs() -> None:
    assert len({format_reason(KEY, "c1", "rdma.state", "down") for _ in range(50)}) == 50
    assert format_reason(KEY, "c1", "x", "m", "AAAAA") == format_reason(KEY, "c1", "x", "m", "AAAAA")
    with pytest.raises(ValueError, match="not the name of a check"):
        format_reason(KEY, "c1", "bad check]", "m")


def test_parts_do_not_run_into_each_other() -> None:
    """The hash is over separated parts: moving a character from one to the next gives another one."""
    one = parse_reason(format_reason(KEY, "c1", "ab", "c", "AAAAA"))
    two = parse_reason(format_reason(KEY, "c1", "a", "bc", "AAAAA"))
    assert one is not None
    assert two is not None
    assert one.token != two.token


def test_the_key_file(tmp_path: Path) -> None:
    path = tmp_path / "token.key"
    assert load_key(str(path)) is None
    path.write_text("5a" * 32 + "\n")
    path.chmod(0o600)
    assert load_key(str(path)) == b"\x5a" * 32
    path.chmod(0o644)
    assert load_key(str(path)) is None  # others could have read it, and forge
    path.chmod(0o600)
    for bad in ("", "zz" * 32, "5a5a", "é"):
        path.write_text(bad)
        assert load_key(str(path)) is None
    link = tmp_path / "link"
    path.write_text("5a" * 32)
    link.symlink_to(path)
    assert load_key(str(link)) is None
    assert load_key(str(tmp_path)) is None


@given(reason=st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=1000))
@settings(max_examples=100, deadline=None)
def test_a_drain_that_came_between_is_put_back_word_for_word(reason: str) -> None:
    slurm = FakeSlurm()
    slurm.before["drain"] = lambda: slurm.put_state("c1", "IDLE", "DRAIN", reason=reason, user="alice")
    # Alice's drain lies between our look next to the write and the write: nothing tells us of it. That window is what
    # remains.
    outcome = drain(slurm, KEY, "c1", "rdma.state", "down", decide=yes, pause=now)
    assert outcome.what == "drained"
    slurm = FakeSlurm()

    def decides(_nodes: Any) -> Decision:
        slurm.put_state("c1", "IDLE", "DRAIN", reason=reason, user="alice")
        return Decision(True, "", 0, 2)

    outcome = drain(slurm, KEY, "c1", "rdma.state", "down", decide=decides, pause=now)
    assert outcome.what == "restored"
    assert slurm.nodes()["c1"].reason == reason
    assert slurm.nodes()["c1"].drained
    assert "alice" in outcome.detail


def test_a_node_that_went_down_between_is_left_down_and_not_drained() -> None:
    slurm = FakeSlurm()

    def decides(_nodes: Any) -> Decision:
        slurm.put_state("c1", "DOWN", reason="Not responding", user="slurm")
        return Decision(True, "", 0, 2)

    assert drain(slurm, KEY, "c1", "rdma.state", "down", decide=decides, pause=now).what == "restored"
    found = slurm.nodes()["c1"]
    assert found.states == {"DOWN"}
    assert found.reason == "Not responding"


def test_a_drain_right_after_ours_stays() -> None:
    slurm = FakeSlurm()
    real = slurm.drain

    def then_alice(node: str, reason: str) -> None:
        real(node, reason)
        slurm.put_state("c1", "IDLE", "DRAIN", reason="alice: mine", user="alice")

    slurm.drain = then_alice  # type: ignore[method-assign]
    assert drain(slurm, KEY, "c1", "rdma.state", "down", decide=yes, pause=now).what == "foreign"
    assert slurm.nodes()["c1"].reason == "alice: mine"


@pytest.mark.parametrize("method", ["nodes", "drain"])
def test_a_failure_of_slurm_is_unknown_and_raises_nothing(method: str) -> None:
    slurm = FakeSlurm()
    slurm.fail.add(method)
    outcome = drain(slurm, KEY, "c1", "rdma.state", "down", decide=yes, pause=now)
    assert outcome.what == "unknown"
    assert "contact slurm controller" in outcome.detail
    slurm.fail.clear()
    assert not slurm.nodes()["c1"].drained


@pytest.mark.parametrize(("after", "wanted"), [(True, "drained"), (False, "over-budget")])
def test_a_drain_that_timed_out_and_arrived_is_ours_and_within_the_budget(after: bool, wanted: str) -> None:
    slurm = FakeSlurm()
    real = slurm.drain

    def late(node: str, reason: str) -> None:
        real(node, reason)
        raise SlurmError("scontrol did not end within 8.0 s (timeout)")

    slurm.drain = late  # type: ignore[method-assign]
    answers = iter([yes(None), Decision(after, "full", 1, 1)])
    outcome = drain(slurm, KEY, "c1", "rdma.state", "down", decide=lambda _: next(answers), pause=now)
    assert outcome.what == wanted
    assert "what stood there right before is not known (scontrol did not end" in outcome.detail
    assert outcome.token
    assert slurm.nodes()["c1"].drained is after


def test_a_failed_look_up_never_writes() -> None:
    slurm = FakeSlurm()
    slurm.put_state("c1", "IDLE", "DRAIN", reason="alice: RMA 4711")
    slurm.fail.add("nodes")
    drain(slurm, KEY, "c1", "rdma.state", "down", decide=yes, pause=now)
    release(slurm, KEY, "c1")
    assert {call[0] for call in slurm.calls} == {"nodes"}


def test_without_a_key_slurm_is_not_even_asked() -> None:
    slurm = FakeSlurm()
    assert drain(slurm, None, "c1", "rdma.state", "down", decide=yes, pause=now).what == "unknown"
    assert release(slurm, None, "c1").what == "unknown"
    assert slurm.calls == []


def test_an_unknown_node_is_unknown() -> None:
    assert drain(FakeSlurm(), KEY, "c9", "rdma.state", "down", decide=yes, pause=now).what == "unknown"
    assert release(FakeSlurm(), KEY, "c9").what == "unknown"


@pytest.mark.parametrize("states", [("DOWN",), ("IDLE", "DRAIN"), ("ALLOCATED", "DRAIN"), ("IDLE", "FAIL")])
def test_what_is_out_already_is_left_alone(states: tuple[str, ...]) -> None:
    slurm = FakeSlurm()
    slurm.put_state("c1", *states, reason="alice: RMA 4711", user="alice")
    before = slurm.nodes()["c1"]
    assert drain(slurm, KEY, "c1", "rdma.state", "down", decide=yes, pause=now).what == "foreign"
    assert release(slurm, KEY, "c1").what in ("foreign", "nothing-to-do")
    assert slurm.nodes()["c1"] == before


def test_over_budget_after_the_write_undoes_it() -> None:
    slurm = FakeSlurm()
    answers = iter([Decision(True, "", 0, 1), Decision(False, "partition main: 1 of at most 1", 1, 1)])
    outcome = drain(slurm, KEY, "c1", "rdma.state", "down", decide=lambda _: next(answers), pause=now)
    assert outcome.what == "over-budget"
    assert "undone" in outcome.detail
    assert not slurm.nodes()["c1"].drained


def test_it_waits_until_the_second_of_the_stamp_is_over() -> None:
    slept: list[float] = []
    drain(FakeSlurm(), KEY, "c1", "rdma.state", "down", decide=yes, pause=slept.append)
    assert len(slept) == 1
    assert slept[0] > 1


def test_a_return_leaves_no_token_behind() -> None:
    slurm = FakeSlurm()
    drain(slurm, KEY, "c1", "rdma.state", "down", decide=yes, pause=now)
    assert release(slurm, KEY, "c1").what == "released"
    found = slurm.nodes()["c1"]
    assert found.reason == ownership.RETURNED
    slurm.put_state("c1", "IDLE", "DRAIN", reason=found.reason)  # Slurm drains it itself and keeps the old reason
    assert release(slurm, KEY, "c1").what == "foreign"


def test_a_drain_between_look_and_return_is_put_back() -> None:
    slurm = FakeSlurm()
    drain(slurm, KEY, "c1", "rdma.state", "down", decide=yes, pause=now)
    calls = iter([None, lambda: slurm.put_state("c1", "IDLE", "DRAIN", reason="alice: mine", user="alice")])
    real = slurm.nodes

    def nodes(names: Any = None) -> Any:
        act = next(calls, None)
        if act:
            act()
        return real(names)

    slurm.nodes = nodes  # type: ignore[method-assign]
    assert release(slurm, KEY, "c1").what == "restored"
    assert real()["c1"].reason == "alice: mine"
    assert real()["c1"].drained
