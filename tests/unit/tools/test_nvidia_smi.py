"""The table of nvidia-smi, from drivers of 2016 to those of 2025, and the messages that it prints instead."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools import cases
from tests.unit.tools.nvidia_help import tool

SMI = tool("nvidia_smi")
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
    "NVIDIA driver is installed and running."
)
OLD_HEAD = """Mon Jan  8 09:15:01 2018
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 384.111                Driver Version: 384.111                   |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
"""
OLD_ROW = """|   {n}  Tesla P100-SXM2...  On   | {bus} Off |                    {ecc} |
| N/A   34C    P0    31W / 300W |      0MiB / 16276MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
"""
OLD_TAIL = """
+-----------------------------------------------------------------------------+
| Processes:                                                       GPU Memory |
|  GPU       PID   Type   Process name                             Usage      |
|=============================================================================|
|    0     29133      C   python3                                      4711MiB |
|    3     29134      C   ./gpu_burn                                   4711MiB |
+-----------------------------------------------------------------------------+
"""
NEW_HEAD = """Tue Feb 11 11:42:09 2025
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.86.10              Driver Version: 570.86.10      CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
"""
NEW_ROW = """|   {n}  NVIDIA H100 80GB HBM3          On  |   {bus} Off |                    {ecc} |
| N/A   28C    P0             70W /  700W |       1MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""
NEW_TAIL = """
+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                Shared BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|                  |                                  |        ECC|                       |
|==================+==================================+===========+=======================|
|  0    1   0   0  |              38MiB / 40448MiB    | 60      0 |  3   0    3    0    3 |
|                  |                 0MiB / 65535MiB  |           |                       |
+------------------+----------------------------------+-----------+-----------------------+
|  0    2   0   1  |              38MiB / 40448MiB    | 60      0 |  3   0    3    0    3 |
|                  |                 0MiB / 65535MiB  |           |                       |
+------------------+----------------------------------+-----------+-----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""


def table(count: int, *, new: bool = True, ecc: object = 0) -> str:
    head, row, tail = (NEW_HEAD, NEW_ROW, NEW_TAIL) if new else (OLD_HEAD, OLD_ROW, OLD_TAIL)
    return head + "".join(row.format(n=at, bus=bus(at), ecc=ecc) for at in range(count)) + tail


def bus(at: int) -> str:
    return f"00000000:{0x19 + 2 * at:02X}:00.0"


def test_the_cases_of_a_row_of_errors_and_of_a_mismatch() -> None:
    SMI.check_case("011")
    SMI.check_case("012")
    SMI.never_better(cases.text_of("011"), expected_gpus=8)
    SMI.never_better(cases.text_of("012"), expected_gpus=8)


@pytest.mark.parametrize("new", [True, False])
def test_tables_of_old_and_new_drivers_are_counted(new: bool) -> None:
    found = SMI.judge(table(4, new=new), expected_gpus=4, expected_bus_ids=[bus(at)[4:].lower() for at in range(4)])
    assert (found.verdict, found.facts["gpus"], found.facts["bad_gpus"]) == ("ok", 4, [])
    assert found.facts["driver_version"] == ("570.86.10" if new else "384.111")
    assert (found.facts["mig_devices"], found.facts["processes"]) == ((2, 0) if new else (0, 2))


def test_a_bus_address_of_four_digits_and_a_list() -> None:
    text = table(2, new=False).replace("00000000:", "0000:").replace(".0 Off", ".0     Off")
    assert SMI.judge(text, expected_gpus=2).facts["gpus"] == 2
    listed = "GPU 0: NVIDIA L4 (UUID: GPU-11112222-3333)\nGPU 1: NVIDIA L4 (UUID: GPU-11112222-4444)\n"
    listed += "  MIG 1g.5gb      Device  0: (UUID: MIG-aaaa-bbbb)\n"
    assert SMI.judge(listed, expected_gpus=2).verdict == "ok"
    assert SMI.said(listed, expected_gpus=3) == ("fail", "gpu-missing")


@pytest.mark.parametrize("new", [True, False])
def test_a_card_that_is_not_listed_is_missing(new: bool) -> None:
    assert SMI.said(table(7, new=new), expected_gpus=8) == ("fail", "gpu-missing")
    found = SMI.judge(table(2, new=new), expected_bus_ids=[bus(0), bus(1), bus(5)])
    assert (found.cause, found.findings[0].subject) == ("gpu-missing", bus(5))


@pytest.mark.parametrize(
    ("cell", "cause"),
    [("ERR!", "gpu-not-readable"), ("Unknown Error", "gpu-not-readable"), ("GPU is lost", "gpu-lost")],
)
def test_one_cell_that_holds_a_fault_names_the_card(cell: str, cause: str) -> None:
    text = table(3).replace("70W /  700W", f"{cell} /  700W", 2).replace(f"{cell} /", "70W /", 1)
    found = SMI.judge(text, expected_gpus=3)
    assert (found.verdict, found.cause, found.facts["bad_indexes"]) == ("fail", cause, [1])
    assert (found.facts["bad_gpus"], found.facts["gpus"]) == ([bus(1)], 3)


def test_a_row_whose_every_cell_is_a_fault_still_counts() -> None:
    rows = table(3)
    lost = "|   1  ERR!                           ERR!  |   ERR!             ERR! |                 ERR! |"
    text = "\n".join(lost if line.startswith("|   1 ") else line for line in rows.split("\n"))
    found = SMI.judge(text, expected_gpus=3)
    assert (found.cause, found.facts["gpus"], found.facts["bad_indexes"]) == ("gpu-not-readable", 3, [1])


def test_uncorrected_errors_are_degraded_and_absent_counters_are_not() -> None:
    assert SMI.said(table(2, ecc=0), expected_gpus=2) == ("ok", "healthy")
    assert SMI.said(table(2, ecc="N/A"), expected_gpus=2) == ("ok", "healthy")
    assert SMI.said(table(2, ecc=4), expected_gpus=2) == ("degraded", "gpu-requires-reset")


@pytest.mark.parametrize(
    ("text", "verdict", "cause"),
    [
        (NO_DRIVER, "fail", "gpu-not-readable"),
        ("Failed to initialize NVML: Driver Not Loaded", "fail", "gpu-not-readable"),
        ("Failed to initialize NVML: Driver/library version mismatch", "fail", "driver-library-mismatch"),
        ("Failed to initialize NVML: Unknown Error", "unknown", "test-did-not-run"),
        ("Failed to initialize NVML: Insufficient Permissions", "unknown", "not-root"),
        ("No devices were found", "fail", "gpu-missing"),
        ("bash: nvidia-smi: command not found", "unknown", "test-did-not-run"),
        (
            "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system",
            "fail",
            "gpu-lost",
        ),
        (
            "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\nNo devices were found",
            "fail",
            "gpu-not-readable",
        ),
        ("", "unknown", "output-truncated"),
    ],
)
def test_messages_in_place_of_the_table(text: str, verdict: str, cause: str) -> None:
    found = SMI.judge(text, expected_gpus=8)
    assert (found.verdict, found.cause) == (verdict, cause)
    assert found.facts["gpus"] == (0 if "No devices" in text else None)
    assert SMI.parser.recognise(text) >= (85 if text else 0)


def test_a_mismatch_is_no_hardware_fault_whatever_the_number() -> None:
    found = SMI.judge(cases.text_of("012"), expected_gpus=1, expected_bus_ids=["0000:19:00.0"])
    assert [finding.cause for finding in found.findings] == ["driver-library-mismatch"]
    assert found.facts["hardware_fault"] is False
    assert SMI.judge(table(2).replace("28C", "ERR!", 1)).facts["hardware_fault"] is True


def test_no_devices_where_none_are_expected_is_unknown() -> None:
    assert SMI.said("No devices were found") == ("unknown", "test-did-not-run")


def test_a_table_that_is_cut_is_unknown() -> None:
    for new in (True, False):
        text = table(4, new=new)
        end = text.rindex(bus(3)) + 240
        for at in range(0, end, 7):
            verdict, cause = SMI.said(text[:at], expected_gpus=4)
            closed = text[:at].rstrip("\n").endswith("----+") and "Compute M." in text[:at]
            assert (verdict, cause) == ("unknown", "output-truncated") or (closed and cause == "gpu-missing"), text[:at]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 16), st.integers(0, 20), st.booleans())
def test_the_count_decides(listed: int, wanted: int, new: bool) -> None:
    found = SMI.judge(table(listed, new=new), expected_gpus=wanted)
    assert found.facts["gpus"] == listed
    assert (found.verdict == "fail") == (listed < wanted)


@pytest.mark.parametrize("text", [table(2), table(2, new=False), cases.text_of("011"), cases.text_of("012")])
def test_damage_is_survived(text: str) -> None:
    SMI.survives(text, expected_gpus=8)
