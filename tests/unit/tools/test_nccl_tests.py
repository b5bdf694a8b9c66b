"""nccl-tests: every generation of its table, several runs in one file, runs that stopped, and damage."""

# ruff: noqa: E501 - lines are as long as the tool prints them

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from weaklink.checks.tools import nccl_tests as checks
from weaklink.explain.labels import labelled, stripped
from weaklink.observe.tools import nccl_tests as reader

from tests.unit.tools import fuzz
from tests.unit.tools.cases import NAMES, case_of, check_case, text_of

CASES = [name for name in NAMES if "-nccl-tests-" in name]

RANKS = "".join(
    f"#  Rank {rank:2d} Group  0 Pid {4000 + rank:6d} on host-{'ab'[rank // 8]} device {rank % 8:2d}"
    f" [0000:{0x1B + rank % 8:02x}:00] NVIDIA H100 80GB HBM3\n"
    for rank in range(16)
)
HEAD = (
    "# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 536870912 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20"
    " agg iters: 1 validation: 1 graph: 0 unalign: 0\n#\n# Using devices\n"
)
COLUMNS = (
    "#\n#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw"
    "  #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)\n"
)
ROWS = (
    "   536870912     134217728     float     sum      -1  2334.25  230.00  431.25       0  2335.80  229.84  430.95"
    "       0\n"
    "  1073741824     268435456     float     sum      -1  4510.72  238.04  446.33       0  4495.61  238.84  447.83"
    "       0\n"
)
TAIL = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 439.09 \n#\n# Collective test concluded: all_reduce_perf\n#\n"
NEW = HEAD + RANKS + COLUMNS + ROWS + TAIL


def read(text: str) -> Any:
    return fuzz.read(reader, text)


def judged(text: str, **context: Any) -> Any:
    return checks.judge(read(text), context)


def bare(text: str) -> str:
    """Return a text as the readers get it: without the ranks' labels."""
    lines = text.split("\n")
    how = labelled(lines)
    return "\n".join(stripped(lines, how)) if how is not None and how.plain else text


@pytest.mark.parametrize("name", CASES)
def test_the_cases(name: str) -> None:
    assert reader.recognise(text_of(name)) >= 70
    check_case(name, checks.judge(read(bare(text_of(name))), case_of(name).get("context", {})))


def test_the_newest_text() -> None:
    found = judged(NEW, expected_ranks=16, expected_busbw_gbps=447.83)
    assert (found.verdict, found.cause) == ("ok", "healthy")
    wanted = {"ranks": 16, "nodes": 2, "rows": 2, "version": "2.17.6", "test": "all_reduce_perf", "ranks_by_ratio": 16}
    assert wanted.items() <= found.facts.items()
    assert judged(NEW, expected_busbw_gbps=447.84).cause == "bandwidth-below-expected"
    assert judged(NEW, expected_busbw_gbps=439.09, compare="average").verdict == "ok"
    assert judged(NEW, expected_busbw_gbps=439.1, compare="average").verdict == "degraded"


def test_columns_are_found_by_their_names() -> None:
    wide = COLUMNS.replace("#wrong", "#wrong  #bitdiff    i_min    i_max    i_p99    i_cv%").replace(
        "i_cv%\n", "i_cv%            timestamp\n"
    )
    extra = "         0  4500.00  4600.00  4590.00     0.50"
    rows = "".join(
        re.sub(r"(\s0)(?=\s{2,}\d|$)", lambda m: m.group(1) + extra, line) + "  2026-06-01 10:11:12\n"
        for line in ROWS.splitlines()
    )
    record = read(HEAD + RANKS + wide + rows + TAIL)
    assert record.troubles == ()
    assert [row.busbw for row in record.rows] == [431.25, 447.83]
    assert record.rows[0].out_of_place is not None
    assert record.rows[0].out_of_place.bit_differences == 0


def test_blank_operation_and_in_place_alone() -> None:
    blank = ROWS.replace("     sum ", "         ")
    assert [row.root for row in read(HEAD + RANKS + COLUMNS + blank + TAIL).rows] == [-1, -1]
    row = "   536870912     134217728     float     sum      -1" + " " * 34 + "2335.80  229.84  430.95       0\n"
    alone = read(HEAD + RANKS + COLUMNS + row + TAIL)
    assert alone.rows[0].out_of_place is None
    assert alone.rows[0].busbw == 430.95


def test_without_its_header_a_row_counts_only_where_its_figures_agree() -> None:
    assert len(read(ROWS).rows) == 2
    assert read(ROWS.replace("  230.00  ", "  330.00  ")).rows[0].size == 1073741824


