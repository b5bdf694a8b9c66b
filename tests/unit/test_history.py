"""The store keeps what was committed, refuses what it cannot read, and the baseline learns from healthy sweeps only."""

# ruff: noqa: S311 - seeded simulations, no secrets

import json
import math
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from weaklink.history.baseline import learn, outliers
from weaklink.history.store import EvidenceRecord, ReturnRecord, Store, StoreError
from weaklink.model.measurement import BANDWIDTH, LATENCY, RDMA_FAILED, Measurement, Reference


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state/store.sqlite"


@pytest.fixture
def store(url: str) -> Store:
    return Store.open(url)


def measured(src: str, dst: str, value: float, benchmark: str = BANDWIDTH, **more: Any) -> Measurement:
    return Measurement(src, dst, benchmark, value, "Gb/s", shape="s", time=5.0)._replace(**more)


def test_file_and_directory_are_private(store: Store, tmp_path: Path) -> None:
    del store
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "state" / "store.sqlite").stat().st_mode) == 0o600


def test_a_directory_that_others_can_write_is_refused(tmp_path: Path) -> None:
    open_one = tmp_path / "open"
    open_one.mkdir()
    open_one.chmod(0o777)
    with pytest.raises(StoreError, match="writable by others"):
        Store.open(f"sqlite:///{open_one}/store.sqlite")


def test_sweeps_and_measurements_come_back_as_they_were(store: Store) -> None:
    store.begin_sweep("s1", "sweep", ["c1", "c2"])
    store.set_job("s1", 42)
    one = measured("c1/a", "c2/a", 0.5, counters={"src": {"sent_pkts": 3}}, versions={"perftest": "6.24"}, retest=True)
    bad = Measurement("c2/a", "c1/a", LATENCY, None, "us", RDMA_FAILED, "rdma-retry-exceeded: x", "s", time=6.0)
    store.add_measurements("s1", [one, bad])
    store.end_sweep("s1", "complete", "fail", {"suspects": [1]}, accepted=True)
    assert store.measurements("s1") == [one, bad]
    assert store.accepted_sweeps() == [[one, bad]]
    found = store.sweeps()[0]
    assert (found.id, found.state, found.verdict, found.job, found.nodes) == (
        "s1",
        "complete",
        "fail",
        42,
        ["c1", "c2"],
    )
    assert found.result == {"suspects": [1]}


def test_references_come_back_as_they_were(store: Store) -> None:
    wanted = [
        Reference(BANDWIDTH, "s", "Gb/s", -0.7, 0.2, 3, {"a>b": 0.1, "b>a": -0.1}, 0.05),
        Reference(LATENCY, "s", "us", 7.0, 0.3, 1, {}, 0.3),
    ]
    store.put_references([wanted[1]])
    store.put_references(wanted)
    assert store.references() == [wanted[1], wanted[0]]


def test_an_incident_is_one_for_a_check_and_closes_with_its_last_node(store: Store) -> None:
    first = store.note_incident("net.mtu", "mtu-too-small", "c3", "over budget")
    assert store.note_incident("net.mtu", "mtu-too-small", "c1", "over budget") == first
    assert store.note_incident("net.mtu", "mtu-too-small", "c1", "over budget") == first
    assert [one.nodes for one in store.incidents()] == [["c1", "c3"]]
    assert store.close_incidents("c1", "returned") == []
    assert store.close_incidents("c3", "returned") == [first]
    assert store.incidents() == []
    assert store.incidents(everything=True)[0].closing == "returned"
    assert store.note_incident("net.mtu", "mtu-too-small", "c3", "again") != first


def test_evidence_is_added_once(store: Store) -> None:
    record = EvidenceRecord(
        "e1", "c2", 9.0, "digest", "fail", "drained", "net.mtu", "mtu-too-small", "m", "T", {"a": 1}
    )
    assert store.add_evidence(record)
    assert not store.add_evidence(record)
    assert store.evidence("c2") == [record]
    assert store.evidence("c1") == []


def test_returns_are_found_until_they_are_finished(store: Store) -> None:
    record = ReturnRecord("r1", "c2", "c1", "weaklink-c2", "reserved", "net.mtu", "m", 1.0, None, "")
    store.put_return(record)
    assert store.returns("c2", unfinished=True) == [record]
    store.put_return(record._replace(state="done", finished=2.0))
    assert store.returns("c2", unfinished=True) == []


def test_a_newer_schema_is_refused(store: Store, url: str) -> None:
    store.close()
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("insert into schema_version values (99, 0)")
    with pytest.raises(StoreError, match="has schema 99, this weaklink knows 1"):
        Store.open(url)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    (path / "store.sqlite").write_text("this is not a database" * 100)
    with pytest.raises(StoreError, match="no SQLite database"):
        Store.open(f"sqlite:///{path}/store.sqlite")


