"""Reading and judging ibqueryerrors."""

from __future__ import annotations

import pytest

from tests.unit.tools.cases import text_of
from tests.unit.tools.ib_reading import a_cut_never_heals, data, holds_case, judged, reader, said, survives

SATURATED = text_of("025")
SUMMARY = (
    "\n## Summary: 26 nodes checked, 1 bad nodes found\n"
    "##          118 ports checked, 1 ports have errors beyond threshold\n"
)


def port(counters: str) -> str:
    return f'Errors for "node-44 mlx5_0"\n   GUID 0x946dae0300213c7e port 1: {counters}\n{SUMMARY}'


def test_the_case_is_judged_right() -> None:
    holds_case("025")


def test_a_real_run_with_links_and_data_is_read() -> None:
    for name in ("qer", "qeda"):
        found = judged("ibqueryerrors", data(name))
        assert (found.verdict, found.cause) == ("fail", "bad-cable")
        assert found.facts["bad_ports"][0] == {"guid": "0x200000", "port": 1, "counters": ["SymbolErrorCounter"]}
        assert (found.facts["nodes_checked"], found.facts["ports_checked"]) == (6, 20)
    assert said("ibqueryerrors", data("qect")) == ("ok", "healthy")
    assert reader("ibqueryerrors").recognise(data("qer")) == 96
    assert reader("iblinkinfo").recognise(data("qer")) == 0


@pytest.mark.parametrize(
    ("counters", "minutes", "verdict"),
    [
        ("[SymbolErrorCounter == 4210]", 30, ("fail", "bad-cable")),
        ("[SymbolErrorCounter == 4210]", 30 * 24 * 60, ("ok", "healthy")),
        ("[SymbolErrorCounter == 200]", 60, ("degraded", "bad-cable")),
        ("[SymbolErrorCounter == 3]", None, ("ok", "healthy")),
        ("[SymbolErrorCounter == 4210]", None, ("degraded", "bad-cable")),
        ("[SymbolErrors == 65535]", None, ("fail", "bad-cable")),
        ("[LocalLinkIntegrityErrors == 15]", None, ("fail", "bad-cable")),
        ("[LocalLinkIntegrityErrors == 14]", 10000, ("ok", "healthy")),
        ("[ExcBufOverrunErrors == 15]", None, ("fail", "bad-cable")),
        ("[LinkErrorRecoveryCounter == 255]", 10**6, ("fail", "bad-cable")),
        ("[SymbolErrorCounter == 65535 (65.535K)]", 10**6, ("ok", "healthy")),
        ("[SymbolErrorCounter == 70000 (70.000K)]", 60, ("fail", "bad-cable")),
        ("[PortXmitWait == 4294967295]", 1, ("ok", "healthy")),
        ("[PortRcvSwitchRelayErrors == 65535] [PortXmitDiscards == 65535] [VL15Dropped == 9]", 1, ("ok", "healthy")),
        ("[LinkDownedCounter == 255]", None, ("degraded", "link-flapping")),
        ("[LinkDownedCounter == 21]", 60, ("degraded", "link-flapping")),
        ("[LinkDownedCounter == 21]", 60 * 24 * 30, ("ok", "healthy")),
        (
            "[PortRcvErrors == 52] [PortLocalPhysicalErrors == 50] [PortMalformedPktErrors == 2]",
            1,
            ("fail", "bad-cable"),
        ),
    ],
)
def test_counters_count_by_kind_width_and_time(counters: str, minutes: int | None, verdict: tuple[str, str]) -> None:
    context = {} if minutes is None else {"counters_cleared_minutes_ago": minutes}
    assert said("ibqueryerrors", port(counters), context) == verdict


def test_a_limit_on_flaps_is_the_persons_own() -> None:
    assert said("ibqueryerrors", port("[LinkDownedCounter == 4]"), {"max_flaps_per_device": 3})[0] == "degraded"
    assert said("ibqueryerrors", port("[LinkDownedCounter == 255]"), {"max_flaps_per_device": 300})[0] == "ok"


