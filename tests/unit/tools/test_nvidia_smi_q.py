"""nvidia-smi -q, whole and by sections, of drivers from 390 to 570."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools import cases
from tests.unit.tools.nvidia_help import tool

Q = tool("nvidia_smi_q")
FULL = (Path(__file__).parent / "data" / "nvidia_smi_q" / "full-570.txt").read_text(encoding="utf-8")
SECOND = "00000000:43:00.0"

RETIRED_390 = """
==============NVSMI LOG==============

Timestamp                           : Fri Feb  1 08:00:01 2019
Driver Version                      : 390.116

Attached GPUs                       : 2
GPU 00000000:04:00.0
    Retired Pages
        Single Bit ECC              : 3
        Double Bit ECC              : 1
        Pending                     : No

GPU 00000000:05:00.0
    Retired Pages
        Single Bit ECC              : {single}
        Double Bit ECC              : {double}
        Pending                     : {pending}

"""
ECC_450 = """
==============NVSMI LOG==============

Driver Version                            : 450.51.06
Attached GPUs                             : 1
GPU 00000000:3D:00.0
    Ecc Mode
        Current                           : Enabled
        Pending                           : Enabled
    ECC Errors
        Volatile
            Single Bit
                Device Memory             : 7
                Total                     : 7
            Double Bit
                Device Memory             : {volatile}
                Total                     : {volatile}
        Aggregate
            Single Bit
                Total                     : 90
            Double Bit
                Device Memory             : 5
                Total                     : 5
