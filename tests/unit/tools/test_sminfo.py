"""sminfo: a master answers, a standby does, none does; lines of old and new versions; damage."""

from __future__ import annotations

import pytest
from weaklink.checks.tools import sminfo as judge
from weaklink.observe.tools import sminfo

from tests.unit.tools import fuzz
from tests.unit.tools.ib_reading import judged, said

MASTER = "sminfo: sm lid 37 sm guid 0x7cfe900300a6aef1, activity count 4484381 priority 14 state 3 SMINFO_MASTER\n"
OLD = "sminfo: sm lid 0x1 sm guid 0x2c9010b7c2ae1, activity count 20 priority 1\n"


def test_a_master_is_well() -> None:
    found = judged("sminfo", MASTER)
    assert (found.verdict, found.cause) == ("ok", "healthy")
    assert found.facts == {"lid": 37, "guid": "0x7cfe900300a6aef1", "priority": 14, "state": "MASTER", "managers": 1}


def test_an_old_version_tells_no_state_and_a_lid_in_hexadecimal() -> None:
    found = judged("sminfo", OLD)
    assert found.verdict == "ok"
    assert (found.facts["lid"], found.facts["state"], found.facts["priority"]) == (1, None, 1)


@pytest.mark.parametrize(
    ("number", "state", "verdict"), [(0, "NOTACT", "fail"), (1, "DISCOVER", "degraded"), (2, "STANDBY", "degraded")]
)
def test_whoever_answers_must_be_master(number: int, state: str, verdict: str) -> None:
    text = MASTER.replace("3 SMINFO_MASTER", f"{number} SMINFO_{state}")
    assert said("sminfo", text) == (verdict, "no-subnet-manager")


def test_other_numbers_are_other_facts() -> None:
    text = MASTER.replace("37", "9").replace("0x7cfe900300a6aef1", "0x1").replace("14", "3")
    assert judged("sminfo", text).facts == {"lid": 9, "guid": "0x1", "priority": 3, "state": "MASTER", "managers": 1}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("sminfo: iberror: failed: query\n", ("fail", "no-subnet-manager")),
        ("ibwarn: [3] mad_rpc_open_port: can't open UMAD port ((null):0)\n", ("unknown", "test-did-not-run")),
        ("sminfo: Permission denied\n", ("unknown", "not-root")),
        ("", ("unknown", "output-truncated")),
        (MASTER[:40], ("unknown", "output-truncated")),
    ],
)
def test_no_answer_is_told_from_a_tool_that_could_not_ask(text: str, answer: tuple[str, str]) -> None:
    assert said("sminfo", text) == answer


@pytest.mark.parametrize("sample", [MASTER, OLD])
def test_damage(sample: str) -> None:
    fuzz.survives(sminfo, sample, judge=judge.judge)
    whole = judged("sminfo", sample)
    for at in range(len(sample.rstrip()) - 1):
        cut = judged("sminfo", sample[:at])
        assert cut.verdict in ("ok", "unknown")
        if cut.verdict == "ok":  # cut behind the priority: what an old version prints
            assert cut.facts["lid"] == whole.facts["lid"]
