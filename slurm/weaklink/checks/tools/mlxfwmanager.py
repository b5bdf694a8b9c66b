"""Judge the firmware of all cards that mlxfwmanager reports. Pure."""

from typing import Any

from weaklink.checks.tools.base import NOTE, Context, Judged, Rule, close
from weaklink.checks.tools.mlx_common import did_not_run, firmware
from weaklink.model.finding import FAIL, Finding
from weaklink.observe.tools.mlxfwmanager import Device, Record

FIRMWARE = Rule(
    "mlxfwmanager.firmware",
    ("fw-reset-pending", "fw-version-wrong"),
    FAIL,
    NOTE,
    "A burned version that the card does not run yet is degraded; one that is neither burned nor running fails where"
    " required_fw wants another. That a newer image is available is no fault.",
    "Reset the card with mlxfwreset or reboot; burn the wanted image first where it is missing.",
)
RULES = (FIRMWARE,)


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings: for one card plain values, for several ones by PCI name."""
    said: list[Finding] = []
    for device in record.devices:
        if device.fw_version is None and device.running is None and "fail" in (device.status or "").lower():
            said.append(
                did_not_run("mlxfwmanager", [f"{device.name}: {device.status}", *record.complaints], device.name)
            )
            continue
        said += firmware(
            FIRMWARE,
            device.name,
            burned=device.fw_version,
            running=device.running,
            psid=device.psid,
            context=context,
        )
    if record.complaints and not record.devices:
        said.append(did_not_run("mlxfwmanager", record.complaints))
    return close("mlxfwmanager", _facts(record), said, record.troubles)


def _pending(device: Device) -> Any:
    if device.fw_version is None or device.running is None:
        return None
    return device.fw_version != device.running


def _facts(record: Record) -> dict[str, Any]:
    facts: dict[str, Any] = {"devices": len(record.devices), "errors": list(record.complaints)}
    if len(record.devices) == 1:
        [device] = record.devices
        facts.update(
            fw_version=device.fw_version,
            fw_running=device.running,
            pending=_pending(device),
            psid=device.psid,
            device=device.name,
            available=device.available,
            status=device.status,
        )
    elif not record.devices:
        facts.update(fw_version=None, fw_running=None, pending=None)
    else:
        facts.update(
            fw_version={device.name: device.fw_version for device in record.devices},
            fw_running={device.name: device.running for device in record.devices},
            pending=[device.name for device in record.devices if _pending(device)],
            psid={device.name: device.psid for device in record.devices},
            status={device.name: device.status for device in record.devices},
        )
    return facts
