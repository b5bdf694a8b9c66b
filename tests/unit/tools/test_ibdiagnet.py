"""Reading and judging ibdiagnet."""

from __future__ import annotations

import pytest

from tests.unit.tools.cases import text_of
from tests.unit.tools.ib_reading import a_cut_never_heals, holds_case, judged, reader, said, survives

TABLE = text_of("028")
CLEAN = TABLE.replace("0          9          ", "0          0          ")


def errors(stage: str, number: int = 3) -> str:
    return CLEAN + f"-I- {stage:<36}{0:<11}{number:<11}\n"


def test_the_case_is_judged_right() -> None:
    holds_case("028")


@pytest.mark.parametrize(
    ("stage", "verdict"),
    [
        ("Links Check", ("fail", "link-down")),
        ("Subnet Manager", ("fail", "no-subnet-manager")),
        ("Lids Check", ("fail", "no-subnet-manager")),
        ("Port Counters", ("degraded", "bad-cable")),
        ("Cable Diagnostic (Plugin)", ("degraded", "bad-cable")),
        ("Rail Optimized Topology Validation", ("degraded", "topology-invalid")),
        ("Discovery", ("degraded", "node-not-responding")),
        ("Something New", ("degraded", "stage-with-errors")),
    ],
)
def test_each_stage_has_its_cause(stage: str, verdict: tuple[str, str]) -> None:
    assert said("ibdiagnet", errors(stage)) == verdict


def test_the_table_of_version_1_has_errors_first_and_no_levels() -> None:
    text = (
        "-I- Stages Status Report:\n    STAGE                                    Errors Warnings\n"
        "    Bad GUIDs/LIDs Check                     0      2     \n"
        "    Link State Active Check                  3      0     \n"
        "    Performance Counters Report              0      1     \n\nPlease see /tmp/ibdiagnet.log for complete log\n"
    )
    found = judged("ibdiagnet", text)
    assert (found.verdict, found.cause) == ("fail", "link-down")
    assert (found.facts["stages"], found.facts["errors"]) == (3, {"Link State Active Check": 3})
    assert found.facts["warnings"] == {"Bad GUIDs/LIDs Check": 2, "Performance Counters Report": 1}


def test_warnings_alone_are_ok() -> None:
    found = judged("ibdiagnet", CLEAN)
    assert (found.verdict, found.facts["warnings"], found.facts["errors"]) == ("ok", {"Nodes Information": 4}, {})


def test_lines_before_the_table_are_kept_and_its_comments_are_no_numbers() -> None:
    text = (
        "Running version:   ibdiagnet 2.18.1.MLNX20240730\nSpeed / Width checks\n"
        "-I- Link Speed Check (Compare to supported)\n"
        "-E- Links Speed Check finished with errors\n"
        "-E- S1/P20<-->H1/P1 - Unexpected actual link speed 25 (should be 50)\n"
        + TABLE
        + "-I- Routing                             N/A        N/A        skipped 7\n"
        + "-I- SHARP                               0          0          not run 12\n"
    )
    found = judged("ibdiagnet", text)
    assert reader("ibdiagnet").recognise(text) == 95
    assert (found.facts["error_total"], found.facts["stages"], found.facts["skipped"]) == (9, 13, ["Routing"])
    assert len(found.facts["error_lines"]) == 2


def test_a_row_that_lost_its_padding_may_have_lost_digits() -> None:
    text = CLEAN + "-I- Port Counters                       0          1"
    found = judged("ibdiagnet", text)
    assert (found.verdict, found.cause) == ("unknown", "output-truncated")
    assert "Port Counters" not in found.facts["errors"]
    stripped = "\n".join(line.rstrip() for line in TABLE.splitlines())
    assert said("ibdiagnet", stripped) == ("degraded", "link-below-capability")


def test_without_a_summary_nothing_is_known_and_damage_is_survived() -> None:
    assert said("ibdiagnet", "-I- Discovering ... 120 nodes (12 Switches & 108 CA-s) discovered.\n")[0] == "unknown"
    a_cut_never_heals(
        "ibdiagnet",
        errors("Links Check").partition("-I- Discovery")[0] + "-I- Links Check       0          3          \n",
        {},
    )
    survives("ibdiagnet", TABLE, {})


@pytest.mark.parametrize(
    "below",
    [
        "-I- Done. Run time was 0 seconds.",
        "-I- You can find detailed errors/warnings in: /var/tmp/ibdiagnet2/ibdiagnet2.log",
        "-I- LST file                  : /var/tmp/ibdiagnet2/ibdiagnet2.lst",
        "-I- Some sentence of a version to come\n\nand more",
    ],
)
def test_text_below_the_table_is_no_stage_that_was_cut_off(below: str) -> None:
    assert said("ibdiagnet", f"{CLEAN}\n{below}\n") == ("ok", "healthy")
    assert said("ibdiagnet", f"{TABLE}\n{below}\n") == ("degraded", "link-below-capability")


def test_a_stage_without_numbers_is_one_that_was_cut_off() -> None:
    assert said("ibdiagnet", f"{CLEAN}-I- Rout") == ("unknown", "output-truncated")
    assert said("ibdiagnet", CLEAN.replace("-I- Links Check", "-I- Li\n-I- Links Check")) == (
        "unknown",
        "output-truncated",
    )


def test_a_row_without_padding_counts_where_more_text_follows() -> None:
    text = CLEAN + "-I- Port Counters                       0          1\n\n-I- Done. Run time was 0 seconds.\n"
    assert said("ibdiagnet", text) == ("degraded", "bad-cable")


def test_a_fabric_that_was_not_discovered_is_not_judged() -> None:
    text = (
        "-E- A fatal error occurred, exiting...\n"
        "-I- Stage                               Warnings   Errors     Comment   \n"
        "-I- Discovery                           0          1          Fabric Discover failed\n"
        "-I- Lids Check                          NA         NA         Skipped   \n"
    )
    found = judged("ibdiagnet", text)
    assert (found.verdict, found.cause) == ("unknown", "test-did-not-run")
    assert "fatal" in found.findings[0].message


def test_a_name_that_fills_its_column_is_no_row_without_numbers() -> None:
    narrow = CLEAN + "-I- Cable Diagnostic (Plugin) 0          2          \n"
    assert judged("ibdiagnet", narrow).facts["errors"] == {"Cable Diagnostic (Plugin)": 2}
    assert judged("ibdiagnet", CLEAN + "-I- Phase 2       0          3          \n").facts["errors"] == {"Phase 2": 3}