def test_a_row_that_another_line_broke_is_no_row() -> None:
    broken = NEW.replace("  431.25  ", "  43 host:1:2 [0] NCCL INFO x 1.25  ")
    found = judged(broken)
    assert (found.verdict, found.cause) == ("unknown", "output-truncated")
    assert found.facts["rows"] == 1


def test_a_row_between_whose_cells_the_log_goes_on_is_put_together() -> None:
    log = "node-a1:77:79 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"
    for place in ("      -1", "  431.25       0"):
        torn = NEW.replace(place, f"{place}{log}\n{log}\n", 1)
        found = judged(torn)
        assert (found.verdict, found.facts["rows"]) == ("ok", 2), torn
        assert found.facts == judged(NEW).facts
    assert judged(NEW.replace("  447.83       0\n", f"  447.83       0{log}\n")).facts == judged(NEW).facts
    lost = NEW.replace(
        "      -1  2334.25  230.00  431.25       0  2335.80  229.84  430.95       0\n", f"      -1{log}\n"
    )
    assert (judged(lost).verdict, judged(lost).facts["rows"]) == ("unknown", 1)


def test_a_run_that_was_ended_from_outside_is_cut_off() -> None:
    late = "slurmstepd: error: *** STEP 7.0 ON h CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n"
    assert judged(HEAD + RANKS + COLUMNS + ROWS + late).cause == "output-truncated"
    assert judged(HEAD + RANKS + COLUMNS + late).cause == "test-did-not-run"


def test_wrong_values_fail_however_fast() -> None:
    wrong = NEW.replace("447.83       0", "447.83     128").replace("values : 0 OK", "values : 1 FAILED")
    found = judged(wrong, expected_busbw_gbps=1)
    assert (found.verdict, found.cause) == ("fail", "data-corruption")
    assert (found.facts["bad_sizes"], found.facts["wrong_total"]) == ([1073741824], 128)
    # The fault shows before the cut.
    assert judged(wrong[: wrong.index("# Out of")]).verdict == "fail"
    assert judged(NEW.replace("447.83       0", "447.83     nan")).cause == "data-corruption"


def test_results_that_nobody_checked() -> None:
    text = NEW.replace("validation: 1", "validation: 0").replace("       0\n", "     N/A\n")
    text = re.sub(r"(\d\.\d\d)       0 ", r"\1     N/A ", text)
    assert judged(text).verdict == "ok"
    assert judged(text).facts["validated"] is False
    found = judged(text, require_validation=True)
    assert (found.verdict, found.cause) == ("unknown", "data-not-validated")
    assert judged(NEW, require_validation=True).verdict == "ok"


def test_no_cut_says_ok_or_changes_a_figure() -> None:
    context = {"expected_ranks": 16, "expected_busbw_gbps": 430, "compare": "average"}
    end = NEW.index("439.09 ") + len("439.09 ")
    whole = judged(NEW, **context).facts
    for at in range(end):
        found = judged(NEW[:at], **context)
        assert found.verdict != "ok", NEW[:at][-80:]
        assert found.facts["avg_busbw_gbps"] is None
        for key in ("max_busbw_gbps", "largest_size_busbw_gbps"):
            assert found.facts[key] in (None, 431.25, whole[key])


def test_several_runs_in_one_file_are_judged_each() -> None:
    slow = NEW.replace("446.33", "146.33").replace("447.83", "147.83").replace("439.09", "280.0")
    assert judged(NEW + NEW, expected_ranks=16, expected_busbw_gbps=440).facts["runs"] == 2
    for text in (NEW + slow, slow + NEW):
        found = judged(text, expected_ranks=16, expected_busbw_gbps=440)
        assert (found.verdict, found.facts["largest_size_busbw_gbps"]) == ("degraded", 147.83)
    stopped = HEAD + RANKS + "host-a: Test NCCL failure common.cu:961 'unhandled system error'\n"
    found = judged(stopped + NEW)
    assert (found.verdict, found.cause, found.facts["runs"]) == ("unknown", "test-did-not-run", 2)


