"""Judge the table of ``nvidia-smi``: cells that hold errors, GPUs that are missing, drivers that are mute. Pure."""

from typing import Any

from weaklink.checks.tools import nvidia_common as common
from weaklink.checks.tools.base import Context, Judged, close, say
from weaklink.model.finding import DEGRADED, Finding
from weaklink.observe.tools import nvidia_words as words
from weaklink.observe.tools.nvidia_smi import NAME, Gpu, Record

RULES = common.RULES
_DRIVER_SPEAKS = frozenset({words.MISMATCH, words.NO_DRIVER})


def _subject(gpu: Gpu) -> str:
    return gpu.bus or gpu.uuid or str(gpu.number)


def _of(gpu: Gpu) -> list[Finding]:
    found = common.broken(_subject(gpu), gpu.faults, f"index {gpu.number}, line {gpu.line}")
    if gpu.uncorrected:
        message = f"GPU {_subject(gpu)}: {gpu.uncorrected} volatile uncorrected ECC errors; {common.ECC.remedy}"
        found.append(say(common.ECC, _subject(gpu), DEGRADED, message, uncorrected=gpu.uncorrected))
    return found


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; ``expected_gpus`` and ``expected_bus_ids`` are demands."""
    kinds = {item.kind for item in record.notices}
    bad = [gpu for gpu in record.gpus if words.LOST in gpu.faults or set(gpu.faults)]
    whole = not record.troubles
    listed = len(record.gpus) if record.table and (record.gpus or whole) else None
    found = common.said_by_notices(record.notices, NAME)
    rows = [finding for gpu in record.gpus for finding in _of(gpu)]
    buses = [gpu.bus for gpu in record.gpus if gpu.bus]
    found += common.lost_first(finding for finding in rows if finding.check == common.HANDLE.name)
    if not kinds & _DRIVER_SPEAKS:
        found += common.counted(listed, buses, record.notices, context, whole=whole)
    found += [finding for finding in rows if finding.check != common.HANDLE.name]
    none = words.NO_DEVICES in kinds
    facts: dict[str, Any] = {
        "gpus": (0 if none and not record.gpus else None) if listed is None or not whole else listed,
        "bad_gpus": [_subject(gpu) for gpu in bad] + common.lost_named(record.notices),
        "bad_indexes": [gpu.number for gpu in bad] + common.lost_indexes(record.notices),
        "driver_version": record.driver,
        "cuda_version": record.cuda,
        "nvml_library": record.library,
        "mig_devices": record.mig_devices,
        "processes": record.processes,
        "ecc_uncorrected": {_subject(gpu): gpu.uncorrected for gpu in record.gpus if gpu.uncorrected is not None},
    }
    if kinds & _DRIVER_SPEAKS or words.NOT_RUN in kinds:
        facts["hardware_fault"] = False if kinds & {words.MISMATCH} else None
    elif bad or any(item.kind in {words.LOST, words.RESET, words.UNREADABLE} for item in record.notices):
        facts["hardware_fault"] = True
    return close(NAME, facts, found, record.troubles, "every GPU's row is readable")