def test_data_counters_stand_at_their_end_at_32_bits() -> None:
    text = port("[PortXmitWait == 7] [PortXmitData == 4294967295 (16.000GB)] [PortRcvPkts == 99 (99.000)]")
    facts = judged("ibqueryerrors", text).facts
    assert facts["saturated"] == ["0x946dae0300213c7e/1/PortXmitData"]
    assert facts["congestion_only"] == ["0x946dae0300213c7e/1"]


def test_nodes_that_did_not_answer_are_not_judged_healthy_whatever_the_summary_says() -> None:
    warned = (
        "ibwarn: [4117] _do_madrpc: recv failed: Connection timed out\n"
        "ibwarn: [4117] query_cap_mask: classportinfo query failed on node-12 mlx5_0, Lid 77 port 1\n"
        "src/query_smp.c:196; umad (DR path slid 0; dlid 0; 0,1,5 Attr 0x11:0) bad status 110; Connection timed out\n"
        + port("[PortXmitWait == 3]")
        + "##          1 PMA query failures\n"
    )
    found = judged("ibqueryerrors", warned)
    assert (found.verdict, found.cause) == ("unknown", "node-not-responding")
    assert found.facts["unreachable"] == ["node-12 mlx5_0", "0,1,5"]
    bad = warned.replace("[PortXmitWait == 3]", "[SymbolErrorCounter == 65535]")
    assert said("ibqueryerrors", bad) == ("fail", "bad-cable")
    alone = port("[PortXmitWait == 3]") + "##          2 PMA query failures\n"
    assert said("ibqueryerrors", alone) == ("unknown", "node-not-responding")


def test_no_answer_from_the_subnet_manager_breaks_jobs_too() -> None:
    text = "Query SA failed: Connection timed out; sa call path_query failed\n"
    assert said("ibqueryerrors", text) == ("fail", "no-subnet-manager")
    text = (
        "ibwarn: [9] mad_rpc_open_port: can't open UMAD port ((null):0)\n"
        "ibqueryerrors: iberror: failed: Failed to open port\n"
    )
    assert said("ibqueryerrors", text) == ("unknown", "test-did-not-run")


def test_thresholds_and_suppressed_counters_are_reported() -> None:
    text = (
        port("[PortXmitWait == 3]")
        + "## Thresholds: [SymbolErrorCounter = 10][PortXmitWait = 1000]\n## Suppressed: PortRcvErrors\n"
    )
    found = judged("ibqueryerrors", text)
    assert found.facts["thresholds"] == {"SymbolErrorCounter": 10, "PortXmitWait": 1000}
    assert found.facts["suppressed"] == ["PortRcvErrors"]
    assert "PortRcvErrors suppressed" in found.findings[-1].message


def test_a_port_called_unused_does_not_count() -> None:
    text = port("[SymbolErrorCounter == 65535]")
    assert said("ibqueryerrors", text, {"unused_ports": ["0x946dae0300213c7e/1"]})[0] == "ok"


def test_a_cut_never_heals_and_damage_is_survived() -> None:
    a_cut_never_heals("ibqueryerrors", SATURATED, {})
    healthy = port("[PortXmitWait == 3]")
    for at in range(len(healthy) - 40):
        assert judged("ibqueryerrors", healthy[:at]).verdict == "unknown", healthy[:at]
    survives("ibqueryerrors", SATURATED, {})
    survives("ibqueryerrors", data("qer"), {})


def test_a_lid_that_did_not_answer_is_unreachable_even_without_its_name() -> None:
    warned = (
        "ibwarn: [5120] _do_madrpc: recv failed: Connection timed out\n"
        "ibwarn: [5120] mad_rpc: _do_madrpc failed; dport (Lid 42)\n"
    )
    found = judged("ibqueryerrors", warned + SUMMARY)
    assert (found.verdict, found.facts["unreachable"]) == ("unknown", ["Lid 42"])
    named = "ibwarn: [5120] query_cap_mask: classportinfo query failed on node-12 mlx5_0, Lid 42 port 1\n"
    assert judged("ibqueryerrors", warned + named + SUMMARY).facts["unreachable"] == ["node-12 mlx5_0"]