def test_ranks() -> None:
    assert judged(NEW, expected_ranks=24).cause == "gpu-missing"
    assert judged(NEW, expected_ranks=8).verdict == "unknown"
    unlisted = HEAD + COLUMNS + ROWS + TAIL
    assert judged(unlisted, expected_ranks=16).verdict == "ok"
    assert judged(unlisted, expected_ranks=32).cause == "gpu-missing"
    one = judged(text_of("004"), expected_busbw_gbps=20)
    assert (one.verdict, one.cause) == ("unknown", "nothing-tested")
    # Whole one-process runs, one after the other.
    alone = HEAD + RANKS.splitlines(keepends=True)[0] + COLUMNS + ROWS + TAIL
    assert judged(alone * 3, expected_ranks=3).cause == "built-without-mpi"
    assert judged(alone * 3, expected_ranks=1).verdict == "ok"


@pytest.mark.parametrize(
    ("line", "status", "cause"),
    [
        ("h:1:2 [3] ibvwrap.cc:1 NCCL WARN Call to ibv_modify_qp failed with error No route to host", "fail", "roce-gid-unreachable"),
        ("h:1:2 [3] ibvwrap.cc:1 NCCL WARN Call to ibv_modify_qp failed with 22 Invalid argument", "fail", "gid-index-wrong"),
        ("h:1:2 [3] net_ib.cc:9 NCCL WARN NET/IB : Got completion from peer 10.0.0.1<5> with error 12, opcode 0, len 0, vendor err 129", "fail", "rdma-retry-exceeded"),
        ("[2026-01-02 03:04:05] h:1:2 [3] net_ib.cc:9 NCCL WARN NET/IB: Got completion from peer 10.0.0.1<5> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0)", "fail", "rdma-retry-exceeded"),
        ("h:1:2 [3] enqueue.cc:9 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'", "fail", "gpu-requires-reset"),
        ("Invalid number of GPUs: 8 requested but only 7 were found.", "fail", "gpu-missing"),
        ("h: Test CUDA failure common.cu:958 'CUDA driver version is insufficient for CUDA runtime version'", "fail", "driver-library-mismatch"),
        ("h: Test CUDA failure common.cu:958 'out of memory'", "unknown", "test-did-not-run"),
        ("h: Test NCCL failure common.cu:961 'remote process exited or there was a network error'", "unknown", "test-did-not-run"),
        ("bash: line 1: ./all_reduce_perf: No such file or directory", "unknown", "test-did-not-run"),
        ("srun: error: *** STEP 7.0 ON h CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***", "unknown", "test-did-not-run"),
        ("all_reduce_perf: error while loading shared libraries: libnccl.so.2: cannot open shared object file", "unknown", "test-did-not-run"),
    ],
)  # fmt: skip
def test_why_a_run_stopped(line: str, status: str, cause: str) -> None:
    noise = "h:1:3 [4] socket.cc:5 NCCL WARN socketProgress: Connection closed by remote peer h<5>\n"
    found = judged(HEAD + RANKS + noise + line + "\n")
    assert (found.verdict, found.cause) == (status, cause)
    if "[3]" in line:
        assert found.facts["local_devices"] == [3]
    # A run that ended well had no such end.
    assert judged(NEW + line + "\n").verdict == "ok"


def test_which_network() -> None:
    info = "h:1:2 [0] NCCL INFO Using network IB\nh:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
    assert judged(info + NEW, require_rdma=True).verdict == "ok"
    assert judged(info + NEW).facts["gdr"] is True
    socket = judged(info.replace("IB", "Socket") + NEW, require_rdma=True)
    assert (socket.verdict, socket.cause) == ("fail", "rdma-not-used")
    assert judged(NEW, require_rdma=True).verdict == "unknown"
    assert judged(info.replace("IB", "Socket") + NEW, transport="roce").cause == "rdma-not-used"
    assert judged(info.replace("IB", "Socket") + NEW, transport="socket").verdict == "ok"
    assert judged(info + NEW, transport="RoCE").verdict == "ok"
    newer = "h:1:2 [0] NCCL INFO Assigned NET plugin Socket to comm\n"
    assert judged(newer + NEW, require_rdma=True).cause == "rdma-not-used"


def document(**changes: Any) -> dict[str, Any]:
    half = {"time": 4510.7, "alg_bw": 238.04, "bus_bw": 446.33, "nwrong": 0.0}
    base: dict[str, Any] = {
        "version": 3,
        "args": ["/opt/nccl-tests/build/all_reduce_perf", "-J", "out.json"],
        "env": ["TOKEN=hidden"],
        "nccl_version": 22809,
        "config": {
            "nthreads": 1, "ngpus": 8, "minimum_bytes": 1073741824, "maximum_bytes": 1073741824, "step_factor": 2,
            "iterations": 20, "validation": 1,
            "devices": [
                {"rank": 8 * at, "group": 0, "pid": 1, "hostname": f"h{at}", "device": 0, "device_hex": "0000:1b:00",
                 "device_info": "NVIDIA H100"} for at in range(2)
            ],
        },
        "results": [{
            "size": 1073741824, "count": 268435456, "type": "float", "redop": "sum", "root": "    -1",
            "out_of_place": half, "in_place": half, "actual_iterations": 20,
            "out_of_place_per_iter": {"per_process_max_times_us": [[4500.0, 4510.0], [5500.0, 5510.0]]},
        }],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 446.33, "okay": "unchecked"},
    }  # fmt: skip
    return {**base, **changes}


