"""Judge a module's light, heat and alarms as ethtool -m reports them. Pure."""

import re
from collections.abc import Iterator
from typing import Any, Optional

from weaklink.checks.tools.base import DRAIN, NOTE, Context, Judged, Rule, close, say
from weaklink.checks.tools.mlx_common import did_not_run
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding
from weaklink.observe.tools.ethtool_m import Lane, Record

_NO_LIGHT_DBM = -25.0
_LANE = re.compile(r"\((?:Channel|Chan|Lane) ?(\d{1,2})\)")

LIGHT = Rule(
    "ethtool_m.light",
    ("optics-no-light",),
    FAIL,
    DRAIN,
    "A lane that receives or sends at or below -25 dBm, 0 mW, or reports loss of signal has no light and fails; below"
    " the module's own low alarm limit is degraded. Limits and alarms: SFF-8472, SFF-8636, CMIS.",
    "Receiving: clean and check the fibre, then the far end's transmitter. Sending: is the port up? Change the module.",
)
ALARMS = Rule(
    "ethtool_m.alarms",
    ("bad-cable",),
    DEGRADED,
    DRAIN,
    "Any other alarm or warning of the module that is on is degraded.",
    "Look at the value beside its limit; cool, clean or change the module.",
)
SUPPORT = Rule(
    "ethtool_m.support",
    ("ddm-not-supported",),
    UNKNOWN,
    NOTE,
    "A module without diagnostics (passive copper) tells no light: nothing is judged, and missing values are not zero.",
    "Nothing; judge the link by its counters.",
)
RULES = (LIGHT, ALARMS, SUPPORT)


def judge(record: Record, context: Context) -> Judged:  # noqa: ARG001 - all judges take the context
    """Return facts and findings; nothing of a module depends on the context."""
    said: list[Finding] = []
    if record.complaints and record.identifier is None and not record.rx:
        said.append(did_not_run("ethtool-m", record.complaints))
    elif record.ddm is False:
        text = f"{record.part or 'the module'} has no diagnostics: its light cannot be judged"
        said.append(say(SUPPORT, "module", UNKNOWN, text))
    elif record.ddm:
        said += _light(record)
        said += _alarms(record)
    elif not record.troubles:
        text = "the output does not tell whether the module has diagnostics, and holds no power"
        said.append(say(LIGHT, "module", UNKNOWN, text, cause="output-truncated"))
    return close("ethtool-m", _facts(record), said, record.troubles)


def _dark(lane: Lane) -> bool:
    return lane.mw <= 0 or (lane.dbm is not None and lane.dbm <= _NO_LIGHT_DBM)


def _unused(record: Record) -> frozenset[int]:
    """Return lanes that neither send nor receive and raise no alarm, beside others that do: no link uses them.

    ethtool prints eight lanes of every CMIS module, a 400GBASE-DR4 has four.
    """
    sent = {lane.lane for lane in record.tx if _dark(lane)}
    dark = {lane.lane for lane in record.rx if _dark(lane)} & sent
    tells = bool(record.flags) or record.version == "CMIS"
    if not (dark and tells) or all(_dark(lane) for lane in record.rx):
        return frozenset()
    lost = {lane for lanes in record.silent.values() for lane in lanes}
    alarmed = {int(match.group(1)) for match in map(_LANE.search, record.alarms) if match}
    return frozenset(dark - lost - alarmed)


def _light(record: Record) -> Iterator[Finding]:
    unused = _unused(record)
    received = tuple(lane for lane in record.rx if lane.lane not in unused)
    sent = tuple(lane for lane in record.tx if lane.lane not in unused)
    sides = (
        ("receives", received, record.rx_low, record.silent.get("rx loss of signal", [])),
        ("sends", sent, record.tx_low, record.silent.get("tx fault", [])),
    )
    for verb, lanes, low, lost in sides:
        dark = [lane for lane in lanes if _dark(lane)]
        weak = [lane for lane in lanes if low is not None and lane.dbm is not None and lane.dbm < low]
        if dark or lost:
            which = ", ".join(_name(lane) for lane in dark) or f"lanes {lost}"
            text = f"module {verb} no light ({which}; low alarm at {_text(low)} dBm)"
            yield say(LIGHT, "module", FAIL, text, lanes=[list(lane) for lane in lanes], lost=lost)
        elif weak:
            which = ", ".join(_name(lane) for lane in weak)
            text = f"module {verb} too little light ({which}; low alarm at {_text(low)} dBm)"
            yield say(LIGHT, "module", DEGRADED, text, lanes=[list(lane) for lane in lanes])


def _name(lane: Lane) -> str:
    power = "0 mW" if lane.dbm is None else f"{lane.dbm:g} dBm"
    return f"lane {lane.lane}: {power}" if lane.lane else power


def _text(value: Optional[float]) -> str:
    return "an unknown" if value is None else f"{value:g}"


def _alarms(record: Record) -> Iterator[Finding]:
    for name in record.alarms[:20]:
        yield say(ALARMS, "module", DEGRADED, f"the module's alarm is on: {name}", alarm=name)
    heat, limit = record.temperature, record.temperature_high
    if heat is not None and limit is not None and heat > limit:
        yield say(ALARMS, "module", DEGRADED, f"module at {heat:g} degrees, alarm at {limit:g}", temperature=heat)


def _powers(lanes: tuple[Lane, ...]) -> Any:
    """Return one power for one lane, a list by lane for several, None for none."""
    if not lanes:
        return None
    values = [lane.dbm for lane in lanes]
    return values[0] if len(values) == 1 else values


def _facts(record: Record) -> dict[str, Any]:
    return {
        "ddm": record.ddm,
        "identifier": record.identifier,
        "rx_power_dbm": _powers(record.rx),
        "rx_power_mw": [lane.mw for lane in record.rx] or None,
        "rx_low_alarm_dbm": record.rx_low,
        "tx_power_dbm": _powers(record.tx),
        "tx_low_alarm_dbm": record.tx_low,
        "temperature_c": record.temperature,
        "voltage_v": record.voltage,
        "alarms_on": list(record.alarms),
        "lost": {key: lanes for key, lanes in record.silent.items() if lanes},
        "vendor": record.vendor,
        "part": record.part,
        "serial": record.serial,
        "module_state": record.module_state,
        "errors": list(record.complaints),
    }
