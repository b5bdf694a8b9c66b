"""Texts that several tests explain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weaklink.explain.reports import Asked, Report, explain
from weaklink.explain.sources import Text

IBSTAT = """CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: 28.43.2026
\tHardware version: 0
\tNode GUID: 0x9c63c00300a1b2c4
\tSystem image GUID: 0x9c63c00300a1b2c4
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tBase lid: 12
\t\tLMC: 0
\t\tSM lid: 1
\t\tCapability mask: 0xa751e848
\t\tPort GUID: 0x9c63c00300a1b2c4
\t\tLink layer: InfiniBand
"""
DOWN = IBSTAT.replace("Active", "Down").replace("LinkUp", "Polling")
DEV2NETDEV = "mlx5_0 port 1 ==> ib0 (Up)\n"
CONTEXT = {"compute_hcas": ["mlx5_0"], "expected_rate_gbps": 400, "link_layer": "InfiniBand"}


def reports(text: str | Iterable[str], tool: str | None = None, name: str = "text", **context: Any) -> list[Report]:
    lines = text.split("\n") if isinstance(text, str) else text
    return explain(Text(name, iter(lines)), Asked(tool, {**CONTEXT, **context}))


def counted(found: list[Report]) -> list[tuple[str, str | None, str]]:
    return [(report.part, report.tool, report.verdict) for report in found if not report.passed_over]
