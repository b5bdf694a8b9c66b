"""lspci in its forms: plain, numeric, with domains, with details of all depths."""

from __future__ import annotations

from typing import Any

import pytest
from weaklink.checks.tools import lspci as checks
from weaklink.observe.tools import lspci
from weaklink.observe.tools.text import clean

from tests.unit.tools import fuzz
from tests.unit.tools.cases import case_of, check_case, text_of

PLAIN = """\
00:00.0 Host bridge: Intel Corporation Device 09a2 (rev 04)
03:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family (rev 52)
1b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)
5d:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]
5d:00.1 Ethernet controller: Mellanox Technologies MT2910 Family [ConnectX-7]
c1:00.0 Bridge: NVIDIA Corporation GH100 [H100 NVSwitch] (rev a1)
e1:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)
"""
DETAIL = """\
{port} PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])
	Control: I/O+ Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR+ FastB2B- DisINTx+
	Capabilities: [68] Express (v2) Upstream Port, MSI 00
		LnkCap:	Port #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <4us
		LnkSta:	Speed 2.5GT/s (downgraded), Width x0 (downgraded)
	Capabilities: [154 v1] Access Control Services
		ACSCap:	SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
		ACSCtl:	{acs}
	Kernel driver in use: pcieport

{nic} Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]
	Subsystem: Mellanox Technologies Device 0023
	Capabilities: [60] Express (v2) Endpoint, MSI 00
		DevCap:	MaxPayload 512 bytes, PhantFunc 0, Latency L0s unlimited, L1 <4us
		DevCtl:	CorrErr+ NonFatalErr+ FatalErr+ UnsupReq-
			RlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop+ FLReset-
			MaxPayload 512 bytes, MaxReadReq 4096 bytes
		LnkCap:	Port #0, Speed 32GT/s, Width x16, ASPM not supported
		LnkSta:	{link}
		LnkCap2: Supported Link Speeds: 2.5-32GT/s, Crosslink- Retimer+ 2Retimers+ DRS-
	Kernel driver in use: mlx5_core
	Kernel modules: mlx5_core
"""
OFF = "SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-"
ON = OFF.replace("SrcValid-", "SrcValid+")


def detail(
    port: str = "5c:00.0", nic: str = "5d:00.0", acs: str = OFF, link: str = "Speed 32GT/s (ok), Width x16 (ok)"
) -> str:
    return DETAIL.format(port=port, nic=nic, acs=acs, link=link)


def judge(text: str, **context: Any) -> Any:
    return checks.judge(lspci.parse(clean(text.split("\n"))), context)


def concluded(text: str, **context: Any) -> tuple[str, str]:
    judged = judge(text, **context)
    return judged.verdict, judged.cause


@pytest.mark.parametrize("name", ["036-", "037-"])
def test_the_known_cases_are_judged_right(name: str) -> None:
    check_case(name, judge(text_of(name), **case_of(name)["context"]))
    assert lspci.recognise(text_of(name)) >= 85


def test_boards_own_graphics_and_nvswitches_are_no_gpus() -> None:
    judged = judge(PLAIN, expected_gpus=2)
    assert (judged.verdict, judged.facts["gpus"], judged.facts["nics"]) == ("ok", 2, 2)
    assert concluded(PLAIN, expected_gpus=3) == ("fail", "gpu-missing")


NUMERIC = {
    "-nn": "1b:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev {rev})",
    "-n": "1b:00.0 0302: 10de:2330 (rev {rev})",
    "-D": "0000:1b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev {rev})",
    "-D -nn": "0002:1b:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev {rev}) (prog-if 00)",
    "-mm": '1b:00.0 "3D controller" "NVIDIA Corporation" "GH100 [H100 SXM5 80GB]" -r{rev} "NVIDIA" "Device 16c1"',
    "-mm -nn": '1b:00.0 "3D controller [0302]" "NVIDIA Corporation [10de]" "GH100 [2330]" -r{rev} "" ""',
}


