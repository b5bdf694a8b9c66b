"""Reading and judging opensm.conf."""

from __future__ import annotations

import pytest

from tests.unit.tools.ib_reading import judged, reader, said, survives

SOUND = (
    "# SUBNET MANAGER\nsubnet_prefix 0xfe80000000000000\nlmc 0\nsweep_interval 10\n"
    "routing_engine ftree,updn\nsm_priority 14\n"
    "force_link_speed 15\nsm_inactive FALSE\nqos FALSE\nqos_max_vls 0\nqos_vlarb_high (null)\n"
    "node_name_map_name (null)\n"
)


def test_a_sound_file_is_ok() -> None:
    found = judged("opensm_conf", SOUND)
    assert reader("opensm_conf").recognise(SOUND) == 90
    assert found.verdict == "ok"
    assert found.facts["settings"]["routing_engine"] == "ftree,updn"
    assert found.facts["settings"]["node_name_map_name"] is None


@pytest.mark.parametrize(
    ("line", "wrong", "verdict"),
    [
        ("sm_inactive FALSE", "sm_inactive TRUE", ("fail", "no-subnet-manager")),
        ("ftree,updn", "ftree,no_fallback", ("degraded", "topology-invalid")),
        ("ftree,updn", "fattree", ("degraded", "topology-invalid")),
        ("ftree,updn", "ar_updn", ("ok", "healthy")),
        ("ftree,updn", "torus-2QoS", ("ok", "healthy")),
        ("sm_priority 14", "sm_priority 16", ("degraded", "setting-ignored")),
        ("lmc 0", "lmc 8", ("degraded", "setting-ignored")),
        ("sm_priority 14", "sm_prority 14", ("degraded", "setting-ignored")),
        ("sm_priority 14", "smp_threads 0", ("ok", "healthy")),
        ("qos_vlarb_high (null)", "qos_vlarb_high 0:64,1:64", ("degraded", "qos-not-configured")),
        ("sm_priority 14", "sm_priority 14\nsm_priority 3", ("degraded", "setting-ignored")),
        ("sm_priority 14", "sm_priority 14\nsm_priority 14", ("ok", "healthy")),
        ("lmc 0", "force_link_speed_ext 30", ("degraded", "link-below-capability")),
    ],
)
def test_each_wrong_line_is_found(line: str, wrong: str, verdict: tuple[str, str]) -> None:
    assert said("opensm_conf", SOUND.replace(line, wrong)) == verdict


def test_the_last_line_of_a_key_holds_and_a_value_demanded_must_hold() -> None:
    text = SOUND + "sm_priority 3\n"
    assert judged("opensm_conf", text).facts["settings"]["sm_priority"] == "3"
    assert judged("opensm_conf", text).facts["duplicates"] == ["sm_priority"]
    assert said("opensm_conf", SOUND, {"required": {"sm_priority": 15}}) == ("fail", "setting-wrong")
    assert said("opensm_conf", SOUND, {"required": {"qos": "false", "lmc": 0}}) == ("ok", "healthy")


def test_quotes_comments_and_blanks_are_taken_off() -> None:
    found = judged("opensm_conf", '  log_file "/var/log/opensm.log"  # here\n\troot_guid_file\t/etc/roots\n')
    assert found.facts["settings"] == {"log_file": "/var/log/opensm.log", "root_guid_file": "/etc/roots"}


def test_damage_is_survived() -> None:
    survives("opensm_conf", SOUND, {})
    assert said("opensm_conf", "# nothing\n") == ("unknown", "output-truncated")
