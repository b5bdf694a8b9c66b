"""One end of a flow on a node, with fake perftest tools that really run as processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weaklink.measure.perftest import Bench, classify, difference, find_device
from weaklink.model.measurement import BANDWIDTH, LATENCY, Measurement, retransmit_rate, with_retransmits
from weaklink.model.process import EXITED, MISSING, TIMEOUT, RunResult
from weaklink.model.round import EndReport, FlowSpec, RoundSpec, decode, encode, parse_reports
from weaklink.observe.command import Tools
from weaklink.observe.host import Host

from tests.unit.test_perftest import BW, HEAD, LAT

FLOW = FlowSpec(0, "c1/rxe_compute", "c2/rxe_compute", "10.77.1.11", "10.77.1.12", "10.77.0.12", 20000)
SPEC = RoundSpec(4, (FLOW,), bw_seconds=1, lat_iterations=10, setup_seconds=5.0)

# A server touches a file that stands for its port and waits to be met; a client that finds none cannot connect.
TOOL = """#!/bin/sh
here={here}; name=$(basename "$0"); port=; server=; listen=yes
echo "$name $*" >> "$here/argv"
while [ $# -gt 0 ]; do
  case "$1" in
    --version) echo "Version: 6.24"; exit 0 ;;
    -p) port=$2; shift ;;
    10.77.*) listen= ;;
  esac
  shift
done
if [ -n "$listen" ]; then
  : > "$here/listen-$port"
  while [ ! -e "$here/met-$port" ]; do sleep 0.02; done
  echo 7 > {counter}
  cat "$here/$name.server" 2>/dev/null
  exit 0
