"""Read what mlxlink (mstlink) prints of a port or of the PCIe side: text of all generations, or ``--json``.

Sections of ``Key : value`` under a title; ``-m`` adds the module, ``-c`` counters and bit error rates, ``-e`` eye
openings. A value that the port does not have is ``N/A``. A bit error rate is coefficient and exponent, and ``15E-255``
stands for "no error seen". Keys: mlxlink/modules of Mellanox/mstflint, and the MFT manual.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools import mlx_json
from weaklink.observe.tools.mlx_common import complaint, field, gbps, is_infiniband, note, nothing, present
from weaklink.observe.tools.text import Trouble, integer, number

NAME = "mlxlink"
_KEYS = re.compile(
    r'(?m)^\s{0,20}"?(?:Physical state|Status Opcode|Recommendation|Enabled Link Speed|Raw Physical BER'
    r"|Effective Physical BER|Link Speed Active|Link Width Active|amBER Version|Loopback Mode)[^:\n]{0,40}:"
)
_TITLES = ("Operational Info", "PCIe Operational (Enabled) Info", "PCIe Operational Info")
_START = "state"
_BER = re.compile(r"(\d{1,4})E-(\d{1,3})\Z")
_NOTHING = 200  # exponents from here on mean that no error was seen
_SUSPECT = 1e-6  # a text that ends in such a rate may have lost the exponent's last digit
_POWER = re.compile(r"-?\d{1,3}(?:\.\d{1,4})?\Z")
_RANGE = re.compile(r"\[\s*(-?\d{1,5}(?:\.\d{1,4})?)\s*\.\.\s*(-?\d{1,5}(?:\.\d{1,4})?)\s*\]")
_PCIE_SPEED = re.compile(r"(\d{1,3}(?:\.\d)?)\s?G(?:T/s)?-?\s?(?:Gen\s?(\d))?")
_PCIE_WIDTH = re.compile(r"(\d{1,2})[xX]")
_KEEP = 400
_MOST = 1024
_ONCE = frozenset(
    {
        *("state", "physical state", "speed", "width", "status opcode", "recommendation"),
        *("effective physical errors", "effective physical ber", "raw physical ber", "symbol errors", "symbol ber"),
    }
)


class Pcie(NamedTuple):
    """The PCIe side: GT/s of a lane and lanes, in use and enabled; counts of errors."""

    place: Optional[str] = None
    speed_gts: Optional[float] = None
    enabled_gts: Optional[float] = None
    width: Optional[int] = None
    enabled_width: Optional[int] = None
    errors: dict[str, int] = {}  # noqa: RUF012 - nobody changes it in place, and a NamedTuple has no factories


class Module(NamedTuple):
    """The cable or module: powers in dBm by lane, their lowest good value, degrees Celsius."""

    identifier: Optional[str] = None
    cable: Optional[str] = None
    part: Optional[str] = None
    serial: Optional[str] = None
    ddm: Optional[bool] = None
    rx_dbm: tuple[float, ...] = ()
    rx_low: Optional[float] = None
    tx_dbm: tuple[float, ...] = ()
    tx_low: Optional[float] = None
    temperature: Optional[float] = None
    temperature_high: Optional[float] = None


class Link(NamedTuple):
    """One port as printed; rates in Gb/s, ``minutes`` since the counters were cleared.

    ``asked``: the output has a line for the state, though it may hold no value (``N/A``).
    """

    line: int
    asked: bool = False
    state: Optional[str] = None
    phys_state: Optional[str] = None
    speed: Optional[str] = None
    width: Optional[str] = None
    rate_gbps: Optional[float] = None
    infiniband: bool = False
    fec: Optional[str] = None
    opcode: Optional[int] = None
    recommendation: Optional[str] = None
    minutes: Optional[float] = None
    effective_errors: Optional[int] = None
    symbol_errors: Optional[int] = None
    effective_ber: Optional[float] = None
    symbol_ber: Optional[float] = None
    raw_ber: Optional[float] = None
    link_downs: Optional[int] = None
    firmware: Optional[str] = None
    module: Module = Module()
    pcie: Optional[Pcie] = None


class Record(NamedTuple):
    """All ports of the text, the tool's own errors, its version (``mft 4.31.0-149``)."""

    links: tuple[Link, ...]
    complaints: tuple[str, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


class _Raw(NamedTuple):
    """A port's fields by lower-case key: line and value; the section titles seen."""

    line: int
    values: dict[str, tuple[int, str]]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is mlxlink's."""
    keys = {match.group(0) for match in _KEYS.finditer(head[:65_536])}
    if len(keys) >= 2:  # noqa: PLR2004 - one key alone may be anything's
        return 92
    if "mlxlink" in head or "mstlink" in head:
        return 60
    return 40 if keys else 0


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    first, everything = mlx_json.peek(lines)
    return _json(everything) if mlx_json.looks_json(first) else _text(everything, first)


def _text(lines: Iterable[str], first: str) -> Record:
    raws: list[_Raw] = []
    complaints: list[str] = []
    troubles: list[Trouble] = []
    at = 0
    for at, line in enumerate(lines, 1):
        if line.strip() in _TITLES:
            if not raws or raws[-1].values:
                raws.append(_Raw(at, {}))
            continue
        error = complaint(line)
        if error:
            complaints[20:] = []
            complaints.append(error)
            continue
        pair = field(line)
        if pair is None:
            continue
        key, value = pair[0].lower(), pair[1]
        if not raws or (key == _START and key in raws[-1].values):
            raws.append(_Raw(at, {}))
        if len(raws) > _MOST:
            raws.pop()
            note(troubles, at, f"more than {_MOST} ports; the rest was not read")
            break
        values = raws[-1].values
        known = values.get(key)
        if known is None and len(values) < _KEEP:
            values[key] = (at, value)
        elif known is not None and known[1] != value and key in _ONCE:
            note(troubles, at, f"{pair[0][:40]} comes twice with another value")
    return _record(raws, complaints, troubles, at, first)


def _json(lines: Iterable[str]) -> Record:
    found, troubles = mlx_json.documents(lines)
    raws: list[_Raw] = []
    complaints: list[str] = []
    for document in found:
        for item in mlx_json.objects(document):
            status = item.get("status")
            if isinstance(status, dict) and integer(str(status.get("code", 0))) not in (0, None):
                complaints.append(str(status.get("message"))[:300])
            result = item.get("result")
            output = result.get("output") if isinstance(result, dict) else item
            if isinstance(output, dict):
                values: dict[str, tuple[int, str]] = {}
                for section in output.values():
                    if isinstance(section, dict):
                        values.update({str(key).lower(): (0, _flat(value)) for key, value in section.items()})
                if values:
                    raws.append(_Raw(0, values))
    return _record(raws, complaints, list(troubles), -1)


def _flat(value: Any) -> str:
    """Return a JSON value as the text form would print it: lists joined, masks dropped."""
    if isinstance(value, dict):
        value = value.get("values", value.get("value", ""))
    if isinstance(value, list):
        return ",".join(str(item) for item in value[:64])
    return "" if value is None else str(value)


def _record(raws: list[_Raw], complaints: list[str], troubles: list[Trouble], last: int, first: str = "") -> Record:
    links: list[Link] = []
    version = None
    for raw in raws:
        values = {key: value for key, (_, value) in raw.values.items()}
        version = present(values.get("mft version")) or version
        if "link speed active (enabled)" in values or "link width active (enabled)" in values:
            links.append(Link(raw.line, pcie=_pcie(values)))
        elif "state" in values or "physical state" in values:
            links.append(_link(raw, values, troubles, last))
    if not links:
        ours = first.strip() in _TITLES or recognise(first) > 0
        nothing(first, complaints, troubles, "no state of a port was found", ours=ours)
    return Record(tuple(links), tuple(complaints), version, tuple(troubles))


def _link(raw: _Raw, values: dict[str, str], troubles: list[Trouble], last: int) -> Link:
    speed, width = present(values.get("speed")), present(values.get("width"))
    rates: dict[str, Optional[float]] = {}
    for key in ("effective physical ber", "symbol ber", "raw physical ber"):
        line, text = raw.values.get(key, (0, ""))
        rates[key] = _ber(text)
        if line == last and (rates[key] or 0) > _SUSPECT:
            note(troubles, line, f"the text ends in {text!r:.40}; an exponent may be cut")
            rates[key] = None
    lanes = [_ber(item) for item in values.get("raw physical ber per lane", "").split(",")]
    if rates["raw physical ber"] is None and lanes and None not in lanes:
        rates["raw physical ber"] = max(rate for rate in lanes if rate is not None)
    if "status opcode" not in values and "recommendation" not in values:
        note(troubles, max(last, 0), "the text ends before the section Troubleshooting Info")
    counted = [key for key in values if "physical errors" in key or key.startswith("time since last clear")]
    if counted and not {"link down counter", "raw physical ber", "raw physical ber per lane"} & set(values):
        note(troubles, max(last, 0), "the section of counters and bit error rates is not whole")
    return Link(
        raw.line,
        asked="state" in values and bool(values["state"]),
        state=present(values.get("state")),
        phys_state=present(values.get("physical state")),
        speed=speed,
        width=width,
        rate_gbps=gbps(speed, width),
        infiniband=is_infiniband(speed),
        fec=present(values.get("fec")),
        opcode=integer(values.get("status opcode")),
        recommendation=present(values.get("recommendation")),
        minutes=number(values.get("time since last clear [min]")),
        effective_errors=integer(values.get("effective physical errors")),
        symbol_errors=integer(values.get("symbol errors")),
        effective_ber=rates["effective physical ber"],
        symbol_ber=rates["symbol ber"],
        raw_ber=rates["raw physical ber"],
        link_downs=integer(values.get("link down counter")),
        firmware=present(values.get("firmware version")),
        module=_module(values),
    )


def _ber(text: str) -> Optional[float]:
    word = text.strip()
    match = _BER.match(word)
    if match and int(match.group(2)) >= _NOTHING:
        return 0.0
    return number(word)


def _module(values: dict[str, str]) -> Module:
    rx, tx = values.get("rx power current [dbm]", ""), values.get("tx power current [dbm]", "")
    heat = values.get("temperature [c]", "")
    diagnostics = (present(values.get("digital diagnostic monitoring")) or "").lower()
    limits = _RANGE.search(heat)
    return Module(
        identifier=present(values.get("identifier")),
        cable=present(values.get("cable type")) or present(values.get("cable technology")),
        part=present(values.get("vendor part number")),
        serial=present(values.get("vendor serial number")),
        ddm={"yes": True, "no": False}.get(diagnostics),
        rx_dbm=_powers(rx),
        rx_low=_low(rx),
        tx_dbm=_powers(tx),
        tx_low=_low(tx),
        temperature=number(heat.partition("[")[0]),
        temperature_high=float(limits.group(2)) if limits else None,
    )


def _powers(text: str) -> tuple[float, ...]:
    """Return the powers by lane of ``-1.2,-1.3 [-9..5]``; none where a lane cannot be read."""
    words = [word.strip() for word in text.partition("[")[0].split(",")]
    return tuple(float(word) for word in words) if all(_POWER.match(word) for word in words) else ()


def _low(text: str) -> Optional[float]:
    match = _RANGE.search(text)
    return float(match.group(1)) if match else None


def _pcie(values: dict[str, str]) -> Pcie:
    speeds = _pair(values.get("link speed active (enabled)", ""), _PCIE_SPEED)
    widths = _pair(values.get("link width active (enabled)", ""), _PCIE_WIDTH)
    wanted = ("rx errors", "tx errors", "crc error dllp", "crc error tlp", "dl down")
    counts = {key: integer(values.get(key)) for key in wanted}
    return Pcie(
        place=present(values.get("depth, pcie index, node")),
        speed_gts=speeds[0],
        enabled_gts=speeds[1],
        width=None if widths[0] is None else int(widths[0]),
        enabled_width=None if widths[1] is None else int(widths[1]),
        errors={key.replace(" ", "_"): value for key, value in counts.items() if value is not None},
    )


def _pair(text: str, pattern: "re.Pattern[str]") -> tuple[Optional[float], Optional[float]]:
    """Return the numbers of ``active (enabled)``."""
    active, _, enabled = text.partition("(")
    found = [pattern.search(active), pattern.search(enabled)]
    return (
        float(found[0].group(1)) if found[0] else None,
        float(found[1].group(1)) if found[1] else None,
    )
