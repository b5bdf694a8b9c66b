"""Judge ibswinfo: a switch's power supplies and fans. Pure."""

import re

from weaklink.checks.tools import ib_fabric
from weaklink.checks.tools.base import NOTE, Context, Judged, Rule, close, demand, say
from weaklink.model.finding import DEGRADED, UNKNOWN, Finding
from weaklink.observe.tools.ibswinfo import NAME, Switch
from weaklink.observe.tools.text import number

HARDWARE = Rule(
    f"{NAME}.hardware",
    ("switch-hardware", "nothing-tested"),
    DEGRADED,
    NOTE,
    "Each status that the switch reports of power supplies and fans must be OK; a fan that is listed must turn.",
    "Look at the switch; a power supply without DC has lost its feed.",
)
FIRMWARE = Rule(
    f"{NAME}.firmware",
    ("fw-reset-pending",),
    DEGRADED,
    NOTE,
    "The firmware demanded must be the one that the switch reports.",
    "Update in band with flint, then reset the switch.",
)
RULES = (*ib_fabric.rules(NAME), HARDWARE, FIRMWARE)

_STATUS = re.compile(r"(?:psu\d+\.(?:status|dc|dc power|fan|fan status)|fans?|fan status)\Z")
_FAN = re.compile(r"(fan#\d+)(?:\.speed)? \(rpm\)\Z")


def judge(record: Switch, context: Context) -> Judged:
    """Return facts part_number, psid, fw_version, temperature_c, bad, and what is wrong."""
    values = record.values
    findings = ib_fabric.ran(NAME, record.complaints, found=bool(values))
    findings += [finding for key, value in values.items() for finding in _hardware(key, value)]
    wanted = demand(context, "required_fw", (str, dict))
    version, psid = values.get("firmware version"), values.get("psid")
    wanted = wanted.get(psid or "") if isinstance(wanted, dict) else wanted
    if wanted and version and wanted != version:
        findings.append(say(FIRMWARE, NAME, DEGRADED, f"firmware {version}, wanted {wanted}"))
    elif values and not wanted and not any(_STATUS.match(key) or _FAN.match(key) for key in values):
        findings.append(say(HARDWARE, NAME, UNKNOWN, "no status and no fan is printed", "nothing-tested"))
    facts = {
        "part_number": values.get("part number"),
        "psid": psid,
        "fw_version": version,
        "temperature_c": number(values.get("temperature (c)", values.get("cur.temp (c)"))),
        "fans_rpm": {key: number(value) for key, value in values.items() if _FAN.match(key)},
        "bad": [finding.subject for finding in findings if finding.status == DEGRADED],
    }
    return close(NAME, facts, findings, record.troubles, f"{NAME}: power supplies and fans are OK")


def _hardware(key: str, value: str) -> list[Finding]:
    if _STATUS.match(key) and value.upper() != "OK":
        if value.upper() in {"", "N/A", "-"}:
            return [say(HARDWARE, key, UNKNOWN, f"{key}: not readable", "nothing-tested")]
        return [say(HARDWARE, key, DEGRADED, f"{key}: {value}, wanted OK")]
    if _FAN.match(key) and number(value) == 0:
        return [say(HARDWARE, key, DEGRADED, f"{key}: it stands still")]
    return []
