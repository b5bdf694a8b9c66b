"""The kernel's log, in all forms that dmesg and journalctl give it."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.checks.tools import dmesg as checks
from weaklink.observe.tools import dmesg, kernel_lines
from weaklink.observe.tools.text import clean

from tests.unit.tools import fuzz
from tests.unit.tools.cases import check_case, text_of

XID79 = "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
XID119 = "NVRM: Xid (PCI:0000:db:00): 119, pid=381204, name=nvidia-smi, Timeout after 6s of waiting for RPC response"
FLAPS = (
    "mlx5_core 0000:5d:00.0 ens1f0np0: Link up",
    "mlx5_core 0000:5d:00.0 ens1f0np0: Link down",
    "mlx5_core 0000:5d:00.0 ens1f0np0: Link up",
)


def judge(text: str, **context: Any) -> Any:
    return checks.judge(dmesg.parse(clean(text.split("\n"))), context)


def concluded(text: str, **context: Any) -> tuple[str, str]:
    judged = judge(text, **context)
    return judged.verdict, judged.cause


@pytest.mark.parametrize("name", ["015-", "016-", "017-", "018-"])
def test_the_known_cases_are_judged_right(name: str) -> None:
    from tests.unit.tools.cases import case_of

    check_case(name, judge(text_of(name), **case_of(name)["context"]))
    assert dmesg.recognise(text_of(name)) >= 85


FRONTS = {
    "plain": "[12345.678901] {}",
    "caller": "[12345.678901][ T1234] {}",
    "-T": "[Wed Mar  5 18:20:41 2025] {}",
    "-x": "kern  :err   : [12345.678901] {}",
    "-x -T": "kern  :err   : [Wed Mar  5 18:20:41 2025] {}",
    "-r": "<3>[12345.678901] {}",
    "-d": "[  +0.000013] {}",
    "iso": "2025-03-05T18:20:41,123456+01:00 {}",
    "kern prefix": "kernel: [12345.678901] {}",
    "journal short": "Mar 05 18:20:41 gpu-1 kernel: {}",
    "syslog double stamp": "Mar  5 18:20:41 gpu-1 kernel: [12345.678901] {}",
    "short-iso": "2025-03-05T18:20:41+0100 gpu-1 kernel: {}",
    "short-precise": "Mar 05 18:20:41.123456 gpu-1 kernel: {}",
    "short-full": "Wed 2025-03-05 18:20:41 CET gpu-1 kernel: {}",
    "short-unix": "1741198841.123456 gpu-1 kernel: {}",
    "short-monotonic": "[12345.678901] gpu-1 kernel: {}",
    "rfc5424": "<3>1 2025-03-05T18:20:41.123456+01:00 gpu-1 kernel - - - {}",
    "cat": "{}",
}


@pytest.mark.parametrize("front", FRONTS.values(), ids=FRONTS)
def test_every_front_of_a_line_is_taken_off(front: str) -> None:
    text = "\n".join(front.format(line) for line in (XID79, *FLAPS))
    judged = judge(text)
    assert (judged.verdict, judged.cause) == ("fail", "gpu-lost")
    assert judged.facts["xids"] == [{"bdf": "0000:41:00", "xid": 79, "lines": 1}]
    assert judged.facts["flaps"] == {"ens1f0np0": 1}
    assert judged.facts["link_flaps"] == 1


@pytest.mark.parametrize("front", [front for name, front in FRONTS.items() if name != "cat"])
def test_a_log_of_the_kernel_alone_is_recognised(front: str) -> None:
    assert dmesg.recognise("\n".join(front.format(line) for line in (XID79, *FLAPS))) >= 85


def test_json_of_journalctl_and_of_dmesg_says_the_same() -> None:
    lines = [{"MESSAGE": line, "SYSLOG_IDENTIFIER": "kernel", "_TRANSPORT": "kernel"} for line in (XID79, *FLAPS)]
    forms = {
        "lines": "\n".join(json.dumps(line) for line in lines),
        "pretty": "\n".join(json.dumps(line, indent=8) for line in lines),
        "bytes": "\n".join(json.dumps({**line, "MESSAGE": list(str(line["MESSAGE"]).encode())}) for line in lines),
        "dmesg": json.dumps({"dmesg": [{"pri": 3, "time": 1.5, "msg": line} for line in (XID79, *FLAPS)]}, indent=3),
    }
    for name, text in forms.items():
        judged = judge(text)
        assert judged.facts["xids"] == [{"bdf": "0000:41:00", "xid": 79, "lines": 1}], name
        assert judged.facts["flaps"] == {"ens1f0np0": 1}, name
        assert dmesg.recognise(text) >= 85 or name == "pretty", name


SPELLINGS = [
    ("NVRM: Xid (PCI:0000:61:00): 31, pid=12, name=python, Ch 00000008, MMU Fault", "0000:61:00", 31),
    ("NVRM: Xid (PCI:0000:61:00 GPU-I:05): 31, pid=12, MMU Fault", "0000:61:00", 31),
    ("NVRM: Xid (0000:03:00): 31, Ch 0000001b, engmask 00000101", "0000:03:00", 31),
    ("NVRM: Xid (0003:00): 13, Channel 00000001 Instance 00000000", "0003:00", 13),
    ("NVRM: Xid (PCI:0009:01:00): 94, pid=2280636, name=x, Contained", "0009:01:00", 94),
]


@pytest.mark.parametrize(("line", "address", "number"), SPELLINGS)
def test_an_xid_of_a_user_is_no_fault_of_the_node(line: str, address: str, number: int) -> None:
    judged = judge(f"[1.000000] {line}")
    assert (judged.verdict, judged.cause) == ("ok", "user-application")
    assert judged.facts["xids"] == [{"bdf": address, "xid": number, "lines": 1}]
    assert judged.facts["hardware_xids"] == []


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (48, "gpu-requires-reset"),
        (95, "gpu-requires-reset"),
        (64, "page-retirement"),
        (74, "nvlink-fatal"),
        (119, "gsp-timeout"),
        (120, "gsp-timeout"),
    ]
    + [(number, "gpu-requires-reset") for number in (62, 109, 110, 136, 140, 143, 155, 156, 158)]
    + [(number, "nvlink-fatal") for number in range(144, 151)],
)
def test_a_hardware_xid_drains(number: int, cause: str) -> None:
    judged = judge(f"[1.000000] NVRM: Xid (PCI:0000:61:00): {number}, pid=1, name=x, something")
    assert (judged.verdict, judged.cause) == ("fail", cause)
    assert judged.facts["hardware_xids"] == [number]


def test_an_xid_of_no_known_class_is_unknown() -> None:
    assert concluded("[1.000000] NVRM: Xid (PCI:0000:61:00): 999, what") == ("unknown", "xid-not-classified")


def test_rows_that_wait_for_a_reset_only_degrade() -> None:
    front = "NVRM: Xid (PCI:0000:61:00): 63, "
    remap = f"{front}pid=1, name=x, Row Remapper: New row (0x1) marked for remapping, reset gpu to activate."
    retire = f"{front}Dynamic Page Retirement: New page retired, reboot to activate (0x00000000000aa)."
    assert concluded(f"[1.000000] {remap}") == ("degraded", "row-remap-pending")
    assert concluded(f"[1.000000] {retire}") == ("degraded", "page-retirement")


def test_a_failed_page_retirement_is_a_fault() -> None:
    assert concluded("[1.0] NVRM: Xid (PCI:0000:61:00): 64, Dynamic Page Retirement: failed to retire") == (
        "fail",
        "page-retirement",
    )


def test_nonfatal_nvlink_events_are_noted_and_the_word_fatal_in_them_is_no_fault() -> None:
    calm = "[1.0] NVRM: Xid (PCI:0018:01:00): 145, RLW_REMAP  Nonfatal XC0 i0 Link -1 (0x00000004 0x0 0x0)"
    assert concluded(calm)[0] == "ok"
    fatal = "[1.0] NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x0)"
    assert concluded(f"{calm}\n{fatal}") == ("fail", "nvlink-fatal")
    assert judge(f"{calm}\n{fatal}").facts["hardware_xids"] == [149]


def test_the_recovery_action_counts_until_it_is_none_again() -> None:
    line = "[1.0] NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from {} to {}"
    wanted = line.format("0x0 (None)", "0x2 (Node Reboot Required)")
    judged = judge(wanted)
    assert (judged.verdict, judged.cause) == ("fail", "gpu-requires-reset")
    assert judged.facts["recovery"] == {"0008:01:00": "Node Reboot Required"}
    assert judged.facts["hardware_xids"] == []
    assert concluded(wanted + "\n" + line.format("0x2 (Node Reboot Required)", "0x0 (None)"))[0] == "ok"


def test_a_lost_gpu_explains_what_follows_and_is_listed_once() -> None:
    text = (
        f"[1.0] {XID119.replace('db', '41')}\n[2.0] {XID79}\n[3.0] NVRM: GPU 0000:41:00.0: GPU has fallen off the bus."
    )
    judged = judge(text)
    assert judged.cause == "gpu-lost"
    assert judged.facts["fallen_off_bus"] == ["0000:41:00.0"]


@pytest.mark.parametrize(
    "lines",
    [
        [
            "NVRM: The NVIDIA GPU 0000:4c:00.0",
            "NVRM: (PCI ID: 10de:26b9) installed in this system has",
            "NVRM: fallen off the bus and",
        ],
        [
            "NVRM: The NVIDIA GPU 0000:4c:00.0 (PCI ID: 10de:26b9)",
            "NVRM: installed in this system has fallen off the bus and",
        ],
        ["NVRM: GPU 0000:4c:00.0: GPU has fallen off the bus."],
        ["NVRM: GPU at PCI:0000:4c:00.0 has fallen off the bus."],
    ],
)
def test_a_gpu_that_fell_off_the_bus_is_seen_in_every_wording(lines: list[str]) -> None:
    judged = judge("\n".join(f"[1.000000] {line}" for line in lines))
    assert (judged.verdict, judged.cause) == ("fail", "gpu-lost")
    assert judged.facts["fallen_off_bus"] == ["0000:4c:00.0"]


def test_a_gpu_named_whose_fate_is_cut_off_is_unknown() -> None:
    assert concluded("[1.0] NVRM: The NVIDIA GPU 0000:4c:00.0") == ("unknown", "output-truncated")


def test_nvswitch_errors_count_when_they_call_themselves_fatal() -> None:
    fatal = "[1.0] nvidia-nvswitch3: SXid (PCI:0000:c2:00.0): 24007, Fatal, Link 44 sourceport timeout error"
    calm = "[1.0] nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error"
    assert concluded(fatal) == ("fail", "nvlink-fatal")
    assert concluded(calm)[0] == "ok"
    assert judge(calm).facts["sxids"] == [{"bdf": "0000:05:00.0", "sxid": 12028, "fatal": False, "lines": 1}]


@pytest.mark.parametrize(
    "line",
    [
        "mlx5_core: probe of 0000:5d:00.0 failed with error -110",
        "mlx5_core 0000:5d:00.0: probe with driver mlx5_core failed with error -110",
        "mlx5_core 0000:5d:00.0: mlx5_load_one failed with error code -110",
        "mlx5_core 0000:5d:00.0: mlx5_init_one:1318:(pid 9): Firmware over 9000 MS in pre-initializing state, aborting",
    ],
)
def test_a_nic_whose_probe_failed_is_a_fault(line: str) -> None:
    judged = judge(f"[9.000000] {line}")
    assert (judged.verdict, judged.cause) == ("fail", "nic-probe-failed")
    assert judged.facts["probe_failed"] == ["0000:5d:00.0"]


@pytest.mark.parametrize(
    "line",
    [
        "mlx5_core 0000:ca:00.0 ens10f0np0: TX timeout detected",
        "mlx5_core 0000:ca:00.0: poll_health:840:(pid 0): device's health compromised - reached miss count",
        "mlx5_core 0000:ca:00.0: health_care:150:(pid 11): handling bad device here",
        "mlx5_core 0000:ca:00.0: Fatal error 1 detected",
        "mlx5_core 0000:ca:00.0: wait_func:964:(pid 1): RST(0x50a) timeout. Will cause a leak of a command resource",
        "NETDEV WATCHDOG: ens10f0np0 (mlx5_core): transmit queue 3 timed out",
        "mlx5_core 0000:ca:00.0 ens10f0np0: NETDEV WATCHDOG: CPU: 37: transmit queue 11 timed out 5412 ms",
    ],
)
def test_a_nic_driver_that_hangs_is_a_fault(line: str) -> None:
    assert concluded(f"[9.000000] {line}") == ("fail", "nic-driver-hang")


def test_a_lockup_elsewhere_only_degrades() -> None:
    line = "[1.0] NMI watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:77]"
    assert concluded(line) == ("degraded", "cpu-lockup")
    assert judge(line).facts["soft_lockups"] == 1


def test_the_start_of_a_port_is_no_flap() -> None:
    text = (
        "[1.0] mlx5_core 0000:5d:00.0: firmware version: 28.39.1002\n"
        "[2.0] mlx5_core 0000:5d:00.0 ens1f0np0: Link down\n"
        "[5.0] mlx5_core 0000:5d:00.0 ens1f0np0: Link up"
    )
    assert judge(text, max_flaps_per_device=0).verdict == "ok"
    assert judge(text).facts["link_flaps"] == 0


def test_infiniband_ports_flap_too() -> None:
    line = "[{}.0] mlx5_core 0000:5d:00.0 mlx5_2: Port: 1 Link {}"
    text = "\n".join(line.format(at, word) for at, word in enumerate(["INIT", "ACTIVE", "DOWN", "INIT", "ACTIVE"]))
    assert judge(text).facts["flaps"] == {"mlx5_2": 1}
    assert concluded(text, max_flaps_per_device=0) == ("degraded", "link-flapping")
    assert concluded(text)[0] == "ok"


def test_a_link_that_stays_down_is_reported_by_whoever_needs_it() -> None:
    text = "\n".join(f"[1.0] {line}" for line in FLAPS[:2])
    assert concluded(text, fabric_netdevs=["ens1f0np0"]) == ("fail", "link-down")
    assert concluded(text, fabric_netdevs=["ens2f0np0"])[0] == "ok"
    assert concluded(text, fabric_netdevs=["ens1f0np0"], link_state={"ens1f0np0": "up"})[0] == "ok"
    assert concluded(text) == ("degraded", "link-down")


def test_a_module_error_points_at_the_cable() -> None:
    line = "[1.0] mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, High Temperature"
    assert concluded(line) == ("degraded", "bad-cable")


def test_pci_errors_weigh_by_their_severity() -> None:
    corrected = "[1.0] pcieport 0000:40:01.1: AER: Corrected error received: 0000:41:00.0"
    calm = "[1.0] mlx5_core 0000:41:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer"
    fatal = "[1.0] pcieport 0000:40:01.1: AER: Uncorrected (Fatal) error received: 0000:41:00.0"
    new = "[1.0] pcieport 0000:40:01.1: AER: Uncorrectable (Fatal) error message received from 0000:41:00.0"
    assert concluded(corrected)[0] == "ok"
    assert judge(corrected).facts["aer"]["corrected"] == ["0000:41:00.0"]
    assert concluded(calm) == ("degraded", "pcie-errors")
    assert concluded(fatal) == concluded(new) == ("fail", "pci-device-dead")


def test_a_pci_link_that_the_kernel_calls_limited_degrades() -> None:
    line = (
        "[1.0] mlx5_core 0000:5d:00.0: 126.016 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x8 link at "
        "0000:5c:00.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)"
    )
    assert concluded(line) == ("degraded", "pcie-link-limited")
    whole = "[1.0] mlx5_core 0000:5d:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)"
    assert concluded(whole)[0] == "ok"


LUSTRE_OUT = (
    "[1.0] Lustre: lfs1-OST0003-osc-ffff8a: Connection to lfs1-OST0003 (at 10.0.0.5@o2ib) was lost; in progress "
    "operations using this service will wait for recovery to complete"
)


def test_a_lustre_peer_is_at_fault_until_it_is_back() -> None:
    late = (
        "[1.0] LNetError: 812:0:(o2iblnd_cb.c:3362:kiblnd_check_conns()) Timed out RDMA with 10.0.0.5@o2ib (107): "
        "c: 7, oc: 0, rc: 8"
    )
    back = "[9.0] Lustre: lfs1-OST0003-osc-ffff8a: Connection restored to 10.0.0.5@o2ib (at 10.0.0.5@o2ib)"
    assert concluded(LUSTRE_OUT) == concluded(late) == ("fail", "lustre-peer-timeout")
    assert concluded(f"{late}\n{LUSTRE_OUT}\n{back}") == ("degraded", "lustre-peer-timeout")
    assert judge(late).facts["lustre_peers"] == ["10.0.0.5@o2ib"]


def test_an_nfs_server_is_at_fault_until_it_says_ok() -> None:
    out = "[1.0] nfs: server 10.71.2.10 not responding, still trying"
    assert concluded(out) == ("fail", "nfs-server-not-responding")
    assert concluded(f"{out}\n[2.0] nfs: server 10.71.2.10 OK") == ("degraded", "nfs-server-not-responding")


def test_library_and_module_that_differ_are_a_fault() -> None:
    assert concluded("[1.0] NVRM: API mismatch: the client has the version 570.158.01, but") == (
        "fail",
        "driver-library-mismatch",
    )


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "test-did-not-run"),
        ("-- No entries --", "test-did-not-run"),
        ("dmesg: read kernel buffer failed: Operation not permitted", "not-root"),
    ],
)
def test_a_log_that_shows_nothing_is_unknown(text: str, cause: str) -> None:
    assert concluded(text) == ("unknown", cause)


def test_an_xid_cut_in_its_number_is_unknown_and_no_other_xid() -> None:
    judged = judge("[1.0] NVRM: Xid (PCI:0000:db:00): 11")
    assert (judged.verdict, judged.cause) == ("unknown", "output-truncated")
    assert judged.facts["xids"] == []


def test_what_programs_say_of_xids_is_not_the_kernels_word() -> None:
    text = (
        "Mar  5 18:20:41 n1 kernel: usb 1-1: new device\n"
        "Mar  5 18:20:42 n1 nagios[77]: NVRM: Xid (PCI:0000:41:00): 79, test"
    )
    assert judge(text).facts["xids"] == []


@pytest.mark.parametrize("name", ["015-", "016-", "017-", "018-"])
def test_damage_never_raises_nor_takes_long(name: str) -> None:
    fuzz.survives(dmesg, text_of(name), judge=checks.judge, context={"max_flaps_per_device": 1})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*FRONTS.values()]), min_size=1, max_size=4), st.text(max_size=60))
def test_any_text_behind_any_front_is_read(fronts: list[str], text: str) -> None:
    for front in fronts:
        line = front.replace("{}", text.replace("\n", " "))
        found = kernel_lines.split(line)
        assert found.text is None or len(found.text) <= len(line)


def test_names_and_addresses_follow_the_log() -> None:
    text = text_of("018-")
    renamed = judge(text.replace("ens10f0np0", "ibs7").replace("0000:ca:00.0", "0001:0b:00.1"))
    assert renamed.facts["tx_timeout"] == ["0001:0b:00.1"]
    assert renamed.facts["netdev"] == "ibs7"


def test_a_long_log_takes_little_memory() -> None:
    def lines() -> Any:
        for number in range(60_000):
            yield f"[{number}.000001] usb 1-1: new high-speed USB device number {number}, padding padding"
            if number % 100 == 0:
                yield f"[{number}.000002] {XID119}"

    tracemalloc.start()
    record = dmesg.parse(clean(lines()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert record.xids[0].lines == 600
    assert peak < 2_000_000, f"{peak} bytes held for 6 MB of log"


def test_a_context_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(ValueError, match="max_flaps_per_device"):
        judge("[1.0] x", max_flaps_per_device="5")


GAVE_UP = "[  70.000000] mlx5_core: probe of 0000:ab:00.0 failed with error -110"
UNPLUGGED = "[  10.000000] mlx5_core 0000:ab:00.0: Port module event: module 0, Cable unplugged"
LIMITED = (
    "[   8.911040] mlx5_core 0000:ab:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at "
    "0000:5d:02.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)"
)


@pytest.mark.parametrize("key", ["expected_hcas", "profile_devices"])
@pytest.mark.parametrize(
    ("line", "bad"),
    [
        (GAVE_UP, ("fail", "nic-probe-failed")),
        (LIMITED, ("degraded", "pcie-link-limited")),
        (UNPLUGGED, ("fail", "link-down")),
        ("[ 9.000000] mlx5_core 0000:ab:00.0 ens1np0: TX timeout detected", ("fail", "nic-driver-hang")),
    ],
)
def test_only_the_cards_of_the_context_count(line: str, bad: tuple[str, str], key: str) -> None:
    assert concluded(line, **{key: ["ab:00.0"]}) == bad
    assert concluded(line, **{key: ["0000:9a:00.0"]}) == ("ok", "healthy")


def test_an_empty_cage_that_nobody_asks_for_is_no_fault() -> None:
    plugged = UNPLUGGED.replace("unplugged", "plugged")
    assert concluded(UNPLUGGED) == ("ok", "healthy")
    assert concluded(f"{UNPLUGGED}\n{plugged}", expected_hcas=["0000:ab:00.0"]) == ("ok", "healthy")


def test_a_card_whose_link_comes_up_later_has_its_driver() -> None:
    up = "[  90.000000] mlx5_core 0000:ab:00.0 mlx5_2: Port: 1 Link ACTIVE"
    assert concluded(f"{GAVE_UP}\n{up}") == ("ok", "healthy")
    assert concluded(f"{up}\n{GAVE_UP}") == ("fail", "nic-probe-failed")


def test_lnet_that_does_not_start_is_down_until_it_has_an_interface() -> None:
    failed = "[  10.000000] LNetError: 105-4: Error -100 starting up LNI o2ib"
    assert concluded(failed) == ("fail", "lnet-down")
    assert concluded(f"{failed}\n[  20.0] LNet: Added LNI 10.1.1.2@tcp [8/256/0/180]") == ("fail", "lnet-down")
    assert concluded(f"{failed}\n[  20.0] LNet: Added LNI 10.1.1.2@o2ib [8/256/0/180]") == ("ok", "healthy")


def test_a_row_that_waits_for_a_reset_is_of_the_hardware() -> None:
    judged = judge("[1.000000] NVRM: Xid (PCI:0000:61:00): 63, pid=1, name=x, Row Remapper: New row marked")
    assert (judged.verdict, judged.cause) == ("degraded", "row-remap-pending")
    assert judged.facts["hardware_xids"] == [63]


def test_a_log_that_was_not_shown_says_of_nothing_that_it_was_not_there() -> None:
    facts = judge("dmesg: read kernel buffer failed: Operation not permitted").facts
    assert [facts[key] for key in ("xids", "fallen_off_bus", "link_flaps")] == [None, None, None]
