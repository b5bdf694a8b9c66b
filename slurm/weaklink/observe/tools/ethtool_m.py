"""Read what ``ethtool -m`` prints of a module: SFP (SFF-8472), QSFP (SFF-8636), CMIS; text or ``--json``.

Values come by lane on QSFP and CMIS, some keys have one name for the state (``… alarm : On``) and one for the limit
(``… alarm threshold``). ``-inf dBm`` is 0 mW: no light at all. Layout: sfpdiag.c, qsfp.c, cmis.c of ethtool.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools import mlx_json
from weaklink.observe.tools.ethtool_m_json import text_lines
from weaklink.observe.tools.mlx_common import field, note, nothing
from weaklink.observe.tools.text import Trouble, number

NAME = "ethtool-m"
_SIGN = re.compile(
    r"(?m)^\s{0,16}(?:Identifier\s{1,60}: 0x|Transceiver codes\s{1,60}:|Optical diagnostics support\s{1,60}:"
    r"|Laser (?:output power|rx power|bias current)|Module temperature|Vendor PN\s{1,60}:|Rcvr signal avg)"
)
_FAILED = re.compile(r"(?m)^\s{0,4}Cannot get (?:module EEPROM|Module EEPROM)")
_JSON = re.compile(r'"(?:vendor_pn|vendor_name|laser_bias_current|module_temperature|identifier_description)"')
_LANE = re.compile(r"\s{0,8}\((?:Channel|Chan|Lane|ch)\s?(\d{1,2})\)\s{0,4}\Z", re.IGNORECASE)
_POWER = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) mW(?: / (-?(?:\d{1,4}(?:\.\d{1,4})?|inf)) dBm)?\Z")
_HEAT = re.compile(r"(-?\d{1,4}(?:\.\d{1,4})?) degrees C\b.{0,40}\Z")
_RX = (
    "rcvr signal avg optical power",
    "receiver signal average optical power",
    "receiver signal oma",
    "rx power",
)
_TX = ("laser output power", "transmit avg optical power", "tx power")
_PASSIVE = re.compile(r"passive|copper|base-?cr\d?\b", re.IGNORECASE)
_OURS = frozenset(
    {
        *("identifier", "extended identifier", "connector", "transceiver codes", "transceiver type", "encoding"),
        *("vendor name", "vendor oui", "vendor pn", "vendor sn", "vendor rev", "date code", "module state"),
        *("optical diagnostics support", "module temperature", "module voltage", "revision compliance"),
    }
)
_KEEP = 2000


class Lane(NamedTuple):
    """A power: milliwatts and dBm (None at 0 mW, which has no logarithm)."""

    lane: int
    mw: float
    dbm: Optional[float]


class Record(NamedTuple):
    """One module: powers by lane, limits in dBm, alarms that are on as printed, lanes without signal."""

    identifier: Optional[str]
    vendor: Optional[str]
    part: Optional[str]
    serial: Optional[str]
    ddm: Optional[bool]
    copper: bool
    flags: Optional[bool]
    rx: tuple[Lane, ...]
    tx: tuple[Lane, ...]
    rx_low: Optional[float]
    rx_low_warning: Optional[float]
    tx_low: Optional[float]
    temperature: Optional[float]
    temperature_high: Optional[float]
    voltage: Optional[float]
    alarms: tuple[str, ...]
    silent: dict[str, list[int]]
    module_state: Optional[str]
    complaints: tuple[str, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is ethtool's of a module."""
    head = head[:65_536]
    if mlx_json.looks_json(head):
        return 90 if _JSON.search(head) else 0
    found = {match.group(0).strip()[:12] for match in _SIGN.finditer(head)}
    if not found and _FAILED.search(head):
        return 75
    return 92 if len(found) >= 2 else 50 * len(found)  # noqa: PLR2004 - one key alone may be anything's


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    first, everything = mlx_json.peek(lines)
    if mlx_json.looks_json(first):
        found, troubles = mlx_json.documents(everything)
        module = next((item for document in found for item in mlx_json.objects(document)), {})
        return _read(text_lines(module), list(troubles), "json")
    return _read(everything, [], None)


