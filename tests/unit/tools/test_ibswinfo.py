"""Reading and judging ibswinfo."""

from __future__ import annotations

import pytest

from tests.unit.tools.ib_reading import judged, reader, said, survives

RULE = "=================================================\n"
TABLE = (
    f"{RULE}leaf-03 unmanaged\n{RULE}part number        | MQM8790-HS2F\nserial number      | MT2019X04321\n"
    f"PSID               | MT_0000000063\n"
    "firmware version   | 27.2010.6102\n-------------------------------------------------\n"
    "uptime (d-h:m:s)   | 196d-07:05:40\n"
    "-------------------------------------------------\nPSU0 status        | OK\n     P/N           | MTEF-PSF-AC-C\n"
    "     DC power      | OK\n     fan status    | OK\n     power (W)     | 64\nPSU1 status        | OK\n"
    "     DC power      | OK\n"
    "     fan status    | OK\n-------------------------------------------------\ntemperature (C)    | 34\n"
    "max temp (C)       | 41\n"
    "-------------------------------------------------\nfan status         | OK\nfan#1 (rpm)        | 5426\n"
    "fan#2 (rpm)        | 4746\n"
)
STATUS = (
    "psu0.status        : OK\npsu0.dc            : OK\npsu0.fan           : OK\n"
    "psu1.status        : ERROR\nfans               : OK\n"
)


def test_the_table_is_read() -> None:
    found = judged("ibswinfo", TABLE)
    assert reader("ibswinfo").recognise(TABLE) == 95
    assert found.verdict == "ok"
    assert (found.facts["part_number"], found.facts["temperature_c"]) == ("MQM8790-HS2F", 34.0)
    assert found.facts["fans_rpm"] == {"fan#1 (rpm)": 5426.0, "fan#2 (rpm)": 4746.0}


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        (
            TABLE.replace(
                "     DC power      | OK\n     fan status    | OK\n     power", "     DC power      | FAIL\n     power"
            ),
            ["psu0.dc power"],
        ),
        (TABLE.replace("PSU1 status        | OK", "PSU1 status        | ERROR"), ["psu1.status"]),
        (TABLE.replace("| 4746", "| 0"), ["fan#2 (rpm)"]),
        (STATUS, ["psu1.status"]),
    ],
)
def test_a_part_that_is_not_ok_is_degraded(text: str, bad: list[str]) -> None:
    found = judged("ibswinfo", text)
    assert (found.verdict, found.cause, found.facts["bad"]) == ("degraded", "switch-hardware", bad)


def test_firmware_is_compared_where_it_is_demanded_by_version_or_by_psid() -> None:
    assert said("ibswinfo", TABLE, {"required_fw": "27.2010.6102"}) == ("ok", "healthy")
    assert said("ibswinfo", TABLE, {"required_fw": {"MT_0000000063": "27.2012.1010"}}) == (
        "degraded",
        "fw-reset-pending",
    )
    assert said("ibswinfo", TABLE, {"required_fw": {"MT_0000000999": "1"}}) == ("ok", "healthy")


def test_damage_is_survived() -> None:
    survives("ibswinfo", TABLE, {})
    assert said("ibswinfo", "") == ("unknown", "output-truncated")


def test_an_inventory_says_nothing_of_health() -> None:
    text = "part number        : MQM8790-HS2F\nserial number      : MT2019X04321\nPSID               : MT_0000000063\n"
    found = judged("ibswinfo", text)
    assert (found.verdict, found.cause, found.facts["part_number"]) == ("unknown", "nothing-tested", "MQM8790-HS2F")
