"""Words and messages that all NVIDIA tools share, and what holds for all their readers."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.observe.tools import nvidia_words as words

from tests.unit.tools import cases
from tests.unit.tools.nvidia_help import tool

MODULES = (
    "nvidia_smi",
    "nvidia_smi_csv",
    "nvidia_smi_q",
    "nvidia_smi_topo",
    "nvidia_smi_nvlink",
    "dcgmi",
    "fabricmanager",
)
NAMES = {tool(name).parser.NAME: name for name in MODULES}
LONG = 60_000
EVIL = ("9" * LONG, " " * LONG + "x", "a" + " " * LONG + "b", "|" * LONG, "GPU 0: " + "(" * LONG, '{"' * (LONG // 2))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("00000000:3B:00.0", "3b:00.0", True),
        ("0000:3B:00.0", "00000000:3b:00.0", True),
        ("00010000:3B:00.0", "0000:3B:00.0", False),
        ("3B:00.0", "3B:00.1", False),
    ],
)
def test_addresses_compare_whatever_their_width(one: str, other: str, same: bool) -> None:
    assert (words.bus_key(one) == words.bus_key(other)) is same
    assert words.bus_key("3B") is None


@pytest.mark.parametrize(
    ("line", "kind", "bus", "gpu"),
    [
        ("Unable to determine the device handle for GPU 0000:3B:00.0: Not Found", words.UNREADABLE, "0000:3B:00.0",
         None),
        ("Unable to determine the device handle for GPU0000:25:00.0: Unknown Error", words.UNREADABLE, "0000:25:00.0",
         None),
        ("Unable to determine the device handle for GPU3: 0000:5F:00.0: GPU is lost.", words.LOST, "0000:5F:00.0", 3),
        ("Unable to determine the device handle for GPU2: Unknown Error", words.UNREADABLE, None, 2),
        ("Unable to determine the device handle for gpu 00000000:5F:00.0: GPU requires reset", words.RESET,
         "00000000:5F:00.0", None),
        ("No devices were found", words.NO_DEVICES, None, None),
        ("Failed to initialize NVML: Driver/library version mismatch", words.MISMATCH, None, None),
    ],
)  # fmt: skip
def test_a_message_names_its_card(line: str, kind: str, bus: str | None, gpu: int | None) -> None:
    found = words.notice(line, 7)
    assert found is not None
    assert (found.kind, found.line, found.bus, found.gpu) == (kind, 7, bus, gpu)


def test_an_ordinary_line_is_no_message() -> None:
    for line in ("| N/A   28C    P0 |", "    Used GPU Memory : timed out", "0, NVIDIA L4, 00000000:19:00.0", ""):
        assert words.notice(line, 1) is None


def test_values_that_are_absent_are_not_faults() -> None:
    assert all(words.absent(cell) and words.fault(cell) is None for cell in ("[N/A]", "N/A", "[Not Supported]"))
    assert not any(words.absent(cell) for cell in ("0", "[Unknown Error]", "No", ""))


@pytest.mark.parametrize("case", cases.NAMES)
def test_each_case_is_recognised_by_its_own_reader_alone(case: str) -> None:
    text, right = cases.text_of(case), cases.case_of(case)["tool"]
    for name, module in NAMES.items():
        sure = tool(module).parser.recognise(text)
        assert sure >= 70 if name == right else sure <= 50, (name, sure)


@pytest.mark.parametrize("module", MODULES)
def test_long_lines_are_read_in_no_time(module: str) -> None:
    case = next(name for name in cases.NAMES if NAMES.get(cases.case_of(name)["tool"]) == module)
    head = cases.text_of(case)
    for line in EVIL:
        begun = time.monotonic()
        tool(module).parser.recognise(line)
        tool(module).judge(f"{head}\n{line}\n| 0 | {line} | 00000000:19:00.0 |\n{line}")
        assert time.monotonic() - begun < 2, line[:20]


@pytest.mark.parametrize("module", MODULES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_lines_of_all_tools_mixed_are_survived(module: str, data: st.DataObject) -> None:
    lines = [
        line for name in ("007", "008", "010", "011", "014", "032") for line in cases.text_of(name).split("\n")[:40]
    ]
    text = "\n".join(data.draw(st.lists(st.sampled_from(lines) | st.text(max_size=20), max_size=40)))
    assert tool(module).judge(text, expected_gpus=4).verdict in {"ok", "unknown", "degraded", "fail"}