@pytest.mark.parametrize("line", NUMERIC.values(), ids=NUMERIC)
def test_every_form_of_a_line_tells_the_gpu_and_its_revision(line: str) -> None:
    good = judge(line.format(rev="a1"), expected_gpus=1)
    assert (good.verdict, good.facts["gpus"], good.facts["dead"]) == ("ok", 1, [])
    assert concluded(line.format(rev="ff"), expected_gpus=1) == ("fail", "pci-device-dead")
    assert lspci.recognise(line.format(rev="a1")) >= 85


def test_an_unknown_header_type_is_a_dead_device() -> None:
    text = "1b:00.0 3D controller: NVIDIA Corporation GH100 (rev a1) (prog-if ff)\n\t!!! Unknown header type 7f\n"
    assert concluded(text) == ("fail", "pci-device-dead")


def test_only_the_devices_of_the_profile_count() -> None:
    text = PLAIN.replace(
        "c1:00.0 Bridge: NVIDIA Corporation GH100 [H100 NVSwitch] (rev a1)", "c1:00.0 Bridge: x (rev ff)"
    )
    assert concluded(text) == ("fail", "pci-device-dead")
    assert concluded(text, profile_devices=["0000:1b:00.0", "5d:00.0"])[0] == "ok"
    assert concluded(text, profile_devices=["0000:C1:00.0"]) == ("fail", "pci-device-dead")


def test_an_address_of_the_profile_that_is_not_listed_is_a_fault() -> None:
    assert concluded(PLAIN, expected_bus_ids=["00000000:1B:00.0"])[0] == "ok"
    assert concluded(PLAIN, expected_bus_ids=["00000000:2B:00.0"]) == ("fail", "gpu-missing")


@pytest.mark.parametrize(
    ("link", "verdict"),
    [
        ("Speed 32GT/s (ok), Width x16 (ok)", "ok"),
        ("Speed 32GT/s, Width x16, TrErr- Train- SlotClk+ DLActive- BWMgmt- ABWMgmt-", "ok"),
        ("Speed 16GT/s (downgraded), Width x16 (ok)", "degraded"),
        ("Speed 32GT/s (ok), Width x8 (downgraded)", "degraded"),
        ("Speed 32GT/s, Width x8, TrErr- Train- SlotClk+ DLActive-", "degraded"),
        ("Speed 32GT/s (overdriven), Width x16 (strange)", "ok"),
    ],
)
def test_a_link_below_what_is_expected_degrades(link: str, verdict: str) -> None:
    context = {"expected_pcie": {"0000:5d:00.0": "32.0 GT/s x16"}}
    judged = judge(detail(link=link), **context)
    assert judged.verdict == verdict
    assert judged.cause == ("pcie-link-limited" if verdict == "degraded" else "healthy")
    assert judge(detail(link=link)).verdict == verdict


def test_equal_to_the_expected_link_is_enough_whatever_the_card_can_do() -> None:
    text = detail(link="Speed 16GT/s (downgraded), Width x16")
    assert concluded(text, expected_pcie={"5d:00.0": "16.0 GT/s x16"})[0] == "ok"


def test_an_empty_slot_of_a_bridge_is_no_slow_link_and_a_resting_gpu_is_not_slow() -> None:
    assert judge(detail()).verdict == "ok"
    gpu = detail(link="Speed 2.5GT/s (downgraded), Width x16").replace(
        "Infiniband controller: Mellanox", "3D controller: NVIDIA"
    )
    assert concluded(gpu)[0] == "ok"
    narrow = gpu.replace("Width x16\n", "Width x4 (downgraded)\n")
    assert concluded(narrow) == ("degraded", "pcie-link-limited")


def test_a_link_that_is_expected_and_not_shown_is_unknown() -> None:
    context = {"expected_pcie": {"5d:00.0": "32.0 GT/s x16"}}
    assert concluded(PLAIN, **context) == ("unknown", "test-did-not-run")
    denied = "5d:00.0 Infiniband controller: Mellanox Technologies MT2910\n\tCapabilities: <access denied>\n"
    assert concluded(denied, **context) == ("unknown", "not-root")


