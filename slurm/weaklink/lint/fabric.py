"""Judge the fabric that a cluster file describes: MTU, lossless RoCE, IPoIB, HCAs for GPUs, storage. Pure.

Works on the file's plain data (after the schema, before anything is computed), so that what bring-up refuses is
judged too.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Optional

from weaklink.lint.base import CONTRADICTION, DISCOURAGED, OK, UNKNOWN, Judgement
from weaklink.lint.fabric_qos import judge_qos
from weaklink.model.mtu import ROCE_HEADERS, rdma_mtu

Path = tuple[Any, ...]
Json = dict[str, Any]
Where = Callable[[Path], int]

FRAME = 14 + 4 + 4  # Ethernet header, VLAN tag, check sequence
_MTU_SOURCE = "Linux include/rdma/ib_addr.h, iboe_get_mtu: GRH 40 + UDP 8 + BTH 12 + XRC 4 + atomic 28 + ICRC 4 bytes"
_FRAME_SOURCE = "IEEE 802.3 and 802.1Q: header 14, VLAN tag 4, check sequence 4 bytes"
_IPOIB_SOURCE = "Linux Documentation/infiniband/ipoib.rst"
_IPOIB_DATAGRAM = 4092  # 4096 less the 4 bytes of IPoIB's header
_IPOIB_CONNECTED = 65520
_DESIGN_SOURCE = "NVIDIA DGX SuperPOD reference architectures: one 400 Gb/s port a GPU"
_GPU_GBPS = 400


class Said(NamedTuple):
    """A judgement before its place is known: path in the file, class, message, source."""

    path: Path
    klass: str
    message: str
    source: str


def judge(data: Json, where: Where, file: str = "cluster.yml") -> list[Judgement]:
    """Return what there is to say of a cluster file's ``data``; ``where`` gives the line of a path, or the nearest."""
    said = [
        *_mtus(data),
        *_switch_mtus(data),
        *(Said(*row) for row in judge_qos(data)),
        *_ipoib(data),
        *_hcas(data),
        *_storage(data),
    ]
    told = [
        Judgement(
            _dotted(item.path), _value(data, item.path), item.klass, item.message, item.source, file, where(item.path)
        )
        for item in said
    ]
    return told or [Judgement("(file)", None, OK, "nothing in this fabric contradicts itself", "these rules", file, 1)]


