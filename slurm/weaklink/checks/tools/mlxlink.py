"""Judge what mlxlink says of a port, its cable and its PCIe side. Pure."""

from collections.abc import Iterator
from typing import Any, Optional

from weaklink.checks.tools.base import DID_NOT_RUN, DRAIN, NOTE, Context, Judged, Rule, close, demand, say
from weaklink.checks.tools.mlx_common import did_not_run, pcie_wanted
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding, bad_first, worst
from weaklink.observe.tools.mlx_common import gbps, lanes, plain_number
from weaklink.observe.tools.mlxlink import Link, Pcie, Record

_SLACK = 0.995  # rates are printed rounded, and FDR is 56 to one and 56.25 to another
_NO_LIGHT_DBM = -30.0
_HOURLY = 1000.0
_POST_FEC_BER = 1e-12
_MANY_PCIE_ERRORS = 1000
_GOOD = "no issue"
_NOT_SET_UP = ("physical linkup", "physical up", "init", "armed")  # the cable works, no subnet manager came by
_CABLE_WORDS = ("signal integrity", "cable", "module", "signal not detected", "eye", "ber ", "calibration")

STATE = Rule(
    "mlxlink.state",
    ("link-down", "optics-no-light", "bad-cable", "no-subnet-manager"),
    FAIL,
    DRAIN,
    "A state other than Active fails, whatever the physical state is called (ETH_AN_FSM_ENABLE is fine).",
    "Look at the recommendation; reseat the cable, look at the far end's port, then change cable and module.",
)
LAYER = Rule(
    "mlxlink.link_layer",
    ("miscabled",),
    FAIL,
    DRAIN,
    "A port that runs InfiniBand where Ethernet is expected, or the reverse, fails; source: the name of the speed.",
    "Check LINK_TYPE with mlxconfig and the switch that the cable leads to.",
)
RATE = Rule(
    "mlxlink.rate",
    ("rate-below-expected",),
    DEGRADED,
    DRAIN,
    "The link's rate (speed, for InfiniBand times lanes) below the expected one is degraded; equal is enough.",
    "Reseat the cable; compare enabled and supported speeds of both ends.",
)
ERRORS = Rule(
    "mlxlink.errors",
    ("bad-cable",),
    FAIL,
    DRAIN,
    "Errors after correction by the thousand an hour fail, an effective or symbol bit error rate above 1e-12 is"
    " degraded; raw errors are what FEC is for and count only by the tool's own word.",
    "Clean and reseat; swap the cable, then the module; see whether the errors follow it.",
)
ADVICE = Rule(
    "mlxlink.recommendation",
    ("bad-cable", "link-below-capability"),
    DEGRADED,
    NOTE,
    "An active link about which the tool itself reports an issue (opcode other than 0) is degraded.",
    "Follow the tool's recommendation.",
)
OPTICS = Rule(
    "mlxlink.module",
    ("optics-no-light", "bad-cable"),
    FAIL,
    DRAIN,
    "Received light at or below -30 dBm on a lane fails, below the module's low limit or too hot is degraded; N/A is no"
    " number and passive copper has none.",
    "Clean the connectors, check the fibre and the far end's transmitter.",
)
FLAPS = Rule(
    "mlxlink.flaps",
    ("link-flapping",),
    DEGRADED,
    NOTE,
    "More link downs since the counters were cleared than max_flaps_per_device are degraded.",
    "Watch the counter; check cable and module.",
)
PCIE = Rule(
    "mlxlink.pcie",
    ("pcie-link-limited",),
    DEGRADED,
    DRAIN,
    "PCIe speed or lanes below what is enabled or expected, or errors by the thousand, are degraded.",
    "Reseat the card; check the slot, riser and retimer.",
)
RULES = (STATE, LAYER, RATE, ERRORS, ADVICE, OPTICS, FLAPS, PCIE)


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings of a read output; ``context`` as in the README of the cases."""
    said: list[Finding] = []
    by_link: list[tuple[Link, list[Finding]]] = []
    for number, link in enumerate(record.links, 1):
        subject = f"port {number}" if len(record.links) > 1 else "port"
        if link.pcie is None and link.state is None and record.complaints:
            found = [did_not_run("mlxlink", record.complaints, subject)]
        else:
            found = list(_pcie(link.pcie, subject, context) if link.pcie else _network(link, subject, context))
        by_link.append((link, found))
        said += found
    if record.complaints and not record.links:
        said.append(did_not_run("mlxlink", record.complaints))
    by_link.sort(key=lambda pair: bad_first(worst(finding.status for finding in pair[1])))
    return close("mlxlink", _facts(record, [link for link, _ in by_link]), said, record.troubles)


def _facts(record: Record, links: list[Link]) -> dict[str, Any]:
    facts: dict[str, Any] = {"links": len(links), "version": record.version, "errors": list(record.complaints)}
    network = next((link for link in links if link.pcie is None), None)
    pcie = next((link.pcie for link in links if link.pcie is not None), None)
    if network is None and pcie is None:
        network = Link(0)
    if network is not None:
        module = network.module
        facts.update(
            state=network.state,
            phys_state=network.phys_state,
            speed=network.speed,
            width=network.width,
            rate_gbps=None if network.rate_gbps is None else plain_number(network.rate_gbps),
            fec=network.fec,
            opcode=network.opcode,
            recommendation=network.recommendation,
            effective_ber=network.effective_ber,
            symbol_ber=network.symbol_ber,
            raw_ber=network.raw_ber,
            effective_errors=network.effective_errors,
            symbol_errors=network.symbol_errors,
            link_down_counter=network.link_downs,
            minutes_since_clear=network.minutes,
            fw_version=network.firmware,
            module_ddm=module.ddm,
            rx_power_dbm=list(module.rx_dbm) or None,
            tx_power_dbm=list(module.tx_dbm) or None,
            temperature_c=module.temperature,
            cable=module.part,
            cable_serial=module.serial,
        )
    if pcie is not None:
        facts.update(
            pcie_speed_gts=pcie.speed_gts,
            pcie_width=pcie.width,
            pcie_enabled_gts=pcie.enabled_gts,
            pcie_enabled_width=pcie.enabled_width,
            pcie_errors=dict(pcie.errors),
        )
    return facts


def _network(link: Link, subject: str, context: Context) -> Iterator[Finding]:
    if link.state is None:
        cause = DID_NOT_RUN if link.asked else "output-truncated"
        yield say(STATE, subject, UNKNOWN, f"{subject}: no state can be read", cause=cause)
        return
    if link.state.lower() != "active":
        yield _down(link, subject)
        return
    layer = str(demand(context, "link_layer", str, "")).lower()
    if layer and link.speed and link.rate_gbps and link.infiniband != (layer == "infiniband"):
        yield say(LAYER, subject, FAIL, f"{subject}: runs at {link.speed}, wanted link layer {context['link_layer']}")
    yield from _rate(link, subject, context)
    minutes = demand(context, "counters_cleared_minutes_ago", float)
    yield from _errors(link._replace(minutes=link.minutes or minutes), subject)
    yield from _advice(link, subject)
    yield from _optics(link, subject)
    limit = demand(context, "max_flaps_per_device", int)
    if limit is not None and link.link_downs is not None and link.link_downs > limit:
        text = f"{subject}: went down {link.link_downs} times since the counters were cleared, allowed {limit}"
        yield say(FLAPS, subject, DEGRADED, text)


def _down(link: Link, subject: str) -> Finding:
    advice = link.recommendation or "none"
    text = (
        f"{subject}: state {link.state}, physical state {link.phys_state}, wanted Active; the tool says: {advice:.160}"
    )
    cause = "link-down"
    if link.module.rx_dbm and min(link.module.rx_dbm) <= _NO_LIGHT_DBM:
        cause = "optics-no-light"
    elif "signal integrity" in advice.lower():
        cause = "bad-cable"
    elif link.infiniband and any(word in (link.state or "").lower() for word in _NOT_SET_UP):
        cause = "no-subnet-manager"
    return say(STATE, subject, FAIL, text, cause=cause, state=link.state, opcode=link.opcode)


def _rate(link: Link, subject: str, context: Context) -> Iterator[Finding]:
    wanted = demand(context, "expected_rate_gbps", float)
    named = demand(context, "expected_link", str)
    if wanted is None and named:
        words = named.split()
        wanted = gbps(words[1], words[0]) if len(words) > 1 else None
    if wanted is None:
        return
    if link.rate_gbps is None:
        text = f"{subject}: no rate can be read (speed {link.speed}, width {link.width}), wanted {wanted:g} Gb/s"
        yield say(RATE, subject, UNKNOWN, text, cause="output-truncated")
    elif link.rate_gbps < wanted * _SLACK:
        text = f"{subject}: {link.rate_gbps:g} Gb/s ({link.speed}, {link.width}), wanted {wanted:g} Gb/s"
        yield say(RATE, subject, DEGRADED, text, found=link.rate_gbps, wanted=wanted)


def _errors(link: Link, subject: str) -> Iterator[Finding]:
    # Symbol errors are what is left behind the second correction of NDR; effective ones come before it.
    pairs = (
        [("symbol", link.symbol_errors, link.symbol_ber)]
        if link.symbol_errors is not None or link.symbol_ber is not None
        else [("effective physical", link.effective_errors, link.effective_ber)]
    )
    for name, count, rate in pairs:
        hourly = _hourly(link, count, rate)
        if hourly is not None and hourly >= _HOURLY:
            found = f"{count} {name} errors in {link.minutes} minutes" if count else f"{name} bit error rate {rate:g}"
            text = f"{subject}: {found}: {hourly:.0f} errors an hour, wanted less than {_HOURLY:g}"
            yield say(ERRORS, subject, FAIL, text, errors=count, hourly=round(hourly, 1))
        elif rate is not None and rate > _POST_FEC_BER:
            text = f"{subject}: {name} bit error rate {rate:g}, wanted at most {_POST_FEC_BER:g}"
            yield say(ERRORS, subject, DEGRADED, text, ber=rate)


def _hourly(link: Link, count: Optional[int], rate: Optional[float]) -> Optional[float]:
    """Return errors an hour: counted, or where no count and time are printed, what the rate makes of the link."""
    if count is not None and link.minutes:
        return count * 60.0 / link.minutes
    if count is None and rate is not None and link.rate_gbps is not None:
        return rate * link.rate_gbps * 1e9 * 3600.0
    return None


def _advice(link: Link, subject: str) -> Iterator[Finding]:
    advice = (link.recommendation or "").lower()
    if _GOOD in advice or not (advice or link.opcode):
        return
    cause = "bad-cable" if any(word in advice for word in _CABLE_WORDS) else "link-below-capability"
    text = f"{subject}: active, but the tool says (opcode {link.opcode}): {link.recommendation}"
    yield say(ADVICE, subject, DEGRADED, text[:300], cause=cause, opcode=link.opcode)


def _optics(link: Link, subject: str) -> Iterator[Finding]:
    module = link.module
    lit = [power for power in module.rx_dbm if power > _NO_LIGHT_DBM]
    used = lanes(link.width)
    # A module may list more lanes than the link has; those that the link does not use are dark.
    powers = lit if used is not None and len(lit) == used < len(module.rx_dbm) else list(module.rx_dbm)
    if powers:
        low = min(powers)
        if low <= _NO_LIGHT_DBM:
            yield say(
                OPTICS, subject, FAIL, f"{subject}: a lane receives {low:g} dBm: no light", rx=list(module.rx_dbm)
            )
        elif module.rx_low is not None and low < module.rx_low:
            text = f"{subject}: a lane receives {low:g} dBm, wanted at least {module.rx_low:g}"
            yield say(OPTICS, subject, DEGRADED, text, rx=list(module.rx_dbm))
    heat, limit = module.temperature, module.temperature_high
    if heat is not None and limit is not None and heat > limit:
        text = f"{subject}: module at {heat:g} degrees, allowed {limit:g}"
        yield say(OPTICS, subject, DEGRADED, text, cause="bad-cable", temperature=heat)


def _pcie(pcie: Pcie, subject: str, context: Context) -> Iterator[Finding]:
    wanted_gts, wanted_width = pcie_wanted(context)
    pairs: tuple[tuple[str, Optional[float], Optional[float]], ...] = (
        ("speed in GT/s", pcie.speed_gts, wanted_gts or pcie.enabled_gts),
        ("lanes", pcie.width, wanted_width or pcie.enabled_width),
    )
    for name, found, wanted in pairs:
        if found is None:
            text = f"{subject}: PCIe {name} cannot be read"
            yield say(PCIE, subject, UNKNOWN, text, cause="output-truncated")
        elif wanted is not None and found < wanted:
            text = f"{subject}: PCIe {name} {found:g}, wanted {wanted:g}"
            yield say(PCIE, subject, DEGRADED, text, found=found, wanted=wanted)
    many: dict[str, Any] = {key: count for key, count in pcie.errors.items() if count >= _MANY_PCIE_ERRORS}
    if many:
        words = ", ".join(f"{key} {count}" for key, count in many.items())
        yield say(PCIE, subject, DEGRADED, f"{subject}: PCIe errors by the thousand: {words}", **many)
