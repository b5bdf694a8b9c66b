"""mlnx_qos: old and new layouts; trust, PFC, code points, buffers, classes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools.mlx_cuts import tool

QOS = tool("mlnx_qos")
MAP = "".join(
    f"\tprio:{priority} dscp:{','.join(f'{priority * 8 + low:02d}' for low in range(7, -1, -1))},\n"
    for priority in range(8)
)
CLASSES = "".join(
    f"tc: {number} ratelimit: unlimited, tsa: vendor\n\t priority:  {priority}\n"
    for number, priority in enumerate((1, 0, 2, 3, 4, 5, 6, 7))
)


def output(trust: str = "dscp", pfc: str = "0 0 0 1 0 0 0 0", *, points: str = MAP, buffers: str = "") -> str:
    mapping = f"dscp2prio mapping:\n{points}" if trust == "dscp" else ""
    cells = "   ".join(pfc.split())
    return (
        f"DCBX mode: OS controlled\nPriority trust state: {trust}\n{mapping}default priority:\n{buffers}Cable len: 7\n"
        "PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n"
        f"\tenabled     {cells}   \n\tbuffer      0   0   0   1   0   0   0   0   \n{CLASSES}"
    )


BUFFERS = "Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,max_buffer_size=1027728\n"
GOOD = output(buffers=BUFFERS)
OLD = (
    GOOD.replace(BUFFERS, "")
    .replace("default priority:\n", "")
    .replace("\tbuffer      0   0   0   1   0   0   0   0   \n", "")
)
WANTED = {"lossless_priority": 3, "rdma_dscp": 26, "cnp_dscp": 48, "required_trust": "dscp"}


def test_a_configured_port_is_ok_in_old_and_new_layouts() -> None:
    for text in (GOOD, OLD, output()):
        assert QOS.verdict(text, **WANTED) == ("ok", "healthy")
        facts = QOS.facts(text)
        assert (facts["trust"], facts["pfc_on"], facts["cable_m"]) == ("dscp", [3], 7)
        assert facts["prio_tc"] == {0: 1, 1: 0, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7}
        assert (len(facts["dscp_map"]), facts["dscp_map"][26], facts["dscp_map"][48]) == (64, 3, 6)


def test_a_port_as_it_leaves_the_factory_is_not_configured() -> None:
    text = output("pcp", "0 0 0 0 0 0 0 0")
    assert QOS.verdict(text, **WANTED) == ("fail", "qos-not-configured")
    assert (QOS.facts(text)["pfc_on"], QOS.facts(text)["trust"], QOS.facts(text)["dscp_map"]) == ([], "pcp", None)


def test_the_wrong_trust_misses_the_class() -> None:
    assert QOS.verdict(output("pcp"), lossless_priority=3, required_trust="dscp") == ("fail", "qos-not-configured")
    assert QOS.verdict(output("pcp"), lossless_priority=3, rdma_dscp=26) == ("fail", "qos-misclassified")
    assert QOS.verdict(output("pcp"), lossless_priority=3) == ("ok", "healthy")


def test_a_code_point_that_leads_elsewhere_is_misclassified() -> None:
    assert QOS.verdict(GOOD, **{**WANTED, "rdma_dscp": 46}) == ("fail", "qos-misclassified")
    assert QOS.verdict(GOOD, **{**WANTED, "cnp_dscp": 27}) == ("fail", "qos-misclassified")


def test_the_lossless_priority_need_not_be_three() -> None:
    text = output(pfc="0 0 0 0 0 1 0 0")
    assert QOS.verdict(text, lossless_priority=5, rdma_dscp=40) == ("ok", "healthy")
    assert QOS.verdict(text, **WANTED) == ("fail", "qos-not-configured")


def test_pfc_on_everything_is_a_global_pause() -> None:
    assert QOS.verdict(output(pfc="1 1 1 1 1 1 1 1"), **WANTED) == ("degraded", "global-pause")
    assert QOS.verdict(output(pfc="0 0 0 1 1 0 0 0"), **WANTED) == ("ok", "healthy")


def test_a_lossless_priority_needs_bytes_in_its_buffer() -> None:
    text = output(buffers=BUFFERS.replace("130944,130944", "130944,0"))
    assert QOS.verdict(text, **WANTED) == ("degraded", "qos-not-configured")


def test_a_map_may_wrap_lines_and_have_empty_ones() -> None:
    wrapped = MAP.replace("prio:3 dscp:31,30,29,28,27,26,25,24,", "prio:3 dscp:31,30,29,28,\n\t\t27,26,25,24,")
    assert QOS.facts(output(points=wrapped))["dscp_map"] == QOS.facts(GOOD)["dscp_map"]
    twice = MAP.replace("prio:3 dscp:31,30,29,28,27,26,25,24,", "prio:3 dscp:31,30,29,28,\n\tprio:3 dscp:27,26,25,24,")
    assert QOS.facts(output(points=twice))["dscp_map"] == QOS.facts(GOOD)["dscp_map"]


def test_nothing_is_judged_that_nobody_demands() -> None:
    assert QOS.verdict(output("pcp", "0 0 0 0 0 0 0 0")) == ("ok", "healthy")


def test_a_long_row_of_digits_takes_no_time() -> None:
    begun = time.monotonic()
    QOS.facts(GOOD.replace("enabled     0", f"enabled     {'1' * 400}x"))
    assert time.monotonic() - begun < 1


def test_a_tool_that_did_not_run_says_nothing() -> None:
    assert QOS.verdict("ens7f0: No such device\n", **WANTED)[0] == "unknown"
    assert QOS.verdict("", **WANTED) == ("unknown", "output-truncated")


def test_a_cut_text_is_never_ok() -> None:
    QOS.never_ok_when_cut(output(pfc="0 0 0 0 0 0 0 0"), **WANTED)
    QOS.never_ok_when_cut(GOOD, **{**WANTED, "rdma_dscp": 46})
    cut = GOOD[: GOOD.index("enabled") + 30]
    assert QOS.facts(cut)["pfc_on"] is None


def test_a_wrong_context_is_an_error() -> None:
    with pytest.raises(ValueError, match="lossless_priority"):
        QOS.judged(GOOD, lossless_priority=9)
    with pytest.raises(ValueError, match="rdma_dscp"):
        QOS.judged(GOOD, lossless_priority=3, rdma_dscp="26")


@pytest.mark.parametrize("text", [GOOD, OLD])
def test_damage_is_survived(text: str) -> None:
    QOS.survives(text, **WANTED)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=8, max_size=8), st.integers(0, 7))
def test_the_priority_with_pfc_decides(on: list[bool], wanted: int) -> None:
    text = output(pfc=" ".join(str(int(item)) for item in on))
    found = QOS.judged(text, lossless_priority=wanted)
    assert found.facts["pfc_on"] == [number for number, item in enumerate(on) if item]
    assert (found.verdict == "fail") == (not on[wanted])


def test_it_is_recognised() -> None:
    assert QOS.parser.recognise(GOOD) >= 90
    assert QOS.parser.recognise(OLD) >= 90
