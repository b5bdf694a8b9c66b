"""nvidia-smi nvlink -s, -e, -c, of NVLink 2 to 5."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools import cases
from tests.unit.tools.nvidia_help import tool

LINK = tool("nvidia_smi_nvlink")
ALL_DOWN = "NVML: Unable to retrieve NVLink information as all links are inActive"


def status(links: list[list[str]], model: str = "NVIDIA A100-SXM4-80GB") -> str:
    lines = []
    for gpu, values in enumerate(links):
        lines.append(f"GPU {gpu}: {model} (UUID: GPU-0000000{gpu}-1111-2222-3333-444455556666)")
        lines += [f"\t Link {at}: {value}" if value else ALL_DOWN for at, value in enumerate(values)]
    return "\n".join(lines) + "\n"


def counters(names: dict[str, int], *, links: int = 2) -> str:
    lines = ["GPU 0: NVIDIA B200 (UUID: GPU-00000000-1111-2222-3333-444455556666)"]
    for at in range(links):
        lines += [f"\t Link {at}: {name}: {count if at == 1 else 0}" for name, count in names.items()]
        lines.append("")
    return "\n".join(lines)


def test_the_case_of_a_gpu_without_any_link() -> None:
    LINK.check_case("010")
    LINK.never_better(cases.text_of("010"), expected_gpus=4, expected_links=18)


@pytest.mark.parametrize(
    ("speed", "count"), [("25.781 GB/s", 6), ("25 GB/s", 12), ("26.562 GB/s", 18), ("53.125 GB/s", 18), ("50 GB/s", 18)]
)
def test_links_of_every_generation_are_counted(speed: str, count: int) -> None:
    found = LINK.judge(status([[speed] * count] * 4), expected_gpus=4, expected_links=count)
    assert (found.verdict, found.facts["active_links"]) == ("ok", {str(gpu): count for gpu in range(4)})


@pytest.mark.parametrize("word", ["<inactive>", "inactive", "<inActive>", "Inactive", "Disabled"])
def test_an_inactive_link_is_down_in_every_spelling(word: str) -> None:
    links = [["25 GB/s"] * 12, ["25 GB/s"] * 5 + [word] + ["25 GB/s"] * 6]
    found = LINK.judge(status(links), expected_links=12)
    assert (found.verdict, found.cause, found.facts["bad_gpus"]) == ("fail", "nvlink-down", [1])
    assert (found.facts["active_links"]["1"], found.facts["inactive_links"]["1"]) == (11, [5])
    assert LINK.said(status(links)) == ("degraded", "nvlink-down"), "its peer has more"


@pytest.mark.parametrize("words", [ALL_DOWN, ALL_DOWN.replace("inActive", "Inactive"), ALL_DOWN.replace("NVML: ", "")])
def test_all_links_down_is_zero_of_them(words: str) -> None:
    text = status([["25 GB/s"] * 12, [""]]).replace(ALL_DOWN, words)
    found = LINK.judge(text, expected_links=12)
    assert (found.verdict, found.facts["active_links"]) == ("fail", {"0": 12, "1": 0})


def test_all_links_down_is_recognised_in_every_spelling() -> None:
    for said in (ALL_DOWN, ALL_DOWN.replace("NVLink", "NvLink"), ALL_DOWN.lower()):
        assert LINK.parser.recognise(f"GPU 0: NVIDIA B200 (UUID: GPU-11111111-2222)\n{said}\n") >= 90


def test_cards_without_nvlink_are_ok_where_nothing_is_demanded() -> None:
    bare = status([["<inactive>"] * 12] * 2, "NVIDIA A100 80GB PCIe")
    assert LINK.said(bare, expected_gpus=2) == ("ok", "healthy")
    assert LINK.said(bare, expected_gpus=2, expected_links=12) == ("fail", "nvlink-down")


def test_a_gpu_in_the_middle_that_lists_fewer_links_is_down() -> None:
    found = LINK.judge(status([["25 GB/s"] * 12, ["25 GB/s"] * 10, ["25 GB/s"] * 12]), expected_links=12)
    assert (found.verdict, found.facts["bad_gpus"]) == ("fail", [1])


def test_an_output_that_ends_early_is_unknown() -> None:
    text = status([["25 GB/s"] * 12] * 3)
    for cut in (text[: text.rindex("\t Link 9")], text[: text.rindex("25")], text[: text.index("\t Link 7")]):
        found = LINK.judge(cut, expected_gpus=3, expected_links=12)
        assert (found.verdict, found.cause, found.facts["gpus"]) == ("unknown", "output-truncated", None)
    LINK.unknown_when_cut(text, upto=-6, expected_gpus=3, expected_links=12)


def test_a_slower_link_is_degraded() -> None:
    found = LINK.judge(status([["26.562 GB/s"] * 17 + ["13.281 GB/s"]]), expected_links=18)
    assert (found.verdict, found.cause, found.findings[0].subject) == ("degraded", "rate-below-expected", "0/17")


@pytest.mark.parametrize(
    ("names", "verdict", "cause"),
    [
        ({"Replay Errors": 9, "Recovery Errors": 0, "CRC Errors": 4}, "ok", "healthy"),
        ({"Replay Errors": 0, "Recovery Errors": 2, "CRC Errors": 0}, "degraded", "nvlink-down"),
        ({"Replay Errors": 4294967295, "Recovery Errors": 0, "CRC Errors": 0}, "fail", "nvlink-fatal"),
        ({"Rx Errors": 0, "Link recovery failed events": 1, "Symbol Errors": 0}, "fail", "nvlink-fatal"),
        ({"Tx packets": 4294967295, "Effective Errors": 3, "Link recovery successful events": 0}, "ok", "healthy"),
    ],
)
def test_counters_of_old_and_new_links(names: dict[str, int], verdict: str, cause: str) -> None:
    found = LINK.judge(counters(names), expected_links=2)
    assert (found.verdict, found.cause) == (verdict, cause)
    assert found.facts["active_links"] == {"0": 2}


def test_values_that_are_no_counters_are_passed_over() -> None:
    text = counters({"Rx Errors": 0}) + "\n\t Link 0: Effective BER: 15e-255\n\t Link 0: FEC Errors - 0: 17941761\n"
    assert LINK.judge(text).verdict == "ok"
    caps = "GPU 0: NVIDIA H100 80GB HBM3\n\t Link 0, P2P is supported: true\n\t Link 0, Access to system memory: true\n"
    assert LINK.judge(caps).facts["active_links"] == {"0": 1}
    bad = LINK.judge(counters({"Rx Errors": 0}).replace("Rx Errors: 0", "Rx Errors: zero", 1))
    assert (bad.verdict, bad.facts["errors"]) == ("unknown", {})


def test_a_gpu_that_is_not_listed_is_missing() -> None:
    assert LINK.said(status([["25 GB/s"] * 4] * 2), expected_gpus=4, expected_links=4) == ("fail", "gpu-missing")
    assert LINK.said("", expected_gpus=4) == ("unknown", "output-truncated")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=8))
def test_the_links_that_are_up_are_counted(up: list[list[bool]]) -> None:
    text = status([["25.781 GB/s" if link else "<inactive>" for link in gpu] for gpu in up])
    found = LINK.judge(text, expected_links=6, expected_gpus=len(up))
    assert found.facts["active_links"] == {str(at): sum(gpu) for at, gpu in enumerate(up)}
    assert found.facts["bad_gpus"] == [at for at, gpu in enumerate(up) if not all(gpu)]
    assert found.verdict == ("ok" if all(map(all, up)) else "fail")


@pytest.mark.parametrize("text", [cases.text_of("010"), counters({"Replay Errors": 3, "Recovery Errors": 1})])
def test_damage_is_survived(text: str) -> None:
    LINK.survives(text, expected_gpus=4, expected_links=18)
