"""The reader of perftest's output: whole results give figures, everything else says unknown or what failed."""

# ruff: noqa: S311 - seeded simulations, no secrets

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weaklink.observe.perftest import parse_json, parse_text

# What perftest 25.01 of Debian 13 printed between two lab machines.
LINE = "-" * 87
HEAD = f"""{LINE}
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : rxe_compute
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 PCIe relax order: ON\t\tLock-free      : OFF
 ibv_wr* API     : OFF\t\tUsing DDP      : OFF
 TX depth        : 128
 CQ Moderation   : 1
 Mtu             : 4096[B]
 Link type       : Ethernet
 GID index       : 1
 Max inline data : 0[B]
 rdma_cm QPs\t : OFF
 Data ex. method : Ethernet
{LINE}
 local address: LID 0000 QPN 0x0011 PSN 0x2782da RKey 0x0002ce VAddr 0x007f51e63a9000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:77:01:11
 remote address: LID 0000 QPN 0x0011 PSN 0xe1be1b RKey 0x0002bf VAddr 0x007fd0addb0000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:77:01:12
{LINE}
"""
BW = (
    " WARNING: BW peak won't be measured in this run.\n"
    + HEAD
    + f""" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      1866             0.00               0.49   \t\t     0.000931
{LINE}
"""
)
LAT = (
    HEAD.replace("RDMA_Write BW", "Send Latency")
    + f""" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]{" "}
 2       200          241.85         9020.19      833.88   \t       1680.64     \t1769.10\t\t7549.68 \t\t9020.19
{LINE}
"""  # noqa: E501 - as the tool prints it
)
JSON_BW = """{
"test_info": {
"test": "RDMA_Write_BW_Test",
"Dual_port": "OFF",
"Device": "rxe_compute",
"Number_of_qps": 1,
"Transport_type": "IB",
"Connection_type": "RC",
"CQ_Moderation": 1,
"Mtu": 4096,
"Link_type": "Ethernet",
"GID_index": 1,
"Data_ex_method": "Ethernet"
},
"results": {
"MsgSize": 65536,
"n_iterations": 1866,
"BW_peak": 0.00,
"BW_average": 0.49,
"MsgRate": 0.000931
}
}
"""
JSON_LAT = """{
"test_info": {
"test": "Send_Latency_Test",
"Device": "rxe_compute",
"Mtu": 4096,
"GID_index": 1
},
"results": {
"MsgSize": 2,
"n_iterations": 200,
"t_min": 241.85,
"t_max": 9020.19,
"t_typical": 833.88,
"t_avg": 1680.64,
"t_stdev": 1769.10,
"percentile_99": 7549.68,
"percentile_99.9": 9020.19
}
}
"""


def test_bandwidth_in_gigabits() -> None:
    seen = parse_text(BW)
    assert (seen.status, seen.cause, seen.test) == ("ok", "healthy", "RDMA_Write BW")
    assert seen.gbps == pytest.approx(0.49)
    assert seen.peak_gbps is None
    assert (seen.bytes, seen.iterations, seen.mtu, seen.gid_index, seen.qps) == (65536, 1866, 4096, 1, 1)
    assert seen.msg_rate_mpps == pytest.approx(0.000931)


@pytest.mark.parametrize("word", ["MB", "MiB"])
def test_megabytes_are_two_to_the_twenty(word: str) -> None:
    text = BW.replace("Gb/sec", f"{word}/sec").replace("0.00               0.49 ", "0.00               23391.42")
    assert parse_text(text).gbps == pytest.approx(196.22, abs=0.01)


def test_latency() -> None:
    seen = parse_text(LAT)
    assert (seen.status, seen.test, seen.bytes, seen.iterations) == ("ok", "Send Latency", 2, 200)
    assert (seen.lat_us, seen.lat_avg_us, seen.p99_us) == (833.88, 1680.64, 7549.68)
    assert seen.gbps is None


def test_json_says_the_same_as_text() -> None:
    text, data = parse_text(BW), parse_json(JSON_BW)
    assert (data.status, data.gbps, data.bytes, data.iterations) == ("ok", text.gbps, text.bytes, text.iterations)
    assert data.test == text.test
    text, data = parse_text(LAT), parse_json(JSON_LAT)
    assert (data.lat_us, data.p99_us, data.test) == (text.lat_us, text.p99_us, text.test)
    assert parse_json(JSON_BW.replace("0.49", "23391.42"), gbits=False).gbps == pytest.approx(196.22, abs=0.01)


