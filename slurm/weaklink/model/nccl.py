"""A node's NCCL file from what was discovered there and what the cluster file says. Pure.

Only what NCCL cannot find out by itself is written: which HCAs are for jobs, which interface joins the ranks, and on
RoCE the traffic class that switches do not drop. No default, nothing for debugging. NCCL takes '#' as a comment in the
first column only, and everything behind the first '=' as the value, hence one comment line above each setting.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

PATH = "/etc/nccl.conf"
COMPUTE = "compute"
ETHERNET = "Ethernet"
MAX_HCAS = 32  # what NCCL keeps
MAX_VALUE = 1023  # bytes of a value that NCCL keeps
ECN_CAPABLE = 2  # the lower two bits of the traffic class byte

_GID_DYNAMIC = (2, 21)  # since then NCCL finds the RoCE v2 GID by itself
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,62}")
_VARIABLE = re.compile(r"NCCL_[A-Z0-9_]+")
_HEAD = "# Written by weaklink's playbooks; changes are overwritten."


class RenderError(Exception):
    """What was discovered does not make a file that NCCL would read; the text says what and what to do."""


class Hca(NamedTuple):
    """An RDMA device as discovered: name, role of its network, link layer, rail, and the index of its RoCE v2 GID."""

    name: str
    role: str
    link_layer: str
    rail: int = 0
    gid_index: Optional[int] = None


class Node(NamedTuple):
    """What the file depends on.

    ``interface`` joins the ranks (empty: NCCL chooses); ``traffic_class`` is the whole byte (None: nothing is
    lossless); ``version`` is NCCL's (major, minor), None for a current one; ``extra`` are the site's own settings,
    which win.
    """

    hcas: tuple[Hca, ...]
    interface: str = ""
    traffic_class: Optional[int] = None
    version: Optional[tuple[int, int]] = None
    extra: tuple[tuple[str, str], ...] = ()


class _Line(NamedTuple):
    name: str
    value: str
    why: str


def traffic_class(dscp: int) -> int:
    """Return the traffic class byte of a DSCP (0 to 63), marked as ECN capable."""
    return dscp << 2 | ECN_CAPABLE


def render(node: Node) -> str:
    """Return the text of the node's NCCL file. Raises RenderError."""
    extra = dict(node.extra)
    for name, value in extra.items():
        _check_extra(name, value)
    lines = [line for line in _lines(node) if line.name not in extra]
    lines += [_Line(name, value, "Set by this site.") for name, value in extra.items()]
    for line in lines:
        if len(line.value.encode()) > MAX_VALUE:
            raise RenderError(f"{line.name}: {len(line.value.encode())} bytes, and NCCL keeps {MAX_VALUE} of a value")
    return "".join([f"{_HEAD}\n", *(f"# {line.why}\n{line.name}={line.value}\n" for line in lines)])


def _check_extra(name: str, value: str) -> None:
    if not _VARIABLE.fullmatch(name):
        raise RenderError(f"{name!r} is no NCCL variable; wanted a name such as NCCL_IB_QPS_PER_CONNECTION")
    if not value or value != value.strip() or not value.isprintable() or "#" in value:
        raise RenderError(f"{name}: {value!r} is no value for NCCL's file: one line, no spaces around it, no comment")


def _lines(node: Node) -> Iterable[_Line]:
    compute = sorted((hca for hca in node.hcas if hca.role == COMPUTE), key=_order)
    others = sorted((hca for hca in node.hcas if hca.role != COMPUTE), key=_order)
    for name in [hca.name for hca in node.hcas] + [node.interface] * bool(node.interface):
        if not _NAME.fullmatch(name):
            raise RenderError(
                f"the device name {name[:80]!r} cannot stand in NCCL's lists; give the device another name"
            )
    if len(compute) > MAX_HCAS:
        raise RenderError(f"{len(compute)} compute HCAs, and NCCL keeps {MAX_HCAS}; let `extra` name those to use")
    if compute:
        why = "The HCAs of the compute network by their whole names; without the first '=' they would be prefixes."
        if others:
            why += f" Not for jobs: {', '.join(hca.name for hca in others)}."
        yield _Line("NCCL_IB_HCA", "=" + ",".join(hca.name for hca in compute), why)
    elif others:
        why = "No HCA of this node is for jobs."
        yield _Line("NCCL_IB_HCA", "^=" + ",".join(hca.name for hca in others), why)
    if node.interface:
        why = "The interface over which ranks find each other, by its whole name."
        yield _Line("NCCL_SOCKET_IFNAME", f"={node.interface}", why)
    if compute and all(hca.link_layer == ETHERNET for hca in compute):
        yield from _roce(node, compute)


def _roce(node: Node, compute: list[Hca]) -> Iterable[_Line]:
    if node.traffic_class is not None:
        if not 0 <= node.traffic_class <= 255:  # noqa: PLR2004 - a byte
            raise RenderError(f"traffic class {node.traffic_class} is no byte; wanted DSCP * 4, e.g. 104 for DSCP 26")
        why = f"The whole traffic class byte: DSCP {node.traffic_class >> 2}, which switches do not drop."
        if node.traffic_class:
            yield _Line("NCCL_IB_TC", str(node.traffic_class), why)
    if node.version is not None and node.version < _GID_DYNAMIC:
        indexes = {hca.gid_index for hca in compute}
        if len(indexes) != 1 or None in indexes:
            found = ", ".join(f"{hca.name} {'none' if hca.gid_index is None else hca.gid_index}" for hca in compute)
            want = f"NCCL before {_GID_DYNAMIC[0]}.{_GID_DYNAMIC[1]} takes one index for all"
            raise RenderError(f"RoCE v2 GID indexes are {found}; {want}; give the HCAs like addresses, or a newer NCCL")
        why = "Discovered: the RoCE v2 GID with this node's address, which this old NCCL does not find by itself."
        yield _Line("NCCL_IB_GID_INDEX", str(indexes.pop()), why)


def _order(hca: Hca) -> tuple[int, list[tuple[int, str]]]:
    """Sort by rail, then as people count: mlx5_2 before mlx5_10."""
    parts = re.findall(r"\d+|\D+", hca.name)
    return hca.rail, [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
