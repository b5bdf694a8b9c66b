"""Judge the fabric manager's log: version mismatch, fatal NVSwitch errors, a service that does not run. Pure."""

from typing import Any, NamedTuple, Optional

from weaklink.checks.tools.base import DRAIN, NOTE, Context, Judged, Rule, close, demand, say
from weaklink.model.finding import DEGRADED, FAIL, OK, UNKNOWN, Finding
from weaklink.observe.tools import fabricmanager as fm
from weaklink.observe.tools.fabricmanager import NAME, Event, Record

VERSION = Rule(
    "fabricmanager.version",
    ("fabricmanager-version-mismatch",),
    FAIL,
    DRAIN,
    "The daemon itself refuses a driver whose version is not its own to the last digit; a later good start settles it.",
    "Install the fabric manager of exactly the driver's version, restart it, reset the GPUs.",
)
ERRORS = Rule(
    "fabricmanager.nvswitch_error",
    ("nvlink-fatal",),
    FAIL,
    DRAIN,
    "A fatal NVSwitch or NVLink error after the last good start (fail); non-fatal ones are ok and counted.",
    "Drain the node; reset all GPUs and NVSwitches together; replace the baseboard if the error comes back.",
)
SERVICE = Rule(
    "fabricmanager.service",
    ("nvlink-down", "test-did-not-run"),
    FAIL,
    DRAIN,
    "The last start did not end in a running service though the node has NVSwitches (nvswitch_devices); "
    "without NVSwitches it has nothing to do, and its failure is ok.",
    "Read the daemon's log, start nvidia-fabricmanager, look at nvidia-smi -q for Fabric State Completed.",
)
LINKS = Rule(
    "fabricmanager.links",
    ("nvlink-down",),
    DEGRADED,
    NOTE,
    "The log says that NVLinks did not train, or that a GPU or NVSwitch is left out (degraded mode).",
    "Drain the node; reset the GPUs; replace the baseboard if links do not come back.",
)
RULES = (VERSION, ERRORS, SERVICE, LINKS)


class State(NamedTuple):
    """What holds at the end of the log: a word of the reader (None: not told), and the events since the last start."""

    word: Optional[str]
    mismatch: Optional[Event]
    failed: Optional[Event]
    no_switch: Optional[Event]
    fatal: tuple[Event, ...]
    links: tuple[Event, ...]


def final(events: tuple[Event, ...]) -> State:
    """Return the state in which the events leave the service: each good start settles what was before it.

    What systemctl says of now ("Active:") stands above the journal's lines, and comes after them.
    """
    state = State(None, None, None, None, (), ())
    now = [event for event in events if event.text.startswith("Active:")]
    for event in [*(event for event in events if not event.text.startswith("Active:")), *now[-1:]]:
        kind = event.kind
        if kind == fm.CONFIGURED or (kind == fm.RUNNING and state.word != fm.CONFIGURED):
            settled = kind == fm.CONFIGURED
            state = State(kind, None, None, None, () if settled else state.fatal, () if settled else state.links)
        elif kind == fm.NONFATAL and state.word in {None, fm.STARTING}:
            state = state._replace(word=fm.RUNNING)
        elif kind == fm.STARTING:
            state = state._replace(word=kind, failed=None)
        elif kind == fm.MISMATCH:
            state = state._replace(word=fm.FAILED, mismatch=event, failed=state.failed or event)
        elif kind == fm.NO_SWITCH:
            state = state._replace(word=fm.FAILED, no_switch=event)
        elif kind == fm.FATAL:
            state = state._replace(fatal=(*state.fatal, event)[-200:])
        elif kind == fm.LINK:
            state = state._replace(links=(*state.links, event)[-200:])
        elif kind in {fm.FAILED, fm.ABSENT} or (kind == fm.STOPPED and state.word != fm.FAILED):
            state = state._replace(word=kind, failed=state.failed or event)
    return state


def _where(event: Event) -> str:
    return f"line {event.line}: {event.text[:300]}"


def _fatal(state: State) -> list[Finding]:
    by_code = {(event.code, event.bus, event.port): event for event in state.fatal}
    return [
        say(
            ERRORS, event.bus or "nvswitch", FAIL, f"{_where(event)}; {ERRORS.remedy}", code=event.code, port=event.port
        )
        for event in list(by_code.values())[:50]
    ]


def _service(state: State, switches: Optional[int]) -> list[Finding]:
    """Return what a service that does not run means: its node may have nothing for it to do."""
    event = state.no_switch or state.failed
    if event is None or state.word in {fm.CONFIGURED, fm.RUNNING}:
        return []
    if switches:
        return [say(SERVICE, NAME, FAIL, f"{_where(event)}; the node has {switches} NVSwitches; {SERVICE.remedy}")]
    message = f"{_where(event)}; whether the node has NVSwitches is not known (nvswitch_devices)"
    return [say(SERVICE, NAME, UNKNOWN, message, "test-did-not-run")]


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; ``nvswitch_devices`` (0: none are there) tells whether the service is needed."""
    switches = demand(context, "nvswitch_devices", int)
    state = final(record.events)
    found: list[Finding] = []
    versions_differ = record.version and record.driver and record.version != record.driver
    if switches == 0:
        if record.events:
            message = "the node has no NVSwitch: the fabric manager has nothing to do, whatever became of it"
            found.append(say(SERVICE, NAME, OK, message))
    elif state.mismatch is not None:
        message = f"fabric manager {record.version}, driver {record.driver}: {_where(state.mismatch)}; {VERSION.remedy}"
        found.append(say(VERSION, NAME, FAIL, message, fabricmanager=record.version, driver=record.driver))
    elif versions_differ and state.word not in {fm.CONFIGURED, fm.RUNNING}:
        message = f"fabric manager {record.version}, driver {record.driver}; {VERSION.remedy}"
        found.append(say(VERSION, NAME, FAIL, message, fabricmanager=record.version, driver=record.driver))
    if switches != 0:
        found += _fatal(state)
        if state.mismatch is None:
            found += _service(state, switches)
        found += [say(LINKS, NAME, DEGRADED, f"{_where(event)}; {LINKS.remedy}") for event in state.links[:20]]
    if not found and not record.troubles and state.word in {None, fm.STARTING}:
        message = "nothing in the log tells whether the service runs"
        found.append(say(SERVICE, NAME, UNKNOWN, message, "test-did-not-run"))
    fatal = [event for event in record.events if event.kind == fm.FATAL]
    facts: dict[str, Any] = {
        "fm_version": record.version,
        "driver_version": record.driver,
        "nvswitch": _nvswitch(switches, record),
        "running": None if state.word is None else state.word in {fm.CONFIGURED, fm.RUNNING},
        "fatal_errors": len(fatal),
        "non_fatal_errors": sum(event.kind == fm.NONFATAL for event in record.events),
        "sxids": sorted({event.code for event in fatal if event.code is not None}),
        "nvswitches": sorted({event.bus for event in fatal if event.bus}),
        "ports": sorted({event.port for event in fatal if event.port is not None}),
    }
    return close(NAME, facts, found, record.troubles, "the fabric manager runs, and names no fatal error")


def _nvswitch(switches: Optional[int], record: Record) -> Optional[bool]:
    if switches is not None:
        return switches > 0
    kinds = {event.kind for event in record.events}
    if kinds & {fm.CONFIGURED, fm.FATAL, fm.NONFATAL}:
        return True
    return False if fm.NO_SWITCH in kinds else None
