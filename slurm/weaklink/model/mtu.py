"""How large an RDMA message an Ethernet interface can carry. Pure."""

from typing import Optional

# Bytes around a RoCE payload that Linux takes off the interface's MTU before it rounds down (include/rdma/ib_addr.h,
# iboe_get_mtu): GRH 40, UDP 8, BTH 12, XRC 4, AtomicETH 28, ICRC 4.
ROCE_HEADERS = 96
RDMA_MTUS = (256, 512, 1024, 2048, 4096)


def rdma_mtu(mtu: int) -> Optional[int]:
    """Return the RDMA MTU that an interface of ``mtu`` bytes gets, None where it is too small for any."""
    return next((size for size in reversed(RDMA_MTUS) if size + ROCE_HEADERS <= mtu), None)
