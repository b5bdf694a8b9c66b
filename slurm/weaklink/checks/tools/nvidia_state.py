"""What a GPU says of itself, whichever output told it: which recovery it needs, its part in the fabric. Pure."""

from typing import Optional

from weaklink.checks.tools.base import DRAIN, Rule, say
from weaklink.model.finding import DEGRADED, FAIL, Finding
from weaklink.observe.tools import nvidia_words as words

FABRIC = Rule(
    "gpu.fabric",
    ("nvlink-down",),
    FAIL,
    DRAIN,
    "Fabric: State is not Completed, Status not Success, or Health names a fault; N/A means that there is no fabric.",
    "See whether nvidia-fabricmanager runs and is of the driver's version; reset the GPUs after it has started.",
)
RECOVERY = Rule(
    "gpu.recovery_action",
    ("gpu-requires-reset", "nvlink-down"),
    FAIL,
    DRAIN,
    "GPU Recovery Action: Reset and Reboot are fail, Drain and Reset is degraded, None is ok.",
    "Drain the node and do what the field names.",
)
STATE_RULES = (FABRIC, RECOVERY)
_NO_FABRIC = frozenset({"", "n/a", "not supported"})
SOUND = frozenset({"", "n/a", "false", "no", "full", "healthy", "none", "not supported", "0"})


def judge_recovery(subject: str, action: str, required: Optional[bool], recommended: Optional[bool]) -> list[Finding]:
    """Return what the recovery action of a GPU means; older drivers say instead whether a reset is required."""
    word = _plain(action).replace("_", " ")
    if word not in SOUND and words.fault(action) is None:
        message = f"GPU {subject}: GPU Recovery Action is {action[:60]!r}; {RECOVERY.remedy}"
        cause = "nvlink-down" if "p2p" in word else ""
        return [say(RECOVERY, subject, DEGRADED if "drain" in word else FAIL, message, cause)]
    if required:
        return [say(RECOVERY, subject, FAIL, f"GPU {subject}: Reset Required is Yes; {RECOVERY.remedy}")]
    if recommended:
        message = f"GPU {subject}: Drain and Reset Recommended is Yes; {RECOVERY.remedy}"
        return [say(RECOVERY, subject, DEGRADED, message)]
    return []


def in_fabric(state: str) -> bool:
    """Tell whether a state of the fabric is one: boards without NVSwitch have none."""
    return _plain(state) not in _NO_FABRIC and words.fault(state) is None


def judge_fabric(subject: str, state: str, status: str) -> list[Finding]:
    """Return what the state and status of a GPU's registration with the NVLink fabric mean."""
    if not in_fabric(state) or (_plain(state) == "completed" and _plain(status) in {"success", "n/a", ""}):
        return []
    message = f"GPU {subject}: Fabric state {state[:40]!r}, status {status[:40]!r}, wanted Completed, Success"
    return [say(FABRIC, subject, FAIL, f"{message}; {FABRIC.remedy}", state=state, fabric_status=status)]


def _plain(value: str) -> str:
    return value.strip().strip("[]").strip().lower()
