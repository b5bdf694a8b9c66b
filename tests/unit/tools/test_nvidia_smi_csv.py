"""nvidia-smi --query-…= --format=csv, in every form that its options give it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools import cases
from tests.unit.tools.nvidia_help import tool

CSV = tool("nvidia_smi_csv")
BUS = ("00000000:19:00.0", "00000000:3B:00.0", "00000000:4C:00.0", "00000000:5D:00.0")
HEADER = "index, name, pci.bus_id, ecc.errors.uncorrected.volatile.total, power.draw [W]"
ROWS = [f"{at}, NVIDIA H100 80GB HBM3, {bus}, 0, {70 + at}.12 W" for at, bus in enumerate(BUS)]
HEALTHY = "\n".join([HEADER, *ROWS])

REMAPPED = """gpu_bus_id, gpu_uuid, remapped_rows.correctable, remapped_rows.uncorrectable, remapped_rows.pending, \
remapped_rows.failure
00000000:19:00.0, GPU-11111111-2222-3333-4444-555555555555, 0, 1, No, No
00000000:3B:00.0, GPU-21111111-2222-3333-4444-555555555555, 2, 1, {pending}, {failure}
00000000:4C:00.0, GPU-31111111-2222-3333-4444-555555555555, [N/A], [N/A], [N/A], [N/A]
"""
PAGES = """gpu_uuid, gpu_bus_id, retired_pages.address, retired_pages.cause
GPU-11111111-2222-3333-4444-555555555555, 00000000:19:00.0, 0x00000000000a1b2c, Single Bit ECC
GPU-11111111-2222-3333-4444-555555555555, 00000000:19:00.0, 0x00000000000a1b2d, Double Bit ECC
GPU-11111111-2222-3333-4444-555555555555, 00000000:19:00.0, 0x00000000000a1b2e, Double Bit ECC
GPU-21111111-2222-3333-4444-555555555555, 00000000:3B:00.0, [N/A], Single Bit ECC
"""


def test_the_case_of_a_card_that_requires_a_reset() -> None:
    CSV.check_case("007")
    CSV.never_better(cases.text_of("007"), expected_gpus=5)


def test_a_healthy_list_is_ok_in_every_format() -> None:
    plain = HEALTHY.replace(" W", "").replace(" [W]", "")
    bare = "\n".join(ROWS)
    for text in (HEALTHY, plain, bare, bare.replace(" W", ""), HEALTHY.replace(", ", ","), HEALTHY + "\n\n"):
        found = CSV.judge(text, expected_gpus=4)
        assert (found.verdict, found.facts["gpus"]) == ("ok", 4), text


@pytest.mark.parametrize(
    ("cell", "cause"),
    [
        ("[GPU is lost]", "gpu-lost"),
        ("[GPU requires reset]", "gpu-requires-reset"),
        ("[Unknown Error]", "gpu-not-readable"),
        ("ERR!", "gpu-not-readable"),
    ],
)
def test_a_fault_in_place_of_a_value_names_the_card(cell: str, cause: str) -> None:
    text = HEALTHY.replace(ROWS[2], f"2, NVIDIA H100 80GB HBM3, {BUS[2]}, {cell}, {cell}")
    found = CSV.judge(text, expected_gpus=4)
    assert (found.verdict, found.cause) == ("fail", cause)
    assert (found.facts["bad_gpus"], found.facts["bad_indexes"]) == ([BUS[2]], [2])


@pytest.mark.parametrize("cell", ["[N/A]", "N/A", "[Not Supported]", "[Requested functionality has been deprecated]"])
def test_a_sensor_that_a_board_lacks_is_no_fault(cell: str) -> None:
    found = CSV.judge(HEALTHY.replace("71.12 W", cell), expected_gpus=4)
    assert (found.verdict, found.facts["not_applicable_cells"]) == ("ok", 1)


def test_a_required_field_without_a_value_is_a_fault() -> None:
    text = HEALTHY.replace("71.12 W", "[N/A]")
    assert CSV.said(text, required_fields=["power.draw"]) == ("fail", "gpu-not-readable")
    assert CSV.said(text, required_fields=["ecc.errors.uncorrected.volatile.total"]) == ("ok", "healthy")
    assert CSV.said(text, required_fields=["temperature.gpu"]) == ("unknown", "test-did-not-run")
    odd = HEALTHY.replace("71.12 W", "[Unknown Error]")
    assert CSV.said(odd, required_fields=["name"]) == ("ok", "healthy")
    assert CSV.said(odd, required_fields=["power.draw"]) == ("fail", "gpu-not-readable")
    assert CSV.said(odd) == ("fail", "gpu-not-readable")
    hidden = HEALTHY.replace("71.12 W", "[Insufficient Permissions]")
    assert CSV.said(hidden, required_fields=["power.draw"]) == ("unknown", "not-root")


def test_a_card_that_is_not_listed_is_missing() -> None:
    text = "\n".join([HEADER, *ROWS[:3]])
    assert CSV.said(text, expected_gpus=4) == ("fail", "gpu-missing")
    found = CSV.judge(text, expected_bus_ids=["0000:19:00.0", "3b:00.0", "00000000:4c:00.0", "0000:5d:00.0"])
    assert (found.verdict, found.cause, found.findings[0].subject) == ("fail", "gpu-missing", "0000:5d:00.0")
    assert CSV.said(text) == ("ok", "healthy")


def test_a_card_that_a_message_calls_lost_is_lost_not_missing() -> None:
    message = f"Unable to determine the device handle for GPU {BUS[3][4:]}: GPU is lost.  Reboot the system to recover"
    found = CSV.judge("\n".join([message, HEADER, *ROWS[:3]]), expected_gpus=4)
    assert (found.verdict, found.cause, found.facts["gpus"]) == ("fail", "gpu-lost", 3)
    assert found.facts["bad_gpus"] == ["0000:5D:00.0"]
    assert len(found.findings) == 1


def test_an_unknown_error_of_a_handle_is_not_readable() -> None:
    message = "Unable to determine the device handle for GPU3: 0000:5D:00.0: Unknown Error"
    found = CSV.judge("\n".join([message, HEADER, *ROWS[:3]]), expected_gpus=4)
    assert (found.verdict, found.cause, found.facts["bad_indexes"]) == ("fail", "gpu-not-readable", [3])


@pytest.mark.parametrize(("yes", "no"), [("Yes", "No"), ("1", "0")])
def test_a_pending_remap_is_degraded_and_a_failed_one_fails(yes: str, no: str) -> None:
    healthy = CSV.judge(REMAPPED.format(pending=no, failure=no), expected_gpus=3)
    assert (healthy.verdict, healthy.facts["remapped"]) == ("ok", {BUS[0]: 1, BUS[1]: 3})
    pending = CSV.judge(REMAPPED.format(pending=yes, failure=no), expected_gpus=3)
    assert (pending.verdict, pending.cause, pending.facts["pending"]) == ("degraded", "row-remap-pending", [BUS[1]])
    failed = CSV.judge(REMAPPED.format(pending=yes, failure=yes), expected_gpus=3)
    assert (failed.verdict, failed.facts["remap_failure"]) == ("fail", [BUS[1]])


def test_pages_are_counted_a_card_and_judged_by_the_limit() -> None:
    found = CSV.judge(PAGES, max_retired_pages=2, expected_gpus=8)
    assert (found.verdict, found.cause) == ("fail", "page-retirement")
    assert found.facts["retired_pages"] == {BUS[0]: 3, BUS[1]: 0}
    assert (found.facts["double_bit"][BUS[0]], found.facts["gpus"]) == (2, None)
    assert CSV.said(PAGES, max_retired_pages=3) == ("ok", "healthy")
    assert CSV.said(PAGES) == ("ok", "healthy")


def test_pages_in_a_query_of_cards() -> None:
    text = (
        "index, gpu_bus_id, retired_pages.sbe, retired_pages.dbe, retired_pages.pending\n"
        f"0, {BUS[0]}, 1, 2, {{}}\n1, {BUS[1]}, [N/A], [N/A], [N/A]"
    )
    assert CSV.said(text.format("Yes"), max_retired_pages=60) == ("degraded", "page-retirement")
    assert CSV.said(text.format("No"), max_retired_pages=2) == ("fail", "page-retirement")


@pytest.mark.parametrize(
    ("field", "good", "bad", "verdict", "cause"),
    [
        ("gpu_recovery_action", "None", "Reset", "fail", "gpu-requires-reset"),
        ("gpu_recovery_action", "[N/A]", "Reboot", "fail", "gpu-requires-reset"),
        ("gpu_recovery_action", "None", "Drain and Reset", "degraded", "gpu-requires-reset"),
        ("reset_status.reset_required", "No", "Yes", "fail", "gpu-requires-reset"),
        ("reset_status.drain_and_reset_recommended", "[N/A]", "Yes", "degraded", "gpu-requires-reset"),
        ("fabric.state", "Completed", "In Progress", "fail", "nvlink-down"),
        ("fabric.state", "[N/A]", "Not Started", "fail", "nvlink-down"),
    ],
)
def test_what_a_card_says_of_its_own_state(field: str, good: str, bad: str, verdict: str, cause: str) -> None:
    text = "\n".join([f"index, pci.bus_id, {field}", *(f"{at}, {bus}, {good}" for at, bus in enumerate(BUS))])
    assert CSV.said(text, expected_gpus=4) == ("ok", "healthy")
    found = CSV.judge(text.replace(f"{BUS[2]}, {good}", f"{BUS[2]}, {bad}"), expected_gpus=4)
    assert (found.verdict, found.cause, found.findings[0].subject) == (verdict, cause, BUS[2])
    assert found.facts["bad_indexes"] == ([2] if verdict == "fail" else [])


def test_a_lost_card_comes_before_one_that_cannot_be_read() -> None:
    text = HEALTHY.replace("70.12 W", "[Unknown Error]").replace("72.12 W", "[GPU is lost]")
    found = CSV.judge(text)
    assert [finding.cause for finding in found.findings] == ["gpu-lost", "gpu-not-readable"]
    assert found.facts["bad_indexes"] == [0, 2]


@pytest.mark.parametrize("head", ["pci.bus_id\n", ""])
def test_a_single_column_is_recognised(head: str) -> None:
    text = head + "\n".join(BUS[:3])
    assert CSV.parser.recognise(text) >= 70
    assert CSV.said(text, expected_gpus=4) == ("fail", "gpu-missing")
    assert CSV.parser.recognise("uuid\nno UUID at all\n") == 0


def test_processes_are_not_cards() -> None:
    text = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-aabbccdd-1111, 4711, python3, 512 MiB"
    assert CSV.judge(text, expected_gpus=8).facts["gpus"] is None
    assert CSV.said(text, expected_gpus=8) == ("ok", "healthy")
    assert CSV.said("pid, process_name, used_gpu_memory [MiB]", expected_gpus=8) == ("ok", "healthy")


def test_uncorrected_errors_and_a_narrow_link_are_degraded() -> None:
    assert CSV.said(HEALTHY.replace(f"{BUS[1]}, 0", f"{BUS[1]}, 3")) == ("degraded", "gpu-requires-reset")
    names = ("gen.current", "gen.max", "width.current", "width.max")
    links = "index, " + ", ".join(f"pcie.link.{name}" for name in names) + "\n0, {}, 5, {}, 16"
    assert CSV.said(links.format(1, 16)) == ("ok", "healthy"), "a low generation when idle is normal"
    assert CSV.said(links.format(5, 8)) == ("degraded", "pcie-link-limited")


def test_a_low_generation_counts_when_the_card_is_busy() -> None:
    text = "index, utilization.gpu [%], pcie.link.gen.current, pcie.link.gen.max\n0, {} %, 1, 5\n1, 98 %, 5, 5"
    assert CSV.said(text.format(0)) == ("ok", "healthy")
    found = CSV.judge(text.format(97))
    assert (found.verdict, found.cause, found.facts["narrow_links"]) == ("degraded", "pcie-link-limited", ["0"])


def test_lines_of_the_shell_around_a_table_are_passed_over() -> None:
    shell = "$ nvidia-smi --query-gpu=index,name,pci.bus_id --format=csv\nWarning: added 'n1' (ED25519), for good\n"
    found = CSV.judge(shell + HEALTHY + "\nroot@n1:~#", expected_gpus=4)
    assert (found.verdict, found.facts["gpus"]) == ("ok", 4)


def test_columns_without_names_are_cards_only_where_that_is_certain() -> None:
    assert CSV.said("GPU-aabb-1, 4711, python3\nGPU-aabb-2, 4712, python3", expected_gpus=8) == ("ok", "healthy")
    assert CSV.said("GPU-aabb-1\nGPU-aabb-2", expected_gpus=8) == ("fail", "gpu-missing")
    assert CSV.said("GPU-aabb-1\nGPU-aabb-2", expected_gpus=2) == ("ok", "healthy")


def test_two_tables_in_one_file_are_both_judged() -> None:
    text = HEALTHY + "\n" + REMAPPED.format(pending="Yes", failure="No")
    assert CSV.said(text, expected_gpus=4) == ("degraded", "row-remap-pending")


def test_messages_in_place_of_a_table() -> None:
    wrong = 'Field "clock.foo" is not a valid field to query.'
    assert CSV.said(wrong, expected_gpus=8) == ("unknown", "test-did-not-run")
    assert CSV.parser.recognise(wrong) >= 60
    found = CSV.judge("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.120")
    assert (found.cause, found.facts["nvml_library"]) == ("driver-library-mismatch", "550.120")
    assert CSV.said("No devices were found", expected_gpus=2) == ("fail", "gpu-missing")


def test_what_cannot_be_read_is_unknown() -> None:
    assert CSV.said("") == ("unknown", "output-truncated")
    assert CSV.said(HEADER, expected_gpus=4) == ("unknown", "output-truncated")
    assert CSV.said("\n".join(ROWS)) == ("unknown", "output-truncated"), "no header, and nothing that is demanded"
    cut = HEALTHY[: HEALTHY.rindex(", ")]
    found = CSV.judge(cut, expected_gpus=4)
    assert (found.verdict, found.cause, found.facts["gpus"]) == ("unknown", "output-truncated", None)


def test_a_wrong_kind_of_context_is_named() -> None:
    with pytest.raises(ValueError, match="expected_gpus"):
        CSV.judge(HEALTHY, expected_gpus="4")


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(4)), st.sampled_from(range(4)))
def test_the_order_of_rows_and_columns_changes_nothing(order: list[int], bad: int) -> None:
    rows = [row.split(", ") for row in [HEADER, *ROWS]]
    rows[bad + 1][4] = "[GPU requires reset]"
    turned = [row[::-1] for row in [rows[0], *[rows[1 + at] for at in order]]]
    found = CSV.judge("\n".join(", ".join(row) for row in turned), expected_gpus=4)
    assert (found.cause, found.facts["bad_gpus"], found.facts["gpus"]) == ("gpu-requires-reset", [BUS[bad]], 4)


@pytest.mark.parametrize("text", [cases.text_of("007"), REMAPPED.format(pending="Yes", failure="No"), PAGES])
def test_damage_is_survived(text: str) -> None:
    CSV.survives(text, expected_gpus=4, max_retired_pages=1)


@given(st.text(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_text_is_survived(text: str) -> None:
    assert CSV.judge(text, expected_gpus=4).verdict in {"ok", "unknown", "degraded", "fail"}
