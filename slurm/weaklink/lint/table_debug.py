"""NCCL's variables for experiments (the second part of the list in NCCL's user guide), and names from elsewhere."""

from functools import partial

from weaklink.lint.rule import DEBUGGING, FABRIC, FOREIGN, Rule, rule, steps
from weaklink.lint.version import version

_LEVELS = ("LOC", "NVL", "PIX", "PXB", "PHB", "SYS")


_rule = partial(rule, DEBUGGING)
_fabric = partial(rule, FABRIC)
_foreign = partial(rule, FOREIGN)


def _gone(name: str, since: str, removed: str, alias: str = "") -> Rule:
    return _rule(name, "text", since, removed=version(removed), alias=alias)


DEBUG_RULES = (
    _rule("P2P_DISABLE", "flag", default="0"),
    _rule("P2P_LEVEL", "level", "2.3.4", values=_LEVELS),
    _rule("P2P_DIRECT_DISABLE", "flag", default="0"),
    _rule("SHM_DISABLE", "flag", default="0"),
    _rule("BUFFSIZE", "size", default="4194304", low=1, unit="bytes"),
    _rule("NTHREADS", "int", values=("64", "128", "256", "512")),
    _rule("MAX_NCHANNELS", "int", "2.5", low=1, deprecated=version("2.17"), alias="NCCL_MAX_CTAS"),
    _rule("MIN_NCHANNELS", "int", "2.5", low=1, highs=steps("32"), deprecated=version("2.17"), alias="NCCL_MIN_CTAS"),
    _rule("MAX_NRINGS", "int", "2.0.5", low=1, deprecated=version("2.5"), alias="NCCL_MAX_CTAS"),
    _rule("MIN_NRINGS", "int", "2.2", low=1, deprecated=version("2.5"), alias="NCCL_MIN_CTAS"),
    _rule("CHECKS_DISABLE", "flag", "2.0.5", "0", deprecated=version("2.2.12"), alias="NCCL_CHECK_POINTERS"),
    _rule("CHECK_POINTERS", "flag", "2.2.12", "0", deprecated=version("2.29.7"), alias="NCCL_CHECK_MODE"),
    _rule("CHECK_MODE", "enum", "2.29.7", "DEFAULT", values=("DEFAULT", "DEBUG_LOCAL", "DEBUG_GLOBAL")),
    _rule("LAUNCH_MODE", "enum", "2.1", "PARALLEL", values=("PARALLEL", "GROUP"), deprecated=version("2.9")),
    _rule("IB_DISABLE", "flag", default="0"),
    _rule("IB_AR_THRESHOLD", "size", "2.6", "8192", low=0, unit="bytes"),
    _rule("IB_OOO_RQ", "flag", "2.30", "0"),
    _fabric("IB_QPS_PER_CONNECTION", "int", "2.10", "1", low=1, highs=steps("128")),
    _fabric("IB_SPLIT_DATA_ON_QPS", "flag", "2.18", "2.18:1 2.20:0"),
    _gone("IB_CUDA_SUPPORT", "2.0", "2.4", "NCCL_NET_GDR_LEVEL"),
    _fabric("IB_PCI_RELAXED_ORDERING", "int", "2.12", "2", low=0, highs=steps("2")),
    _fabric("IB_ADAPTIVE_ROUTING", "flag", "2.16"),
    _fabric("IB_ECE_ENABLE", "flag", "2.19", "1"),
    _rule("MEM_SYNC_DOMAIN", "flag", "2.16", "1"),
    _rule("CUMEM_ENABLE", "flag", "2.18", "2.18:0 2.19:"),
    _rule("CUMEM_HOST_ENABLE", "flag", "2.23", "2.23:0 2.24:"),
    _rule("NET_GDR_LEVEL", "level", "2.3.4", "PXB", values=_LEVELS, where="on platforms without a C2C link"),
    _rule(
        "IB_GDR_LEVEL",
        "level",
        "2.3.4",
        values=_LEVELS,
        deprecated=version("2.4"),
        alias="NCCL_NET_GDR_LEVEL",
    ),
    _rule("NET_GDR_C2C", "flag", "2.26", "2.26:0 2.27:1"),
    _rule("NET_GDR_READ", "flag", default="0 2.4.2:1", where="on platforms with NVLink"),
    _rule("GDRCOPY_ENABLE", "flag", default="0"),
    _rule("GDRCOPY_FIFO_ENABLE", "flag", default="1"),
    _rule("GDRCOPY_SYNC_ENABLE", "flag", default="1"),
    _rule("GDRCOPY_FLUSH_ENABLE", "flag", default="0"),
    _rule("NET_SHARED_BUFFERS", "flag", "2.8", "1"),
    _rule("NET_SHARED_COMMS", "flag", "2.12", "1"),
    _rule("IGNORE_NET_MISMATCH", "flag", "2.30", "1"),
    _rule("IGNORE_COLLNET_MISMATCH", "flag", "2.30", "0"),
    _gone("SINGLE_RING_THRESHOLD", "2.1", "2.3"),
    _gone("LL_THRESHOLD", "2.1", "2.5"),
    _gone("TREE_THRESHOLD", "2.4", "2.5"),
    _rule("ALGO", "text", "2.5"),
    _rule("PROTO", "text", "2.5"),
    _rule("NVB_DISABLE", "flag", "2.11", "0"),
    _rule("PXN_DISABLE", "flag", "2.12", "0"),
    _rule("P2P_PXN_LEVEL", "int", "2.12", "2", low=0, highs=steps("2")),
    _rule("PXN_C2C", "flag", "2.27", "2.27:0 2.28:1"),
    _rule("RUNTIME_CONNECT", "flag", "2.22", "1"),
    _rule("GRAPH_REGISTER", "flag", "2.11", "1"),
    _rule("LOCAL_REGISTER", "flag", "2.19", "1"),
    _rule("LEGACY_CUDA_REGISTER", "flag", "2.24", "0"),
    _rule("WIN_ENABLE", "flag", "2.27", "1"),
    _rule("SET_STACK_SIZE", "flag", "2.9", "0"),
    _rule("GRAPH_MIXING_SUPPORT", "flag", "2.13", "1"),
    _rule("GRAPH_STREAM_ORDERING", "flag", "2.30", "1"),
    _rule("RMA_EAGER_INIT", "flag", "2.31", "0"),
    _rule("DMABUF_ENABLE", "flag", "2.13", "1"),
    _rule("P2P_NET_CHUNKSIZE", "size", "2.14", "131072", low=1, unit="bytes"),
    _rule("P2P_LL_THRESHOLD", "size", "2.14", "16384", low=0, unit="bytes"),
    _rule("ALLOC_P2P_NET_LL_BUFFERS", "flag", "2.14", "0"),
    _rule("COMM_BLOCKING", "flag", "2.14"),
    _rule("CGA_CLUSTER_SIZE", "int", "2.16", low=0, highs=steps("8")),
    _rule("MAX_CTAS", "int", "2.17", low=1, highs=steps("2.17:32 2.25:64")),
    _rule("MIN_CTAS", "int", "2.17", low=1, highs=steps("2.17:32 2.25:64")),
    _rule("NVLS_ENABLE", "int", "2.17", "2", low=0, highs=steps("2")),
    _fabric("IB_MERGE_NICS", "flag", "2.20", "1"),
    _fabric("NET_MERGE_POLICY", "enum", "2.30.5", "ALL", values=("ALL", "RAIL")),
    _rule("MNNVL_ENABLE", "int", "2.21", "2", low=0, highs=steps("2")),
    _rule("MNNVL_UUID", "text", "2.25"),
    _rule("MNNVL_CLIQUE_ID", "text", "2.25"),
    _rule("RAS_ENABLE", "flag", "2.24", "1"),
    _fabric("RAS_ADDR", "text", "2.24", "localhost:28028"),
    _rule("RAS_TIMEOUT_FACTOR", "float", "2.24", "1"),
    _rule("LAUNCH_ORDER_IMPLICIT", "flag", "2.26", "0"),
    _rule("LAUNCH_RACE_FATAL", "flag", "2.26", "1"),
    _rule("IPC_USE_ABSTRACT_SOCKET", "flag", "2.29", "1"),
    _rule("SYM_GIN_KERNELS_ENABLE", "flag", "2.29", "1"),
)

# Seen in NCCL's source and in its guide's texts, without an entry of their own there.
INTERNAL_RULES = (
    _rule("COMM_ID", "text", documented=False),
    _rule("IB_DATA_DIRECT", "int", documented=False),
    _rule("IB_DEVICE_PCI_ORDER", "int", documented=False),
    _rule("IB_MERGE_VFS", "flag", documented=False),
    _rule("IB_PREPOST_RECEIVE_WORK_REQUESTS", "int", documented=False),
    _rule("IB_RECEIVER_SIDE_MATCHING_SCHEME", "int", documented=False),
    _rule("IB_ROUTABLE_FLID_GID_INDEX", "int", documented=False),
    _rule("IB_USE_INLINE", "flag", documented=False),
    _rule("NET_MERGE_LEVEL", "text", documented=False),
    _rule("NO_CACHE", "text", documented=False),
)

# PyTorch read these two under NCCL's prefix and has renamed them; NCCL never did.
FOREIGN_RULES = (
    _foreign("ASYNC_ERROR_HANDLING", "text", alias="TORCH_NCCL_ASYNC_ERROR_HANDLING", documented=False),
    _foreign("BLOCKING_WAIT", "text", alias="TORCH_NCCL_BLOCKING_WAIT", documented=False),
)
