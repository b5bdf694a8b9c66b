"""The fabric manager's own log, its journal, its systemctl status."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools import cases
from tests.unit.tools.nvidia_help import tool

FM = tool("fabricmanager")
JOURNAL = "Nov 12 08:00:{second:02d} gpu-1 {who}: {what}"
DAEMON = "nv-fabricmanager[4417]"
GOOD = "Successfully configured all the available GPUs and NVSwitches to route NVLink traffic."
MISMATCH = (
    "fabric manager NVIDIA GPU driver interface version {fm} don't match with driver version {driver}. "
    "Please update with matching NVIDIA driver package."
)
NOTHING = (
    "request to query NVSwitch device information from NVSwitch driver failed with error:"
    "WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"
)
FATAL = (
    "detected NVSwitch {kind}fatal error {code} on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 33"
)


def journal(*said: str, who: str = DAEMON) -> str:
    lines = [JOURNAL.format(second=0, who="systemd[1]", what="Starting NVIDIA fabric manager service...")]
    lines += [JOURNAL.format(second=at, who=who, what=what) for at, what in enumerate(said, 1)]
    return "\n".join(lines) + "\n"


def log(*said: tuple[str, str]) -> str:
    lines = [
        "[Nov 12 2024 08:00:01] [INFO] [tid 12] Fabric Manager version 550.90.07 is running with the following options"
    ]
    lines += [f"[Nov 12 2024 08:01:{at:02d}] [{level}] [tid 12] {what}" for at, (level, what) in enumerate(said)]
    return "\n".join(lines) + "\n"


def test_the_case_of_two_builds_of_a_branch() -> None:
    FM.check_case("032")
    FM.never_better(cases.text_of("032"), nvswitch_devices=4)
    assert FM.said(cases.text_of("032")) == ("fail", "fabricmanager-version-mismatch")
    assert FM.said(cases.text_of("032"), nvswitch_devices=0) == ("ok", "healthy"), "nothing for it to do"


@pytest.mark.parametrize(
    ("fm", "driver"), [("550.127.05", "550.120"), ("470.57.02", "470.57.01"), ("580.65.06", "575.57.08")]
)
def test_versions_of_two_and_three_parts_are_read(fm: str, driver: str) -> None:
    found = FM.judge(journal(MISMATCH.format(fm=fm, driver=driver)), nvswitch_devices=6)
    assert (found.facts["fm_version"], found.facts["driver_version"]) == (fm, driver)
    assert (found.verdict, found.cause, found.facts["running"]) == ("fail", "fabricmanager-version-mismatch", False)


def test_a_mismatch_that_was_mended_is_history() -> None:
    text = journal(MISMATCH.format(fm="550.90.07", driver="550.127.05")) + journal("Connected to 1 node.", GOOD)
    found = FM.judge(text, nvswitch_devices=4)
    assert (found.verdict, found.facts["running"]) == ("ok", True)
    again = text + journal(MISMATCH.format(fm="550.90.07", driver="550.127.08"))
    assert FM.said(again, nvswitch_devices=4) == ("fail", "fabricmanager-version-mismatch")


def test_the_start_script_and_its_words() -> None:
    text = journal(MISMATCH.format(fm="595.71.05", driver="590.48.01"))
    text += journal(
        '"/usr/bin/nv-fabricmanager -c fabricmanager.cfg" failed! Exit code: 1', who="nvidia-fabricmanager-start.sh[9]"
    )
    assert FM.said(text, nvswitch_devices=4) == ("fail", "fabricmanager-version-mismatch")


@pytest.mark.parametrize(("switches", "verdict"), [(0, "ok"), (4, "fail"), (None, "unknown")])
def test_nothing_to_do_is_right_only_without_nvswitches(switches: int | None, verdict: str) -> None:
    text = (
        journal(NOTHING)
        + "Nov 12 08:00:02 gpu-1 systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.\n"
    )
    found = FM.judge(text, nvswitch_devices=switches)
    assert (found.verdict, found.facts["nvswitch"]) == (verdict, bool(switches))


@pytest.mark.parametrize("level", ["ERROR", "CRITICAL"])
def test_a_fatal_error_after_a_good_start_fails(level: str) -> None:
    found = FM.judge(log(("INFO", GOOD), (level, FATAL.format(kind="", code=20034))), nvswitch_devices=6)
    assert (found.verdict, found.cause) == ("fail", "nvlink-fatal")
    assert (found.facts["sxids"], found.facts["nvswitches"], found.facts["ports"]) == (
        [20034],
        ["00000000:86:00.0"],
        [33],
    )
    assert found.facts["fm_version"] == "550.90.07"


def test_non_fatal_errors_and_errors_before_a_restart_are_ok() -> None:
    mild = FM.judge(log(("INFO", GOOD), ("ERROR", FATAL.format(kind="non-", code=12028))), nvswitch_devices=6)
    assert (mild.verdict, mild.facts["non_fatal_errors"], mild.facts["fatal_errors"]) == ("ok", 1, 0)
    past = FM.judge(log(("ERROR", FATAL.format(kind="", code=20034)), ("INFO", GOOD)), nvswitch_devices=6)
    assert (past.verdict, past.facts["fatal_errors"]) == ("ok", 1)


@pytest.mark.parametrize(
    ("line", "switches", "verdict", "cause"),
    [
        ("Active: active (running) since Tue 2024-11-12 08:00:01 UTC; 3 days ago", 4, "ok", "healthy"),
        ("Active: failed (Result: exit-code) since Tue 2024-11-12 08:00:01 UTC", 4, "fail", "nvlink-down"),
        ("Active: inactive (dead)", 4, "fail", "nvlink-down"),
        ("Active: inactive (dead)", 0, "ok", "healthy"),
        ("Active: inactive (dead)", None, "unknown", "test-did-not-run"),
        ("Active: activating (start) since Tue 2024-11-12 08:00:01 UTC", 4, "unknown", "test-did-not-run"),
    ],
)
def test_the_status_of_the_service(line: str, switches: int | None, verdict: str, cause: str) -> None:
    text = f"● nvidia-fabricmanager.service - NVIDIA fabric manager service\n     Loaded: loaded\n     {line}\n"
    assert FM.said(text, nvswitch_devices=switches) == (verdict, cause)
    assert FM.parser.recognise(text) >= 85


def test_what_systemctl_says_of_now_comes_after_the_journal_below_it() -> None:
    bad = journal(MISMATCH.format(fm="550.90.07", driver="550.127.05"))
    running = "     Active: active (running) since Tue 2024-11-12 08:00:01 UTC\n\n"
    failed = "     Active: failed (Result: exit-code) since Tue 2024-11-12 08:00:01 UTC\n\n"
    assert FM.said(running + journal("Connected to 1 node."), nvswitch_devices=4) == ("ok", "healthy")
    assert FM.said(failed + bad, nvswitch_devices=4) == ("fail", "fabricmanager-version-mismatch")
    assert FM.said(failed + journal(GOOD), nvswitch_devices=4) == ("fail", "nvlink-down")


def test_a_service_that_is_not_there() -> None:
    text = "Unit nvidia-fabricmanager.service could not be found.\n"
    assert FM.said(text, nvswitch_devices=4) == ("fail", "nvlink-down")
    assert FM.said(text, nvswitch_devices=0) == ("ok", "healthy")


@pytest.mark.parametrize(
    "module",
    ["x86_64 Kernel Module  550.54.15  Tue Mar  5", "Open Kernel Module for x86_64  550.54.15  Release Build"],
)
def test_two_versions_without_a_log_are_compared(module: str) -> None:
    text = f"Fabric Manager version is : 550.90.07\nNVRM version: NVIDIA UNIX {module}\n"
    found = FM.judge(text, nvswitch_devices=4)
    assert (found.cause, found.facts["driver_version"]) == ("fabricmanager-version-mismatch", "550.54.15")
    assert FM.said(text.replace("90.07", "54.15"), nvswitch_devices=4) == ("unknown", "test-did-not-run")


def test_links_that_do_not_train_are_degraded() -> None:
    text = log(("INFO", GOOD), ("ERROR", "NVLink training failed between NVSwitch 2 port 7 and GPU 3"))
    assert FM.said(text, nvswitch_devices=6) == ("degraded", "nvlink-down")


def test_what_cannot_be_read_is_unknown() -> None:
    assert FM.said("") == ("unknown", "output-truncated")
    assert FM.said("Nov 12 08:00:00 gpu-1 sshd[1]: Failed password", nvswitch_devices=4)[0] == "unknown"
    assert FM.said(journal(), nvswitch_devices=4) == ("unknown", "test-did-not-run")


def test_a_log_that_ends_within_a_line_is_unknown() -> None:
    text = log(("INFO", GOOD), ("ERROR", FATAL.format(kind="", code=20034)))
    last = text.index("[Nov", text.index(GOOD))
    for at in range(last + 1, text.index("20034")):
        assert FM.judge(text[:at], nvswitch_devices=6).verdict != "ok", text[last:at]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["good", "bad", "other"]), min_size=1, max_size=8), st.integers(300, 900))
def test_the_last_start_decides(starts: list[str], branch: int) -> None:
    says = {
        "good": journal(GOOD),
        "bad": journal(MISMATCH.format(fm=f"{branch}.1.02", driver=f"{branch}.1.03")),
        "other": "Nov 12 08:00:09 gpu-1 kernel: NVRM: loading\n",
    }
    found = FM.judge("".join(says[start] for start in starts), nvswitch_devices=4)
    decisive = [start for start in starts if start != "other"]
    wanted = {"good": "ok", "bad": "fail"}[decisive[-1]] if decisive else "unknown"
    assert found.verdict == wanted
    if "bad" in starts:
        assert found.facts["driver_version"] == f"{branch}.1.03"


@pytest.mark.parametrize(
    "text", [cases.text_of("032"), log(("INFO", GOOD), ("ERROR", FATAL.format(kind="", code=20034)))]
)
def test_damage_is_survived(text: str) -> None:
    FM.survives(text, nvswitch_devices=4)
