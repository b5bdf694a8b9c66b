"""Prices come from a checked file, costs are sums that one can follow, the budget split is compared and explained."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.plan import cost, prices
from weaklink.plan.design import design
from weaklink.plan.request import PlanError, Request

DGX_B200 = Request("rail", nodes=128, gpus_per_node=8, radix=64)
PRICES = """\
format: 1
dated: 2026-03-01
currency: EUR
compute:
  switch: 1000
  hca: 10
  node_cable: 1
  inter_switch_cable: 2
  node_module: 3
  switch_module: 4
"""
STORAGE = "storage: {radix: 64, ports_per_node: 1, other_ports: 32, switch: 100, nic: 5, cable: 1, module: 2}\n"
MANAGEMENT = "management: {radix: 48, ports_per_node: 2, oversubscription: 4, switch: 50, cable: 1}\n"


def quoted(text: str = PRICES) -> prices.Prices:
    return prices.parse("prices.yml", text)


def test_each_part_is_its_count_times_its_price() -> None:
    made = design(DGX_B200)
    money = cost.price(made, quoted())
    assert money["switches"] == 48 * 1000
    assert money["node_cables"] == 1024 * 1
    assert money["inter_switch_cables"] == 1024 * 2
    assert money["hcas"] == 1024 * 10
    assert money["modules"] == made.modules["node"] * 3 + made.modules["switch"] * 4
    assert money["compute_total"] == sum(money[part] for part in cost.COMPUTE_PARTS) == money["total"]
    assert money["per_gpu"] == money["per_endpoint"] == round(money["total"] / 1024, 2)


def test_without_other_networks_there_is_no_split() -> None:
    money = cost.price(design(DGX_B200), quoted())
    assert money["storage"] is money["management"] is money["split"] is None


def test_ports_of_the_fabrics_manager_bring_no_hca_but_a_link() -> None:
    plain = cost.price(design(DGX_B200._replace(nodes=127)), quoted())
    manager = cost.price(design(DGX_B200._replace(nodes=127, extra_endpoints=4)), quoted())
    assert manager["hcas"] == plain["hcas"] == 127 * 8 * 10
    assert manager["node_cables"] == plain["node_cables"] + 4


def test_two_hcas_a_gpu_are_two_and_a_port_in_each_of_two_planes_is_one_hca() -> None:
    assert cost.price(design(DGX_B200._replace(hcas_per_gpu=2)), quoted())["hcas"] == 2 * 1024 * 10
    planes = DGX_B200._replace(topology="multi-plane", planes=2)
    assert cost.price(design(planes), quoted())["hcas"] == 1024 * 10
    assert design(planes).node_links == 2048


def test_storage_that_fits_one_switch_takes_one() -> None:
    small = cost.price(design(DGX_B200._replace(nodes=32)), quoted(PRICES + STORAGE))["storage"]
    assert (small["ports"], small["switches"], small["links"]) == (64, 1, 64)
    assert small["switch_cost"] == 100
    assert small["nic_cost"] == 32 * 5, "the servers' own ports are not bought here"
    assert small["cable_cost"] == 64
    assert small["module_cost"] == 2 * 64 * 2
    assert small["total"] == 100 + 160 + 64 + 256


def test_storage_that_does_not_takes_leaves_and_spines() -> None:
    large = cost.price(design(DGX_B200), quoted(PRICES + STORAGE))["storage"]
    tree = design(Request("fat-tree", nodes=128, gpus_per_node=1, radix=64, extra_endpoints=32))
    assert large["ports"] == 160
    assert large["switches"] == tree.switches > 1
    assert large["links"] == tree.node_links + tree.inter_switch_links


def test_the_split_is_in_percent_and_stands_beside_the_guides() -> None:
    money = cost.price(design(DGX_B200), quoted(PRICES + STORAGE + MANAGEMENT))
    split = money["split"]
    assert split["guide"] == {"compute": 80, "storage": 15, "management": 5}
    assert math.isclose(sum(split["percent"].values()), 100, abs_tol=0.2)
    assert math.isclose(split["percent"]["storage"], 100 * money["storage"]["total"] / money["total"], abs_tol=0.06)
    assert money["total"] == money["compute_total"] + money["storage"]["total"] + money["management"]["total"]


def test_the_split_says_what_drives_the_difference() -> None:
    cheap = cost.price(design(DGX_B200), quoted(PRICES + STORAGE + MANAGEMENT))["split"]["drivers"]
    dear = cost.price(design(DGX_B200), quoted(PRICES + STORAGE.replace("nic: 5", "nic: 5000") + MANAGEMENT))
    assert any("driven by its switches" in text for text in cheap)
    assert any(text.startswith("storage is below the guide's 15 %: 160 ports") for text in cheap)
    assert any(text.startswith("storage is above the guide's 15 %: 160 ports") for text in dear["split"]["drivers"])


def test_a_network_left_out_is_said_in_the_split() -> None:
    split = cost.price(design(DGX_B200), quoted(PRICES + STORAGE))["split"]
    assert set(split["percent"]) == {"compute", "storage"}
    assert any("management is not in the prices file" in text for text in split["drivers"])


def test_free_parts_give_no_division_by_nothing() -> None:
    free = PRICES.replace("1000", "0").replace("10", "0")
    for word in ("node_cable: 1", "inter_switch_cable: 2", "node_module: 3", "switch_module: 4"):
        free = free.replace(word, word[:-1] + "0")
    money = cost.price(
        design(DGX_B200), quoted(free + "storage: {radix: 64, ports_per_node: 1, switch: 0, cable: 0}\n")
    )
    assert money["total"] == 0
    assert money["split"] is None


def test_a_storage_network_too_large_for_its_switches_is_refused() -> None:
    with pytest.raises(PlanError, match="storage network of the prices file: "):
        cost.price(design(DGX_B200), quoted(PRICES + STORAGE.replace("radix: 64", "radix: 4")))


@settings(max_examples=40, deadline=None)
@given(
    nodes=st.integers(1, 400),
    gpus=st.sampled_from([1, 4, 8]),
    each=st.lists(st.integers(0, 10**6), min_size=6, max_size=6),
)
def test_cost_is_linear_in_prices(nodes: int, gpus: int, each: list[int]) -> None:
    made = design(Request("fat-tree", nodes=nodes, gpus_per_node=gpus, radix=64))
    once = quoted()._replace(compute=prices.Compute(*map(float, each)))
    twice = once._replace(compute=prices.Compute(*(2.0 * price for price in each)))
    assert cost.price(made, twice)["total"] == pytest.approx(2 * cost.price(made, once)["total"])


# ---- the file


def test_the_example_is_valid_and_says_that_it_is_an_example() -> None:
    example = prices.parse(prices.EXAMPLE, prices.example_text())
    assert example.example
    assert example.storage
    assert example.management
    assert "NOT A QUOTATION" in prices.example_text().splitlines()[1]
    assert cost.price(design(DGX_B200), example)["example"] is True


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("hca: 10", "hcas: 10", "prices.yml:6: compute.hcas: found the unknown key 'hcas'"),
        ("hca: 10", "hcas: 10", "did you mean 'hca'?"),
        ("compute:", "computer:", "prices.yml:4: computer: found the unknown key 'computer'"),
        ("hca: 10", "hca: -1", "prices.yml:6: compute.hca: found -1; allowed: at least 0"),
        ("hca: 10", "hca: 1e12", "compute.hca"),
        ("hca: 10", "hca: 2000000000", "compute.hca: found 2000000000; allowed: at most 1000000000"),
        ("hca: 10", "hca: ten", 'compute.hca: found "ten"; allowed: a number of 0 or more'),
        ("hca: 10", "hca: true", "compute.hca: found true; allowed: a number of 0 or more"),
        ("hca: 10", "hca: .nan", "compute.hca: found nan; allowed: a number of 0 or more"),
        ("hca: 10", "hca: .inf", "compute.hca"),
        ("hca: 10", "hca: [10]", "compute.hca: found [10]; allowed: a number"),
        ("  hca: 10\n", "", "compute.hca: found nothing; allowed: required"),
        ("hca: 10", "switch: 10", "compute.switch: found it twice (line 5)"),
        ("dated: 2026-03-01\n", "", "dated: found nothing"),
        ("2026-03-01", "2026-02-30", "prices.yml:2: (file): found 2026-02-30: day is out of range"),
        ("2026-03-01", "last week", "prices.yml:2: dated: found 'last week'; allowed: a day as YYYY-MM-DD"),
        ("2026-03-01", "20260301", "prices.yml:2: dated: found 20260301; allowed: a day as YYYY-MM-DD"),
        ("EUR", "three dollars", 'currency: found "three dollars"; allowed: a label'),
        ("format: 1", "format: 2", "prices.yml:1: format: found 2; allowed: 1"),
        ("compute:", "compute: [", "prices.yml:6: (file): found"),
        ("compute:", "storage: 3\ncompute:", "prices.yml:4: storage: found 3; allowed: keys and values"),
        (
            "compute:",
            "storage: {radix: 64.5, ports_per_node: 1, switch: 1, cable: 1}\ncompute:",
            "storage.radix: found 64.5; allowed: a whole number",
        ),
        (
            "compute:",
            "management: {radix: 1, ports_per_node: 1, switch: 1, cable: 1}\ncompute:",
            "management.radix: found 1; allowed: at least 4",
        ),
        (
            "compute:",
            "management: {radix: 49, ports_per_node: 1, switch: 1, cable: 1}\ncompute:",
            "management.radix: found 49; allowed: a multiple of 2",
        ),
        (
            "compute:",
            "storage: {radix: 64, ports_per_nodes: 1, switch: 1, cable: 1}\ncompute:",
            "found the unknown key 'ports_per_nodes'; allowed: cable, module, nic, other_ports, oversubscription",
        ),
    ],
)
def test_a_bad_price_is_named_with_its_line(old: str, new: str, says: str) -> None:
    assert old in PRICES
    with pytest.raises(prices.PricesError) as caught:
        quoted(PRICES.replace(old, new))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "found nothing"), ("# only words\n", "found nothing"), ("- 1\n", "found a seq"), ("prices\n", "found a str")],
)
def test_a_file_that_is_no_prices_file_says_what_it_should_hold(text: str, says: str) -> None:
    with pytest.raises(prices.PricesError, match=says) as caught:
        quoted(text)
    assert "format, dated, currency, compute" in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none.yml", tmp_path, binary):
        with pytest.raises(prices.PricesError, match=f"{path}:1: "):
            prices.load(path)


def test_a_bare_day_and_one_in_quotes_are_the_same() -> None:
    assert quoted(PRICES.replace("2026-03-01", '"2026-03-01"')) == quoted()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_whatever_the_file_holds_the_answer_is_prices_or_an_error(text: str) -> None:
    for tried in (text, PRICES + text, PRICES.replace("10", text)):
        with contextlib.suppress(prices.PricesError):
            assert quoted(tried).compute.hca >= 0