fi
[ -e "$here/listen-$port" ] || {{ echo "Couldn't connect to 10.77.0.12:$port"; exit 1; }}
echo 5 > {counter}
: > "$here/met-$port"
cat "$here/$name.client"
[ -e "$here/hang" ] && sleep 60
exit $(cat "$here/rc" 2>/dev/null || echo 0)
"""


class Node:
    """A node of its own: a sysfs tree and tools. Two of them share ``here``, which stands for the network between."""

    def __init__(self, root: Path, here: Path, address: str, index: int = 1) -> None:
        port = root / "sys/class/infiniband/rxe_other/ports/1"
        (port / "gids").mkdir(parents=True)
        a, b, c, d = (int(part) for part in address.split("."))
        (port / f"gids/{index}").write_text(f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}\n")
        (port / "gid_attrs/types").mkdir(parents=True)
        (port / f"gid_attrs/types/{index}").write_text("RoCE v2\n")
        (port / "hw_counters").mkdir()
        (port / "hw_counters/sent_pkts").write_text("2\n")
        (port / "hw_counters/lifespan").write_text("10\n")
        tools = root / "bin"
        tools.mkdir()
        for name in (BANDWIDTH, LATENCY):
            script = tools / name
            script.write_text(TOOL.format(here=here, counter=port / "hw_counters/sent_pkts"))
            script.chmod(0o755)
        self.tools = tools
        self.run = Tools((str(tools), "/usr/sbin", "/usr/bin", "/sbin", "/bin")).run
        self.bench = Bench(Host(str(root), self.run), self.run)

    def report(self, spec: RoundSpec, node: str) -> dict[tuple[str, str], EndReport]:
        found: list[EndReport] = []
        self.bench.flows(spec, node, found.append)
        return {(one.end, one.benchmark): one for one in found}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    here = tmp_path / "wire"
    here.mkdir()
    (here / "ib_write_bw.client").write_text(BW)
    (here / "ib_send_lat.client").write_text(LAT)
    return here


def both(tmp_path: Path, here: Path, spec: RoundSpec = SPEC) -> dict[tuple[str, str], EndReport]:
    from threading import Thread

    sender, receiver = Node(tmp_path / "c1", here, "10.77.1.11"), Node(tmp_path / "c2", here, "10.77.1.12", 3)
    found: dict[tuple[str, str], EndReport] = {}
    serve = Thread(target=lambda: found.update(receiver.report(spec, "c2")))
    serve.start()
    found.update(sender.report(spec, "c1"))
    serve.join(30)
    return found


def test_both_ends_measure_bandwidth_and_latency(tmp_path: Path, here: Path) -> None:
    found = both(tmp_path, here)
    assert set(found) == {(end, name) for end in ("src", "dst") for name in (BANDWIDTH, LATENCY)}
    bandwidth, latency = found["src", BANDWIDTH], found["src", LATENCY]
    assert (bandwidth.value, bandwidth.unit, bandwidth.failure) == (0.49, "Gb/s", "")
    assert (latency.value, latency.unit, latency.p99_us) == (833.88, "us", 7549.68)
    assert bandwidth.counters == {"sent_pkts": 3}
    assert found["dst", BANDWIDTH].counters == {"sent_pkts": 5}
    assert found["dst", BANDWIDTH].versions["perftest"] == "6.24"
    assert (bandwidth.shape, latency.shape) == ("65536B,1qp", "2B")


def test_device_and_gid_index_are_discovered_at_each_end(tmp_path: Path, here: Path) -> None:
    both(tmp_path, here)
    argvs = [line for line in (here / "argv").read_text().splitlines() if "--version" not in line]
    served = next(line for line in argvs if line.startswith(BANDWIDTH) and "10.77.0.12" not in line)
    sent = [line for line in argvs if line.startswith(BANDWIDTH) and line.endswith("10.77.0.12")][-1]
    assert "-d rxe_other -i 1 -p 20000 -F -x 3 --report_gbits -s 65536 -D 1" in served
    assert "-d rxe_other -i 1 -p 20000 -F -x 1 --report_gbits" in sent
    assert any("-p 20001 -F -x 1 -s 2 -n 10 10.77.0.12" in line for line in argvs)


def test_a_client_waits_for_its_server(tmp_path: Path, here: Path) -> None:
    node = Node(tmp_path / "c1", here, "10.77.1.11")
    tried = []

    def listen(_seconds: float) -> None:
        tried.append(1)
        if len(tried) == 2:
            (here / "listen-20000").touch()
            (here / "listen-20001").touch()

    node.bench.sleep = listen
    found = node.report(SPEC, "c1")
    assert found["src", BANDWIDTH].value == 0.49
    assert len(tried) == 2


def test_no_server_is_unknown(tmp_path: Path, here: Path) -> None:
    node = Node(tmp_path / "c1", here, "10.77.1.11")
    found = node.report(SPEC._replace(setup_seconds=0.2), "c1")
    assert {one.failure for one in found.values()} == {"rendezvous-failed"}
    assert all(one.value is None for one in found.values())


def test_no_client_is_unknown_and_ends(tmp_path: Path, here: Path) -> None:
    node = Node(tmp_path / "c2", here, "10.77.1.12")
    found = node.report(SPEC._replace(setup_seconds=0.2, lat_iterations=1), "c2")
    assert {one.failure for one in found.values()} == {"timeout"}


def test_rdma_that_fails_is_told_apart(tmp_path: Path, here: Path) -> None:
    (here / "ib_write_bw.client").write_text(
        HEAD + " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n"
    )
    (here / "rc").write_text("1")
    found = both(tmp_path, here)
    assert found["src", BANDWIDTH].failure == "rdma-failed"
    assert found["src", BANDWIDTH].detail.startswith("rdma-retry-exceeded: ")
    assert found["src", BANDWIDTH].value is None


def test_hanging_after_both_met_is_rdma_before_that_it_is_unknown(tmp_path: Path, here: Path) -> None:
    (here / "ib_write_bw.client").write_text(HEAD)
    (here / "hang").touch()
    found = both(tmp_path, here, SPEC._replace(setup_seconds=1.0, lat_iterations=1, benchmarks=(BANDWIDTH,)))
    assert found["src", BANDWIDTH].failure == "rdma-failed"
    assert found["src", BANDWIDTH].detail.startswith("rdma-hung: ")


def test_a_missing_tool_is_unknown(tmp_path: Path, here: Path) -> None:
    node = Node(tmp_path / "c1", here, "10.77.1.11")
    (node.tools / BANDWIDTH).unlink()
    found = node.report(SPEC._replace(benchmarks=(BANDWIDTH,)), "c1")
    assert found["src", BANDWIDTH].failure == "tool-missing"


def test_no_device_with_the_address_is_unknown(tmp_path: Path, here: Path) -> None:
    node = Node(tmp_path / "c1", here, "10.77.9.9")
    found = node.report(SPEC, "c1")
    assert {one.failure for one in found.values()} == {"device-missing"}
    assert not (here / "argv").exists()


def test_a_node_without_a_flow_does_nothing(tmp_path: Path, here: Path) -> None:
    assert Node(tmp_path / "c3", here, "10.77.1.13").report(SPEC, "c3") == {}


def test_infiniband_needs_no_gid_index(tmp_path: Path) -> None:
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    port.mkdir(parents=True)
    (port / "link_layer").write_text("InfiniBand\n")
    device = find_device(Host(str(tmp_path)), "mlx5_0", "10.0.0.1")
    assert device is not None
    assert (device.name, device.gid_index) == ("mlx5_0", None)
    assert find_device(Host(str(tmp_path)), "mlx5_1", "10.0.0.1") is None


def result(out: str = "", rc: Optional[int] = 0, status: str = EXITED) -> RunResult:
    return RunResult(("ib_write_bw",), rc, out, "", status, 3.0)


@pytest.mark.parametrize(
    ("one", "failure"),
    [
        (result(BW), ""),
        (result(BW, rc=1), "test-did-not-run"),
        (result(BW[:-200]), "test-did-not-run"),
        (result(""), "test-did-not-run"),
        (result("", None, MISSING), "tool-missing"),
        (result("", None, TIMEOUT), "timeout"),
        (result(HEAD, None, TIMEOUT), "rdma-failed"),
        (result("Couldn't connect to x", 1), "rendezvous-failed"),
    ],
)
def test_classes(one: RunResult, failure: str) -> None:
    assert classify(one)[0] == failure


def test_counters_that_went_back_tell_nothing() -> None:
    assert difference({"a": 5, "b": 5, "c": 1}, {"a": 9, "b": 1, "c": 1, "d": 4}) == {"a": 4}


def test_retransmissions_a_packet() -> None:
    one = Measurement(
        "a/x", "b/x", BANDWIDTH, 0.5, "Gb/s", counters={"src": {"sent_pkts": 8000, "completer_retry_err": 99}}
    )
    clean = one._replace(counters={"src": {"sent_pkts": 8000}})
    assert retransmit_rate(one) == pytest.approx(99.5 / 9000)
    assert retransmit_rate(clean) == pytest.approx(0.5 / 9000)
    assert retransmit_rate(one._replace(counters={})) is None
    assert [m.benchmark for m in with_retransmits([one])] == [BANDWIDTH, "retransmits"]


NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}/[a-z0-9_]{1,12}", fullmatch=True)


@given(st.lists(st.tuples(NAMES, NAMES), max_size=80), st.integers(0, 10**6))
def test_a_round_survives_the_way_to_the_nodes(pairs: list[tuple[str, str]], number: int) -> None:
    flows = tuple(FlowSpec(i, a, b, "10.0.0.1", "10.0.0.2", "10.1.0.1", 2000 + i) for i, (a, b) in enumerate(pairs))
    spec = RoundSpec(number, flows)
    assert decode(encode(spec)) == spec


def test_four_thousand_flows_fit_into_one_argument() -> None:
    flows = tuple(
        FlowSpec(
            i, f"node{i:04}/mlx5_0", f"node{(i + 77) % 4096:04}/mlx5_0", f"10.1.{i >> 8}.{i & 255}",
            f"10.1.{(i + 77) % 4096 >> 8}.{(i + 77) & 255}", f"10.0.{(i + 77) % 4096 >> 8}.{(i + 77) & 255}", 20000 + i,
        )
        for i in range(4096)
    )  # fmt: skip
    assert len(encode(RoundSpec(1, flows))) < 120_000


@pytest.mark.parametrize(
    "text",
    ["", "[]", "z:!!", "z:AAAA", '{"round":1}', '{"round":1,"flows":[[1]],"benchmarks":[],"bw_seconds":1}'],
)
def test_odd_rounds_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"round|flow|Expecting"):
        decode(text)


def test_a_name_that_looks_like_an_option_is_refused() -> None:
    spec = RoundSpec(1, (FLOW._replace(server="--version"),))
    with pytest.raises(ValueError, match="empty or odd"):
        decode(encode(spec))


def test_reports_are_found_among_other_lines_and_cut_ones_are_passed_over() -> None:
    line = EndReport(0, "src", BANDWIDTH, 0.5, "Gb/s").line()
    bad = [line.replace("0.5", '"0.5"'), line.replace('"src"', '"mid"'), line.replace("0.5", "-1"), "{", line[:-9]]
    text = "\n".join(["srun: noise", *bad, line])
    assert parse_reports(text) == [EndReport(0, "src", BANDWIDTH, 0.5, "Gb/s")]


def test_the_command_prints_one_json_line_an_end_and_benchmark(tmp_path: Path) -> None:
    # No RDMA device carries this address here, so the command says what it would say on a node without its NIC.
    spec = encode(RoundSpec(1, (FLOW._replace(src_address="192.0.2.1"),)))
    done = subprocess.run(
        [sys.executable, "-m", "weaklink", "measure", "round", "--flows", spec, "--node", "c1"],
        capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path("slurm").resolve())},
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["end"], one["benchmark"], one["failure"]) for one in lines] == [
        ("src", BANDWIDTH, "device-missing"),
        ("src", LATENCY, "device-missing"),
    ]
