"""Where advice comes from: each source with the class of evidence that it is. Only what was looked up is here."""

from __future__ import annotations

from typing import NamedTuple

_DGX = "docs.nvidia.com/dgx-superpod"


class Source(NamedTuple):
    """A source's name or address, and its class of evidence (a key of advice.EVIDENCE)."""

    name: str
    evidence: str


SUPERPOD = Source(
    f"DGX SuperPOD B200 reference architecture, {_DGX}/reference-architecture-scalable-infrastructure-b200/latest/"
    "dgx-superpod-architecture.html",
    "read",
)
H100_FABRIC = Source(
    f"DGX SuperPOD H100 reference architecture, {_DGX}/reference-architecture-scalable-infrastructure-h100/latest/"
    "network-fabrics.html",
    "read",
)
SUPERPOD_B300 = Source(
    f"DGX SuperPOD B300 reference architecture, {_DGX}/reference-architecture/scalable-infrastructure-b300/latest/"
    "network-fabrics.html",
    "read",
)
SUPERPOD_XDR = Source(
    f"DGX SuperPOD B300 XDR reference architecture, {_DGX}/reference-architecture/scalable-infrastructure-b300-xdr/"
    "latest/dgx-superpod-architecture.html",
    "read",
)
H100_COMPONENTS = Source("DGX SuperPOD H100 reference architecture RA-11333-001, table of components", "summary")
DEEPSEEK = Source("DeepSeek-V3 hardware insights, arXiv 2505.09343, abstract", "read")
LLAMA = Source("The Llama 3 Herd of Models, arXiv 2407.21783", "summary")
META_ROCE = Source("RDMA over Ethernet for Distributed AI Training at Meta Scale, SIGCOMM 2024", "summary")
MEGASCALE = Source("MegaScale: Scaling Large Language Model Training to More Than 10,000 GPUs, NSDI 2024", "summary")
HPN = Source("Alibaba HPN: A Data Center Network for Large Language Model Training, SIGCOMM 2024", "summary")
NCCL_ENV = Source(
    "NCCL environment variables, docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
    "read",
)
ROCE_MTU = Source("Linux kernel, iboe_get_mtu() in include/rdma/ib_addr.h, sizes in include/rdma/ib_pack.h", "read")
OURS = Source("weaklink plan", "computed")
NONE_FOUND = Source("none found", "no source")
