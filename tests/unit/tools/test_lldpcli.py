"""lldpcli show neighbors: json, json0, keyvalue, plain text; which cable is where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools.cases import case_of, check_case, text_of
from tests.unit.tools.mlx_cuts import tool

LLDP = tool("lldpcli")
Cable = tuple[str, str, str]
CABLES: list[Cable] = [("ens7f0np0", "leaf-a03", "Ethernet31/1"), ("ens8f0np0", "leaf-a04", "Ethernet31/1")]


def keyvalue(cables: list[Cable]) -> str:
    lines = []
    for netdev, switch, port in cables:
        at = f"lldp.{netdev}"
        lines += [f"{at}.via=LLDP", f"{at}.rid=1", f"{at}.age=0 day, 19:02:44", f"{at}.chassis.mac=94:8e:d3:41:0c:5f"]
        lines += [f"{at}.chassis.name={switch}", f"{at}.chassis.descr=EOS version=4.31 a=b", f"{at}.port.ifname={port}"]
        lines += [f"{at}.port.descr=to a node", f"{at}.port.ttl=120", f"{at}.unknown-tlvs.unknown-tlv.oui=00,12,0F"]
        lines += [f"{at}.unknown-tlvs.unknown-tlv=00,01", f"{at}.unknown-tlvs.unknown-tlv.oui=00,1C,73"]
    return "\n".join(lines) + "\n"


def plain(cables: list[Cable]) -> str:
    rule = "-" * 79 + "\n"
    parts = [
        f"Interface:    {netdev}, via: LLDP, RID: {number}, Time: 0 day, 19:02:44\n  Chassis:\n"
        f"    ChassisID:    mac 94:8e:d3:41:0c:5f\n    SysName:      {switch}\n"
        "    SysDescr:     Cumulus Linux version 5.9\n                  PortID: not one\n"
        "    MgmtIP:       10.9.1.3\n    Capability:   Bridge, on\n  Port:\n"
        f"    PortID:       ifname {port}\n    PortDescr:    to a node\n    TTL:          120\n"
        "  VLAN:         100, pvid: yes\n"
        for number, (netdev, switch, port) in enumerate(cables, 1)
    ]
    return rule + "LLDP neighbors:\n" + rule + rule.join(parts) + rule


def _body(switch: str, port: str) -> dict[str, Any]:
    return {
        "via": "LLDP",
        "rid": "1",
        "chassis": {switch: {"id": {"type": "mac", "value": "94:8e:d3:41:0c:5f"}, "mgmt-ip": "10.9.1.3"}},
        "port": {"id": {"type": "ifname", "value": port}, "descr": "to a node", "ttl": "120"},
    }


def as_json(cables: list[Cable]) -> str:
    rows = [{netdev: _body(switch, port)} for netdev, switch, port in cables]
    return json.dumps({"lldp": {"interface": rows if len(rows) > 1 else rows[0]}}, indent=2)


def as_one_object(cables: list[Cable]) -> str:
    return json.dumps({"lldp": {"interface": {netdev: _body(switch, port) for netdev, switch, port in cables}}})


def as_json0(cables: list[Cable]) -> str:
    rows = [
        {
            "name": netdev,
            "via": "LLDP",
            "chassis": [{"id": [{"type": "mac", "value": "94:8e:d3:41:0c:5f"}], "name": [{"value": switch}]}],
            "port": [{"id": [{"type": "ifname", "value": port}], "descr": [{"value": "to a node"}]}],
        }
        for netdev, switch, port in cables
    ]
    return json.dumps({"lldp": [{"interface": rows}]}, indent=2)


FORMS = [keyvalue, plain, as_json, as_one_object, as_json0]


def expected(cables: list[Cable]) -> dict[str, dict[str, str]]:
    return {netdev: {"switch": switch, "port": port} for netdev, switch, port in cables}


def test_the_case_is_judged_as_stated() -> None:
    name = "039-lldpcli"
    check_case(name, LLDP.judged(text_of(name), **case_of(name)["context"]))


@pytest.mark.parametrize("form", FORMS)
def test_cables_in_their_places_are_ok_in_every_form(form: Any) -> None:
    for cables in (CABLES, CABLES[::-1], CABLES[:1]):
        assert LLDP.verdict(form(cables), expected=expected(cables)) == ("ok", "healthy")
        assert LLDP.facts(form(cables))["neighbours"] == expected(cables)


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_port_or_switch_or_swapped_pair_is_miscabled(form: Any) -> None:
    wrong_port = [CABLES[0], ("ens8f0np0", "leaf-a04", "Ethernet33/1")]
    assert LLDP.verdict(form(wrong_port), expected=expected(CABLES)) == ("fail", "miscabled")
    assert LLDP.facts(form(wrong_port), expected=expected(CABLES))["mismatch"] == ["ens8f0np0"]
    swapped = [(CABLES[0][0], *CABLES[1][1:]), (CABLES[1][0], *CABLES[0][1:])]
    assert LLDP.facts(form(swapped), expected=expected(CABLES))["mismatch"] == ["ens7f0np0", "ens8f0np0"]


@pytest.mark.parametrize("form", FORMS)
def test_a_cable_without_a_neighbour_is_miscabled_where_others_have_one(form: Any) -> None:
    found = LLDP.judged(form(CABLES[:1]), expected=expected(CABLES))
    assert (found.verdict, found.facts["mismatch"], found.facts["missing"]) == ("fail", ["ens8f0np0"], ["ens8f0np0"])


@pytest.mark.parametrize("text", ['{"lldp": {}}', '{"lldp": [{}]}', "---\nLLDP neighbors:\n---\n"])
def test_no_neighbour_at_all_says_nothing(text: str) -> None:
    assert LLDP.verdict(text, expected=expected(CABLES)) == ("unknown", "test-did-not-run")
    assert LLDP.verdict(text) == ("ok", "healthy")


def test_interfaces_that_nobody_names_are_ignored() -> None:
    cables = [*CABLES, ("eno1", "office-sw", "12")]
    assert LLDP.verdict(keyvalue(cables), expected=expected(CABLES)) == ("ok", "healthy")
    assert LLDP.facts(keyvalue(cables), expected=expected(CABLES))["ignored"] == ["eno1"]


def test_a_second_neighbour_of_an_interface_is_no_fault() -> None:
    for form in (keyvalue, plain, as_json, as_json0):
        text = form([("ens7f0np0", "some-bridge", "tap0"), CABLES[0], CABLES[1]])
        assert LLDP.verdict(text, expected=expected(CABLES)) == ("ok", "healthy")
        assert LLDP.facts(text, expected=expected(CABLES))["neighbours"]["ens7f0np0"]["switch"] == "leaf-a03"


def test_a_switch_may_give_its_domain() -> None:
    text = keyvalue([("ens7f0np0", "leaf-a03.fabric.example.net", "Ethernet31/1")])
    assert LLDP.verdict(text, expected=expected(CABLES[:1])) == ("ok", "healthy")
    other = {"ens7f0np0": {"switch": "leaf-a03.other.example.net", "port": "Ethernet31/1"}}
    assert LLDP.verdict(text, expected=other) == ("fail", "miscabled")


def test_a_description_does_not_overrule_an_interface_name() -> None:
    text = keyvalue([("ens7f0np0", "leaf-a03", "Ethernet33/1")]).replace("to a node", "Ethernet31/1")
    assert LLDP.verdict(text, expected=expected(CABLES[:1])) == ("fail", "miscabled")
    local = plain(CABLES[:1]).replace("ifname Ethernet31/1", "local etp31").replace("to a node", "Ethernet31/1")
    assert LLDP.verdict(local, expected=expected(CABLES[:1])) == ("ok", "healthy")


def test_a_port_id_that_is_a_mac_is_named_by_its_description() -> None:
    text = plain(CABLES[:1]).replace("ifname Ethernet31/1", "mac 94:8e:d3:41:0c:60").replace("to a node", "swp12")
    wanted = {"ens7f0np0": {"switch": "leaf-a03", "port": "swp12"}}
    assert LLDP.verdict(text, expected=wanted) == ("ok", "healthy")
    assert LLDP.facts(text)["neighbours"]["ens7f0np0"]["port"] == "swp12"


def test_a_vlan_interface_has_dots_in_its_name() -> None:
    cables = [("ens7f0np0.100", "leaf-a03", "Ethernet31/1")]
    assert LLDP.facts(keyvalue(cables))["neighbours"] == expected(cables)


def test_a_cut_text_is_never_ok() -> None:
    wrong = [CABLES[0], ("ens8f0np0", "leaf-a04", "Ethernet33/1")]
    for form in FORMS:
        LLDP.never_ok_when_cut(form(wrong), step=3, expected=expected(CABLES))


def test_a_wrong_context_is_an_error() -> None:
    with pytest.raises(ValueError, match="'expected' of ens7"):
        LLDP.judged(keyvalue(CABLES), expected={"ens7": "leaf-a03"})


@pytest.mark.parametrize("form", FORMS)
def test_damage_is_survived(form: Any) -> None:
    LLDP.survives(form(CABLES), expected=expected(CABLES))


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(6)), st.sampled_from(FORMS))
def test_the_cables_that_moved_are_the_mismatch(order: list[int], form: Any) -> None:
    planned = [(f"rail{number}", f"leaf{number:02d}", f"swp{number}") for number in range(6)]
    moved = [(planned[number][0], *planned[place][1:]) for number, place in enumerate(order)]
    facts = LLDP.facts(form(moved), expected=expected(planned))
    assert set(facts["mismatch"]) == {f"rail{number}" for number, place in enumerate(order) if number != place}


def test_it_is_recognised() -> None:
    assert all(LLDP.parser.recognise(form(CABLES)) >= 90 for form in FORMS)
