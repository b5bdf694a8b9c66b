"""lnetctl and lctl: LNet up, on the wanted network, with peers that answer."""

from __future__ import annotations

from typing import Any

import pytest
from weaklink.checks.tools import lctl as lctl_checks
from weaklink.checks.tools import lnetctl as lnetctl_checks
from weaklink.observe.tools import lctl, lnetctl
from weaklink.observe.tools.text import clean

from tests.unit.tools import fuzz
from tests.unit.tools.cases import case_of, check_case, text_of

CASE = "041-"
SHORT = """\
net:
    - net type: lo
      local NI(s):
        - nid: 0@lo
          status: up
    - net type: o2ib
      local NI(s):
        - nid: 10.0.0.5@o2ib
          status: {status}
          interfaces:
              0: ib0
          health stats:
              fatal_error: 0
              health value: {health}
    - net type: tcp
      local NI(s):
        - nid: 10.44.7.92@tcp
          status: up
"""


def show(status: str = "up", health: int = 1000) -> str:
    return SHORT.format(status=status, health=health)


def ctl(text: str, **context: Any) -> Any:
    return lnetctl_checks.judge(lnetctl.parse(clean(text.split("\n"))), context)


def old(text: str, **context: Any) -> Any:
    return lctl_checks.judge(lctl.parse(clean(text.split("\n"))), context)


def test_the_known_case_is_judged_right() -> None:
    check_case(CASE, ctl(text_of(CASE), **case_of(CASE)["context"]))
    assert lnetctl.recognise(text_of(CASE)) >= 85


def test_the_wanted_network_must_be_there_by_its_own_name() -> None:
    assert ctl(show(), required_net="o2ib").verdict == "ok"
    assert ctl(show(), required_net="o2ib0").verdict == "ok"
    other = ctl(show(), required_net="o2ib1")
    assert (other.verdict, other.cause) == ("fail", "rdma-not-used")
    only_lo = show()[: show().index("    - net type: o2ib")]
    assert ctl(only_lo, required_net="o2ib").cause == "lnet-down"
    assert ctl(text_of(CASE)).verdict == "ok"


def test_an_interface_that_is_down_is_a_fault_where_it_is_wanted() -> None:
    judged = ctl(show("down"), required_net="o2ib")
    assert (judged.verdict, judged.cause) == ("fail", "lnet-down")
    assert judged.facts["nids_down"] == ["10.0.0.5@o2ib"]
    assert judged.facts["nids_up"] == ["10.44.7.92@tcp"]
    assert ctl(show("down"), required_net="tcp").verdict == "ok"


def test_health_counts_but_not_that_of_lo() -> None:
    assert ctl(show(health=700), required_net="o2ib").verdict == "degraded"
    healthy = "0@lo\n          status: up\n"
    lo = show().replace(healthy, f"{healthy}          health stats:\n              health value: 0\n")
    assert lo != show()
    assert ctl(lo, required_net="o2ib").verdict == "ok"


@pytest.mark.parametrize(
    ("text", "verdict", "cause"),
    [
        (
            'show:\n    - net:\n          errno: -100\n          descr: "cannot get networks: Network is down"\n',
            "fail",
            "lnet-down",
        ),
        (
            "opening /dev/lnet failed: No such file or directory\nhint: the kernel modules may not be loaded\n",
            "fail",
            "lnet-down",
        ),
        ("cannot open /dev/lnet: Permission denied\n", "unknown", "not-root"),
        (
            'manage:\n    - ping:\n          errno: -1\n          descr: "failed to ping 10.0.0.9@o2ib: I/O error"\n',
            "fail",
            "lustre-peer-timeout",
        ),
        ("", "unknown", "test-did-not-run"),
    ],
)
def test_errors_of_lnetctl_are_told_apart(text: str, verdict: str, cause: str) -> None:
    judged = ctl(text, required_net="o2ib")
    assert (judged.verdict, judged.cause) == (verdict, cause)
    assert not text or lnetctl.recognise(text) >= 60


PEERS = """\
peer:
    - primary nid: 10.0.0.9@o2ib
      Multi-Rail: True
      peer ni:
        - nid: 10.0.0.9@o2ib
          state: {state}
          health stats:
              health value: 1000
        - nid: 10.0.1.9@o2ib
          state: NA
"""


