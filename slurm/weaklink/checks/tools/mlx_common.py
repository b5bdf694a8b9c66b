"""What the judges of network tools share: tools that did not run, wanted firmware, wanted PCIe link. Pure."""

import re
from collections.abc import Sequence
from typing import Any, Optional

from weaklink.checks.tools.base import DID_NOT_RUN, NOTE, Context, Rule, demand, say
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding
from weaklink.observe.tools.mlx_common import lacks_right

_PCIE = re.compile(r"(\d{1,3}(?:\.\d)?) GT/s x(\d{1,2})\Z")
_VERSION = re.compile(r"\d{1,5}(?:\.\d{1,5}){1,4}\Z")


def did_not_run(tool: str, complaints: Sequence[str], subject: str = "") -> Finding:
    """Return the unknown finding of a tool that printed errors and nothing else, of all or of one ``subject``."""
    root = any(lacks_right(text) for text in complaints)
    cause = "not-root" if root else DID_NOT_RUN
    rule = Rule(
        f"{tool}.ran", (cause,), UNKNOWN, NOTE, "A tool that printed an error alone says nothing.", "Run it again."
    )
    verb = "could not read" if subject else "did not run"
    return say(rule, subject or tool, UNKNOWN, f"{tool} {verb}: {complaints[0]}"[:300])


def pcie_wanted(context: Context) -> tuple[Optional[float], Optional[int]]:
    """Return GT/s and lanes that ``expected_pcie`` wants, where all its addresses want the same."""
    wanted = set(demand(context, "expected_pcie", dict, {}).values())
    if len(wanted) != 1:
        return None, None
    match = _PCIE.match(str(next(iter(wanted))).strip())
    if match is None:
        raise ValueError(f"context: key 'expected_pcie': found {next(iter(wanted))!r:.60}, wanted '32.0 GT/s x16'")
    return float(match.group(1)), int(match.group(2))


def wanted_firmware(context: Context, psid: Optional[str]) -> Optional[str]:
    """Return the firmware version that ``required_fw`` wants of a card of this PSID; None where it wants nothing."""
    wanted = demand(context, "required_fw", (str, dict))
    if isinstance(wanted, dict):
        wanted = wanted.get(psid or "")
    if wanted is not None and not isinstance(wanted, str):
        raise ValueError(f"context: key 'required_fw': found {wanted!r:.60}, wanted a version")
    return wanted


def same_version(one: Optional[str], other: Optional[str]) -> bool:
    """Tell whether two versions are the same number (``02.42.5032`` is ``2.42.5032``)."""
    if one is None or other is None:
        return False
    if _VERSION.match(one) and _VERSION.match(other):
        return [int(part) for part in one.split(".")] == [int(part) for part in other.split(".")]
    return one == other


def firmware(
    rule: Rule, subject: str, *, burned: Optional[str], running: Optional[str], psid: Optional[str], context: Context
) -> list[Finding]:
    """Return what is wrong with a card's firmware: it waits for a reset, is another than wanted, cannot be read.

    ``burned`` is what the flash holds, ``running`` what the card runs; the rule's causes are fw-reset-pending and
    fw-version-wrong, in this order.
    """
    wanted = wanted_firmware(context, psid)
    demanded = demand(context, "required_fw", (str, dict))
    if isinstance(demanded, dict) and psid is not None and wanted is None:
        return []  # boards that required_fw does not name do not count
    if burned is None and running is None:
        return [say(rule, subject, UNKNOWN, f"{subject}: no firmware version can be read", cause="output-truncated")]
    if isinstance(demanded, dict) and psid is None:
        return [say(rule, subject, UNKNOWN, f"{subject}: no PSID can be read", cause="output-truncated")]
    burned, running = burned or running, running or burned
    evidence: dict[str, Any] = {"burned": burned, "running": running, "wanted": wanted}
    if wanted is not None and not same_version(burned, wanted) and not same_version(running, wanted):
        text = f"{subject}: firmware {running} runs, {burned} is burned, wanted {wanted}; burn it and reset the card"
        return [say(rule, subject, FAIL, text, cause=rule.causes[1], **evidence)]
    if not same_version(burned, running):
        text = f"{subject}: firmware {burned} is burned, {running} still runs; reset the card (mlxfwreset) or reboot"
        return [say(rule, subject, DEGRADED, text, **evidence)]
    return []