def test_a_place_that_cannot_be_is_refused() -> None:
    with pytest.raises(StoreError, match="are you root"):
        Store.open("sqlite:////proc/nowhere/store.sqlite")
    with pytest.raises(StoreError, match="not an SQLAlchemy URL"):
        Store.open("nonsense")


def test_a_full_disk_is_told_and_nothing_half_is_kept(store: Store) -> None:
    store.begin_sweep("s1", "sweep", [])
    connection = store._engine.raw_connection()  # noqa: SLF001 - to make the disk full
    pages = connection.cursor().execute("pragma page_count").fetchone()[0]
    connection.cursor().execute(f"pragma max_page_count={pages}")
    connection.close()
    many = [measured("c1/a", "c2/a", 0.5, detail="x" * 3000) for _ in range(50)]
    with pytest.raises(StoreError, match=r"full.*nothing of this step was written"):
        store.add_measurements("s1", many)
    assert store.measurements("s1") == []


WRITER = """
    import sys
    from weaklink.history.store import Store
    from weaklink.model.measurement import Measurement
    store = Store.open(sys.argv[1])
    store.begin_sweep("s1", "sweep", [])
    for number in range(100000):
        one = Measurement("a/x", "b/x", "ib_write_bw", number + 1.0, "Gb/s", round=number, time=1.0)
        store.add_measurements("s1", [one, one])
        print(number, flush=True)
"""


def test_it_survives_kill_9(url: str) -> None:
    for _ in range(3):
        Path(url.removeprefix("sqlite:///")).unlink(missing_ok=True)
        argv = [sys.executable, "-c", textwrap.dedent(WRITER), url]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["slurm", *sys.path])}
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment) as writer:
            assert writer.stdout is not None
            said = [writer.stdout.readline() for _ in range(5)]
            time.sleep(random.uniform(0, 0.05))
            os.kill(writer.pid, signal.SIGKILL)
            said += writer.stdout.read().splitlines()
        committed = int([line for line in said if line.strip()][-1])
        kept = Store.open(url).measurements("s1")
        assert len(kept) % 2 == 0
        assert kept[-1].round >= committed


def healthy(rng: random.Random, sigma: float, common: float = 0.0) -> list[Measurement]:
    names = ["c1/a", "c2/a", "c3/a"]
    return [
        measured(a, b, 0.5 * math.exp(common + rng.gauss(0, sigma)), benchmark)
        for a in names
        for b in names
        if a != b
        for benchmark in (BANDWIDTH, LATENCY)
    ]


def test_the_noise_is_learned_without_the_common_mode() -> None:
    rng = random.Random(3)
    found = learn([healthy(rng, 0.2, rng.gauss(0, 2)) for _ in range(12)])
    assert [one.benchmark for one in found] == [LATENCY, BANDWIDTH]
    for one in found:
        assert 0.15 < one.sigma < 0.3
        assert one.sweeps == 12
        assert all(abs(offset) < 0.15 for offset in one.offsets.values())


def test_a_path_that_always_differs_is_learned() -> None:
    rng = random.Random(4)
    sweeps = [
        [one._replace(value=one.value * 0.5) if one.value and one.src == "c1/a" else one for one in healthy(rng, 0.05)]
        for _ in range(4)
    ]
    found = {one.benchmark: one for one in learn(sweeps)}
    offsets = found[BANDWIDTH].offsets
    assert offsets["c1/a>c2/a"] - offsets["c2/a>c1/a"] == pytest.approx(math.log(0.5), abs=0.15)


def test_healthy_sweeps_are_accepted_and_broken_ones_refused() -> None:
    rng = random.Random(5)
    assert sum(bool(outliers(healthy(rng, 0.25), min_loss=0.15)) for _ in range(200)) <= 10
    assert not outliers(healthy(rng, 0.02), min_loss=0.15)
    for factor in (0.02, 0.2):
        for _ in range(20):
            sweep = [
                one._replace(value=one.value * factor)
                if one.value and "c2/a" in (one.src, one.dst) and one.benchmark == BANDWIDTH
                else one
                for one in healthy(rng, 0.25)
            ]
            assert outliers(sweep, min_loss=0.15)


def test_a_sweep_with_a_hole_is_no_baseline() -> None:
    sweep = healthy(random.Random(6), 0.02)
    sweep[3] = sweep[3]._replace(value=None, failure="timeout", detail="no end")
    assert [one.reason for one in outliers(sweep, min_loss=0.15)] == ["timeout: no end"]


def test_a_measurement_line_is_json() -> None:
    line = measured("c1/a", "c2/a", 0.5).as_line()
    assert json.loads(json.dumps(line))["gbps"] == 0.5
    assert line["ok"] is True
    assert Measurement("a/x", "b/x", LATENCY, None, "us").as_line()["lat_us"] is None
