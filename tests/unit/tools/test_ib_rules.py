"""What the rules over InfiniBand tools have in common."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from weaklink.checks.tools.base import DRAIN, NOTE, Rule
from weaklink.model.finding import DEGRADED, FAIL, OK, UNKNOWN

from tests.unit.tools import fuzz
from tests.unit.tools.cases import NAMES, case_of, text_of
from tests.unit.tools.ib_reading import DATA, judge_of, reader

TOOLS = (
    "ibstat",
    "ibstatus",
    "ibdev2netdev",
    "ibv_devinfo",
    "rdma",
    "show_gids",
    "iblinkinfo",
    "ibqueryerrors",
    "ibnetdiscover",
    "ibdiagnet",
    "ibswinfo",
    "perfquery",
    "sminfo",
    "smpquery",
    "opensm_conf",
)
DEMANDS: tuple[dict[str, Any], ...] = (
    {},
    {
        "compute_hcas": ["mlx5_0", "mlx5_1"],
        "expected_rate_gbps": 400,
        "link_layer": "InfiniBand",
        "expected_active_mtu": 4096,
        "unused_ports": [],
    },
    {"expected_link": "4x HDR", "counters_cleared_minutes_ago": 5, "max_flaps_per_device": 1, "ip_version": 4},
    {"fabric_netdevs": ["ens15f0np0", "eth9"], "netdev": {"mlx5_1": "eth9"}, "link_layer": "Ethernet"},
)
SAMPLES = [text_of(name) for name in NAMES if case_of(name)["tool"] in TOOLS]
SAMPLES += [path.read_text(encoding="utf-8") for path in sorted(DATA.iterdir())]
SAMPLES += [
    "bash: tool: command not found\n",
    "tool: Permission denied\n",
    "No IB devices found\n",
    "Query SA failed\n",
    "",
    "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1\n",
    "link mlx5_1/1 lid 0 sm_lid 0 state INIT physical_state LINK_UP\n",
    "lmc 9\nsm_inactive TRUE\nqos_max_vls 8\nsm_prority 3\nrouting_engine ftree,no_fallback\nforce_link_speed_ext 30\n",
    "PSU0 status | ERROR\nfan#1 (rpm) | 0\nPSU1 status | N/A\n",
    "hca_id: mlx5_0\nphys_port_cnt: 1\nport: 1\nstate: PORT_ACTIVE (4)\nactive_mtu: 1024 (3)\nlink_layer: Ethernet\n",
]


def rules(tool: str) -> tuple[Rule, ...]:
    found: tuple[Rule, ...] = importlib.import_module(f"weaklink.checks.tools.{tool}").RULES
    return found


def test_names_of_rules_are_the_tools_own_and_unique() -> None:
    names = [rule.name for tool in TOOLS for rule in rules(tool)]
    assert len(names) == len(set(names))
    assert all(rule.name.startswith(f"{reader(tool).NAME}.") for tool in TOOLS for rule in rules(tool))


def test_every_rule_says_how_it_decides_and_what_to_do() -> None:
    for rule in (rule for tool in TOOLS for rule in rules(tool)):
        assert rule.causes
        assert rule.severity in {FAIL, DEGRADED, UNKNOWN}
        assert rule.action in {DRAIN, NOTE}
        assert rule.decides.endswith(".")
        assert rule.remedy.endswith(".")


@pytest.mark.thorough
@pytest.mark.parametrize("tool", TOOLS)
def test_every_finding_is_that_of_a_rule_with_a_cause_of_its_own(tool: str) -> None:
    known = {rule.name: rule for rule in rules(tool)}
    seen = set()
    for sample in SAMPLES:
        for text in (sample, sample[: len(sample) // 2], sample.replace("Active", "Armed").replace("ACTIVE", "INIT")):
            record = fuzz.read(reader(tool), text)
            for context in DEMANDS:
                judged = judge_of(tool)(record, context)
                assert judged.findings
                seen |= {(finding.check, finding.status, finding.cause) for finding in judged.findings}
    for check, status, cause in seen:
        if check.endswith(".readable"):
            continue
        assert check in known
        assert status in {OK, UNKNOWN} or cause in known[check].causes, (check, cause)
        assert status != UNKNOWN or cause in known[check].causes, (check, cause)
    assert any(check in known for check, _, _ in seen)


@pytest.mark.thorough
@pytest.mark.parametrize("tool", TOOLS)
def test_no_text_of_another_tool_is_ok(tool: str) -> None:
    for name in NAMES:
        if case_of(name)["tool"].replace(".", "_") != tool and reader(tool).recognise(text_of(name)) == 0:
            judged = judge_of(tool)(fuzz.read(reader(tool), text_of(name)), {})
            assert judged.verdict != "ok", (name, judged.findings[:2])


def test_each_case_is_recognised_by_its_own_reader_alone() -> None:
    for name in NAMES:
        sure = {tool for tool in TOOLS if reader(tool).recognise(text_of(name)) > 0}
        assert sure <= {case_of(name)["tool"].replace(".", "_")}, name
