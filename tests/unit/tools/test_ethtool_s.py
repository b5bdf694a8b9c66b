"""ethtool -S: one reading and several, JSON; classes, pauses, errors, flaps, stalls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools.cases import case_of, check_case, text_of
from tests.unit.tools.mlx_cuts import tool

COUNTERS = tool("ethtool_s")
TEST = 750_000_000_000
ROCE = {"lossless_priority": 3, "snapshots": "before and after an RDMA test of 60 s", "seconds": 60}


def reading(**values: int) -> str:
    counters: dict[str, int] = {"rx_packets": 1000, "rx_out_of_buffer": 0}
    for priority in range(8):
        counters[f"rx_prio{priority}_bytes"] = 5_000 + priority
        counters[f"tx_prio{priority}_bytes"] = 6_000 + priority
        counters[f"rx_prio{priority}_pause"] = 0
        counters[f"tx_prio{priority}_pause"] = 0
    counters.update(
        rx_symbol_err_phy=7,
        rx_pcs_symbol_err_phy=0,
        rx_corrected_bits_phy=10,
        rx_bits_phy=10_000,
        link_down_events_phy=2,
    )
    counters.update(tx_pause_storm_error_events=0, outbound_pci_stalled_wr=0, outbound_pci_stalled_wr_events=0)
    counters.update(rx_prio3_discards=0)
    counters.update(values)
    return "NIC statistics:\n" + "".join(f"     {name}: {value}\n" for name, value in counters.items())


def two(separator: str = "", **moved: int) -> str:
    """Return two readings between which the counters moved by so much, and the lossless class carried a test."""
    moved = {"rx_prio3_bytes": TEST, "tx_prio3_bytes": TEST, **moved}
    base = dict.fromkeys(moved, 1_000_000)
    return reading(**base) + separator + reading(**{name: 1_000_000 + value for name, value in moved.items()})


def test_the_case_is_judged_as_stated() -> None:
    name = "034-ethtool-s"
    check_case(name, COUNTERS.judged(text_of(name), **case_of(name)["context"]))


@pytest.mark.parametrize(
    "separator", ["", "--- 60 s later ---\n", "\n\n", "# ethtool -S ens7f0np0\n", "after:\n", "reading: 2\nt: 60\n"]
)
def test_a_test_in_the_lossless_class_is_ok(separator: str) -> None:
    text = ("# ethtool -S ens7f0np0\n" if separator.startswith("#") else "") + two(separator)
    assert COUNTERS.verdict(text, **ROCE) == ("ok", "healthy")
    facts = COUNTERS.facts(text, **ROCE)
    assert (facts["snapshots"], facts["delta"]["rx_prio3_bytes"], facts["delta"]["rx_prio0_bytes"]) == (2, TEST, 0)


def test_readings_without_their_heads_are_told_apart_by_names_that_repeat() -> None:
    text = two("----\n").replace("NIC statistics:\n", "")
    assert COUNTERS.verdict(text, **ROCE) == ("ok", "healthy")
    assert COUNTERS.facts(text)["snapshots"] == 2


def test_a_test_in_another_class_fails() -> None:
    text = two(rx_prio3_bytes=0, tx_prio3_bytes=0, rx_prio0_bytes=TEST)
    assert COUNTERS.verdict(text, **ROCE) == ("fail", "qos-misclassified")
    assert COUNTERS.verdict(text, **{**ROCE, "lossless_priority": 0}) == ("ok", "healthy")


def test_readings_without_a_test_say_nothing() -> None:
    text = two(rx_prio3_bytes=100, tx_prio3_bytes=50)
    assert COUNTERS.verdict(text, **ROCE) == ("unknown", "nothing-tested")


def test_one_reading_where_two_are_wanted_says_nothing() -> None:
    assert COUNTERS.verdict(reading(), **ROCE)[0] == "unknown"


def test_one_reading_tells_a_class_that_never_carried_anything() -> None:
    text = reading(rx_prio3_bytes=0, tx_prio3_bytes=0, rx_prio0_bytes=TEST)
    assert COUNTERS.verdict(text, lossless_priority=3) == ("fail", "qos-misclassified")
    assert COUNTERS.verdict(reading(rx_prio3_bytes=TEST), lossless_priority=3) == ("ok", "healthy")


def test_counters_that_went_back_say_nothing() -> None:
    text = reading(rx_prio3_bytes=TEST) + reading(rx_prio3_bytes=5)
    assert COUNTERS.verdict(text, **ROCE)[0] == "unknown"


def test_pauses_are_judged_by_the_second() -> None:
    limit = {"seconds": 60, "max_pause_frames_per_s": 100}
    assert COUNTERS.verdict(two(rx_prio3_pause=6000), **limit) == ("ok", "healthy")
    assert COUNTERS.verdict(two(rx_prio3_pause=6001), **limit)[0] == "degraded"
    assert COUNTERS.verdict(two(tx_global_pause=600_000), **limit) == ("degraded", "global-pause")
    assert COUNTERS.facts(two(rx_prio3_pause=6000), **limit)["pause_frames_per_s"]["rx_prio3_pause"] == 100
    assert COUNTERS.verdict(reading(rx_prio3_pause=10**9), **limit)[0] == "unknown"
    assert COUNTERS.verdict(two(rx_prio3_pause=6001), max_pause_frames_per_s=100)[0] == "unknown"


def test_pauses_below_the_limit_or_that_nobody_limits_are_ok() -> None:
    limit = {"seconds": 60, "max_pause_frames_per_s": 100}
    assert COUNTERS.verdict(two(rx_global_pause=10), lossless_priority=3, **limit) == ("ok", "healthy")
    assert COUNTERS.verdict(two(rx_global_pause=10)) == ("ok", "healthy")
    bare = "NIC statistics:\n     rx_packets: 1\n     tx_packets: 2\n     rx_bytes: 3\n"
    assert COUNTERS.verdict(bare + bare, **limit)[0] == "unknown"
    back = reading(rx_prio3_pause=9000) + reading(rx_prio3_pause=10)
    assert COUNTERS.verdict(back, **limit)[0] == "unknown"


def test_pause_durations_and_transitions_are_no_frames() -> None:
    text = two(rx_prio3_pause_duration=10**9, rx_prio3_pause_transition=10**9)
    assert COUNTERS.verdict(text, seconds=60, max_pause_frames_per_s=1) == ("ok", "healthy")


def test_pauses_of_the_whole_link_exclude_a_lossless_priority() -> None:
    assert COUNTERS.verdict(two(rx_global_pause=10), **ROCE) == ("fail", "global-pause")
    assert COUNTERS.verdict(two(rx_pause_ctrl_phy=10, rx_prio3_pause=10), **ROCE) == ("ok", "healthy")
    assert COUNTERS.verdict(two(rx_prio0_pause=10), **ROCE) == ("degraded", "qos-misclassified")


@pytest.mark.parametrize(
    ("moved", "context", "verdict"),
    [
        ({"rx_symbol_err_phy": 20}, {"seconds": 60}, ("fail", "bad-cable")),
        ({"rx_pcs_symbol_err_phy": 1}, {"seconds": 3600}, ("degraded", "bad-cable")),
        ({"rx_corrected_bits_phy": 10**9}, {"seconds": 60}, ("ok", "healthy")),
        ({"rx_out_of_buffer": 5}, {"seconds": 60}, ("ok", "healthy")),
        ({"link_down_events_phy": 3}, {"max_flaps_per_device": 2}, ("degraded", "link-flapping")),
        ({"link_down_events_phy": 2}, {"max_flaps_per_device": 2}, ("ok", "healthy")),
        ({"outbound_pci_stalled_wr_events": 4}, {}, ("degraded", "pcie-link-limited")),
        ({"tx_pause_storm_error_events": 1}, {}, ("degraded", "global-pause")),
        ({"rx_prio3_discards": 9}, {"lossless_priority": 3}, ("degraded", "qos-not-configured")),
    ],
)
def test_what_moves_is_judged(moved: dict[str, int], context: dict[str, Any], verdict: tuple[str, str]) -> None:
    assert COUNTERS.verdict(two(**moved), **context) == verdict


def test_old_errors_are_no_fault_but_a_saturated_counter_is() -> None:
    assert COUNTERS.verdict(reading(rx_symbol_err_phy=123_456)) == ("ok", "healthy")
    assert COUNTERS.verdict(reading(rx_symbol_err_phy=2**64 - 1)) == ("fail", "bad-cable")
    assert COUNTERS.verdict(reading(outbound_pci_stalled_wr=71)) == ("degraded", "pcie-link-limited")


def test_two_netdevs_are_not_two_readings_of_one() -> None:
    text = f"$ ethtool -S ens7\n{reading(rx_symbol_err_phy=1)}$ ethtool -S ens8\n{reading(rx_symbol_err_phy=900)}"
    assert COUNTERS.verdict(text, seconds=60) == ("ok", "healthy")
    assert "delta" not in COUNTERS.facts(text)


def test_json_groups_are_counters() -> None:
    first = [{"ifname": "ens7", "eth-phy": {"SymbolErrorDuringCarrier": 1}, "rx_symbol_err_phy": 1}]
    later = [{"ifname": "ens7", "eth-phy": {"SymbolErrorDuringCarrier": 1}, "rx_symbol_err_phy": 5000}]
    text = json.dumps(first) + "\n" + json.dumps(later) + "\n"
    assert COUNTERS.verdict(text, seconds=60) == ("fail", "bad-cable")
    assert COUNTERS.facts(text)["delta"] == {"SymbolErrorDuringCarrier": 0, "rx_symbol_err_phy": 4999}


def test_a_tool_that_did_not_run_says_nothing() -> None:
    assert COUNTERS.verdict("no stats available\n", **ROCE) == ("unknown", "test-did-not-run")
    assert COUNTERS.verdict("", **ROCE) == ("unknown", "output-truncated")


def test_a_cut_text_is_never_ok() -> None:
    COUNTERS.never_ok_when_cut(two(rx_prio3_bytes=0, tx_prio3_bytes=0, rx_prio0_bytes=TEST), step=5, **ROCE)
    COUNTERS.never_ok_when_cut(two(tx_global_pause=10**6), step=5, seconds=60, max_pause_frames_per_s=100)


def test_a_wrong_context_is_an_error() -> None:
    for context in ({"seconds": 0}, {"seconds": "60"}, {"lossless_priority": 8}, {"max_pause_frames_per_s": "few"}):
        with pytest.raises(ValueError, match=next(iter(context))):
            COUNTERS.judged(two(), **context)


@pytest.mark.parametrize("text", [two(), reading()])
def test_damage_is_survived(text: str) -> None:
    COUNTERS.survives(text, **ROCE, max_pause_frames_per_s=100, max_flaps_per_device=0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 10**12), min_size=8, max_size=8), st.integers(0, 7))
def test_the_class_with_most_bytes_decides(moved: list[int], lossless: int) -> None:
    text = two(tx_prio3_bytes=0, **{f"rx_prio{number}_bytes": value for number, value in enumerate(moved)})
    total = sum(moved)
    wanted = "unknown" if total < 10_000_000 else "fail" if moved[lossless] < total / 2 else "ok"
    assert COUNTERS.verdict(text, lossless_priority=lossless)[0] == wanted


def test_it_is_recognised() -> None:
    assert COUNTERS.parser.recognise(two()) >= 90
    assert COUNTERS.parser.recognise(two().replace("NIC statistics:\n", "")) >= 70
