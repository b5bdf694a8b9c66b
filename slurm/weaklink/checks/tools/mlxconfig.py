"""Judge a card's non-volatile settings as mlxconfig reports them. Pure."""

import re
from collections.abc import Iterator
from typing import Any

from weaklink.checks.tools.base import DID_NOT_RUN, NOTE, Context, Judged, Rule, close, demand, say
from weaklink.checks.tools.mlx_common import did_not_run
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding, bad_first
from weaklink.observe.tools.mlxconfig import Device, Record, Setting

_NAMED = re.compile(r"(.{1,120})\((\w{1,20})\)\Z")

SETTINGS = Rule(
    "mlxconfig.settings",
    ("config-reset-pending", "setting-wrong"),
    FAIL,
    NOTE,
    "A required value that is set for the next boot only, or that the next boot takes away, is degraded; one that is"
    " neither in use nor set fails. A value that differs from its default is no fault.",
    "Reset the card (mlxfwreset) or reboot; set the value with mlxconfig first where it is not set.",
)
RULES = (SETTINGS,)


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; ``required`` maps names of settings to values."""
    required = demand(context, "required", dict)
    said: list[Finding] = []
    for device in record.devices:
        if not device.settings and record.complaints:
            said.append(did_not_run("mlxconfig", record.complaints, device.name))
        elif required is None:
            said += _unasked(device)
        else:
            said += _asked(device, required, record)
    if record.complaints and not record.devices:
        said.append(did_not_run("mlxconfig", record.complaints))
    said.sort(key=lambda finding: bad_first(finding.status))
    return close("mlxconfig", _facts(record), said, record.troubles)


def same_value(found: str, wanted: Any) -> bool:
    """Tell whether ``ETH(2)`` is what ``ETH(2)``, ``ETH`` or ``2`` wants."""
    text = ("True" if wanted else "False") if isinstance(wanted, bool) else str(wanted).strip()
    if found.lower() == text.lower():
        return True
    one, other = _NAMED.match(found), _NAMED.match(text)
    if one and not other:
        return text.lower() in {one.group(1).lower(), one.group(2).lower()}
    if other and not one:
        return found.lower() in {other.group(1).lower(), other.group(2).lower()}
    return False


def _is_pending(setting: Setting) -> bool:
    return setting.current is not None and setting.next is not None and setting.current != setting.next


def _unasked(device: Device) -> Iterator[Finding]:
    for name, setting in device.settings.items():
        if _is_pending(setting):
            text = f"{device.name}: {name} is {setting.current} and becomes {setting.next} at the next reset"
            yield say(SETTINGS, f"{device.name} {name}", DEGRADED, text, current=setting.current, next=setting.next)


def _absent(name: str, record: Record) -> tuple[str, str]:
    """Return status and cause of a setting that the output lacks: refused by the tool, cut, or not there."""
    if any(name in text for text in record.complaints):
        return UNKNOWN, DID_NOT_RUN
    return (UNKNOWN, "output-truncated") if record.troubles else (FAIL, "setting-wrong")


def _asked(device: Device, required: dict[str, Any], record: Record) -> Iterator[Finding]:
    for name, wanted in required.items():
        subject = f"{device.name} {name}"
        setting = device.settings.get(name)
        if setting is None:
            status, cause = _absent(name, record)
            text = f"{device.name}: {name} is not in the output, wanted {wanted}"
            yield say(SETTINGS, subject, status, text, cause=cause)
            continue
        now = None if setting.current is None else same_value(setting.current, wanted)
        later = None if setting.next is None else same_value(setting.next, wanted)
        evidence = {"current": setting.current, "next": setting.next, "wanted": wanted}
        if now is not True and later is not True:
            text = f"{device.name}: {name} is {setting.current or setting.next}, wanted {wanted}; set it"
            yield say(SETTINGS, subject, FAIL, text, cause="setting-wrong", **evidence)
        elif now is False:
            text = f"{device.name}: {name} is {setting.current} until a reset, then {setting.next} as wanted"
            yield say(SETTINGS, subject, DEGRADED, text, **evidence)
        elif later is False:
            text = f"{device.name}: {name} is {setting.current} as wanted, but becomes {setting.next} at the next reset"
            yield say(SETTINGS, subject, DEGRADED, text, **evidence)


def _facts(record: Record) -> dict[str, Any]:
    rows = [_row(device) for device in record.devices]
    facts: dict[str, Any] = {"devices": len(rows), "errors": list(record.complaints)}
    if not rows:
        facts.update(current={}, next_boot={}, pending=[])
    if len(rows) == 1:
        facts.update(rows[0])
    elif rows:
        names = [device.name for device in record.devices]
        facts["current"] = {name: row["current"] for name, row in zip(names, rows)}
        facts["next_boot"] = {name: row["next_boot"] for name, row in zip(names, rows)}
        facts["pending"] = [f"{name} {key}" for name, row in zip(names, rows) for key in row["pending"]]
    return facts


def _row(device: Device) -> dict[str, Any]:
    settings = device.settings
    return {
        "device": device.name,
        "current": {name: item.current for name, item in settings.items() if item.current is not None},
        "next_boot": {name: item.next for name, item in settings.items() if item.next is not None},
        "pending": [name for name, item in settings.items() if _is_pending(item)],
    }
