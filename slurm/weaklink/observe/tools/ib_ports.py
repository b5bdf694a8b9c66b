"""One port of one RDMA device, as ibstat, ibstatus, ibv_devinfo, ibdev2netdev and rdma know it. Pure."""

from typing import NamedTuple, Optional

from weaklink.observe.tools.ib_text import Complaint
from weaklink.observe.tools.text import Trouble


class Port(NamedTuple):
    """What one tool says of one port; what it does not say, or what could not be read, is None.

    ``state`` and ``phys_state`` as printed, without the number; ``rate_gbps`` as printed, filler values included;
    ``lanes`` and ``speed`` where printed ("4X HDR"); ``netdev_up`` is ibdev2netdev's (Up) and (Down).
    """

    device: str
    port: int
    line: int
    state: Optional[str] = None
    phys_state: Optional[str] = None
    rate_gbps: Optional[float] = None
    lanes: Optional[int] = None
    speed: Optional[str] = None
    lid: Optional[int] = None
    sm_lid: Optional[int] = None
    link_layer: Optional[str] = None
    guid: Optional[str] = None
    active_mtu: Optional[int] = None
    max_mtu: Optional[int] = None
    netdev: Optional[str] = None
    netdev_up: Optional[bool] = None

    @property
    def name(self) -> str:
        """The port as ``<device>/<port>``."""
        return f"{self.device}/{self.port}"


class Ports(NamedTuple):
    """All that one run printed. ``form`` tells which of the tool's forms it is; ``firmware`` by device.

    ``guids`` are those of forms that print nothing else (``ibstat -p``). ``addresses`` are (device, PCI address).
    """

    devices: tuple[str, ...]
    ports: tuple[Port, ...]
    form: str = "full"
    firmware: tuple[tuple[str, str], ...] = ()
    guids: tuple[str, ...] = ()
    addresses: tuple[tuple[str, str], ...] = ()
    complaints: tuple[Complaint, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    version: Optional[str] = None