@pytest.mark.parametrize("whole", [BW, LAT])
def test_a_cut_text_never_gives_a_figure(whole: str) -> None:
    row_end = whole.rindex("\n" + LINE)
    for at in range(row_end + 1):
        seen = parse_text(whole[:at])
        assert seen.status == "unknown"
        assert seen.gbps is None
        assert seen.lat_us is None
        assert seen.cause in ("output-truncated", "test-did-not-run")


@pytest.mark.parametrize("whole", [JSON_BW, JSON_LAT])
def test_a_cut_result_file_never_gives_a_figure(whole: str) -> None:
    for at in range(len(whole.rstrip())):
        seen = parse_json(whole[:at])
        assert seen.status == "unknown"
        assert seen.gbps is None
        assert seen.lat_us is None


def test_zero_and_nan_are_no_figures() -> None:
    assert parse_text(BW.replace("0.49", "0.000000")).gbps is None
    assert parse_text(BW.replace("0.49", "-nan")).status == "unknown"
    assert parse_json(JSON_BW.replace("0.49", "NaN")).gbps is None
    assert parse_json(JSON_BW.replace("0.49", "0.0")).status == "unknown"


@pytest.mark.parametrize(
    ("tail", "status", "cause"),
    [
        (" Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n", "fail", "rdma-retry-exceeded"),
        (" Completion with error at client\n Failed status 13: wr_id 0 syndrom 0x0\n", "fail", "rdma-rnr-exceeded"),
        (" Completion with error at client\n Failed status 5: wr_id 0 syndrom 0xf9\n", "fail", "rdma-work-failed"),
        (
            "Failed to modify QP 17 to RTR\n Unable to Connect the HCA's through the link\n",
            "fail",
            "roce-gid-unreachable",
        ),
    ],
)
def test_rdma_that_failed_is_a_fail(tail: str, status: str, cause: str) -> None:
    seen = parse_text(HEAD + tail)
    assert (seen.status, seen.cause) == (status, cause)
    assert seen.detail
    assert seen.gbps is None


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "Couldn't connect to 10.77.0.12:18515\nUnable to open file descriptor for socket connection\n",
            "rendezvous-failed",
        ),
        (" IB device rxe_compute not found\n Unable to find the Infiniband/RoCE device\n", "nic-probe-failed"),
        ("", "test-did-not-run"),
        ("\n\n", "test-did-not-run"),
        ("************************************\n* Waiting for client to connect... *\n", "output-truncated"),
    ],
)
def test_what_is_our_own_failure_is_unknown(text: str, cause: str) -> None:
    seen = parse_text(text)
    assert (seen.status, seen.cause) == ("unknown", cause)


def test_names_and_numbers_follow_the_text() -> None:
    rng = random.Random(7)
    for _ in range(50):
        average, iterations, size = rng.uniform(0.01, 800), rng.randrange(5, 10**7), 2 ** rng.randrange(1, 24)
        text = BW.replace("0.49 ", f"{average:.6f} ").replace("1866", str(iterations)).replace("65536 ", f"{size} ")
        text = text.replace("rxe_compute", f"mlx5_{rng.randrange(16)}")
        seen = parse_text(text)
        assert seen.gbps == pytest.approx(average, abs=1e-6)
        assert (seen.iterations, seen.bytes) == (iterations, size)


def test_several_sizes_give_the_last_whole_row() -> None:
    row = re.search(r"^ 65536.*\n", BW, re.MULTILINE)
    assert row is not None
    more = row.group(0).replace("65536", "131072").replace("0.49", "0.612000")
    assert parse_text(BW.replace(row.group(0), row.group(0) + more)).gbps == pytest.approx(0.612)


@given(st.text(max_size=300))
def test_noise_never_breaks_it(text: str) -> None:
    for seen in (parse_text(text), parse_json(text), parse_text(HEAD + text)):
        assert seen.status in ("ok", "unknown", "fail")
