"""flint query: FS2 to FS4, full, image files, several cards."""

from __future__ import annotations

import pytest

from tests.unit.tools.cases import case_of, check_case, text_of
from tests.unit.tools.mlx_cuts import tool

FLINT = tool("flint")

FS4 = """Image type:            FS4
FW Version:            28.43.1014
FW Version(Running):   28.39.3004
FW Release Date:       7.11.2024
Product Version:       28.43.1014
Rom Info:              type=UEFI version=14.36.16 cpu=AMD64,AARCH64
                       type=PXE version=3.7.500 cpu=AMD64
Description:           UID                GuidsNumber
Base GUID:             e09d730300126744        16
Base MAC:              e09d73126744            16
Image VSD:             N/A
Device VSD:            N/A
PSID:                  MT_0000001244
Security Attributes:   secure-fw, dev
"""
SAME = FS4.replace("FW Version(Running):   28.39.3004\n", "")
FULL = SAME.replace("PSID: ", "Orig PSID:             MT_0000000001\nPSID: ") + (
    "Default Update Method: fw_ctrl\nLife cycle:            GA SECURED\nSecure Boot Capable:   Enabled\n"
)


def test_the_case_is_judged_as_stated() -> None:
    name = "030-flint"
    check_case(name, FLINT.judged(text_of(name), **case_of(name)["context"]))


def test_a_burned_version_that_does_not_run_waits_for_a_reset() -> None:
    assert FLINT.verdict(FS4, required_fw="28.43.1014") == ("degraded", "fw-reset-pending")
    facts = FLINT.facts(FS4)
    assert (facts["fw_version"], facts["fw_running"], facts["pending"]) == ("28.43.1014", "28.39.3004", True)
    assert (facts["psid"], facts["security"], facts["mac"]) == ("MT_0000001244", "secure-fw, dev", "e09d73126744")
    assert FLINT.verdict(FS4.replace("(Running)", " (Running)")) == ("degraded", "fw-reset-pending")


def test_a_card_that_runs_what_is_burned_is_ok_where_that_is_wanted() -> None:
    for text in (SAME, FULL):
        assert FLINT.verdict(text, required_fw="28.43.1014") == ("ok", "healthy")
        facts = FLINT.facts(text)
        assert (facts["fw_running"], facts["pending"], facts["psid"]) == ("28.43.1014", False, "MT_0000001244")


def test_another_version_than_wanted_fails() -> None:
    assert FLINT.verdict(SAME, required_fw="28.45.1200") == ("fail", "fw-version-wrong")
    assert FLINT.verdict(FS4, required_fw="28.45.1200") == ("fail", "fw-version-wrong")


def test_a_wanted_version_that_runs_is_lost_at_the_next_reset() -> None:
    assert FLINT.verdict(FS4, required_fw="28.39.3004") == ("degraded", "fw-reset-pending")


def test_a_version_may_be_wanted_by_psid() -> None:
    assert FLINT.verdict(SAME, required_fw={"MT_0000001244": "28.43.1014"}) == ("ok", "healthy")
    assert FLINT.verdict(SAME, required_fw={"MT_0000001244": "28.45.1200"})[0] == "fail"
    assert FLINT.verdict(SAME, required_fw={"MT_0000000838": "28.45.1200"}) == ("ok", "healthy")


def test_zeros_in_front_are_no_difference() -> None:
    assert FLINT.verdict(SAME, required_fw="28.43.01014") == ("ok", "healthy")


def test_each_of_several_cards_counts() -> None:
    for text in (SAME + FS4, FS4 + SAME):
        assert FLINT.verdict(text) == ("degraded", "fw-reset-pending")
        assert FLINT.facts(text)["devices"] == 2
        assert FLINT.facts(text)["pending"] is True


def test_errors_of_the_tool_say_nothing_about_the_card() -> None:
    text = "-E- Cannot open Device: /dev/mst/mt4129_pciconf0. No such file or directory. MFE_CR_ERROR\n"
    assert FLINT.verdict(text, required_fw="28.43.1014") == ("unknown", "test-did-not-run")
    assert FLINT.verdict("-E- Cannot open Device: 41:00.0. Permission denied\n") == ("unknown", "not-root")
    assert FLINT.verdict("-E- another card failed\n" + SAME) == ("ok", "healthy")
    assert FLINT.verdict("") == ("unknown", "output-truncated")


def test_a_cut_text_is_never_ok() -> None:
    FLINT.never_ok_when_cut(FS4, step=1, required_fw="28.43.1014")
    before_psid = SAME[: SAME.index("PSID:")]
    assert FLINT.verdict(before_psid, required_fw="28.43.1014") == ("unknown", "output-truncated")
    assert FLINT.facts(FS4[:60])["fw_running"] is None


def test_a_wrong_context_is_an_error() -> None:
    with pytest.raises(ValueError, match="required_fw"):
        FLINT.judged(SAME, required_fw=28.43)
    with pytest.raises(ValueError, match="required_fw"):
        FLINT.judged(SAME, required_fw={"MT_0000001244": 28})


@pytest.mark.parametrize("text", [FS4, FULL, SAME + FS4])
def test_damage_is_survived(text: str) -> None:
    FLINT.survives(text, required_fw="28.43.1014")


def test_it_is_recognised() -> None:
    assert FLINT.parser.recognise(FS4) >= 90
    assert FLINT.parser.recognise("FW Version: 1.2.3 in a log\n") < 90