def test_acs_counts_where_it_is_switched_on_not_where_it_is_possible() -> None:
    assert concluded(detail(), gpudirect=True, virtualized=False)[0] == "ok"
    assert judge(detail()).facts["acs_enabled"] == []
    judged = judge(detail(acs=ON), gpudirect=True, virtualized=False)
    assert (judged.verdict, judged.cause) == ("degraded", "acs-enabled")
    assert judged.facts["acs_enabled"] == ["5c:00.0"]
    assert concluded(detail(acs=ON), gpudirect=True, virtualized=True)[0] == "ok"
    assert concluded(detail(acs=ON))[0] == "ok"


def test_a_list_without_details_says_nothing_of_acs() -> None:
    text = "5c:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0)\n"
    assert concluded(text, gpudirect=True, virtualized=False) == ("unknown", "test-did-not-run")
    assert judge(text).facts["acs_enabled"] is None
    some = detail() + "\n6c:00.0 PCI bridge: Broadcom / LSI PEX890xx\n\tCapabilities: <access denied>\n"
    assert concluded(some, gpudirect=True, virtualized=False) == ("unknown", "not-root")


def test_the_read_request_is_reported() -> None:
    assert judge(detail()).facts["max_read_request"] == {"5d:00.0": 4096}


def test_no_list_is_unknown() -> None:
    for text in (
        "",
        "pcilib: Cannot open /proc/bus/pci\nlspci: Cannot find any working access method.",
        "bash: lspci: command not found",
    ):
        assert concluded(text, expected_gpus=8) == ("unknown", "test-did-not-run")


def test_a_detail_cut_in_its_link_is_unknown() -> None:
    text = detail(link="Speed 32GT/s, Width x8")
    cut = text[: text.index("Width x8")]
    assert concluded(cut) == ("unknown", "output-truncated")


def test_more_healthy_devices_and_another_order_change_nothing() -> None:
    blocks = [text_of("036-").splitlines()[at] for at in (2, 4, 0, 1, 3)]
    judged = judge("\n".join([*blocks, "c1:00.0 3D controller: NVIDIA Corporation GA100 (rev a1)"]), expected_gpus=5)
    assert (judged.verdict, judged.cause, judged.facts["dead"]) == ("fail", "pci-device-dead", ["89:00.0"])


@pytest.mark.parametrize("sample", [PLAIN, detail(acs=ON), text_of("036-"), text_of("037-")])
def test_damage_never_raises_nor_takes_long(sample: str) -> None:
    context = {"expected_gpus": 2, "gpudirect": True, "virtualized": False}
    fuzz.survives(lspci, sample, judge=checks.judge, context=context)


def test_a_context_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="expected_pcie"):
        judge(PLAIN, expected_pcie={"5d:00.0": "fast"})
    with pytest.raises(ValueError, match="profile_devices"):
        judge(PLAIN, profile_devices="5d:00.0")


def test_a_wanted_hca_without_a_driver_failed_its_probe_where_drivers_are_shown() -> None:
    card = "{}:00.0 Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6]\n"
    driven = card.format("86") + "\tKernel driver in use: mlx5_core\n"
    text = card.format("5e") + "\tKernel modules: mlx5_core\n" + driven
    judged = judge(text, expected_hcas=["0000:5e:00.0", "0000:86:00.0"])
    assert (judged.verdict, judged.cause) == ("fail", "nic-probe-failed")
    assert judged.facts["bad"] == ["5e:00.0"]
    assert concluded(text, expected_hcas=["0000:86:00.0"]) == ("ok", "healthy")
    assert concluded(card.format("5e"), expected_hcas=["0000:5e:00.0"]) == ("ok", "healthy")


def test_links_are_told_as_they_are_expected() -> None:
    text = (
        "5e:00.0 Ethernet controller: Mellanox Technologies X\n\t\tLnkSta:\tSpeed 16GT/s (ok), Width x8 (downgraded)\n"
    )
    assert judge(text).facts["links"] == {"5e:00.0": "16.0 GT/s x8"}
