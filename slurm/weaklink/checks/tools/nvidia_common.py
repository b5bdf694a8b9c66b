"""What judges of all nvidia-smi outputs share: GPUs that are missing, lost or want a reset, failed tools. Pure."""

from collections.abc import Iterable, Sequence
from typing import Optional

from weaklink.checks.tools.base import DRAIN, NOTE, Context, Rule, demand, say
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding
from weaklink.observe.tools import nvidia_words as words
from weaklink.observe.tools.nvidia_words import Notice, bus_key

HANDLE = Rule(
    "gpu.reachable",
    ("gpu-lost", "gpu-not-readable", "gpu-requires-reset"),
    FAIL,
    DRAIN,
    "nvidia-smi prints an NVML error (GPU is lost, GPU requires reset, Unknown Error) where a value belongs.",
    "Drain the node; look for Xids in the kernel log; reset the GPU or power-cycle the node, replace what stays lost.",
)
COUNT = Rule(
    "gpu.count",
    ("gpu-missing",),
    FAIL,
    DRAIN,
    "Fewer GPUs are listed than expected_gpus, or one of expected_bus_ids is not listed.",
    "Drain the node; see whether lspci still lists the GPU; reseat or replace it.",
)
DRIVER = Rule(
    "gpu.driver",
    ("driver-library-mismatch", "gpu-not-readable"),
    FAIL,
    DRAIN,
    "NVML says that its library and the loaded kernel module differ in version, or that no driver answers.",
    "Reload the NVIDIA kernel modules or reboot the node so that module and library agree; no hardware is at fault.",
)
RAN = Rule(
    "gpu.tool",
    ("test-did-not-run", "not-root"),
    UNKNOWN,
    NOTE,
    "The tool printed an error of its own, or nothing that it usually prints, or was not allowed to read.",
    "Run the command by hand on the node, as root, and read its error.",
)
ECC = Rule(
    "gpu.ecc_uncorrected",
    ("gpu-requires-reset",),
    DEGRADED,
    DRAIN,
    "Volatile uncorrected ECC errors are above 0: they count since the driver was loaded; aggregate ones are history.",
    "Drain the node, reset the GPU, run dcgmi diag -r 3.",
)
WIDTH = Rule(
    "gpu.pcie_width",
    ("pcie-link-limited",),
    DEGRADED,
    NOTE,
    "The PCIe link is narrower than the most it can have, or of a lower generation while the GPU is busy; a lower "
    "generation alone is normal: idle GPUs save power.",
    "Reseat the GPU or its riser, look at the PCIe error counters.",
)
RULES = (HANDLE, COUNT, DRIVER, RAN, ECC, WIDTH)
_CAUSES = {words.LOST: "gpu-lost", words.RESET: "gpu-requires-reset", words.UNREADABLE: "gpu-not-readable"}


def fault_cause(kind: str) -> str:
    """Return the cause of a fault word of ``weaklink.observe.tools.nvidia_words``."""
    return _CAUSES.get(kind, "gpu-not-readable")


def worst_fault(kinds: Iterable[str]) -> Optional[str]:
    """Return the fault that says most: lost before reset before unreadable; None where there is none."""
    found = set(kinds)
    return next((kind for kind in (words.LOST, words.RESET, words.UNREADABLE) if kind in found), None)


def broken(subject: str, kinds: Iterable[str], where: str) -> list[Finding]:
    """Return the finding for a GPU whose values are faults, none where they are not."""
    kind = worst_fault(kinds)
    if kind is None:
        return []
    said = {words.LOST: "it is lost", words.RESET: "it requires a reset", words.UNREADABLE: "no readable value"}[kind]
    message = f"GPU {subject}: {said} ({where}); {HANDLE.remedy}"
    return [say(HANDLE, subject, FAIL, message, fault_cause(kind))]


def lost_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with those of lost GPUs before those of GPUs that want a reset, the rest after in their order."""
    ranks = {"gpu-lost": 0, "gpu-requires-reset": 1}
    return sorted(findings, key=lambda finding: (finding.status != FAIL, ranks.get(finding.cause, 2)))


def said_by_notices(notices: Sequence[Notice], tool: str) -> list[Finding]:
    """Return what messages in place of an output mean; "no devices" is left to ``counted``."""
    found = []
    for item in notices:
        if item.kind in _CAUSES:
            subject = item.bus or (str(item.gpu) if item.gpu is not None else "gpu")
            found.append(say(HANDLE, subject, FAIL, f"line {item.line}: {item.text}", fault_cause(item.kind)))
    for item in notices:
        if item.kind == words.MISMATCH:
            found.append(say(DRIVER, "driver", FAIL, f"line {item.line}: {item.text}; {DRIVER.remedy}"))
        elif item.kind == words.NO_DRIVER:
            message = f"line {item.line}: {item.text}; load the NVIDIA driver or install it anew"
            found.append(say(DRIVER, "driver", FAIL, message, "gpu-not-readable"))
        elif item.kind in {words.NOT_RUN, words.NOT_ALLOWED}:
            cause = "not-root" if item.kind == words.NOT_ALLOWED else ""
            found.append(say(RAN, tool, UNKNOWN, f"line {item.line}: {item.text}", cause))
    return found


def counted(
    listed: Optional[int], buses: Iterable[str], notices: Sequence[Notice], context: Context, *, whole: bool
) -> list[Finding]:
    """Return what the number and the addresses of the listed GPUs say against what ``context`` expects.

    ``listed`` None: the number cannot be known. ``whole`` false: the output is cut, so what is not seen may exist.
    """
    expected = demand(context, "expected_gpus", int)
    addresses = demand(context, "expected_bus_ids", list, [])
    none = any(item.kind == words.NO_DEVICES for item in notices)
    named = [item for item in notices if item.kind in _CAUSES]
    if listed is None and not none:
        return []
    if not whole:
        return []
    number = listed or 0
    seen = {bus_key(bus) for bus in buses} | {bus_key(item.bus) for item in named if item.bus}
    missing = [str(address) for address in addresses if bus_key(str(address)) not in seen]
    if missing and seen - {None}:
        found = f"not listed: {', '.join(missing)} ({number} of {len(addresses)} GPUs are); {COUNT.remedy}"
        return [say(COUNT, address, FAIL, found) for address in missing]
    wanted = expected if expected is not None else len(addresses) or None
    if wanted is not None and number + len(named) < wanted:
        return [say(COUNT, "gpus", FAIL, f"{number} GPUs are listed, wanted {wanted}; {COUNT.remedy}", found=number)]
    if none and not named and wanted is None:
        return [say(RAN, "gpus", UNKNOWN, "no GPU is listed, and no number is expected (expected_gpus)")]
    return []


def lost_named(notices: Sequence[Notice]) -> list[str]:
    """Return the addresses (or indexes) of the GPUs that messages call broken."""
    named = [item for item in notices if item.kind in _CAUSES]
    return [item.bus or str(item.gpu) for item in named if item.bus or item.gpu is not None]


def lost_indexes(notices: Sequence[Notice]) -> list[int]:
    """Return the indexes of the GPUs that messages call broken."""
    return [item.gpu for item in notices if item.kind in _CAUSES and item.gpu is not None]
