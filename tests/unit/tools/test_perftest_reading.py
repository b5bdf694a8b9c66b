"""perftest as a tool whose output is explained: units, sizes, both directions, what failed, damage."""

# ruff: noqa: E501 - lines are as long as the tool prints them

from __future__ import annotations

import json
from typing import Any

import pytest
from weaklink.checks.tools import perftest as checks
from weaklink.observe.tools import perftest as reader

from tests.unit.tools import fuzz
from tests.unit.tools.cases import NAMES, case_of, check_case, text_of

RULE = "-" * 87 + "\n"
HEAD = (
    RULE
    + """                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 2\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 Mtu             : 4096[B]
 Link type       : Ethernet
 GID index       : 3
"""
    + RULE
    + " local address: LID 0000 QPN 0x014c PSN 0x2be91f\n GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:44:31:05\n"
    + RULE
)
COLUMNS = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
SWEEP = (
    HEAD
    + COLUMNS
    + " 64         5000             10.10              9.90               19.335938\n"
    + " 65536      5000             392.10             391.90             0.747490\n"
    + " 8388608    5000             392.40             392.20             0.005844\n"
    + RULE
)
LAT = (
    HEAD.replace("RDMA_Write BW", "RDMA_Read Latency")
    + " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"
    + "   99% percentile[usec]   99.9% percentile[usec] \n"
    + "Conflicting CPU frequency values detected: 1500.000000 != 3100.000000. CPU Frequency is not max.\n"
    + " 2       1000          4.70           13.20        4.83     \t       4.82        \t0.02   \t\t4.91    \t\t13.20  \n"
    + RULE
)


def judged(text: str, **context: Any) -> Any:
    return checks.judge(fuzz.read(reader, text), context)


@pytest.mark.parametrize("name", [name for name in NAMES if "-perftest-" in name])
def test_the_cases(name: str) -> None:
    assert reader.recognise(text_of(name)) >= 80
    check_case(name, judged(text_of(name), **case_of(name)["context"]))


@pytest.mark.parametrize(("word", "gbps"), [("Gb", 391.9), ("MB", 3287.49), ("MiB", 3287.49)])
def test_units(word: str, gbps: float) -> None:
    text = (
        HEAD + COLUMNS.replace("Gb/", f"{word}/") + " 65536      5000      392.10      391.90       0.747490\n" + RULE
    )
    scale = gbps if word == "Gb" else 391.9 * 8.388608e-3
    assert judged(text).facts["bw_average_gbps"] == pytest.approx(scale, abs=0.01)


def test_the_average_counts_and_equal_is_enough() -> None:
    assert judged(SWEEP, expected_bw_gbps=392.2).verdict == "ok"
    found = judged(SWEEP, expected_bw_gbps=392.3)
    assert (found.verdict, found.cause) == ("degraded", "bandwidth-below-expected")


def test_small_messages_are_judged_by_their_rate() -> None:
    context = {
        "line_rate_gbps": 400,
        "min_fraction": 0.95,
        "fraction_applies_from_bytes": 65536,
        "min_msg_rate_mpps": 15,
    }
    assert judged(SWEEP, **context).verdict == "ok"
    small = HEAD + COLUMNS + " 64         5000             10.10              9.90               19.335938\n" + RULE
    assert judged(small, **context).verdict == "ok"
    assert judged(small, **{**context, "min_msg_rate_mpps": 20}).verdict == "degraded"
    assert judged(SWEEP, **{**context, "min_msg_rate_mpps": 20}).verdict == "degraded"
    slow = SWEEP.replace("391.90 ", "291.90 ")
    assert judged(slow, **context).verdict == "degraded"
    # The lower bound of another size says nothing of a run with small messages alone.
    assert judged(small, line_rate_gbps=400, min_fraction=0.95, fraction_applies_from_bytes=4096).verdict == "ok"


def test_both_directions() -> None:
    text = SWEEP.replace("RDMA_Write BW", "RDMA_Write Bidirectional BW")
    found = judged(text, line_rate_gbps=400, min_fraction=0.9)
    assert found.facts["bidirectional"] is True
    assert found.verdict == "degraded"
    assert judged(text.replace("392.20", "725.00"), line_rate_gbps=400, min_fraction=0.9).verdict == "ok"


