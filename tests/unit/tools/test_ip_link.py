"""ip link and ip addr: text, brief, details, JSON; what is up and what only says so."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools.cases import case_of, check_case, text_of
from tests.unit.tools.mlx_cuts import tool

IP = tool("ip_link")
UP = "BROADCAST,MULTICAST,UP,LOWER_UP"
NO_CARRIER = "NO-CARRIER,BROADCAST,MULTICAST,UP"
STATS = """    RX:  bytes packets errors dropped  missed   mcast
          3245      30      0       0       0       0
    TX:  bytes packets errors dropped carrier collsns
          3245      30      0       0       0       0
"""
LO = "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000\n"


def ether(number: int, name: str, flags: str = UP, state: str = "UP", *, mtu: int = 9000, more: str = "") -> str:
    return (
        f"{number}: {name}: <{flags}> mtu {mtu} qdisc mq state {state} mode DEFAULT group default qlen 1000\n"
        f"    link/ether 94:6d:ae:00:00:{number:02x} brd ff:ff:ff:ff:ff:ff{more}\n"
    )


def infiniband(number: int, name: str, flags: str = UP, state: str = "UP") -> str:
    address = f"00:00:10:29:fe:80:00:00:00:00:00:00:a0:88:c2:03:00:4e:71:{number:02x}"
    return (
        f"{number}: {name}: <{flags}> mtu 2044 qdisc mq state {state} mode DEFAULT group default qlen 256\n"
        f"    link/infiniband {address} brd 00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff\n"
    )


DETAILS = (
    LO
    + "    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0 minmtu 0 maxmtu 0\n"
    + STATS
    + ether(2, "ens7f0np0", more=" promiscuity 0 minmtu 68 maxmtu 9978")
    + STATS
    + "    altname enp65s0f0np0\n    vf 0     link/ether 00:00:00:00:00:00 brd ff:ff:ff:ff:ff:ff, spoof checking off\n"
    + ether(3, "ens7f0np0.100@ens7f0np0", more=" promiscuity 0")
    + "    vlan protocol 802.1Q id 100 <REORDER_HDR> addrgenmode eui64\n"
    + STATS
    + ether(4, "bond0", flags="BROADCAST,MULTICAST,MASTER,UP,LOWER_UP")
    + "    bond mode 802.3ad miimon 100\n    inet 10.1.0.4/24 brd 10.1.0.255 scope global bond0\n"
    + "       valid_lft forever preferred_lft forever\n"
)
BRIEF = """lo               UNKNOWN        00:00:00:00:00:00 <LOOPBACK,UP,LOWER_UP>
ens7f0np0        UP             94:6d:ae:00:00:02 <BROADCAST,MULTICAST,UP,LOWER_UP>
v0@v1            LOWERLAYERDOWN 76:f1:13:be:00:10 <NO-CARRIER,BROADCAST,MULTICAST,UP,M-DOWN>
"""


def test_the_case_is_judged_as_stated() -> None:
    name = "048-ip-link"
    check_case(name, IP.judged(text_of(name), **case_of(name)["context"]))


def test_text_with_statistics_and_details_is_read() -> None:
    facts = IP.facts(DETAILS)
    assert (facts["links"], facts["operstate"]["lo"]) == (4, "UNKNOWN")
    assert set(facts["operstate"]) == {"lo", "ens7f0np0", "ens7f0np0.100", "bond0"}
    assert (facts["mtu"]["ens7f0np0"], facts["addresses"]) == (9000, {"bond0": ["10.1.0.4/24"]})
    assert IP.verdict(DETAILS, fabric_netdevs=["ens7f0np0", "ens7f0np0.100", "bond0", "lo"]) == ("ok", "healthy")
    links = {link.name: link for link in IP.parser.parse(iter(DETAILS.split("\n"))).links}
    assert (links["ens7f0np0.100"].vlan, links["ens7f0np0.100"].lower) == (100, "ens7f0np0")
    assert links["ens7f0np0"].mac == "94:6d:ae:00:00:02"


def test_brief_text_is_read() -> None:
    facts = IP.facts(BRIEF)
    assert facts["operstate"] == {"lo": "UNKNOWN", "ens7f0np0": "UP", "v0": "LOWERLAYERDOWN"}
    assert IP.verdict(BRIEF, fabric_netdevs=["ens7f0np0"]) == ("ok", "healthy")
    assert IP.verdict(BRIEF, fabric_netdevs=["v0"]) == ("fail", "link-down")


@pytest.mark.parametrize(
    ("flags", "state"),
    [
        (NO_CARRIER, "DOWN"),
        ("BROADCAST,MULTICAST", "DOWN"),
        ("BROADCAST,MULTICAST,UP", "DOWN"),
        ("BROADCAST,MULTICAST,UP,LOWER_UP", "DORMANT"),
        ("NO-CARRIER,BROADCAST,MULTICAST,UP,M-DOWN", "LOWERLAYERDOWN"),
    ],
)
@pytest.mark.parametrize("kind", [ether, infiniband])
def test_the_flag_up_alone_is_no_link(kind: object, flags: str, state: str) -> None:
    text = LO + kind(2, "ib0", flags, state) + ether(3, "eno1")  # type: ignore[operator] - both build an interface's text
    assert IP.verdict(text, fabric_netdevs=["ib0"]) == ("fail", "link-down")
    facts = IP.facts(text, fabric_netdevs=["ib0"])
    assert (facts["bad"], facts["ignored"]) == (["ib0"], ["lo", "eno1"])
    assert IP.verdict(text, fabric_netdevs=["eno1"]) == ("ok", "healthy")


def test_an_interface_that_is_not_listed_fails() -> None:
    assert IP.verdict(DETAILS, fabric_netdevs=["ens8f0np0"]) == ("fail", "link-down")
    assert IP.facts(DETAILS, fabric_netdevs=["ens8f0np0"])["bad"] == ["ens8f0np0"]


def test_an_mtu_must_hold_the_payload_and_its_headers() -> None:
    wanted = {"fabric_netdevs": ["ens7"], "expected_active_mtu": 4096}
    assert IP.verdict(ether(2, "ens7", mtu=4192), **wanted) == ("ok", "healthy")
    assert IP.verdict(ether(2, "ens7", mtu=4191), **wanted) == ("degraded", "mtu-too-small")
    assert IP.facts(ether(2, "ens7", mtu=4191), **wanted)["bad"] == ["ens7"]
    assert IP.verdict(infiniband(2, "ens7"), **wanted) == ("ok", "healthy")


def test_nobody_judges_interfaces_that_nobody_names() -> None:
    assert IP.verdict(ether(2, "eno2", NO_CARRIER, "DOWN")) == ("ok", "healthy")


def test_addresses_in_json_are_read() -> None:
    rows = [
        {},
        {
            "ifindex": 2,
            "ifname": "ens7",
            "flags": UP.split(","),
            "mtu": 9000,
            "operstate": "UP",
            "link_type": "ether",
            "addr_info": [{"family": "inet", "local": "10.1.0.2", "prefixlen": 24}],
        },
    ]
    facts = IP.facts(json.dumps(rows))
    assert (facts["links"], facts["addresses"]) == (1, {"ens7": ["10.1.0.2/24"]})
    assert IP.verdict(json.dumps(rows), fabric_netdevs=["ens7"]) == ("ok", "healthy")


def test_a_cut_text_is_never_ok() -> None:
    text = infiniband(2, "ib0") + infiniband(3, "ib1", NO_CARRIER, "DOWN")
    IP.never_ok_when_cut(text, step=1, fabric_netdevs=["ib0", "ib1"])
    IP.never_ok_when_cut(text_of("048-ip-link"), step=11, **case_of("048-ip-link")["context"])


@pytest.mark.parametrize("text", [DETAILS, BRIEF])
def test_damage_is_survived(text: str) -> None:
    IP.survives(text, fabric_netdevs=["ens7f0np0"], expected_active_mtu=4096)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_order_and_names_do_not_matter(up: list[bool], dice: object) -> None:
    names = [f"rail{number}" for number in range(len(up))]
    parts = [
        ether(number + 2, name, UP if good else NO_CARRIER, "UP" if good else "DOWN")
        for number, (name, good) in enumerate(zip(names, up, strict=True))
    ]
    dice.shuffle(parts)  # type: ignore[attr-defined] - hypothesis hands a random.Random
    facts = IP.facts(LO + "".join(parts), fabric_netdevs=names)
    assert set(facts["bad"]) == {name for name, good in zip(names, up, strict=True) if not good}
    assert IP.verdict(LO + "".join(parts), fabric_netdevs=names)[0] == ("ok" if all(up) else "fail")


def test_it_is_recognised() -> None:
    assert all(IP.parser.recognise(text) >= 70 for text in (DETAILS, BRIEF, text_of("048-ip-link")))
