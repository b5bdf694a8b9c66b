"""dcgmi diag as JSON and as a table of DCGM 2 to 4, health -c, discovery -l, errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools import cases
from tests.unit.tools.nvidia_help import tool

DCGM = tool("dcgmi")
NO_ENGINE = (
    "Error: unable to establish a connection to the specified host: localhost\n"
    "Error: Unable to connect to host engine. Host engine connection invalid/disconnected."
)


def diag_4(statuses: dict[str, list[str]], *, category: str = "Hardware", version: str = "4.2.3") -> str:
    gpus = len(next(iter(statuses.values())))
    tests = [
        {
            "name": name,
            "results": [
                {"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu, "status": status}
                | ({"warnings": [{"error_id": 8, "warning": f"GPU {gpu} is hot"}]} if status == "Fail" else {})
                for gpu, status in enumerate(found)
            ],
            "test_summary": {"status": "Fail" if "Fail" in found else "Pass"},
        }
        for name, found in statuses.items()
    ]
    data = {
        "DCGM Diagnostic": {"test_categories": [{"category": category, "tests": tests}]},
        "entity_groups": [
            {"entity_group": "GPU", "entity_group_id": 1, "entities": [{"entity_id": gpu} for gpu in range(gpus)]}
        ],
        "metadata": {"version": version, "Driver Version Detected": "570.86.10"},
    }
    return json.dumps(data, indent=2)


def diag_2(status: str) -> str:
    """Return what DCGM 2 prints: upper-case words, GPUs as a list in a text."""
    results = [{"gpu_ids": "0,1,2,3", "status": "PASS"}, {"gpu_ids": "4, 5", "status": status, "warnings": "slow"}]
    return json.dumps(
        {
            "DCGM GPU Diagnostic": {
                "test_categories": [
                    {"category": "Deployment", "tests": [{"name": "Blacklist", "results": [{"status": "PASS"}]}]},
                    {"category": "Stress", "tests": [{"name": "SM Stress", "results": results}]},
                ],
                "version": "2.4.8",
            }
        }
    )


TABLE_4 = """Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Metadata  ----------+------------------------------------------------|
| DCGM Version              | 4.4.1                                          |
| Driver Version Detected   | 580.76.05                                      |
| GPU Device IDs Detected   | 2330,2330                                      |
|-----  Deployment  --------+------------------------------------------------|
| software                  | Pass                                           |
|                           | GPU0: Pass                                     |
|                           | GPU1: Pass                                     |
+-----  Hardware  ----------+------------------------------------------------+
| memory                    | {summary:<46} |
|                           | GPU0: Pass                                     |
|                           | GPU1: {gpu1:<40} |
+-----  Stress  ------------+------------------------------------------------+
+---------------------------+------------------------------------------------+
"""
TABLE_2 = """Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Deployment  --------+------------------------------------------------|
| Blacklist                 | Pass                                           |
| NVML Library              | Pass                                           |
+-----  Integration  -------+------------------------------------------------+
| PCIe                      | {pcie:<46} |
+-----  Hardware  ----------+------------------------------------------------+
| GPU Memory                | {memory:<46} |
| Diagnostic                | {memory:<46} |
+-----  Stress  ------------+------------------------------------------------+
| SM Stress                 | {stress:<46} |
+---------------------------+------------------------------------------------+
"""
HEALTH = """+---------------------------+----------------------------------------------------------+
| Health Monitor Report                                                                |
+===========================+==========================================================+
| Overall Health            | {health:<56} |
| GPU                       |                                                          |
| -> 1                      | {health:<56} |
|    -> Errors              |                                                          |
|       -> NVLINK system    | {health:<56} |
|                           | GPU 1's NvLink link 3 is currently down                  |
+---------------------------+----------------------------------------------------------+
"""


def test_the_cases_of_tests_all_skipped_and_of_a_second_row() -> None:
    DCGM.check_case("013")
    DCGM.check_case("014")
    DCGM.never_better(cases.text_of("013"), expected_gpus=2, level=3)
    DCGM.never_better(cases.text_of("014"), expected_gpus=8, level=2)


def test_json_of_dcgm_4() -> None:
    found = DCGM.judge(
        diag_4({"memory": ["Pass"] * 4, "pcie": ["Pass", "Skip", "Pass", "Pass"]}), expected_gpus=4, level=2
    )
    assert (found.verdict, found.facts["dcgm_version"], found.facts["driver_version"]) == ("ok", "4.2.3", "570.86.10")
    assert (found.facts["pass"], found.facts["skip"], found.facts["tests"]) == (7, 1, 2)
    bad = DCGM.judge(diag_4({"memory": ["Pass", "Fail", "Pass", "Fail"]}), expected_gpus=4, level=2)
    assert (bad.verdict, bad.facts["failed"]) == ("fail", [{"test": "memory", "gpus": [1, 3]}])
    assert "GPU 1 is hot" in bad.findings[0].message
    assert bad.facts["passed_gpus_memory"] == [0, 2]


@pytest.mark.parametrize(
    ("status", "verdict", "cause"),
    [
        ("PASS", "ok", "healthy"),
        ("FAIL", "fail", "dcgm-test-failed"),
        ("WARN", "degraded", "dcgm-test-failed"),
        ("SKIP", "unknown", "nothing-tested"),
        ("NotRun", "unknown", "nothing-tested"),
        ("Odd", "unknown", "test-did-not-run"),
    ],
)
def test_json_of_dcgm_2(status: str, verdict: str, cause: str) -> None:
    found = DCGM.judge("Defaulted container\n" + diag_2(status), expected_gpus=6, level=3)
    assert (found.verdict, found.cause, found.facts["gpus"]) == (verdict, cause, 6)
    assert found.facts["dcgm_version"] == "2.4.8"


def test_a_table_of_dcgm_4_names_each_card() -> None:
    good = DCGM.judge(TABLE_4.format(summary="Pass", gpu1="Pass"), expected_gpus=2, level=2)
    assert (good.verdict, good.facts["gpus"], good.facts["passed_gpus_memory"]) == ("ok", 2, [0, 1])
    bad = DCGM.judge(TABLE_4.format(summary="Fail", gpu1="Fail"), expected_gpus=2, level=2)
    assert (bad.verdict, bad.facts["failed"]) == ("fail", [{"test": "memory", "gpus": [1]}])
    everywhere = DCGM.judge(TABLE_4.format(summary="Fail - All", gpu1="-").replace("GPU0: Pass", "-         "))
    assert everywhere.facts["bad_gpus"] == [0, 1]
    sly = DCGM.judge(TABLE_4.format(summary="Pass", gpu1="Fail"))
    assert sly.facts["failed"] == [{"test": "memory", "gpus": [1]}]


@pytest.mark.parametrize(
    ("pcie", "memory", "stress", "verdict", "cause"),
    [
        ("Pass - All", "Pass - All", "Pass - All", "ok", "healthy"),
        ("Pass - All", "Skip - All", "Skip - All", "ok", "healthy"),
        ("Skip - All", "Skip - All", "Skip - All", "unknown", "nothing-tested"),
        ("Pass - All", "Fail - GPU: 1", "Skip - All", "fail", "dcgm-test-failed"),
        ("Fail - All", "Pass - All", "Pass - All", "fail", "dcgm-test-failed"),
        ("Pass - All", "Warn - GPUs: 0, 1", "Pass - All", "degraded", "dcgm-test-failed"),
    ],
)
def test_a_table_of_dcgm_2(pcie: str, memory: str, stress: str, verdict: str, cause: str) -> None:
    assert DCGM.said(TABLE_2.format(pcie=pcie, memory=memory, stress=stress), level=3) == (verdict, cause)


def test_level_one_tests_software_alone_and_level_two_does_not() -> None:
    text = TABLE_2.format(pcie="", memory="", stress="")
    text = "\n".join(
        line for line in text.split("\n") if not line.startswith(("| PCIe", "| GPU M", "| Diagnostic  ", "| SM"))
    )
    text = text.replace(
        "+====", "| Diagnostic                | Result                                         |\n+===="
    )
    assert DCGM.said(text, level=1) == ("ok", "healthy")
    assert DCGM.said(text) == ("ok", "healthy")
    assert DCGM.said(text, level=2) == ("unknown", "nothing-tested")


def test_a_card_that_was_skipped_everywhere_is_unknown() -> None:
    found = DCGM.judge(diag_4({"memory": ["Pass", "Skip"], "pcie": ["Pass", "Skip"]}), level=2)
    assert (found.verdict, found.cause, found.findings[0].subject) == ("unknown", "nothing-tested", "1")


def test_fewer_cards_than_expected_are_missing() -> None:
    assert DCGM.said(diag_4({"memory": ["Pass"] * 7}), expected_gpus=8, level=2) == ("fail", "gpu-missing")
    assert DCGM.said(TABLE_4.format(summary="Pass", gpu1="Pass"), expected_gpus=8) == ("fail", "gpu-missing")


@pytest.mark.parametrize(
    ("text", "verdict", "cause"),
    [
        (NO_ENGINE, "unknown", "test-did-not-run"),
        ("Error: Unable to complete diagnostic for group 2147483647. Return: (-33) : GPU is lost.", "fail", "gpu-lost"),
        ("bash: dcgmi: command not found", "unknown", "test-did-not-run"),
        ('{"DCGM GPU Diagnostic": {"runtime_error": "The NVVS binary was not found"}}', "unknown", "test-did-not-run"),
        ("{}", "unknown", "output-truncated"),
        ('{"DCGM Diagnostic": [1, 2]}', "unknown", "output-truncated"),
        ("", "unknown", "output-truncated"),
    ],
)
def test_errors_in_place_of_results(text: str, verdict: str, cause: str) -> None:
    found = DCGM.judge(text, expected_gpus=8, level=3)
    assert (found.verdict, found.cause, found.facts["gpus"]) == (verdict, cause, None)


@pytest.mark.parametrize("name", ["Diagnostic", "GPU Memory", "Targeted Stress"])
@pytest.mark.parametrize("card", [0, 5, 7])
def test_a_failure_is_seen_whatever_the_name_of_the_test(name: str, card: int) -> None:
    text = cases.text_of("148")
    healthy = text.replace("GPUs: 0, 1, 2, 3, 4, 5, 7", "All             ").replace("Fail - GPU: 6 ", "Pass - GPU: 6 ")
    assert DCGM.said(healthy, expected_gpus=8, level=3) == ("ok", "healthy")
    lines = healthy.split("\n")
    at = max(at for at, line in enumerate(lines) if line.startswith(f"| {name} "))
    lines[at] = f"| {name:<25} | {f'Fail - GPU: {card}':<46} |"
    found = DCGM.judge("\n".join(lines), expected_gpus=8, level=3)
    assert (found.verdict, found.facts["failed"]) == ("fail", [{"test": name, "gpus": [card]}])


@pytest.mark.parametrize(
    ("health", "verdict", "cause"),
    [("Healthy", "ok", "healthy"), ("Warning", "degraded", "nvlink-down"), ("Failure", "fail", "nvlink-down")],
)
def test_health(health: str, verdict: str, cause: str) -> None:
    text = HEALTH.format(health=health)
    if verdict == "ok":
        text = "\n".join([*text.split("\n")[:4], text.split("\n")[0]])
    found = DCGM.judge(text, expected_gpus=8)
    assert (found.verdict, found.cause, found.facts["overall_health"]) == (verdict, cause, health)
    assert DCGM.parser.recognise(text) >= 85


def test_discovery() -> None:
    rule = "+--------+----------------------------------------------------------------------+"
    rows = [
        f"| {at}      | Name: NVIDIA H800{' ' * 53}|\n|        | Device UUID: GPU-0{at}{' ' * 51}|\n{rule}"
        for at in range(2)
    ]
    text = "\n".join(["2 GPUs found.", rule, f"| GPU ID | Device Information{' ' * 51}|", rule, *rows])
    assert (DCGM.judge(text, expected_gpus=2).verdict, DCGM.judge(text).facts["gpus"]) == ("ok", 2)
    assert DCGM.said(text, expected_gpus=8) == ("fail", "gpu-missing")
    assert DCGM.said("\n".join(text.split("\n")[:7]), expected_gpus=2) == ("unknown", "output-truncated")


def test_a_fault_before_the_cut_is_seen_and_a_healthy_cut_is_unknown() -> None:
    text = diag_4({"memory": ["Pass", "Fail", "Pass"], "pcie": ["Pass"] * 3})
    cut = DCGM.judge(text[: text.index('"pcie"')], expected_gpus=3, level=2)
    assert (cut.verdict, cut.facts["failed"]) == ("fail", [{"test": "memory", "gpus": [1]}])
    good = diag_4({"memory": ["Pass"] * 3, "pcie": ["Pass"] * 3})
    DCGM.unknown_when_cut(good, upto=-1, expected_gpus=3, level=2)
    DCGM.unknown_when_cut(TABLE_4.format(summary="Pass", gpu1="Pass"), upto=-4, expected_gpus=2, level=2)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["Pass", "Fail", "Skip", "Warn"]), min_size=1, max_size=16), st.integers(0, 9))
def test_counts_follow_the_results(statuses: list[str], minor: int) -> None:
    found = DCGM.judge(diag_4({"memory": statuses}, version=f"4.{minor}.0"), expected_gpus=len(statuses), level=2)
    assert found.facts["gpus"] == len(statuses)
    assert [found.facts[key] for key in ("pass", "fail", "warn", "skip")] == [
        statuses.count(word) for word in ("Pass", "Fail", "Warn", "Skip")
    ]
    failed = [at for at, status in enumerate(statuses) if status == "Fail"]
    assert found.facts["bad_gpus"] == failed
    assert (found.verdict == "fail") == bool(failed)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tests", "results", "status", "name", "gpu_id", "entity_id"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(_JSON)
def test_any_json_in_a_diagnostic_is_survived(inside: Any) -> None:
    text = json.dumps({"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": inside}]}})
    assert DCGM.judge(text, expected_gpus=1).verdict in {"ok", "unknown", "degraded", "fail"}


@pytest.mark.parametrize("text", [cases.text_of("013"), cases.text_of("014"), HEALTH.format(health="Failure")])
def test_damage_is_survived(text: str) -> None:
    DCGM.survives(text, expected_gpus=8, level=2)


def test_deep_json_is_survived() -> None:
    assert DCGM.judge('{"DCGM Diagnostic": ' + "[" * 100_000).verdict == "unknown"
