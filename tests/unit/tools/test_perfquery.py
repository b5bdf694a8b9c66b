"""Reading and judging perfquery."""

from __future__ import annotations

import pytest

from tests.unit.tools.ib_reading import a_cut_never_heals, data, judged, reader, said, survives

REAL = data("pq11")
CLEAN = REAL.replace("65535", "0")


def extended(symbols: int, tail: str = "") -> str:
    return (
        "# Port extended counters: Lid 17 port 3 (CapMask: 0x5A00 CapMask2: 0x0000002)\n"
        "PortSelect:......................3\n"
        "CounterSelect:...................0x0000\nPortXmitData:....................81932817231723\n"
        "PortRcvData:.....................4294967295\n"
        "PortXmitPkts:....................99281723\nPortRcvPkts:.....................88172312\n"
        "PortUnicastXmitPkts:.............99281723\n"
        "PortUnicastRcvPkts:..............88172312\nPortMulticastXmitPkts:...........0\n"
        "PortMulticastRcvPkts:............12\n"
        f"CounterSelect2:..................0x00000000\nSymbolErrorCounter:..............{symbols}\n"
        f"LinkErrorRecoveryCounter:........0\n"
        f"LinkDownedCounter:...............1\nPortRcvErrors:...................0\n"
        f"VL15Dropped:.....................0\nPortXmitWait:....................4294967295\n"
        f"QP1Dropped:......................0\n{tail}"
    )


def test_a_real_run_is_read() -> None:
    found = judged("perfquery", REAL)
    assert reader("perfquery").recognise(REAL) == 96
    assert (found.verdict, found.cause) == ("fail", "bad-cable")
    assert (found.facts["lid"], found.facts["ports"], found.facts["bad"]) == (2, 1, ["2/1"])
    assert found.facts["saturated"] == ["2/1/SymbolErrorCounter"]
    assert found.facts["counters"]["2/1"]["PortXmitPkts"] == 249


@pytest.mark.parametrize(
    ("line", "wrong", "verdict"),
    [
        ("SymbolErrorCounter:..............0", "SymbolErrorCounter:..............12", "ok"),
        ("LinkErrorRecoveryCounter:........0", "LinkErrorRecoveryCounter:........255", "fail"),
        ("LocalLinkIntegrityErrors:........0", "LocalLinkIntegrityErrors:........15", "fail"),
        ("ExcessiveBufferOverrunErrors:....0", "ExcessiveBufferOverrunErrors:....15", "fail"),
        ("PortXmitWait:....................0", "PortXmitWait:....................4294967295", "ok"),
        ("PortRcvSwitchRelayErrors:........0", "PortRcvSwitchRelayErrors:........65535", "ok"),
        ("LinkDownedCounter:...............0", "LinkDownedCounter:...............255", "degraded"),
        ("SymbolErrorCounter:..............0", "SymbolErrorCounter:..............many", "unknown"),
    ],
)
def test_each_counter_counts_by_its_kind_and_width(line: str, wrong: str, verdict: str) -> None:
    assert said("perfquery", CLEAN)[0] == "ok"
    assert said("perfquery", CLEAN.replace(line, wrong))[0] == verdict


def test_extended_counters_do_not_end_at_16_bits() -> None:
    found = judged("perfquery", extended(65535), {"counters_cleared_minutes_ago": 10**6})
    assert (found.verdict, found.facts["saturated"]) == ("ok", [])
    assert said("perfquery", extended(65535), {"counters_cleared_minutes_ago": 60}) == ("fail", "bad-cable")


def test_names_of_old_versions_are_known() -> None:
    old = (
        "# Port counters: Lid 6 port 1\nPortSelect:......................1\n"
        "SymbolErrors:....................65535\nXmtPkts:.........................7\n"
        "RcvPkts:.........................7\n"
    )
    assert said("perfquery", old) == ("fail", "bad-cable")


def test_all_ports_in_one_go_are_told_apart() -> None:
    second = CLEAN.replace("port 1", "port 2").replace(
        "PortSelect:......................1", "PortSelect:......................2"
    )
    found = judged("perfquery", second + REAL)
    assert (found.facts["ports"], found.facts["bad"]) == (2, ["2/1"])


def test_a_sum_over_all_ports_is_degraded_at_most_and_ignored_beside_its_parts() -> None:
    total = REAL.replace("port 1", "port 255").replace(
        "PortSelect:......................1", "PortSelect:......................255"
    )
    assert said("perfquery", total) == ("degraded", "bad-cable")
    assert said("perfquery", total + CLEAN) == ("ok", "healthy")


def test_a_port_printed_in_both_forms_is_judged_once_by_its_64_bit_counter() -> None:
    narrow = REAL.replace("Lid 2 port 1", "Lid 17 port 3").replace(
        "PortSelect:......................1", "PortSelect:......................3"
    )
    found = judged("perfquery", narrow + extended(65535), {"counters_cleared_minutes_ago": 10**6})
    assert (found.verdict, found.facts["ports"], found.facts["saturated"]) == ("ok", 1, [])
    assert judged("perfquery", REAL + REAL).facts["bad"] == ["2/1"]


@pytest.mark.parametrize(
    ("earlier", "later", "seconds", "verdict"),
    [(5000, 5100, 60, "fail"), (5000, 5001, 3600, "ok"), (5000, 5200, 3600, "degraded"), (5000, 3, 60, "ok")],
)
def test_between_two_prints_only_what_was_added_counts(earlier: int, later: int, seconds: int, verdict: str) -> None:
    line = "SymbolErrorCounter:..............{}"
    one, two = (CLEAN.replace(line.format(0), line.format(value)) for value in (earlier, later))
    assert said("perfquery", one + two, {"seconds": seconds})[0] == verdict


def test_details_hold_no_counters_of_the_signal() -> None:
    assert judged("perfquery", data("pqD")).facts["counters"]["2/1"]["PortInactiveDiscards"] == 0


def test_a_cut_never_heals_and_damage_is_survived() -> None:
    a_cut_never_heals("perfquery", REAL, {})
    for at in range(len(CLEAN.rpartition("PortRcvPkts")[0])):
        assert judged("perfquery", CLEAN[:at]).verdict == "unknown", CLEAN[:at][-60:]
    wide = extended(10**6)
    for at in range(0, len(wide) - 80, 7):
        assert judged("perfquery", wide[:at], {"counters_cleared_minutes_ago": 5}).verdict != "ok", wide[:at][-60:]
    assert said("perfquery", "perfquery: iberror: failed: perfquery\n") == ("unknown", "test-did-not-run")
    survives("perfquery", REAL, {})
    survives("perfquery", extended(3), {})


def test_data_counters_alone_say_nothing_of_errors() -> None:
    text = extended(0).partition("CounterSelect2")[0]
    found = judged("perfquery", text.replace(" CapMask2: 0x0000002", ""))
    assert (found.verdict, found.cause, found.facts["bad"]) == ("unknown", "nothing-tested", [])
    assert said("perfquery", text.replace(" CapMask2: 0x0000002", "") + CLEAN) == ("ok", "healthy")


def test_the_sum_beside_the_ports_is_no_port() -> None:
    total = CLEAN.replace("PortSelect:......................1\n", "PortSelect:......................255\n")
    assert total != CLEAN
    assert judged("perfquery", total + CLEAN).facts["ports"] == 1
