"""Expected numbers: conversions, rank counts, fits that recover published systems, the guide, the step model."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.plan.expect.factors import (
    FACTORS,
    GIGA,
    ExpectError,
    collective_of,
    factor,
    from_busbw,
    from_time,
    ranks_from,
    size_of,
)
from weaklink.plan.expect.fit import Point, Table, fit, predict
from weaklink.plan.expect.guide import CLAIMS, COMMANDS
from weaklink.plan.expect.known_good import NO_PRIMARY, TABLE, find
from weaklink.plan.expect.step import Step, compute_seconds, explain, fitted, run, slow_link

G = float(1 << 30)
H100 = {0.5: 356, 1: 366, 2: 381, 4: 383, 8: 387}
GB200 = {1: 219, 8: 381, 16: 405}


def table(busbw: dict[float, float], ranks: int, source: str = "t") -> Table:
    points = tuple(
        Point(size * G, from_busbw("all_reduce", ranks, size * G, value).seconds) for size, value in busbw.items()
    )
    return Table(source, "all_reduce", ranks, None, points)


def line(alpha: float, busbw: float, ranks: int, noise: float = 0.0, seed: int = 0) -> Table:
    dice = random.Random(seed)  # noqa: S311 - a simulation
    slope = factor("all_reduce", ranks) / (busbw * GIGA)
    sizes = [2.0**power for power in range(26, 35)]
    points = tuple(Point(size, (alpha + slope * size) * (1 + dice.gauss(0, noise))) for size in sizes)
    return Table(f"{ranks}", "all_reduce", ranks, None, points)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("16G", 16 * G),
        ("1g", G),
        ("1GB", 1e9),
        ("1GiB", G),
        ("0.5G", G / 2),
        ("128", 128),
        ("2T", 2048 * G),
    ],
)
def test_sizes(text: str, size: float) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["1Q", "-1G", "", "G", "1 G G", "0", "nan", "inf", "1e9", "9999999T"])
def test_sizes_that_are_none_are_named(text: str) -> None:
    with pytest.raises(ExpectError, match="size: found"):
        size_of(text)


@given(st.sampled_from(sorted(FACTORS)), st.integers(2, 5000), st.floats(1e3, 1e12), st.floats(1e-6, 1e3))
@settings(max_examples=60)
def test_time_and_bandwidth_are_each_others_inverse(name: str, ranks: int, size: float, seconds: float) -> None:
    speed = from_time(name, ranks, size, seconds)
    assert from_busbw(name, ranks, size, speed.busbw).seconds == pytest.approx(seconds)


def test_factors() -> None:
    assert factor("all_reduce", 96) == pytest.approx(1.9792, abs=1e-4)
    assert factor("all_gather", 8) == 7 / 8
    assert factor("broadcast", 8) == 1
    assert factor("all_reduce", 1) == 0
    assert collective_of("/x/all_reduce_perf_mpi") == "all_reduce"
    for bad in (0, -3, 10**9):
        with pytest.raises(ExpectError, match="ranks: found"):
            factor("all_reduce", bad)
    with pytest.raises(ExpectError, match="collective: found 'hypercube'"):
        collective_of("hypercube")
    for value in (0.0, -1.0, float("nan")):
        with pytest.raises(ExpectError, match="found"):
            from_busbw("all_reduce", 8, G, value)
        with pytest.raises(ExpectError, match="found"):
            from_time("all_reduce", 8, G, value)


@given(st.sampled_from(["all_reduce", "all_gather", "alltoall"]), st.integers(2, 600), st.floats(20, 400))
@settings(max_examples=100)
def test_the_true_rank_count_is_always_allowed(name: str, ranks: int, algbw: float) -> None:
    pairs = [(round(algbw * part, 2), round(algbw * part * factor(name, ranks), 2)) for part in (1, 0.9, 0.4)]
    found = ranks_from(name, pairs)
    assert found is not None
    assert found.allows(ranks)


@pytest.mark.parametrize(("ranks", "others"), [(96, (64, 95, 97)), (128, (143, 120)), (8, (7, 9, 16))])
def test_mislabelled_tables_are_found(ranks: int, others: tuple[int, ...]) -> None:
    pairs = [(round(a, 2), round(a * factor("all_reduce", ranks), 2)) for a in (180.11, 184.93, 192.5, 193.51, 195.55)]
    found = ranks_from("all_reduce", pairs)
    assert found is not None
    assert found.exact == ranks
    assert not any(found.allows(other) for other in others)


def test_rows_that_contradict_each_other_and_rows_that_say_nothing() -> None:
    mixed = ranks_from("all_reduce", [(200.0, 350.0), (200.0, 387.5)])
    assert mixed is not None
    assert mixed.high is not None
    assert mixed.low > mixed.high
    assert ranks_from("broadcast", [(200.0, 200.0)]) is None
    assert ranks_from("all_reduce", [(0.0, 0.0)]) is None


def test_the_published_systems_are_recovered() -> None:
    h100, gb200 = fit(table(H100, 96)), fit(table(GB200, 1440))
    assert h100.alpha == pytest.approx(0.29e-3, rel=0.05)
    assert h100.busbw == pytest.approx(389, rel=0.01)
    assert h100.alpha_range is not None
    assert h100.alpha_range[0] < h100.alpha < h100.alpha_range[1]
    assert gb200.alpha == pytest.approx(4.8e-3, rel=0.01)
    assert gb200.busbw == pytest.approx(430, rel=0.005)


@pytest.mark.parametrize(("rows", "ranks", "held"), [(H100, 96, tuple(H100)), (GB200, 1440, (8,))])
def test_a_held_out_row_is_predicted_within_5_percent(
    rows: dict[float, float], ranks: int, held: tuple[float, ...]
) -> None:
    for size in held:
        rest = {other: value for other, value in rows.items() if other != size}
        truth = from_busbw("all_reduce", ranks, size * G, rows[size]).seconds
        assert predict([fit(table(rest, ranks))], size * G).seconds == pytest.approx(truth, rel=0.05)


def test_one_odd_row_does_not_bend_the_line_and_is_named() -> None:
    clean = line(1e-3, 380, 64)
    points = list(clean.points)
    points[5] = points[5]._replace(seconds=points[5].seconds * 1.6)
    found = fit(clean._replace(points=tuple(points)))
    assert found.busbw == pytest.approx(380, rel=0.01)
    assert found.alpha == pytest.approx(1e-3, rel=0.05)
    assert found.left_out == (points[5].size_bytes,)


def test_the_band_covers_what_was_not_seen() -> None:
    inside = 0
    for seed in range(200):
        found = fit(line(1e-3, 380, 64, noise=0.01, seed=seed))
        truth = (1e-3 + 3e9 * factor("all_reduce", 64) / 380e9) * (1 + random.Random(-seed - 1).gauss(0, 0.01))  # noqa: S311 - a simulation
        guess = predict([found], 3e9)
        assert guess.low is not None
        assert guess.high is not None
        inside += guess.low <= truth <= guess.high
    assert inside >= 170  # 85 %: the band is a 90 % quantile of nine rows


def test_what_cannot_be_fitted_says_so() -> None:
    one = table({1: 366}, 96)
    with pytest.raises(ExpectError, match="1 size"):
        fit(one)
    with pytest.raises(ExpectError, match="no rows"):
        fit(one._replace(points=()))
    with pytest.raises(ExpectError, match="does not grow"):
        fit(one._replace(points=(Point(1e9, 2.0), Point(2e9, 1.0))))
    with pytest.raises(ExpectError, match="0 size"):
        fit(table(H100, 96), min_bytes=1e15)
    two = fit(table({1: 366, 8: 387}, 96))
    assert two.band is None
    assert predict([two], G).low is None
    assert "no error band" in " ".join(predict([two], G).notes)


def test_between_rank_counts_and_not_beyond() -> None:
    fits = [fit(line(0.3e-3, 389, 96)), fit(line(4.8e-3, 430, 1440))]
    guess = predict(fits, G, 512)
    assert predict(fits, G, 96).seconds < guess.seconds < predict(fits, G, 1440).seconds
    assert guess.low is not None
    assert guess.high is not None
    assert guess.high / guess.low > 1.1  # linear and logarithmic alphas differ, and that is shown
    for ranks in (8, 2048, None):
        with pytest.raises(ExpectError, match="ranks"):
            predict(fits, G, ranks)
    with pytest.raises(ExpectError, match="same number"):
        predict([fits[0], fits[0]], G, 96)
    assert "outside" in " ".join(predict([fits[0]], 1024.0).notes)


def test_the_guides_figures() -> None:
    rows = [claim.as_dict() for claim in CLAIMS]
    found = [
        (row["algbw"], row["algbw_if_gib"], round(float(str(row["busbw"]))), round(float(str(row["busbw_if_gib"]))))
        for row in rows
    ]
    assert found[:2] == [(161.3, 173.2, 322, 346), (53.5, 57.4, 107, 115)]
    assert found[2][0] == 40.0
    assert found[2][2] == 80
    assert [float(str(row["share_of_node"])) for row in rows] == pytest.approx([0.805, 0.267, 0.2], abs=1e-3)
    assert "fifth" in str(rows[2]["reason"])
    problems = " ".join(command.problem for command in COMMANDS)
    for word in ("128 bytes", "first host", "10 times low"):
        assert word in problems
    assert [command.part for command in COMMANDS if not command.wrong] == ["-n, -w and -f"]


def test_known_good_marks_what_has_no_primary_source() -> None:
    assert [row.ranks for row in TABLE if row.evidence == NO_PRIMARY] == [128]
    assert all(row.source for row in TABLE if row.evidence != NO_PRIMARY)
    assert all(0 < row.low <= row.high for row in TABLE)
    assert {row.ranks for row in find("gb200")} == {72, 128, 1440}
    assert find("cray") == ()


STEP = Step(params=70e9, bytes_per_param=2, gpus=512, link_gbps=400, compute_s=1.0)


def test_a_step_worked_out_by_hand() -> None:
    found = run(STEP)
    assert found.comm_s == pytest.approx(2 * 511 / 512 * 140e9 / (8 * 50e9 * 0.9))
    assert found.step_s == pytest.approx(1 + found.comm_s)
    assert run(STEP._replace(overlap=1.0)).utilisation == 1.0
    assert run(STEP._replace(gpus=8, model_parallel=8)).comm_s == 0
    assert run(STEP._replace(model_parallel=64)).comm_s == pytest.approx(2 * 7 / 8 * 140e9 / 8 / (8 * 50e9 * 0.9))
    assert compute_seconds(70e9, 4e6, 512, 989, 0.4) == pytest.approx(6 * 70e9 * 4e6 / (512 * 989e12 * 0.4))


@given(st.floats(10, 800), st.floats(0, 1), st.floats(0.01, 100))
@settings(max_examples=60)
def test_a_faster_link_never_hurts(link: float, overlap: float, compute: float) -> None:
    step = STEP._replace(link_gbps=link, overlap=overlap, compute_s=compute)
    assert 0 < run(step).utilisation <= run(step, link * 2).utilisation <= 1


def test_what_a_slow_link_costs() -> None:
    step = STEP._replace(price=2.0)
    cost = slow_link(step, 100)
    assert cost["slowdown"] == pytest.approx(run(step, 100).step_s / run(step).step_s)
    assert cost["lost_gpu_hours_per_day"] == pytest.approx(512 * 24 * (1 - 1 / cost["slowdown"]))
    assert cost["lost_money_per_day"] == pytest.approx(2 * cost["lost_gpu_hours_per_day"])
    assert slow_link(step, 400)["lost_gpu_hours_per_day"] == pytest.approx(0)
    assert slow_link(STEP, 100)["lost_money_per_day"] is None
    for bad in (500, 0, -1, float("nan")):
        with pytest.raises(ExpectError, match="link"):
            slow_link(STEP, bad)


def test_the_guides_experiment_can_be_had_and_how() -> None:
    found = explain((200, 0.55), (400, 0.78))
    assert found.plain == pytest.approx(0.71, abs=0.005)  # the direction comes without a fit, the height does not
    step, again = fitted(STEP, ((400, 0.78), (200, 0.55)))
    assert again == found
    assert run(step, 200).utilisation == pytest.approx(0.55)
    assert run(step, 400).utilisation == pytest.approx(0.78)
    for first, second in (
        ((200, 0.55), (200, 0.78)),
        ((200, 0.8), (400, 0.7)),
        ((200, 0.5), (400, 1.0)),
        ((200, 0.55), (400, 0.56)),
    ):
        with pytest.raises(ExpectError):
            explain(first, second)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("params", 0), ("params", -1), ("params", float("nan")), ("bytes_per_param", 0), ("gpus", 0),
        ("link_gbps", -400), ("link_gbps", float("inf")), ("compute_s", 0), ("overlap", 1.1),
        ("overlap", -0.1), ("efficiency", 0),
        ("efficiency", 2), ("latency_s", -1), ("gpus_per_node", 0), ("model_parallel", 0), ("model_parallel", 3),
        ("price", -1),
    ],
)  # fmt: skip
def test_a_bad_input_is_named(key: str, value: float) -> None:
    with pytest.raises(ExpectError, match=key.removesuffix("_s")):
        run(STEP._replace(**{key: value}))


def test_a_bad_compute_input_is_named() -> None:
    for place, name in enumerate(("params", "tokens", "gpus", "peak-tflops", "mfu")):
        values: list[float] = [70e9, 4e6, 512, 989, 0.4]
        values[place] = -1
        with pytest.raises(ExpectError, match=name):
            compute_seconds(values[0], values[1], int(values[2]), values[3], values[4])