def test_the_json_file() -> None:
    text = json.dumps(document())
    assert reader.recognise(text) >= 90
    found = judged(text, expected_ranks=16, expected_busbw_gbps=446)
    assert found.verdict == "ok"
    wanted = {"ranks": 16, "nodes": 2, "nccl_version": "2.28.9", "test": "all_reduce_perf", "version": "json 3",
              "slowest_process": 1, "validated": True, "iters": 20}  # fmt: skip
    assert wanted.items() <= found.facts.items()
    assert "hidden" not in repr(read(text))
    for at in range(len(text)):
        assert judged(text[:at]).verdict == "unknown"


def test_what_a_json_file_that_was_cut_off_held_is_told() -> None:
    rows = document()["results"] * 3
    text = json.dumps(document(results=rows))
    cut = text[: text.rindex('"out_of_place":')]
    found = judged(cut, expected_ranks=16)
    assert (found.verdict, found.cause) == ("unknown", "output-truncated")
    assert (found.facts["rows"], found.facts["ranks"], found.facts["avg_busbw_gbps"]) == (2, 16, None)
    bad = {**rows[0], "in_place": {**rows[0]["in_place"], "nwrong": 5.0}}
    text = json.dumps(document(results=[bad, *rows]))
    assert judged(text[: text.index('"out_of_bounds"')]).cause == "data-corruption"
    assert judged('{"a": [}').verdict == "unknown"
    gone = document(results=[], errors=["Call to ibv_modify_qp failed with error Network is unreachable"])
    assert judged(json.dumps(gone)).cause == "roce-gid-unreachable"


def test_json_that_is_not_as_it_should_be() -> None:
    row = document()["results"][0]
    bad = {**row, "in_place": {**row["in_place"], "nwrong": 5.0}}
    wrong = document(results=[bad], out_of_bounds={"count": 1, "okay": "false"})
    assert judged(json.dumps(wrong)).cause == "data-corruption"
    nan = {**row, "out_of_place": {**row["out_of_place"], "bus_bw": "nan"}, "in_place": None}
    assert judged(json.dumps(document(results=[nan]))).verdict == "unknown"
    assert judged(json.dumps(document(results=[]))).cause == "nothing-tested"
    failed = document(average_bus_bandwidth={"bandwidth": 446.33, "okay": "false"})
    assert judged(json.dumps(failed)).cause == "bandwidth-below-expected"


def test_hosts_and_healthy_rows_do_not_change_the_verdict() -> None:
    context = {"expected_ranks": 16, "expected_busbw_gbps": 447}
    renamed = NEW.replace("host-a", "gpu.r1_07").replace("host-b", "x-9")
    assert judged(renamed, **context).facts == judged(NEW, **context).facts
    small = "        1024           256     float     sum      -1    52.12    0.02    0.04       0    51.93    0.02    0.04       0\n"
    assert judged(NEW.replace(ROWS, small + ROWS), **context).verdict == "ok"
    lines = RANKS.splitlines(keepends=True)
    assert judged(NEW.replace(RANKS, "".join(reversed(lines))), **context).facts["ranks"] == 16


def test_a_context_of_the_wrong_kind_is_named() -> None:
    for key, value in (("expected_ranks", "16"), ("compare", "best"), ("require_rdma", 1), ("expected_busbw_gbps", [])):
        with pytest.raises(ValueError, match=key):
            judged(NEW, **{key: value})


def test_nothing_is_unknown() -> None:
    for text in ("", "\n\n", "hello\n", "Segmentation fault\n"):
        assert judged(text).verdict == "unknown"


@pytest.mark.parametrize("name", [*CASES[:6], "new", "json"])
def test_damage(name: str) -> None:
    text = {"new": NEW, "json": json.dumps(document())}.get(name) or text_of(name)
    fuzz.survives(reader, text, judge=checks.judge, context={"expected_ranks": 16, "expected_busbw_gbps": 100.0})
