"""Judge ``nvidia-smi topo -m``: GPUs' distance to their NICs, NVLinks between GPUs, the number of GPUs. Pure."""

import re
from typing import Any, Optional

from weaklink.checks.tools import nvidia_common as common
from weaklink.checks.tools.base import DRAIN, NOTE, Context, Judged, Rule, close, demand, say
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding
from weaklink.observe.tools.nvidia_smi_topo import DISTANCES, NAME, Record, distance

DISTANCE = Rule(
    "gpu.nic_distance",
    ("gpu-nic-distance",),
    DEGRADED,
    NOTE,
    "A GPU's nearest NIC is farther than gdr_max_distance (order: PIX, PXB, PHB, NODE, SYS); other NICs may be far.",
    "See whether the NIC sits in its slot below the GPU's PCIe switch, and whether its port's device is there at all.",
)
NVLINK = Rule(
    "gpu.nvlink_bond",
    ("nvlink-down",),
    FAIL,
    DRAIN,
    "Two GPUs are connected by fewer NVLinks than expected_nvlink (NV18), or not by NVLink.",
    "Drain the node; see nvidia-smi nvlink -s and the fabric manager; reset the GPUs, reseat or replace the board.",
)
RULES = (*common.RULES, DISTANCE, NVLINK)
_FAR = DISTANCES.index("SYS")
_WANTED = re.compile(r"(?:NV)?(\d{1,3})\Z", re.IGNORECASE)


def _rank(word: Optional[str]) -> Optional[int]:
    return DISTANCES.index(word) if word in DISTANCES else None


def _limit(context: Context) -> Optional[int]:
    wanted = demand(context, "gdr_max_distance", str)
    if wanted is None:
        return None
    rank = _rank(distance(wanted.strip().upper()))
    if rank is None:
        raise ValueError(f"context: key 'gdr_max_distance': found {wanted!r:.60}, wanted one of {', '.join(DISTANCES)}")
    return rank


def _ranks(record: Record, gpu: str, nics: list[str]) -> dict[str, int]:
    """Return how far each of the NICs is from a GPU, those alone whose distance can be read."""
    ranks = {nic: _rank(record.distance(gpu, nic)) for nic in nics}
    return {nic: rank for nic, rank in ranks.items() if rank is not None}


def _nearest(ranks: dict[str, int]) -> list[str]:
    """Return the NICs that are nearest; none where all are behind the interconnect of the sockets."""
    least = min(ranks.values(), default=_FAR)
    return [nic for nic, rank in ranks.items() if rank == least < _FAR]


def _bonds(record: Record, wanted: int) -> list[Finding]:
    found = []
    gpus = record.gpus
    for at, one in enumerate(gpus):
        for other in gpus[at + 1 :]:
            word = record.distance(one, other)
            links = int(word[2:]) if word and word.startswith("NV") else 0
            if word is not None and links < wanted:
                message = f"{one} to {other}: {word}, wanted NV{wanted}; {NVLINK.remedy}"
                found.append(say(NVLINK, f"{one}-{other}", FAIL, message, found=word))
    return found


def _wanted_bond(context: Context) -> Optional[int]:
    value = demand(context, "expected_nvlink", (str, int))
    if value is None:
        return None
    number = _WANTED.match(str(value).strip())
    if number is None:
        raise ValueError(f"context: key 'expected_nvlink': found {value!r:.60}, wanted a bond like 'NV18'")
    return int(number[1])


def _management(record: Record, nics: list[str], nearest: dict[str, list[str]], limit: int) -> list[str]:
    """Return the NICs that no GPU would use: far from all of them."""
    used = {nic for names in nearest.values() for nic in names}
    found = []
    for nic in nics:
        ranks = [_rank(record.distance(gpu, nic)) for gpu in record.gpus]
        known = [rank for rank in ranks if rank is not None]
        if len(known) == len(ranks) and known and min(known) > limit and (min(known) == _FAR or nic not in used):
            found.append(nic)
    return found


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; ``gdr_max_distance``, ``expected_nvlink`` and ``expected_gpus`` are demands.

    Where ``compute_hcas`` names NICs, they alone count as a GPU's.
    """
    limit, wanted = _limit(context), _wanted_bond(context)
    compute = demand(context, "compute_hcas", list, [])
    names = {nic: record.legend.get(nic, nic) for nic in record.nics}
    counting = [nic for nic in record.nics if not compute or names[nic] in compute or nic in compute]
    ranks = {gpu: _ranks(record, gpu, counting) for gpu in record.gpus}
    nearest = {gpu: _nearest(ranks[gpu]) for gpu in record.gpus}
    read = {gpu: len(ranks[gpu]) == len(counting) for gpu in record.gpus}
    found = common.said_by_notices(record.notices, NAME)
    listed = len(record.gpus) if record.columns else None
    found += common.counted(listed, [], record.notices, {**context, "expected_bus_ids": None}, whole=True)
    bonds = _bonds(record, wanted) if wanted is not None and not record.pci_only else []
    far = []
    if limit is not None and counting:
        far = [gpu for gpu in record.gpus if read[gpu] and min(ranks[gpu].values(), default=_FAR) > limit]
    found += bonds
    if limit is not None and record.columns and not counting and not record.troubles:
        found.append(say(DISTANCE, "nics", UNKNOWN, "no NIC is in the matrix, so that no distance can be judged"))
    for gpu in far:
        least = DISTANCES[min(ranks[gpu].values(), default=_FAR)]
        message = f"{gpu}: nearest NIC is {least}, wanted {DISTANCES[limit or 0]} or nearer; {DISTANCE.remedy}"
        found.append(say(DISTANCE, gpu, DEGRADED, message, nearest=least))
    if wanted is not None and record.pci_only:
        message = "the legend has no NV#: topo -mp shows no NVLink; run nvidia-smi topo -m"
        found.append(say(common.RAN, "nvlink", UNKNOWN, message))
    facts: dict[str, Any] = {
        "gpus": listed,
        "nics": len(record.nics) if record.columns else None,
        "nearest_nic": {gpu: names[near[0]] if near else None for gpu, near in nearest.items()},
        "nearest_nics": {gpu: [names[nic] for nic in near] for gpu, near in nearest.items()},
        "nearest_distance": {gpu: DISTANCES[min(found.values())] if found else None for gpu, found in ranks.items()},
        "management_nics": [names[nic] for nic in _management(record, record.nics, nearest, _beyond(limit))],
        "bad_gpus": far,
        "bad_pairs": [finding.subject for finding in bonds],
        "nvlink": _least_bond(record),
        "ignored": [names[nic] for nic in record.nics if nic not in counting],
    }
    return close(NAME, facts, found, record.troubles, "every GPU has its NIC and its NVLinks")


def _beyond(limit: Optional[int]) -> int:
    """Return the distance beyond which a NIC is nobody's: the limit, or a host bridge where there is none."""
    return DISTANCES.index("PXB") if limit is None else min(limit, _FAR - 1)


def _least_bond(record: Record) -> Optional[str]:
    """Return the smallest bond of NVLinks between two GPUs; None where a pair has none."""
    gpus = record.gpus
    words = [record.distance(one, other) for at, one in enumerate(gpus) for other in gpus[at + 1 :]]
    if not words or any(word is None or not word.startswith("NV") for word in words):
        return None
    return min((word for word in words if word), key=lambda word: int(word[2:]))
