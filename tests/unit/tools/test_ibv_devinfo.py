"""Reading and judging ibv_devinfo."""

from __future__ import annotations

import pytest

from tests.unit.tools.ib_reading import a_cut_never_heals, a_cut_never_invents, judged, reader, said, survives


def hca(
    name: str, state: str = "PORT_ACTIVE (4)", mtu: str = "4096 (5)", layer: str = "Ethernet", verbose: str = ""
) -> str:
    return (
        f"hca_id:\t{name}\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t28.39.1002\n"
        f"\tnode_guid:\t\t\tb859:9f03:00ca:e2f8\n"
        "\tsys_image_guid:\t\t\tb859:9f03:00ca:e2f8\n\tvendor_id:\t\t\t0x02c9\n\tvendor_part_id:\t\t\t4129\n"
        "\thw_ver:\t\t\t\t0x0\n"
        "\tboard_id:\t\t\tMT_0000000838\n\tphys_port_cnt:\t\t\t1\n"
        f"\t\tport:\t1\n\t\t\tstate:\t\t\t{state}\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t{mtu}\n"
        f"\t\t\tsm_lid:\t\t\t0\n"
        f"\t\t\tport_lid:\t\t0\n\t\t\tport_lmc:\t\t0x00\n\t\t\tlink_layer:\t\t{layer}\n{verbose}\n"
    )


def links(width: str, speed: str) -> str:
    return (
        f"\t\t\tmax_msg_sz:\t\t0x40000000\n\t\t\tactive_width:\t\t{width}\n\t\t\tactive_speed:\t\t{speed}\n"
        "\t\t\tphys_state:\t\tLINK_UP (5)\n\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:ba59:9fff:feca:e2f8, RoCE v1\n"
    )


CONTEXT = {"compute_hcas": ["mlx5_0", "mlx5_1"], "expected_active_mtu": 4096, "link_layer": "Ethernet"}
SMALL = hca("mlx5_0") + hca("mlx5_1", mtu="1024 (3)") + hca("mlx5_2", state="PORT_DOWN (1)", mtu="1024 (3)")


def test_an_mtu_below_the_expected_is_degraded_and_other_devices_are_ignored() -> None:
    found = judged("ibv_devinfo", SMALL, CONTEXT)
    assert (found.verdict, found.cause) == ("degraded", "mtu-too-small")
    assert found.facts["bad"] == ["mlx5_1/1"]
    assert found.facts["ignored"] == ["mlx5_2"]
    assert found.facts["hcas"] == 3
    assert found.facts["active_mtu"] == {"mlx5_0/1": 4096, "mlx5_1/1": 1024, "mlx5_2/1": 1024}
    assert found.facts["state"]["mlx5_2/1"] == "PORT_DOWN"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (hca("mlx5_0") + hca("mlx5_1"), ("ok", "healthy")),
        (hca("mlx5_0") + hca("mlx5_1", state="PORT_DOWN (1)"), ("fail", "link-down")),
        (hca("mlx5_0"), ("fail", "nic-probe-failed")),
        (hca("mlx5_0") + hca("mlx5_1", mtu="invalid MTU (0)"), ("unknown", "output-truncated")),
        ("No IB devices found\n", ("fail", "nic-probe-failed")),
        ("0 HCAs found:\n\n", ("fail", "nic-probe-failed")),
        ("Failed to get IB devices list: Function not implemented\n", ("fail", "nic-probe-failed")),
        ("bash: ibv_devinfo: command not found\n", ("unknown", "test-did-not-run")),
    ],
)
def test_each_output_has_its_verdict(text: str, verdict: tuple[str, str]) -> None:
    assert said("ibv_devinfo", text, CONTEXT) == verdict


def test_on_infiniband_init_means_no_subnet_manager() -> None:
    text = hca("ib0", state="PORT_INIT (2)", layer="InfiniBand")
    assert said("ibv_devinfo", text, {"compute_hcas": ["ib0"], "link_layer": "InfiniBand"}) == (
        "fail",
        "no-subnet-manager",
    )


@pytest.mark.parametrize(
    ("width", "speed", "rate", "verdict"),
    [
        ("4X (2)", "100.0 Gbps (128)", 400.0, "ok"),
        ("4X (2)", "invalid speed (128)", 400.0, "ok"),
        ("2X (16)", "100.0 Gbps (128)", 200.0, "degraded"),
        ("4X (2)", "50.0 Gbps (64)", 200.0, "degraded"),
        ("4X (2)", "200.0 Gbps (256)", 800.0, "ok"),
    ],
)
def test_verbose_tells_the_rate(width: str, speed: str, rate: float, verdict: str) -> None:
    found = judged(
        "ibv_devinfo", hca("a", verbose=links(width, speed)), {"compute_hcas": ["a"], "expected_rate_gbps": 400}
    )
    assert (found.facts["rate_gbps"], found.verdict) == ({"a/1": rate}, verdict)


def test_without_verbose_no_rate_is_judged() -> None:
    assert said("ibv_devinfo", hca("a"), {"compute_hcas": ["a"], "expected_rate_gbps": 400}) == ("ok", "healthy")


def test_a_list_of_names_shows_no_state() -> None:
    text = "2 HCAs found:\n\tmlx5_0\n\tmlx5_1\n\n"
    assert reader("ibv_devinfo").recognise(text) == 70
    assert said("ibv_devinfo", text, CONTEXT) == ("unknown", "nothing-tested")
    assert said("ibv_devinfo", text.replace("\tmlx5_1\n", ""), CONTEXT) == ("unknown", "output-truncated")


def test_a_cut_neither_heals_nor_invents_and_damage_is_survived() -> None:
    a_cut_never_heals("ibv_devinfo", SMALL, CONTEXT)
    a_cut_never_invents("ibv_devinfo", SMALL, CONTEXT, "active_mtu", "state")
    survives("ibv_devinfo", SMALL, CONTEXT)
