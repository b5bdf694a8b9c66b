"""Judge ``nvidia-smi -q``: memory repairs, faults in place of values, fabric, slowdown, PCIe width, counts. Pure."""

from typing import Any, Optional

from weaklink.checks.tools import nvidia_common as common
from weaklink.checks.tools.base import NOTE, Context, Judged, Rule, close, say
from weaklink.checks.tools.nvidia_memory import MEMORY_RULES, Memory, judge_memory
from weaklink.checks.tools.nvidia_state import (
    FABRIC,
    RECOVERY,
    SOUND,
    STATE_RULES,
    in_fabric,
    judge_fabric,
    judge_recovery,
)
from weaklink.model.finding import DEGRADED, FAIL, Finding
from weaklink.observe.tools import nvidia_words as words
from weaklink.observe.tools.nvidia_smi_q import NAME, Gpu, Record
from weaklink.observe.tools.text import integer

SLOW = Rule(
    "gpu.slowdown",
    ("gpu-slowed-down",),
    DEGRADED,
    NOTE,
    "Clocks event reasons: HW Slowdown, HW Thermal Slowdown or HW Power Brake is Active; Idle or power cap is normal.",
    "Look at the temperatures, fans and power supply of the node.",
)
MODE = Rule(
    "gpu.mode_pending",
    ("config-reset-pending",),
    DEGRADED,
    NOTE,
    "ECC Mode or MIG Mode: Pending differs from Current.",
    "Reset the GPU or reboot the node, the pending mode then takes effect.",
)
RULES = (*common.RULES, *MEMORY_RULES, *STATE_RULES, SLOW, MODE)
_MODES = frozenset({"enabled", "disabled"})
_SLOWDOWNS = ("HW Slowdown", "HW Thermal Slowdown", "HW Power Brake Slowdown")
_REASONS = ("Clocks Event Reasons", "Clocks Throttle Reasons")


def _flag(value: Optional[str]) -> Optional[bool]:
    word = (value or "").strip().lower()
    if word in {"yes", "no"}:
        return word == "yes"
    number = integer(word)
    return number > 0 if number is not None else None


def _sum(*parts: Optional[int]) -> Optional[int]:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _uncorrected(gpu: Gpu) -> Optional[int]:
    """Return the volatile uncorrected ECC errors in the spelling of any driver."""
    volatile = "ECC Errors/Volatile/"
    total = gpu.amount(volatile + "Double Bit/Total")
    if total is not None:
        return total
    sram = (
        gpu.amount(volatile + "SRAM Uncorrectable"),
        gpu.amount(volatile + "SRAM Uncorrectable Parity"),
        gpu.amount(volatile + "SRAM Uncorrectable SEC-DED"),
    )
    return _sum(*sram, gpu.amount(volatile + "DRAM Uncorrectable"))


def _memory(gpu: Gpu) -> Memory:
    rows, pages = "Remapped Rows/", "Retired Pages/"
    return Memory(
        gpu.bus,
        _sum(gpu.amount(rows + "Correctable Error"), gpu.amount(rows + "Uncorrectable Error")),
        _flag(gpu.value(rows + "Pending")),
        _flag(gpu.value(rows + "Remapping Failure Occurred")),
        gpu.amount(pages + "Single Bit ECC", pages + "Single Bit ECC Errors"),
        gpu.amount(pages + "Double Bit ECC", pages + "Double Bit ECC Errors"),
        _flag(gpu.value(pages + "Pending Page Blacklist", pages + "Pending Page Retirement", pages + "Pending")),
        _uncorrected(gpu),
    )


def _faults(gpu: Gpu) -> list[Finding]:
    hits = {path: words.fault(value) for path, value in gpu.values.items() if "Process" not in path}
    repairs = ("Channel Repair Pending", "TPC Repair Pending")
    bad = {path: kind for path, kind in hits.items() if kind and kind != words.FORBIDDEN}
    found = common.broken(gpu.bus, bad.values(), ", ".join(bad)[:200])
    waiting = [path for path in gpu.values if path.endswith(repairs) and _flag(gpu.values[path])]
    if waiting:
        message = f"GPU {gpu.bus}: {', '.join(waiting)}: the repair takes effect at the next reset"
        found.append(say(RECOVERY, gpu.bus, DEGRADED, message))
    if any(_flag(value) for path, value in gpu.values.items() if path.endswith("Unrepairable Memory")):
        message = f"GPU {gpu.bus}: Unrepairable Memory is Yes; replace the GPU"
        found.append(say(MEMORY_RULES[0], gpu.bus, FAIL, message, "page-retirement"))
    return found