def test_the_tables_of_each_direction_are_not_the_sum() -> None:
    def both(local: float, remote: float) -> str:
        row = " 65536      5000             0.00               {:.2f}             0.747490\n"
        tables = "".join(
            f"\n {side} results: \n" + RULE + COLUMNS + row.format(rate) + RULE
            for side, rate in (("Local", local), ("Remote", remote))
        )
        head = HEAD.replace("BW Test", "Bidirectional BW Test")
        return head + COLUMNS + row.format(local + remote) + RULE + tables

    line = {"line_rate_gbps": 200, "min_fraction": 0.9}
    good = judged(both(190, 189), **line)
    assert (good.verdict, good.facts["bw_average_gbps"], good.facts["runs"]) == ("ok", 379, 1)
    assert (good.facts["qps"], good.facts["bidirectional"]) == (2, True)
    assert judged(both(199, 171), **line).verdict == "degraded"
    assert judged(both(190, 189), expected_bw_gbps=379).verdict == "ok"


def test_an_expected_bandwidth_is_the_sums_or_one_sides() -> None:
    text = SWEEP.replace("RDMA_Write BW", "RDMA_Write Bidirectional BW").replace("392.20", "371.00")
    assert judged(text, expected_bw_gbps=370).verdict == "ok"
    assert judged(text, expected_bw_gbps=380).verdict == "degraded"
    assert judged(text, expected_bw_gbps=185).verdict == "ok"
    assert judged(text, expected_bw_gbps=190).verdict == "degraded"
    assert judged(SWEEP, expected_bw_gbps=190).verdict == "ok"


def test_the_side_that_only_receives_prints_no_row() -> None:
    server = HEAD + COLUMNS + RULE
    found = judged(server, expected_bw_gbps=100)
    assert (found.verdict, found.cause) == ("unknown", "nothing-tested")
    for text in (server + SWEEP, SWEEP + server):
        found = judged(text, expected_bw_gbps=390)
        assert (found.verdict, found.facts["bw_average_gbps"], found.facts["runs"]) == ("ok", 392.2, 1)


def test_a_latency_test_says_nothing_about_bandwidth() -> None:
    found = judged(LAT, expected_bw_gbps=100)
    assert (found.verdict, found.cause) == ("unknown", "nothing-tested")
    assert judged(LAT, min_msg_rate_mpps=1).verdict == "ok"
    assert judged(LAT + SWEEP, expected_bw_gbps=100).verdict == "ok"


def test_what_is_said_beside_a_result() -> None:
    driver = "libibverbs: Warning: couldn't load driver 'libmana-rdmav34.so': cannot open: No such file or directory\n"
    waits = "\n************************************\n* Waiting for client to connect... *\n" + "*" * 36 + "\n"
    goodbye = " Failed to exchange data between server and clients\n"
    assert judged(driver + waits + SWEEP + goodbye, expected_bw_gbps=390).verdict == "ok"
    assert judged(HEAD + goodbye).cause == "test-did-not-run"
    assert judged(HEAD + "Couldn't allocate MR\n Failed to create MR\n").cause == "test-did-not-run"
    low = judged(SWEEP + "Error: BW result is below bw limit\n")
    assert (low.verdict, low.cause) == ("degraded", "bandwidth-below-expected")
    assert reader.recognise(waits) >= 80
    assert reader.recognise("bash: ib_write_bw: command not found\n") >= 80


def test_an_empty_gid_and_a_port_without_a_subnet_manager() -> None:
    rtr = "Failed to modify QP 17 to RTR\n Unable to Connect the HCA's through the link\n"
    empty = " local address: LID 0000 QPN 0x1 PSN 0x2\n GID: " + ":".join(["00"] * 16) + "\n"
    found = judged(HEAD + empty + rtr)
    assert (found.verdict, found.cause) == ("fail", "gid-index-wrong")
    assert judged(empty + SWEEP).verdict == "ok"
    assert judged(" Port number 1 state is Init\n Couldn't set the link layer\n").cause == "no-subnet-manager"


OLD_JSON = """{
test_info: {
test: RDMA_Write_Latency_Test,
Test with events: Using_mlx5_0_comp1,
Device: "rxe0",
Number_of_qps: 1,
TX_depth : 1,
},
results: {
MsgSize: 128,
n_iterations: 5000,
t_min: 2.37,
t_max: 5.39,
t_typical: 2.42,
t_avg: 2.43,
t_stdev: 0.05,
percentile_99: 2.47,
percentile_99.9: 4.03,
},
}
"""


def test_the_json_file_that_was_none() -> None:
    assert reader.recognise(OLD_JSON) >= 90
    facts = judged(OLD_JSON).facts
    assert judged(OLD_JSON).verdict == "ok"
    wanted = {"test": "RDMA_Write Latency", "device": "rxe0", "bytes": 128, "lat_avg_us": 2.43, "lat_p99_us": 2.47}
    assert wanted.items() <= facts.items()
    for at in range(OLD_JSON.rindex("}")):
        cut = judged(OLD_JSON[:at])
        assert cut.verdict == "unknown"
        assert cut.facts["lat_avg_us"] in (None, 2.43)


