"""A system's log: programs and the kernel together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from weaklink.checks.tools import syslog as checks
from weaklink.observe.tools import dmesg, syslog
from weaklink.observe.tools.text import clean

from tests.unit.tools import fuzz
from tests.unit.tools.cases import case_of, check_case, text_of

CASE = "019-"


def judge(text: str, **context: Any) -> Any:
    return checks.judge(syslog.parse(clean(text.split("\n"))), context)


def test_the_known_case_is_judged_right() -> None:
    check_case(CASE, judge(text_of(CASE), **case_of(CASE)["context"]))
    assert syslog.recognise(text_of(CASE)) > dmesg.recognise(text_of(CASE))


LOST = {
    "networkd": ("systemd-networkd[1893]", "ib3: Lost carrier", "ib3: Gained carrier"),
    "networkd old": ("systemd-networkd[1893]", "ib3: lost carrier", "ib3: gained carrier"),
    "NetworkManager": (
        "NetworkManager[912]",
        "<info>  [1741198841.1234] device (ib3): carrier: link disconnected",
        "<info>  [1741198842.1234] device (ib3): carrier: link connected",
    ),
    "dhcpcd": ("dhcpcd[77]", "ib3: carrier lost", "ib3: carrier acquired"),
    "driver": (
        "kernel",
        "bnxt_en 0000:5e:00.0 ib3: NIC Link is Down",
        "bnxt_en 0000:5e:00.0 ib3: NIC Link is Up, 100000 Mbps",
    ),
    "igb": (
        "kernel",
        "igb 0000:01:00.0 ib3: igb: ib3 NIC Link is Down",
        "igb 0000:01:00.0 ib3: igb: ib3 NIC Link is Up 1000 Mbps",
    ),
}


@pytest.mark.parametrize(("program", "down", "up"), LOST.values(), ids=LOST)
def test_losses_are_counted_whoever_reports_them(program: str, down: str, up: str) -> None:
    front = f"Jun 18 03:41:02 node-63 {program}: "
    text = "\n".join(front + line for line in (up, down, up, down, up))
    judged = judge(text, max_flaps_per_device=1, fabric_netdevs=["ib3"])
    assert judged.facts["flaps"] == {"ib3": 2}
    assert (judged.verdict, judged.cause) == ("degraded", "link-flapping")
    assert judge(text, max_flaps_per_device=2, fabric_netdevs=["ib3"]).verdict == "ok"
    assert judge(text, max_flaps_per_device=1, fabric_netdevs=["ib0"]).verdict == "ok"


def test_two_programs_that_report_one_loss_are_one_loss() -> None:
    text = (
        "Jun 18 03:41:02 n kernel: mlx5_core 0000:5d:00.0 ens1: Link down\n"
        "Jun 18 03:41:02 n systemd-networkd[1]: ens1: Lost carrier\n"
        "Jun 18 03:41:03 n kernel: mlx5_core 0000:5d:00.0 ens1: Link up\n"
        "Jun 18 03:41:03 n systemd-networkd[1]: ens1: Gained carrier"
    )
    assert judge(text).facts["flaps"] == {"ens1": 1}


def test_repeated_messages_count_as_often_as_they_say() -> None:
    front = "Jun 18 03:41:02 n systemd-networkd[1]: "
    text = (
        f"{front}ib3: Lost carrier\n{front}message repeated 3 times: [ ib3: Lost carrier]\n{front}ib3: Gained carrier"
    )
    assert judge(text).facts["flaps"] == {"ib3": 4}
    old = f"{front}ib3: Lost carrier\nJun 18 03:41:09 n last message repeated 2 times"
    assert judge(old).facts["flaps"] in ({"ib3": 3}, {"ib3": 1})


FORMS = {
    "rfc3164": "Jun 18 03:41:02 node-63 systemd-networkd[1893]: {}",
    "rfc3164 with priority": "<30>Jun 18 03:41:02 node-63 systemd-networkd[1893]: {}",
    "rsyslog iso": "2025-06-18T03:41:02.123456+02:00 node-63 systemd-networkd[1893]: {}",
    "rfc5424": "<30>1 2025-06-18T03:41:02.123456+02:00 node-63 systemd-networkd 1893 - - {}",
    "rfc5424 with data": '<30>1 2025-06-18T03:41:02Z node-63 systemd-networkd 1893 ID47 [a@1 b="c"] {}',
    "short-monotonic": "[18204.123456] node-63 systemd-networkd[1893]: {}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_a_system_log_is_read(form: str) -> None:
    text = "\n".join(form.format(line) for line in ("ib3: Gained carrier", "ib3: Lost carrier", "ib3: Gained carrier"))
    assert judge(text).facts["flaps"] == {"ib3": 1}
    assert syslog.recognise(text) >= 75


def test_journal_json_with_programs_is_read() -> None:
    text = "\n".join(
        json.dumps(
            {"__REALTIME_TIMESTAMP": "1", "_HOSTNAME": "n", "SYSLOG_IDENTIFIER": "systemd-networkd", "MESSAGE": line}
        )
        for line in ("ib3: Lost carrier", "ib3: Gained carrier")
    )
    assert judge(text).facts["flaps"] == {"ib3": 1}
    assert syslog.recognise(text) >= 75


def test_the_kernel_in_a_system_log_is_heard() -> None:
    text = text_of(CASE) + (
        "Jun 18 05:00:00 node-63 kernel: NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.\n"
    )
    assert judge(text, **case_of(CASE)["context"]).cause == "gpu-lost"


def test_the_fabric_managers_own_journal_is_left_to_its_reader() -> None:
    line = "Jun 18 03:41:02 node-63 nvidia-fabricmanager[77]: starting"
    assert syslog.recognise(f"{line}\n{line}") < 60


def test_device_names_follow_the_log() -> None:
    text = text_of(CASE).replace("ib3", "rdma7")
    judged = judge(text, max_flaps_per_device=5, fabric_netdevs=["rdma7"])
    assert judged.facts["over_limit"] == ["rdma7"]


def test_damage_never_raises_nor_takes_long() -> None:
    fuzz.survives(syslog, text_of(CASE), judge=checks.judge, context=case_of(CASE)["context"])


def test_network_manager_tells_a_loss_in_several_ways() -> None:
    front = "Feb 11 09:10:01 hgx-04 NetworkManager[1510]: <info>  [1739265001.1170] device (ibs4): "
    old = (
        f"{front}link disconnected (deferring action for 4 seconds)\n{front}link disconnected (calling deferred action)"
    )
    new = (
        f"{front}state change: activated -> unavailable (reason 'carrier-changed', sys-iface-state: 'managed')\n"
        f"{front}carrier: link connected"
    )
    assert judge(old).facts["flaps"] == {"ibs4": 1}
    assert judge(f"{new}\n{new}").facts["flaps"] == {"ibs4": 2}
