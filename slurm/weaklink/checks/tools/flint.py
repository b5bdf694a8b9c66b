"""Judge the firmware that flint reports. Pure."""

from typing import Any

from weaklink.checks.tools.base import NOTE, Context, Judged, Rule, close
from weaklink.checks.tools.mlx_common import did_not_run, firmware
from weaklink.model.finding import FAIL, Finding
from weaklink.observe.tools.flint import Device, Record

FIRMWARE = Rule(
    "flint.firmware",
    ("fw-reset-pending", "fw-version-wrong"),
    FAIL,
    NOTE,
    "A burned version that the card does not run yet is degraded; one that is neither burned nor running fails where"
    " required_fw (a version, or PSID to version) wants another.",
    "Reset the card with mlxfwreset or reboot; burn the wanted image first where it is missing.",
)
RULES = (FIRMWARE,)


def _firmware(subject: str, device: Device, context: Context) -> list[Finding]:
    return firmware(
        FIRMWARE,
        subject,
        burned=device.fw_version,
        running=device.running,
        psid=device.psid,
        context=context,
    )


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings of a read output; ``required_fw`` may name a version or one by PSID."""
    said: list[Finding] = []
    rows: list[dict[str, Any]] = []
    for number, device in enumerate(record.devices, 1):
        subject = device.guid or device.mac or (f"card {number}" if len(record.devices) > 1 else "card")
        said += _firmware(subject, device, context)
        pending = None
        if device.fw_version is not None and device.running is not None:
            pending = device.fw_version != device.running
        rows.append(
            {
                "fw_version": device.fw_version,
                "fw_running": device.running,
                "psid": device.psid,
                "pending": pending,
                "image_type": device.image_type,
                "product_version": device.product,
                "release_date": device.released,
                "security": device.security,
                "guid": device.guid,
                "mac": device.mac,
            }
        )
    if record.complaints and not record.devices:
        said.append(did_not_run("flint", record.complaints))
    rows_by_need = sorted(rows, key=lambda row: row["pending"] is not True)
    nothing = dict.fromkeys(("fw_version", "fw_running", "psid", "pending", "image_type"))
    facts: dict[str, Any] = {"devices": len(rows), "errors": list(record.complaints), **(rows_by_need or [nothing])[0]}
    if len(rows) > 1:
        facts["by_device"] = rows
    return close("flint", facts, said, record.troubles)