def test_other_columns() -> None:
    ports = COLUMNS.rstrip() + "   BW Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]\n"
    text = HEAD + ports + " 65536 5000 392.10 391.90 0.747490 195.0 0.37 196.9 0.38\n" + RULE
    assert judged(text).facts["bw_average_gbps"] == 391.9
    levels = COLUMNS.replace("#iterations", "#sl      #iterations")
    assert judged(HEAD + levels + " 65536 3 5000 392.10 391.90 0.747490\n" + RULE).facts["bw_average_gbps"] == 391.9
    load = COLUMNS.rstrip() + "    CPU_Util[%]\n"
    assert judged(HEAD + load + " 65536 5000 392.10 391.90 0.747490\t    1.25\n" + RULE).verdict == "ok"


def test_latency() -> None:
    facts = judged(LAT).facts
    assert (facts["lat_typical_us"], facts["lat_avg_us"], facts["lat_p99_us"]) == (4.83, 4.82, 4.91)
    assert facts["test"] == "RDMA_Read Latency"
    assert facts["bw_average_gbps"] is None
    timed = HEAD.replace("BW", "Latency") + " #bytes        #iterations       t_avg[usec]    tps average\n"
    assert (
        judged(timed + " 2             4961213           1.01           494960.89  \n" + RULE).facts["lat_avg_us"]
        == 1.01
    )


@pytest.mark.parametrize(
    ("tail", "status", "cause"),
    [
        (" Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n", "fail", "rdma-retry-exceeded"),
        (" Completion with error at client\n Failed status 13: wr_id 0 syndrom 0x0\n", "fail", "rdma-retry-exceeded"),
        (
            "Failed to modify QP 17 to RTR\n Unable to Connect the HCA's through the link\n",
            "fail",
            "roce-gid-unreachable",
        ),
        (" Port number 1 state is Down\n Couldn't set the link layer\n", "fail", "link-down"),
        ("Couldn't connect to 10.0.0.7:18515\n Unable to init the socket connection\n", "unknown", "test-did-not-run"),
        (" Unable to find the Infiniband/RoCE device\n", "unknown", "test-did-not-run"),
    ],
)
def test_what_failed(tail: str, status: str, cause: str) -> None:
    found = judged(HEAD + tail, expected_bw_gbps=1)
    assert (found.verdict, found.cause) == (status, cause)


def test_no_cut_says_ok_or_changes_a_figure() -> None:
    figures = {None, 9.9, 391.9, 392.2}
    for at in range(SWEEP.rindex(RULE)):
        found = judged(SWEEP[:at])
        assert found.verdict == "unknown"
        assert found.facts["bw_average_gbps"] in figures


def test_zero_is_no_figure() -> None:
    found = judged(HEAD + COLUMNS + " 65536      5000      0.00      0.00       0.000000\n" + RULE, expected_bw_gbps=1)
    assert (found.verdict, found.facts["bw_average_gbps"]) == ("unknown", None)
    assert found.cause == "nothing-tested"


@pytest.mark.parametrize(("average", "peak"), [(391.9, 392.1), (46718.1, 46742.0)])
def test_the_json_files_unit_is_told_by_the_message_rate(average: float, peak: float) -> None:
    text = json.dumps(
        {
            "test_info": {"test": "RDMA_Write_BW_Test", "Device": "mlx5_0", "Number_of_qps": 2},
            "results": {
                "MsgSize": 65536,
                "n_iterations": 5000,
                "BW_peak": peak,
                "BW_average": average,
                "MsgRate": 0.74749,
            },
        }
    )
    assert reader.recognise(text) >= 90
    found = judged(text, expected_bw_gbps=391)
    assert found.verdict == "ok"
    assert found.facts["bw_average_gbps"] == pytest.approx(391.9, abs=0.02)
    assert judged(text.replace("0.74749", "0.3")).verdict == "unknown"
    for at in range(len(text)):
        assert judged(text[:at]).verdict == "unknown"


def test_the_device_and_its_neighbours_do_not_matter() -> None:
    assert judged(SWEEP.replace("mlx5_0", "rocep65s0f1")).facts["device"] == "rocep65s0f1"
    slow = SWEEP.replace("392.20", "192.20")
    for text in (SWEEP + slow, slow + SWEEP):
        assert judged(text, expected_bw_gbps=390).verdict == "degraded"


@pytest.mark.parametrize("text", [SWEEP, LAT, HEAD + " Completion with error at client\n Failed status 12: x\n"])
def test_damage(text: str) -> None:
    fuzz.survives(reader, text, judge=checks.judge, context={"expected_bw_gbps": 390.0})