"""


def test_the_case_of_a_pending_remap() -> None:
    Q.check_case("008")
    Q.never_better(cases.text_of("008"), expected_gpus=4)


def test_a_whole_output_of_a_healthy_node_is_ok() -> None:
    found = Q.judge(FULL, expected_gpus=2, expected_bus_ids=["1b:00.0", "0000:43:00.0"])
    assert (found.verdict, found.facts["gpus"], found.facts["driver_version"]) == ("ok", 2, "570.86.15")
    assert found.facts["remapped"] == {"00000000:1B:00.0": 2}
    assert found.facts["fabric_state"][SECOND] == "Completed"


def test_a_healthy_output_that_is_cut_is_unknown() -> None:
    Q.unknown_when_cut(FULL, upto=-700, expected_gpus=2)
    cut = FULL[: FULL.rindex("    Remapped Rows")]
    found = Q.judge(cut, expected_gpus=2)
    assert (found.verdict, found.cause, found.facts["gpus"]) == ("unknown", "output-truncated", 2)
    assert Q.said(FULL[: FULL.index(f"GPU {SECOND}")], expected_gpus=2) == ("unknown", "output-truncated")


@pytest.mark.parametrize(
    ("old", "new", "verdict", "cause"),
    [
        ("Action                   : None", "Action                   : Reset", "fail", "gpu-requires-reset"),
        ("Action                   : None", "Action                   : Reboot", "fail", "gpu-requires-reset"),
        (
            "Action                   : None",
            "Action                   : Drain and Reset",
            "degraded",
            "gpu-requires-reset",
        ),
        ("Action                   : None", "Action                   : Drain P2P", "degraded", "nvlink-down"),
        ("State                             : Completed", "State   : In Progress", "fail", "nvlink-down"),
        ("State                             : Completed", "State   : Not Started", "fail", "nvlink-down"),
        ("State                             : Completed", "State   : N/A", "ok", "healthy"),
        ("Bandwidth                     : Full", "Bandwidth       : Degraded", "degraded", "nvlink-down"),
        ("Bandwidth                     : Full", "Bandwidth       : N/A", "ok", "healthy"),
        ("Thermal Slowdown           : Not Active", "Thermal Slowdown : Active", "degraded", "gpu-slowed-down"),
        ("HW Slowdown                       : Not Active", "HW Slowdown : Active", "degraded", "gpu-slowed-down"),
        ("Current                   : 16x", "Current                   : 8x", "degraded", "pcie-link-limited"),
        ("Pending                           : Enabled", "Pending     : Disabled", "degraded", "config-reset-pending"),
        ("Pending                           : No", "Pending      : Yes", "degraded", "row-remap-pending"),
        ("Failure Occurred        : No", "Failure Occurred        : Yes", "fail", "page-retirement"),
        ("DRAM Uncorrectable            : 0", "DRAM Uncorrectable    : 1", "degraded", "gpu-requires-reset"),
        (
            "Fan Speed                             : N/A",
            "Fan Speed   : [GPU requires reset]",
            "fail",
            "gpu-requires-reset",
        ),
        ("P0", "GPU is lost", "fail", "gpu-lost"),
        ("31 C", "Unknown Error", "fail", "gpu-not-readable"),
    ],
)
def test_one_changed_value_is_judged(old: str, new: str, verdict: str, cause: str) -> None:
    assert old in FULL
    assert Q.said(FULL.replace(old, new, 1), expected_gpus=2) == (verdict, cause)


def test_reasons_of_older_drivers_are_read() -> None:
    text = FULL.replace("Clocks Event Reasons", "Clocks Throttle Reasons").replace(
        "HW Power Brake Slowdown       : Not Active", "HW Power Brake Slowdown       : Active", 1
    )
    assert Q.judge(text).facts["slowdowns"] == {"00000000:1B:00.0": ["HW Power Brake Slowdown"]}


def test_pages_of_an_old_driver() -> None:
    healthy = RETIRED_390.format(single=3, double=0, pending="No")
    assert Q.said(healthy, max_retired_pages=4) == ("ok", "healthy")
    many = Q.judge(RETIRED_390.format(single=40, double=23, pending="No"), max_retired_pages=60)
    assert (many.verdict, many.cause) == ("fail", "page-retirement")
    assert many.facts["retired_pages"] == {"00000000:04:00.0": 4, "00000000:05:00.0": 63}
    exact = RETIRED_390.format(single=40, double=20, pending="No")
    assert Q.said(exact, max_retired_pages=60) == ("ok", "healthy"), "as many as allowed"
    waiting = Q.judge(RETIRED_390.format(single=3, double=2, pending="Yes"), max_retired_pages=60)
    assert (waiting.verdict, waiting.cause, waiting.facts["pending"]) == (
        "degraded",
        "page-retirement",
        ["00000000:05:00.0"],
    )


def test_volatile_errors_count_and_aggregate_ones_are_history() -> None:
    assert Q.said(ECC_450.format(volatile=0)) == ("ok", "healthy")
    found = Q.judge(ECC_450.format(volatile=2))
    assert (found.verdict, found.facts["ecc_uncorrected"]) == ("degraded", {"00000000:3D:00.0": 2})


def test_sections_of_two_calls_are_put_together() -> None:
    one = RETIRED_390.format(single=3, double=0, pending="No")
    both = one + one.replace("Retired Pages", "Remapped Rows").replace(
        "Double Bit ECC              : 0\n        Pending                     : No",
        "Remapping Failure Occurred  : No\n        Pending                     : Yes",
    )
    found = Q.judge(both, max_retired_pages=60)
    assert found.facts["retired_pages"] == {"00000000:04:00.0": 4, "00000000:05:00.0": 3}
    assert found.facts["pending"] == ["00000000:05:00.0"]


def test_fewer_attached_cards_are_missing() -> None:
    assert Q.said(FULL, expected_gpus=3) == ("fail", "gpu-missing")
    found = Q.judge(FULL, expected_bus_ids=["0000:1b:00.0", "0000:43:00.0", "0000:52:00.0"])
    assert (found.cause, found.findings[0].subject) == ("gpu-missing", "0000:52:00.0")


def test_sections_that_were_chosen_need_no_processes() -> None:
    chosen = cases.text_of("112")
    assert Q.said(chosen, expected_gpus=2) == ("ok", "healthy")
    assert Q.said(chosen[: chosen.rindex("GPU 0000")].replace(": 2\n", ": 1\n", 1)) == ("ok", "healthy")
    assert Q.said(chosen[: chosen.rindex("        Bank Remap")], expected_gpus=2) == ("unknown", "output-truncated")


def test_a_lost_card_and_a_mismatch_are_named() -> None:
    lost = "Unable to determine the device handle for GPU 0000:52:00.0: GPU is lost.  Reboot the system"
    found = Q.judge(FULL + lost + "\n", expected_gpus=3)
    assert (found.verdict, found.cause, found.facts["bad_gpus"]) == ("fail", "gpu-lost", ["0000:52:00.0"])
    mismatch = Q.judge("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.120")
    assert (mismatch.cause, mismatch.facts["gpus"]) == ("driver-library-mismatch", None)


def test_a_board_of_another_kind_may_end_elsewhere() -> None:
    other = "GPU 00000000:F1:00.0\n    Remapped Rows                         : N/A\n"
    text = cases.text_of("008").replace("Attached GPUs                             : 4", "Attached GPUs : 5") + other
    healthy = text.replace("Pending                           : Yes", "Pending                           : No")
    assert Q.said(healthy, expected_gpus=5) == ("ok", "healthy")
    cut = healthy[: healthy.rindex("GPU 00000000:F1")].rstrip().rpartition("\n")[0]
    assert Q.said(cut.replace(": 5", ": 4"), expected_gpus=4) == ("unknown", "output-truncated")


def test_a_flag_that_is_no_flag_is_trouble_not_a_guess() -> None:
    found = Q.judge(FULL.replace("Pending                           : No", "Pending    : Ye", 1))
    assert (found.verdict, found.facts["pending"]) == ("unknown", [])


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 900), st.integers(0, 900), st.integers(0, 2000))
def test_numbers_are_reported_as_printed(single: int, double: int, most: int) -> None:
    found = Q.judge(RETIRED_390.format(single=single, double=double, pending="No"), max_retired_pages=most)
    assert found.facts["retired_pages"]["00000000:05:00.0"] == single + double
    assert (found.verdict == "fail") == (max(single + double, 4) > most)


def test_other_addresses_give_the_same_verdict() -> None:
    text = cases.text_of("008").replace("00000000:85:00.0", "00010000:C3:00.0")
    assert Q.judge(text, expected_gpus=4).facts["pending"] == ["00010000:C3:00.0"]


@pytest.mark.parametrize("text", [FULL, cases.text_of("008")])
def test_damage_is_survived(text: str) -> None:
    Q.survives(text, expected_gpus=2)


def test_long_lines_take_no_time() -> None:
    assert Q.judge("GPU 00000000:04:00.0\n" + "    a" + " " * 60_000 + "b\n" + " " * 65_000 + "x").verdict == "unknown"