def test_peers_are_no_local_interfaces() -> None:
    judged = ctl(show() + PEERS.format(state="up"), required_net="o2ib")
    assert judged.verdict == "ok"
    assert judged.facts["peers"] == ["10.0.0.9@o2ib", "10.0.1.9@o2ib"]
    assert judged.facts["nids_up"] == ["10.0.0.5@o2ib", "10.44.7.92@tcp"]
    assert ctl(PEERS.format(state="down")).cause == "lustre-peer-timeout"


def test_an_interface_cut_before_its_status_is_unknown() -> None:
    text = show("down")
    assert ctl(text[: text.index("down") - 9], required_net="o2ib").cause == "output-truncated"


def test_lctl_lists_nids() -> None:
    judged = old("10.0.0.5@o2ib\n10.44.7.92@tcp\n", required_net="o2ib", command="lctl list_nids")
    assert (judged.verdict, judged.facts["nids"]) == ("ok", ["10.0.0.5@o2ib", "10.44.7.92@tcp"])
    assert judged.facts["error"] is None
    assert old("10.44.7.92@tcp\n", required_net="o2ib").cause == "rdma-not-used"
    assert lctl.recognise("10.0.0.5@o2ib\n10.44.7.92@tcp\n") >= 85


@pytest.mark.parametrize(
    ("text", "verdict", "cause", "error"),
    [
        ("IOC_LIBCFS_GET_NI error 100: Network is down\n", "fail", "lnet-down", "Network is down"),
        (
            "Reader error: 'LNet stack down' at 0\nIOC_LIBCFS_GET_NI error 100: Network is down\n",
            "fail",
            "lnet-down",
            "Network is down",
        ),
        (
            "opening /dev/lnet failed: No such device\nIOC_LIBCFS_GET_NI error 2: No such file or directory\n",
            "fail",
            "lnet-down",
            "No such file or directory",
        ),
        ("IOC_LIBCFS_GET_NI error 1: Operation not permitted\n", "unknown", "not-root", "Operation not permitted"),
        ("failed to ping 10.0.0.9@o2ib: Input/output error\n", "fail", "lustre-peer-timeout", "Input/output error"),
        ("failed to ping 10.0.0.9@o2ib: Connection timed out\n", "fail", "lustre-peer-timeout", "Connection timed out"),
        ("", "unknown", "test-did-not-run", None),
    ],
)
def test_errors_of_lctl_are_told_apart(text: str, verdict: str, cause: str, error: str | None) -> None:
    judged = old(text)
    assert (judged.verdict, judged.cause, judged.facts["error"]) == (verdict, cause, error)
    assert judged.facts["nids"] == []


def test_a_ping_that_is_answered_lists_the_peers_nids() -> None:
    judged = old("12345-0@lo\n12345-10.0.0.9@o2ib\n", command="lctl ping 10.0.0.9@o2ib", required_net="o2ib")
    assert (judged.verdict, judged.facts["nids"]) == ("ok", ["10.0.0.9@o2ib"])


def test_devices_of_lctl_are_counted() -> None:
    text = "  0 UP mgc MGC10.0.0.9@o2ib 5f-4c 4\n  1 UP lov lfs1-clilov-ffff8a 5f-4c 3\n"
    assert (old(text).verdict, old(text).facts["devices"]) == ("ok", 2)
    assert old(text.replace("1 UP", "1 IN")).verdict == "unknown"


def test_damage_never_raises_nor_takes_long() -> None:
    fuzz.survives(lnetctl, show("down") + PEERS, judge=lnetctl_checks.judge, context={"required_net": "o2ib"})
    fuzz.survives(lnetctl, text_of(CASE), judge=lnetctl_checks.judge, context={"required_net": "o2ib"})
    sample = "10.0.0.5@o2ib\nIOC_LIBCFS_GET_NI error 100: Network is down\n  0 UP mgc MGC10.0.0.9@o2ib 5f-4c 4\n"
    fuzz.survives(lctl, sample, judge=lctl_checks.judge, context={"required_net": "o2ib"})


@pytest.mark.parametrize("tool", ["lctl", "lnetctl"])
@pytest.mark.parametrize(
    "shell", ["bash: {}: command not found", "sh: 1: {}: not found", "-bash: /usr/sbin/{}: not found"]
)
def test_a_tool_that_is_not_installed_is_recognised_and_says_nothing(tool: str, shell: str) -> None:
    text = shell.format(tool)
    reader, judgement = (lctl, old) if tool == "lctl" else (lnetctl, ctl)
    assert reader.recognise(text) >= 60
    assert (lnetctl if reader is lctl else lctl).recognise(text) == 0
    assert (judgement(text).verdict, judgement(text).cause) == ("unknown", "test-did-not-run")
