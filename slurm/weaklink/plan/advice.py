"""What to buy for a cluster of a given size, line by line, each with its source and how good that source is.

A widely read guide gives rules of thumb for the same questions. Where a rule has no source or contradicts one, the line
says so (``corrects``), because a plan copied from it costs real money.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from weaklink.model.mtu import RDMA_MTUS, ROCE_HEADERS
from weaklink.plan.advice_sources import (
    DEEPSEEK,
    H100_COMPONENTS,
    H100_FABRIC,
    HPN,
    LLAMA,
    MEGASCALE,
    META_ROCE,
    NCCL_ENV,
    NONE_FOUND,
    OURS,
    ROCE_MTU,
    SUPERPOD,
    SUPERPOD_B300,
    SUPERPOD_XDR,
    Source,
)

EVIDENCE = {
    "read": "read in the primary source named",
    "summary": "from an abstract or a summary of the source named",
    "computed": "arithmetic on the figures asked for; weaklink plan shows it",
    "judgement": "our judgement; no figure behind it",
    "no source": "a claim in circulation for which no source was found",
}
SMALL, MEDIUM = 512, 4096  # GPUs: where the guide changes its rules
TRANSPORTS = ("infiniband", "roce")


class Size(NamedTuple):
    """What advice depends on. ``radix`` is ports a switch; ``extra_endpoints`` are ports taken by no GPU."""

    nodes: int
    gpus_per_node: int
    radix: int
    hcas_per_gpu: int = 1
    extra_endpoints: int = 0

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return self.nodes * self.gpus_per_node

    @property
    def endpoints(self) -> int:
        """Ports on the compute network."""
        return self.gpus * self.hcas_per_gpu + self.extra_endpoints

    @property
    def two_tiers(self) -> int:
        """The largest two-tier fat tree of this radix, in end points."""
        return self.radix**2 // 2

    @property
    def three_tiers(self) -> int:
        """The largest three-tier fat tree of this radix, in end points."""
        return self.radix**3 // 4


class Advice(NamedTuple):
    """One line: topic, text, evidence (a key of EVIDENCE), source, and whether it corrects the guide."""

    topic: str
    text: str
    evidence: str
    source: str
    corrects: bool = False


def advise(size: Size, transport: str | None = None) -> list[Advice]:
    """Return the advice for a size, topic by topic; ``transport`` narrows it to infiniband or roce. Pure."""
    lines = [*_hcas(size), *_tiers(size), *_topology(size), *_storage(size), *_management(size)]
    if transport != "roce":
        lines += _infiniband(size)
    if transport != "infiniband":
        lines += _roce()
    if transport is None:
        lines += _choice(size)
    return lines


def as_dict(line: Advice) -> dict[str, Any]:
    """Return a line as JSON: topic, text, evidence, source, corrects_guide."""
    return {
        "topic": line.topic,
        "text": line.text,
        "evidence": line.evidence,
        "source": line.source,
        "corrects_guide": line.corrects,
    }


def _line(topic: str, text: str, source: Source, *, corrects: bool = False) -> Advice:
    return Advice(topic, text, source.evidence, source.name, corrects)


def _hcas(size: Size) -> list[Advice]:
    lines = [
        _line(
            "HCAs",
            f"one HCA a GPU: {size.gpus:,} for {size.gpus:,} GPUs. The DGX SuperPOD reference designs count one "
            "compute link a GPU in each of their tables; the speed of that link grows by generation, not their number",
            SUPERPOD,
        ),
        _line(
            "HCAs",
            "two HCAs a GPU for 30-40 % more throughput at 15 % more cost: no measurement found behind it. They make "
            f"{2 * size.gpus:,} end points, so the compute network costs at least twice as much (--hcas-per-gpu 2 "
            "shows it); measure first whether the network is what you wait for",
            NONE_FOUND,
            corrects=True,
        ),
        _line(
            "HCAs",
            "there is no NDR800: NDR is 400 Gb/s a port, and the 800 Gb/s generation is XDR (ConnectX-8), again one "
            "link a GPU",
            SUPERPOD_XDR,
            corrects=True,
        ),
    ]
    if size.hcas_per_gpu > 1:
        lines[0] = lines[0]._replace(text=f"you plan {size.hcas_per_gpu} HCAs a GPU. " + lines[0].text)
    return lines


def _tiers(size: Size) -> list[Advice]:
    ends = f"{size.endpoints:,} end points on {size.radix}-port switches"
    two, three = f"{size.two_tiers:,}", f"{size.three_tiers:,}"
    if size.endpoints <= size.radix:
        text = f"{ends}: one switch has enough ports; leaf and spine from there to {two} (k^2/2)"
    elif size.endpoints <= size.two_tiers:
        text = f"{ends}: two tiers (leaf and spine) hold up to k^2/2 = {two}; no third tier is needed"
    elif size.endpoints <= size.three_tiers:
        text = (
            f"{ends}: more than two tiers hold (k^2/2 = {two}); a third tier holds up to k^3/4 = {three}{_planes(size)}"
        )
    else:
        text = f"{ends}: more than three tiers hold (k^3/4 = {three}); take a larger radix or several planes"
    return [
        _line("tiers", text, OURS),
        _line(
            "tiers",
            "spines must divide a leaf's uplinks evenly, so that each leaf has the same number of links to each spine: "
            "that, not the port sum alone, decides their number (24 leaves of 64 ports take 16 spines, not 12)",
            H100_FABRIC,
        ),
    ]


def _planes(size: Size) -> str:
    planes = size.gpus_per_node * size.hcas_per_gpu
    per_plane = -(-(size.endpoints - size.extra_endpoints) // planes) + size.extra_endpoints
    if planes == 1 or per_plane > size.two_tiers:
        return ""
    return f", or {planes} planes of two tiers each, one for each HCA of a node (NVLink joins the planes in the node)"


def _topology(size: Size) -> list[Advice]:
    lines = [
        _line(
            "topology",
            "rail-optimised full fat tree: HCA number i of each node goes to a leaf of rail i, spines join the rails. "
            f"It is what the reference designs are at all their sizes, up to 16,384 GPUs; {size.gpus:,} GPUs need "
            "nothing else",
            SUPERPOD,
        ),
        _line(
            "topology",
            "dragonfly+ is not the reference designs' topology: none of their tables has it",
            SUPERPOD,
            corrects=True,
        ),
        _line(
            "topology",
            "what dragonfly+ saves depends on size. Where two tiers do, it takes more switches (64 against 48 for "
            "1,024 end points of 64 ports); above, it saves the third tier's switches and pays with bandwidth between "
            "groups. Compare both, bisection too: weaklink plan --compare fat-tree,multi-plane,dragonfly+",
            OURS,
            corrects=True,
        ),
        _line(
            "topology",
            "fat trees do not end at 2,000 GPUs: 64-port switches carry 2,048 end points in two tiers and 65,536 in "
            "three",
            OURS,
            corrects=True,
        ),
        _line(
            "topology",
            "DeepSeek's cluster for its mixture-of-experts training was a multi-plane two-layer fat tree of 2,048 "
            "GPUs, no dragonfly",
            DEEPSEEK,
            corrects=True,
        ),
        _line(
            "topology",
            "hypercube: few hops, but each added dimension costs a port on every switch, and traffic between random "
            "pairs crosses half the dimensions, so it is far from non-blocking; see its bisection in --compare",
            OURS,
            corrects=True,
        ),
    ]
    return lines if size.gpus > SMALL else [line for line in lines if "DeepSeek" not in line.text]


def _storage(size: Size) -> list[Advice]:
    lines = [
        _line(
            "storage",
            "a storage network of its own, with NICs of its own: checkpoint bursts then cannot hold up gradients. The "
            "reference designs keep compute, storage, in-band and out-of-band apart",
            H100_FABRIC,
        )
    ]
    if size.gpus <= SMALL:
        lines.append(
            _line(
                "storage",
                "at this size storage may share its switches with in-band management (own VLAN and queue); never with "
                "compute",
                Source("our judgement", "judgement"),
            )
        )
    return lines


def _management(size: Size) -> list[Advice]:
    ratio = 64 if size.gpus <= SMALL else 128
    count = -(-size.gpus // ratio)
    return [
        _line(
            "management",
            f"one management node per {ratio} GPUs would be {count} here; no source found for that ratio. It grows "
            "with GPUs although the work (Slurm, accounting, logins, provisioning, subnet manager) does not",
            NONE_FOUND,
            corrects=True,
        ),
        _line(
            "management",
            "a reference design for comparison: 5 management servers for 127 nodes (1,016 GPUs), one per 203 GPUs",
            H100_COMPONENTS,
        ),
        _line(
            "management",
            "start from roles, each twice where jobs depend on it: 2 Slurm controllers, 1 database, 1 or 2 login "
            "nodes, 1 for provisioning and monitoring",
            Source("our judgement", "judgement"),
        ),
    ]


def _infiniband(size: Size) -> list[Advice]:
    return [
        _line(
            "InfiniBand",
            "needs a subnet manager (a standby too): it writes the forwarding tables. If it runs on appliances in the "
            "fabric, they take ports: the H100 tables give up one node's slot for them, and count 4 links more "
            f"(--extra-endpoints 4{'' if not size.extra_endpoints else f'; you have {size.extra_endpoints}'})",
            H100_FABRIC,
        ),
        _line(
            "InfiniBand",
            "flow control is part of the link (credits); there is no PFC to switch on or off. Adaptive routing is on "
            "by default in NCCL there (NCCL_IB_ADAPTIVE_ROUTING=1), if the subnet manager allows it",
            NCCL_ENV,
        ),
    ]


def _roce() -> list[Advice]:
    needs = ", ".join(f"{mtu} needs {mtu + ROCE_HEADERS}" for mtu in RDMA_MTUS[-3:])
    return [
        _line(
            "RoCE",
            f"MTU: RDMA takes the largest power of two that leaves {ROCE_HEADERS} bytes for headers, so {needs}; an "
            "interface at 1500 gives RDMA 1024. Set hosts to 9000 and switches higher; no packet is fragmented by it",
            ROCE_MTU,
            corrects=True,
        ),
        _line(
            "RoCE",
            "losslessness is configured: PFC on one priority (not on all: that is a global pause), the same priority, "
            "DSCP trust, ECN thresholds and headroom on every host and switch port, and a PFC watchdog. One port that "
            "differs is a slow node, so plan to check all of them: weaklink check, weaklink lint fabric",
            Source("our judgement", "judgement"),
            corrects=True,
        ),
        _line(
            "RoCE",
            "ECMP hashes few, large flows on to the same uplink. Meta lost more than 30 % to such collisions, and got "
            "up to 40 % in all-reduce back by twice the uplinks at first, then hashing on queue pairs with several of "
            "them for each connection. Plan uplinks and NCCL_IB_QPS_PER_CONNECTION (default 1) for it",
            META_ROCE,
        ),
        _line(
            "RoCE",
            "Meta ran 400 Gb/s RoCE with PFC and without DCQCN for more than a year, with admission by the receiver in "
            "the collective library and deep buffers in the spines: congestion control is a choice to test, no given",
            META_ROCE,
        ),
    ]


def _choice(size: Size) -> list[Advice]:
    topic = "InfiniBand or RoCE"
    return [
        _line(
            topic,
            "RoCE is not limited to 128 GPUs: Llama 3.1 405B was trained on 16,384 GPUs of a RoCE cluster of 24,000; "
            f"{size.gpus:,} GPUs alone do not decide for InfiniBand",
            LLAMA,
            corrects=True,
        ),
        _line(
            topic, "ByteDance trained on 12,288 GPUs over RoCE, at 55.2 % of their peak (MFU)", MEGASCALE, corrects=True
        ),
        _line(topic, "Alibaba's Ethernet pods hold 15,000 GPUs in two tiers and two planes", HPN, corrects=True),
        _line(
            topic,
            "the DGX B300 reference design is itself an Ethernet fabric (Spectrum-X) with two planes of 400 Gb/s a "
            "GPU, tabled up to 8,192 GPUs",
            SUPERPOD_B300,
            corrects=True,
        ),
        _line(
            topic,
            "so decide by who will run it: InfiniBand costs a subnet manager and a second kind of network to know; "
            "RoCE costs the lossless configuration on every port and load balancing. Meta built both",
            META_ROCE,
        ),
    ]
