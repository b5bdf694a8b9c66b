"""A hook reads with a few lines of its own what a full parser reads for people: both must say the same."""

from __future__ import annotations

import pytest
from weaklink.observe import mounts as hook_mounts
from weaklink.observe import rdma
from weaklink.observe.tools import ibv_devinfo, mounts

from tests.unit.tools.cases import NAMES, case_of, text_of
from tests.unit.tools.fuzz import read


def of(tool: str) -> list[str]:
    return [name for name in NAMES if case_of(name)["tool"] == tool]


@pytest.mark.parametrize("name", of("ibv_devinfo"))
def test_the_hooks_active_mtu_is_that_of_the_parser(name: str) -> None:
    text = text_of(name)
    ports = read(ibv_devinfo, text).ports
    wanted = {(port.device, port.port): port.active_mtu for port in ports if port.active_mtu is not None}
    assert rdma.parse_devinfo(text) == wanted


# The output of mount(8) is for people; hooks read /proc/mounts.
@pytest.mark.parametrize("name", [name for name in of("mounts") if " type " not in text_of(name)])
def test_the_hooks_mounts_are_those_of_the_parser(name: str) -> None:
    text = text_of(name)
    found = {path: (mount.fstype, mount.source) for path, mount in hook_mounts.parse_mounts(text).items()}
    assert found
    assert found == {mount.point: (mount.type, mount.source) for mount in read(mounts, text).mounts}
