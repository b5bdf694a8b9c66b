"""Write the fields of ``ethtool --json -m`` as the lines of its text form, so that one reader serves both. Pure.

A measured power is milliwatts, one number or one by lane; limits are objects (``…_thresholds``, or in the first
versions ``…_threshold`` keys beside the value). Keys: sff-common.c, cmis.c of ethtool 6.13 and later.
"""

import math
from collections.abc import Iterator
from typing import Any

_NAMES = {
    "laser_output_power": "Laser output power",
    "laser_rx_power": "Laser rx power",
    "laser_bias_current": "Laser bias current",
    "module_temperature": "Module temperature",
    "module_voltage": "Module voltage",
}
_RECEIVED = (
    "rx_power",
    "receiver_signal_average_optical_power",
    "rcvr_signal_avg_optical_power",
    "receiver_signal_oma",
)
_SENT = ("tx_power", "laser_output_power", "transmit_avg_optical_power")
_SIGNALS = {
    "rx_loss_of_signal": "Rx loss of signal",
    "tx_loss_of_signal": "Tx loss of signal",
    "tx_fault": "Tx fault",
    "rx_loss_of_lock": "Rx loss of lock",
    "tx_loss_of_lock": "Tx loss of lock",
}
_LEVELS = ("high_alarm", "low_alarm", "high_warning", "low_warning")


def text_lines(module: dict[str, Any]) -> Iterator[str]:
    """Yield the lines ``Key : value`` that stand for a module's JSON object."""
    for raw, value in module.items():
        key = str(raw)
        base = _base(key)
        if key in _SIGNALS:
            yield f"{_SIGNALS[key]} : {_states(value)}"
        elif isinstance(value, dict) and base in _NAMES:
            yield from _limits(base, value)
            yield from _measured(base, value)
        elif key in _RECEIVED or key in _SENT or key in {"module_temperature", "module_voltage"}:
            yield from _measured(key, value)
        elif key == "identifier" and isinstance(value, int):
            yield f"Identifier : 0x{value:02x} ({module.get('identifier_description', '')})"
        else:
            yield from _plain(key, value)


def _plain(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, bool):
        yield f"{_title(key)} : {_switch(key, value=value)}"
    elif isinstance(value, dict):
        yield from text_lines(value)
    elif isinstance(value, list):
        yield from (f"{_title(key)} : {item}" for item in value if isinstance(item, (str, int, float)))
    elif value is not None:
        yield f"{_title(key)} : {value}"


def _base(key: str) -> str:
    return key.removesuffix("_thresholds")


def _title(key: str) -> str:
    known = {"vendor_pn": "Vendor PN", "vendor_sn": "Vendor SN", "vendor_name": "Vendor name"}
    aliases = {
        "optical_diagnostics_support": "Optical diagnostics support",
        "alarm_warning_flags_implemented": "Alarm/warning flags implemented",
        "alarm/warning_flags_implemented": "Alarm/warning flags implemented",
    }
    for name, text in _NAMES.items():
        if key.startswith(f"{name}_"):
            return text + key[len(name) :].replace("_", " ")
    return known.get(key) or aliases.get(key) or key.replace("_", " ").capitalize()


def _switch(key: str, *, value: bool) -> str:
    if ("alarm" in key or "warning" in key) and "implemented" not in key:
        return "On" if value else "Off"
    return "Yes" if value else "No"


def _states(value: Any) -> str:
    if isinstance(value, list):
        return "[ " + ", ".join("Yes" if item in (True, "Yes", "yes") else "No" for item in value) + " ]"
    return "Yes" if value in (True, "Yes", "yes") else "None"


def _power(value: float) -> str:
    dbm = "-inf" if value <= 0 else f"{10 * math.log10(value):.2f}"
    return f"{value:.4f} mW / {dbm} dBm"


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value < 1e5  # noqa: PLR2004 - far above any module's value


def _measured(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = value.get("values", value.get("value"))
    if key in {"module_temperature", "module_voltage"}:
        if _number(value):
            unit = "degrees C" if key == "module_temperature" else "V"
            yield f"{_NAMES[key]} : {value:.4f} {unit}"
        return
    name = "Receiver signal average optical power" if key in _RECEIVED else "Laser output power"
    values = value if isinstance(value, list) else [value]
    for place, item in enumerate(values, 1):
        lane = f" (Channel {place})" if isinstance(value, list) else ""
        if _number(item) and item >= 0:
            yield f"{name}{lane} : {_power(item)}"


def _limits(base: str, levels: dict[str, Any]) -> Iterator[str]:
    for level in _LEVELS:
        for key in (level, f"{level}_threshold"):
            found: Any = levels.get(key)
            if not _number(found):
                continue
            value = float(found)
            title = f"{_NAMES[base]} {level.replace('_', ' ')} threshold"
            if base in {"laser_output_power", "laser_rx_power"}:
                yield f"{title} : {_power(value)}"
            else:
                unit = {"laser_bias_current": "mA", "module_voltage": "V"}.get(base, "degrees C")
                yield f"{title} : {value:.3f} {unit}"