def _recovery(gpu: Gpu) -> list[Finding]:
    status = "GPU Reset Status/"
    action = gpu.value("GPU Recovery Action", status + "GPU Recovery Action") or ""
    required, recommended = gpu.value(status + "Reset Required"), gpu.value(status + "Drain and Reset Recommended")
    return judge_recovery(gpu.bus, action, _flag(required), _flag(recommended))


def _fabric(gpu: Gpu) -> list[Finding]:
    state, status = gpu.value("Fabric/State") or "", gpu.value("Fabric/Status") or ""
    found = judge_fabric(gpu.bus, state, status)
    if found or not in_fabric(state):
        return found
    health = {path: value for path, value in gpu.values.items() if path.startswith("Fabric/Health")}
    ill = [f"{path} is {value[:40]}" for path, value in health.items() if value.lower() not in SOUND]
    if ill:
        return [say(FABRIC, gpu.bus, DEGRADED, f"GPU {gpu.bus}: {'; '.join(ill)}; {FABRIC.remedy}")]
    return []


def _slow(gpu: Gpu) -> list[str]:
    """Return the reasons for which the hardware holds its clocks down right now."""
    return [
        name
        for name in _SLOWDOWNS
        for value in [
            gpu.value(*(f"{reasons}/{place}{name}" for reasons in _REASONS for place in ("", "HW Slowdown/")))
        ]
        if value == "Active"
    ]


def _mode(gpu: Gpu) -> list[Finding]:
    found = []
    for mode in ("ECC Mode", "MIG Mode"):
        now, then = gpu.value(f"{mode}/Current") or "", gpu.value(f"{mode}/Pending") or ""
        if now != then and {now.lower(), then.lower()} <= _MODES:
            message = f"GPU {gpu.bus}: {mode} is {now}, {then} is pending; {MODE.remedy}"
            found.append(say(MODE, gpu.bus, DEGRADED, message))
    return found


def _width(gpu: Gpu) -> list[Finding]:
    link = "PCI/GPU Link Info/Link Width/"
    now, most = (integer((gpu.value(link + key) or "").rstrip("x")) for key in ("Current", "Max"))
    if now is None or most is None or not 0 < now < most:
        return []
    message = f"GPU {gpu.bus}: PCIe link is x{now}, it can have x{most}; {common.WIDTH.remedy}"
    return [say(common.WIDTH, gpu.bus, DEGRADED, message, current=now, maximum=most)]


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; ``expected_gpus``, ``expected_bus_ids`` and ``max_retired_pages`` are demands."""
    gpus = record.gpus
    found = common.said_by_notices(record.notices, NAME)
    faults = common.lost_first(finding for gpu in gpus for finding in _faults(gpu))
    listed = record.attached if record.attached is not None else (len(gpus) if gpus and not record.cut else None)
    whole = not record.cut or (record.attached is not None and "expected_bus_ids" not in context)
    counts = common.counted(listed, [gpu.bus for gpu in gpus], record.notices, context, whole=whole)
    memory = judge_memory([_memory(gpu) for gpu in gpus], context)
    slow = {gpu.bus: _slow(gpu) for gpu in gpus if _slow(gpu)}
    found += faults + counts + memory.findings
    for gpu in gpus:
        found += _recovery(gpu) + _fabric(gpu) + _width(gpu) + _mode(gpu)
        if gpu.bus in slow:
            message = f"GPU {gpu.bus}: {', '.join(slow[gpu.bus])} is active; {SLOW.remedy}"
            found.append(say(SLOW, gpu.bus, DEGRADED, message))
    if record.cut and gpus:
        # Of a GPU whose end is cut, the reason for a recommended reset may be what is missing.
        consequence = (gpus[-1].bus, DEGRADED, "gpu-requires-reset")
        found = [finding for finding in found if (finding.subject, finding.status, finding.cause) != consequence]
    broken, buses = {common.HANDLE.name, RECOVERY.name, FABRIC.name}, {gpu.bus for gpu in gpus}
    failing = [finding for finding in found if finding.status == FAIL and finding.check in broken]
    bad = [finding.subject for finding in failing if finding.subject in buses]
    facts: dict[str, Any] = {
        "gpus": listed,
        "driver_version": record.version,
        "cuda_version": record.cuda,
        "bad_gpus": list(dict.fromkeys(bad + common.lost_named(record.notices))),
        "recovery_action": _by_bus(gpus, "GPU Recovery Action"),
        "fabric_state": _by_bus(gpus, "Fabric/State"),
        "slowdowns": slow,
        "nvml_library": record.library,
        **memory.facts,
    }
    if record.library or any(item.kind == words.MISMATCH for item in record.notices):
        facts["hardware_fault"] = False
    return close(NAME, facts, found, record.troubles, "no GPU says that anything is wrong")


def _by_bus(gpus: tuple[Gpu, ...], path: str) -> dict[str, str]:
    return {gpu.bus: gpu.values[path] for gpu in gpus if path in gpu.values}
