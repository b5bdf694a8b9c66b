"""Faults: their values, and the commands they become."""

from __future__ import annotations

import pytest
from lab import faults
from lab.errors import LabError


@pytest.mark.parametrize("kind", faults.KINDS)
def test_every_kind_has_a_usable_default(kind: str) -> None:
    assert faults.check_value(kind, None) >= 0


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("rate", 0),
        ("rate", -5),
        ("loss", 101),
        ("delay", 5000),
        ("mtu", 9000),
        ("down", 1),
        ("silent", 0),
        ("gremlin", 1),
    ],
)
def test_bad_values_are_refused(kind: str, value: float) -> None:
    with pytest.raises(LabError):
        faults.check_value(kind, value)


def test_rate_is_limited_at_the_switch_port() -> None:
    argv = faults.rate_command("t12-compute", 0.5)
    assert argv[:3] == ["tc", "-n", "weaklink-lab"]
    assert argv[argv.index("dev") + 1] == "t12-compute"
    assert argv[argv.index("rate") + 1] == "500kbit"


def test_loss_drops_at_random_towards_one_port_only() -> None:
    text = faults.loss_rules("t12-compute", 2.5)
    assert "table bridge loss-t12-compute" in text
    assert 'oifname "t12-compute" numgen random mod 10000 < 250 counter drop' in text