class _Reader:
    """The fields, filled line by line."""

    def __init__(self, troubles: list[Trouble]) -> None:
        self.values: dict[str, str] = {}
        self.powers: dict[str, dict[int, Lane]] = {"rx": {}, "tx": {}}
        self.limits: dict[str, float] = {}
        self.alarms: list[str] = []
        self.states = 0
        self.silent: dict[str, list[int]] = {}
        self.complaints: list[str] = []
        self.troubles = troubles
        self.copper = False
        self.first = ""

    def line(self, at: int, line: str) -> None:
        self.first = self.first or line.strip()
        if re.match(r"\s{0,8}(?:Cannot get|netlink error|ethtool:)", line):
            self.complaints[20:] = []
            self.complaints.append(line.strip()[:300])
            return
        pair = field(line)
        if pair is None:
            return
        key, value = " ".join(pair[0].split()), pair[1]
        lower = key.lower()
        lane = _LANE.search(lower)
        base = lower[: lane.start()].strip() if lane else lower
        if lower.endswith("threshold"):
            self.limit(at, lower, value)
        elif value in {"On", "Off"} and ("alarm" in lower or "warning" in lower):
            self.states += 1
            if value == "On" and len(self.alarms) < _KEEP:
                self.alarms.append(key)
        elif base in _RX or base in _TX:
            self.power(at, "rx" if base in _RX else "tx", int(lane.group(1)) if lane else 0, value)
        elif lower in {"rx loss of signal", "tx loss of signal", "tx fault", "rx loss of lock", "tx loss of lock"}:
            self.silent[lower] = _lanes(value)
        elif len(self.values) < _KEEP:
            self.other(at, lower, value)

    def other(self, at: int, key: str, value: str) -> None:
        known = self.values.setdefault(key, value)
        if known != value and key in {"optical diagnostics support", "module temperature", "identifier"}:
            note(self.troubles, at, f"{key[:40]} comes twice; more than one module?")
        if key in {"transceiver type", "connector", "cable technology", "transmitter technology", "media type"}:
            self.copper = self.copper or bool(_PASSIVE.search(value))

    def power(self, at: int, side: str, lane: int, value: str) -> None:
        match = _POWER.match(value)
        if match is None:
            note(self.troubles, at, f"{side} power {value!r:.60} cannot be read; is the line cut?")
            return
        word = match.group(2)
        if word is None:
            note(self.troubles, at, f"{side} power {value!r:.60} has no dBm; is the line cut?")
            return
        dbm = None if word == "-inf" else number(word)
        known = self.powers[side].setdefault(lane, Lane(lane, float(match.group(1)), dbm))
        if known != Lane(lane, float(match.group(1)), dbm):
            note(self.troubles, at, f"{side} power comes twice with another value")

    def limit(self, at: int, key: str, value: str) -> None:
        match, heat = _POWER.match(value), _HEAT.match(value)
        if match and match.group(2) not in {None, "-inf"}:
            self.limits.setdefault(key, float(match.group(2)))
        elif heat:
            self.limits.setdefault(key, float(heat.group(1)))
        elif " mA" not in value and " V" not in value and "-inf" not in value:
            note(self.troubles, at, f"{key[:60]} {value!r:.40} cannot be read; is the line cut?")


def _lanes(value: str) -> list[int]:
    """Return the lanes (from 1) of ``[ Yes, No, … ]``; none for ``None``."""
    words = [word.strip().lower() for word in value.strip("[] ").split(",")]
    return [place for place, word in enumerate(words, 1) if word in {"yes", "true"}]


def _read(lines: Iterable[str], troubles: list[Trouble], version: Optional[str]) -> Record:
    reader = _Reader(troubles)
    for at, line in enumerate(lines, 1):
        reader.line(at, line)
    values, limits = reader.values, reader.limits
    support = values.get("optical diagnostics support", "").lower()
    flags = {"yes": True, "no": False}.get(values.get("alarm/warning flags implemented", "").lower())
    has_values = bool(reader.powers["rx"] or reader.powers["tx"])
    ddm = {"yes": True, "no": False}.get(support, True if has_values else None)
    powers = [*reader.powers["rx"].values(), *reader.powers["tx"].values()]
    if reader.copper and all(lane.mw <= 0 for lane in powers):
        # A QSFP cable of copper prints its powers all the same, as 0 mW: it has no laser and no receiver.
        ddm = False
        reader.powers = {"rx": {}, "tx": {}}
    if not has_values and not _OURS & set(values):
        nothing(reader.first, reader.complaints, troubles, "no field of a module was found")
    elif ddm and not reader.powers["rx"]:
        note(troubles, 0, "the received power is missing; is the text cut?")
    if ddm and flags and reader.states and not limits:
        note(troubles, 0, "alarms are listed but no limits; is the text cut?")
    elif ddm and flags and not reader.states:
        note(troubles, 0, "the module has alarm flags but none is listed; is the text cut?")
    heat = _HEAT.match(values.get("module temperature", ""))
    return Record(
        identifier=values.get("identifier"),
        vendor=values.get("vendor name"),
        part=values.get("vendor pn"),
        serial=values.get("vendor sn"),
        ddm=ddm,
        copper=reader.copper,
        flags=flags,
        rx=tuple(reader.powers["rx"][lane] for lane in sorted(reader.powers["rx"])),
        tx=tuple(reader.powers["tx"][lane] for lane in sorted(reader.powers["tx"])),
        rx_low=limits.get("laser rx power low alarm threshold"),
        rx_low_warning=limits.get("laser rx power low warning threshold"),
        tx_low=limits.get("laser output power low alarm threshold"),
        temperature=float(heat.group(1)) if heat else None,
        temperature_high=limits.get("module temperature high alarm threshold"),
        voltage=number(values.get("module voltage", "").partition(" ")[0]),
        alarms=tuple(reader.alarms),
        silent=reader.silent,
        module_state=values.get("module state"),
        complaints=tuple(reader.complaints),
        version=version or _generation(values.get("identifier", "")),
        troubles=tuple(troubles),
    )


def _generation(identifier: str) -> Optional[str]:
    code = identifier.partition(" ")[0].lower()
    for name, codes in (
        ("SFF-8472", {"0x03", "0x02"}),
        ("SFF-8636", {"0x0c", "0x0d", "0x11"}),
        ("CMIS", {"0x18", "0x19", "0x1e", "0x1b", "0x1f"}),
    ):
        if code in codes:
            return name
    return None