def _dotted(path: Path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def _value(data: Any, path: Path) -> Optional[str]:
    try:
        for part in path:
            data = data[part]
    except (KeyError, IndexError, TypeError):
        return None
    return None if isinstance(data, (dict, list)) and len(str(data)) > 80 else str(data)  # noqa: PLR2004 - what fits a line


def roce_mtu(mtu: int) -> int:
    """Return the RoCE MTU that an interface of ``mtu`` bytes gets, 0 where it is too small for any."""
    return rdma_mtu(mtu) or 0


def networks(data: Json, transport: str) -> Iterator[tuple[str, Json]]:
    """Yield (name, network) of one transport."""
    for name, network in (data.get("networks") or {}).items():
        if isinstance(network, dict) and network.get("transport", "tcp") == transport:
            yield name, network


def _mtus(data: Json) -> Iterator[Said]:
    for name, network in networks(data, "roce"):
        mtu, active = int(network.get("mtu", 1500)), int(network.get("active_mtu", 4096))
        path, gets = ("networks", name, "mtu"), roce_mtu(mtu)
        needs = f"a payload of {active} needs an interface of {active + ROCE_HEADERS} bytes ({ROCE_HEADERS} of headers)"
        if mtu < active + ROCE_HEADERS:
            text = f"{name}: MTU {mtu} gives RoCE {gets or 'no MTU at all'}; {needs}: set 4200 or 9000"
            yield Said(path, CONTRADICTION, text, _MTU_SOURCE)
        elif gets > active:
            text = f"{name}: MTU {mtu} carries {gets}, and {active} is asked for: more packets for the same data"
            yield Said(("networks", name, "active_mtu"), DISCOURAGED, text, _MTU_SOURCE)
        if network.get("gid_type") == "RoCE v1":
            text = f"{name}: RoCE v1 is not routed and carries no DSCP; use RoCE v2"
            yield Said(
                ("networks", name, "gid_type"), DISCOURAGED, text, "InfiniBand specification, annexes A16 and A17"
            )


def _switch_mtus(data: Json) -> Iterator[Said]:
    for name, switch in (data.get("switches") or {}).items():
        network = (data.get("networks") or {}).get(switch.get("network"), {})
        if network.get("transport", "tcp") == "infiniband" or not network.get("mtu"):
            continue
        needs = int(network["mtu"]) + FRAME
        path = ("switches", name, "mtu")
        if switch.get("mtu") is None:
            if network.get("transport") == "roce":
                text = f"{name}: nothing says the switches' MTU; frames of {switch['network']} take {needs} bytes"
                yield Said(path, UNKNOWN, text, _FRAME_SOURCE)
        elif int(switch["mtu"]) < needs:
            frame = f"a frame of {switch['network']}, {network['mtu']} + 14 + 4 + 4 = {needs}"
            text = f"{name}: MTU {switch['mtu']} is less than {frame}; larger packets vanish there: set 9216"
            yield Said(path, CONTRADICTION, text, _FRAME_SOURCE)


def _ipoib(data: Json) -> Iterator[Said]:
    for name, network in networks(data, "infiniband"):
        mode, mtu, path = network.get("ipoib_mode"), int(network.get("mtu", 0)), ("networks", name, "ipoib_mode")
        if mode == "connected":
            if network.get("enhanced_ipoib"):
                text = f"{name}: enhanced IPoIB knows datagram mode only; set ipoib_mode: datagram"
                yield Said(path, CONTRADICTION, text, "NVIDIA DOCA-OFED manual, IP over InfiniBand")
            else:
                text = f"{name}: connected mode keeps a connection for every peer and does without the NIC's offloads"
                yield Said(path, DISCOURAGED, f"{text}; datagram with MTU {_IPOIB_DATAGRAM} scales", _IPOIB_SOURCE)
        limit = _IPOIB_CONNECTED if mode == "connected" else _IPOIB_DATAGRAM
        if mtu > limit:
            text = f"{name}: IPoIB carries {limit} bytes at most in {mode or 'datagram'} mode, found {mtu}"
            yield Said(("networks", name, "mtu"), CONTRADICTION, text, _IPOIB_SOURCE)


def machine(data: Json, group: Json) -> Json:
    """Return a group with what its hardware type gives it."""
    return {**(data.get("hardware") or {}).get(group.get("hardware", ""), {}), **group}


def _gpus(hardware: Json) -> int:
    gpus = hardware.get("gpus") or 0
    return int(gpus.get("count", 0)) if isinstance(gpus, dict) else int(gpus)


def _nics(data: Json, hardware: Json, role: str) -> list[Json]:
    """Return the RDMA ports of a machine in networks of one role."""
    known = data.get("networks") or {}
    return [
        nic
        for nic in hardware.get("nics") or []
        if nic.get("rdma") and known.get(nic.get("network"), {}).get("role") == role
    ]


def _hcas(data: Json) -> Iterator[Said]:
    for name, group in (data.get("groups") or {}).items():
        hardware = machine(data, group)
        gpus, ports = _gpus(hardware), _nics(data, hardware, "compute")
        if not gpus or group.get("role") != "compute":
            continue
        path: Path = ("groups", name, "nics") if "nics" in group else ("groups", name)
        if len(ports) < gpus:
            text = f"{name}: {len(ports)} compute HCAs for {gpus} GPUs; GPUs without one send through another's"
            yield Said(path, DISCOURAGED, f"{text}; have one a GPU", _DESIGN_SOURCE)
        rates = [(data["networks"][nic["network"]]).get("rate_gbps") for nic in ports]
        known = [float(rate) for rate in rates if rate]
        if known and len(known) == len(ports) and sum(known) / gpus < _GPU_GBPS:
            text = f"{name}: {sum(known) / gpus:g} Gb/s a GPU ({len(ports)} ports, {gpus} GPUs)"
            yield Said(path, DISCOURAGED, f"{text}; large models want {_GPU_GBPS}", _DESIGN_SOURCE)


def _storage(data: Json) -> Iterator[Said]:
    known = data.get("networks") or {}
    source = "checkpoints and collectives then wait for each other"
    for index, mount in enumerate(data.get("mounts") or []):
        network = mount.get("network")
        if known.get(network, {}).get("role") == "compute":
            text = f"{mount.get('path')}: mounted over {network}, a compute network; give storage one of its own"
            yield Said(("mounts", index, "network"), DISCOURAGED, f"{text}: {source}", _DESIGN_SOURCE)
    for name, group in (data.get("groups") or {}).items():
        hardware = machine(data, group)
        compute = {nic["pci"].rpartition(".")[0] for nic in _nics(data, hardware, "compute") if nic.get("pci")}
        shared = [
            nic["pci"]
            for nic in hardware.get("nics") or []
            if nic.get("pci", "").rpartition(".")[0] in compute
            and known.get(nic.get("network"), {}).get("role") == "storage"
        ]
        if shared:
            text = f"{name}: the card at {shared[0]} carries storage and compute; they share its PCIe lanes"
            yield Said(("groups", name), DISCOURAGED, f"{text}: {source}", _DESIGN_SOURCE)
