"""Figures of published designs that contradict themselves, so that nobody plans by them. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from weaklink.plan.advice_sources import SUPERPOD_XDR, Source
from weaklink.plan.request import TREES, Request


class Misprint(NamedTuple):
    """A row of a table: its size, what it prints, and what else in the same row says otherwise."""

    nodes: int
    gpus_per_node: int
    radix: int
    printed_gpus: int
    against: str
    source: Source


MISPRINTS = (Misprint(1296, 8, 144, 9216, "its own 10368 node links", SUPERPOD_XDR),)


def misprints(request: Request) -> Iterator[str]:
    """Yield a warning for each published row of this size whose number of GPUs is wrong."""
    asked = (request.nodes, request.gpus_per_node, request.radix)
    for row in MISPRINTS:
        if request.topology in TREES and asked == (row.nodes, row.gpus_per_node, row.radix):
            gpus = row.nodes * row.gpus_per_node
            yield (
                f"the published table of this size prints {row.printed_gpus} GPUs, a misprint: {row.nodes} nodes of "
                f"{row.gpus_per_node} are {gpus}, as {row.against} say ({row.source.name})"
            )
