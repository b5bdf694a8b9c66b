"""What remapped rows, retired pages and ECC counters of GPUs mean, whichever output told them. Pure."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from weaklink.checks.tools.base import DRAIN, Context, Rule, demand, say
from weaklink.checks.tools.nvidia_common import ECC
from weaklink.model.finding import DEGRADED, FAIL, Finding

REMAP = Rule(
    "gpu.row_remap",
    ("row-remap-pending", "page-retirement"),
    FAIL,
    DRAIN,
    "Remapped rows: Pending is Yes (degraded), or a remapping failed (fail); finished remaps are normal.",
    "Drain the node and reset the GPU, the remap then takes effect; replace a GPU whose remapping failed.",
)
PAGES = Rule(
    "gpu.retired_pages",
    ("page-retirement",),
    FAIL,
    DRAIN,
    "More pages are retired than max_retired_pages (fail), or a retirement waits for a driver reload (degraded).",
    "Drain the node and reload the driver or reset the GPU; replace a GPU above the limit.",
)
MEMORY_RULES = (REMAP, PAGES)


class Memory(NamedTuple):
    """What one GPU says of its memory; None for what it does not say.

    ``remapped`` rows (correctable and uncorrectable together), ``single`` and ``double`` retired pages by cause,
    ``uncorrected`` volatile ECC errors.
    """

    subject: str
    remapped: Optional[int]
    pending: Optional[bool]
    failure: Optional[bool]
    single: Optional[int]
    double: Optional[int]
    pages_pending: Optional[bool]
    uncorrected: Optional[int]

    @property
    def retired(self) -> Optional[int]:
        """All retired pages, None where no number is known."""
        if self.single is None and self.double is None:
            return None
        return (self.single or 0) + (self.double or 0)


class Said(NamedTuple):
    """Facts and findings of all GPUs' memory."""

    facts: dict[str, Any]
    findings: list[Finding]


def judge_memory(gpus: Sequence[Memory], context: Context) -> Said:
    """Return what the GPUs' memory says; ``max_retired_pages`` is the one demand."""
    most = demand(context, "max_retired_pages", int)
    found: list[Finding] = []
    for gpu in gpus:
        found += _of(gpu, most)
    facts = {
        "pending": [gpu.subject for gpu in gpus if gpu.pending or gpu.pages_pending],
        "remap_failure": [gpu.subject for gpu in gpus if gpu.failure],
        "remapped": {gpu.subject: gpu.remapped for gpu in gpus if gpu.remapped},
        "retired_pages": {gpu.subject: gpu.retired for gpu in gpus if gpu.retired is not None},
        "single_bit": {gpu.subject: gpu.single for gpu in gpus if gpu.single is not None},
        "double_bit": {gpu.subject: gpu.double for gpu in gpus if gpu.double is not None},
        "ecc_uncorrected": {gpu.subject: gpu.uncorrected for gpu in gpus if gpu.uncorrected is not None},
    }
    return Said(facts, found)


def _of(gpu: Memory, most: Optional[int]) -> list[Finding]:
    name = gpu.subject
    found = []
    if gpu.failure:
        message = f"GPU {name}: a row remapping failed; its memory cannot be repaired any more, replace it"
        found.append(say(REMAP, name, FAIL, message, "page-retirement"))
    if most is not None and gpu.retired is not None and gpu.retired > most:
        message = f"GPU {name}: {gpu.retired} pages are retired, at most {most} are allowed; replace it"
        found.append(say(PAGES, name, FAIL, message, retired=gpu.retired, allowed=most))
    if gpu.pending:
        found.append(say(REMAP, name, DEGRADED, f"GPU {name}: a row remap is pending; {REMAP.remedy}"))
    if gpu.pages_pending:
        found.append(say(PAGES, name, DEGRADED, f"GPU {name}: a page retirement is pending; {PAGES.remedy}"))
    if gpu.uncorrected:
        message = f"GPU {name}: {gpu.uncorrected} uncorrected ECC errors since the driver was loaded; {ECC.remedy}"
        found.append(say(ECC, name, DEGRADED, message, uncorrected=gpu.uncorrected))
    return found
