"""Health check and epilog: several bad runs in a row before a drain, and counters that moved since the last reading.

Both share the strikes. A good run forgets them; a run that could not judge leaves them as they are.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Callable

from weaklink.checks.base import DRAIN
from weaklink.checks.registry import BAD, BY_NAME, Judgement
from weaklink.hooks.files import Places, lock, read_state, write_atomic
from weaklink.hooks.flow import Run, act, client, leave_digest, say_unknown
from weaklink.model.finding import OK as STATUS_OK
from weaklink.model.finding import UNKNOWN
from weaklink.observe.records import Observation

# A state that lasts is said again this often (seconds), not with every run.
_REMIND = 600
_ERRORS = frozenset(
    {
        "completer_retry_err",
        "duplicate_request",
        "excessive_buffer_overrun_errors",
        "link_downed",
        "link_error_recovery",
        "local_ack_timeout_err",
        "local_link_integrity_errors",
        "out_of_buffer",
        "out_of_seq_request",
        "out_of_sequence",
        "packet_seq_err",
        "port_rcv_errors",
        "port_rcv_remote_physical_errors",
        "port_xmit_discards",
        "rcvd_rnr_err",
        "rcvd_seq_err",
        "rdma_recv_err",
        "req_cqe_error",
        "req_transport_retries_exceeded",
        "resp_cqe_error",
        "retry_exceeded_err",
        "rnr_nak_retry_err",
        "rnr_retry_exceeded_err",
        "roce_slow_restart",
        "rx_icrc_encapsulated",
        "send_err",
        "send_rnr_err",
        "symbol_error",
    }
)


def check_is_draining(name: str) -> bool:
    """True when a check's bad status may take a node out."""
    return BY_NAME[name].action == DRAIN


def boot_id(root: str) -> str:
    """Return this boot's id; counters start anew with a boot."""
    from weaklink.observe.host import Host

    return Host(root).word("/proc/sys/kernel/random/boot_id") or ""


def earlier_counters(places: Places, root: str) -> dict[str, dict[str, int]]:
    """Return the counters of the last reading of this boot by "device/port"; none when there is no such reading."""
    state = read_state(f"{places.state}/counters.json")
    ports = state.get("ports")
    if state.get("boot") != boot_id(root) or not isinstance(ports, dict):
        return {}
    return {
        str(port): {str(name): value for name, value in counters.items() if isinstance(value, int)}
        for port, counters in ports.items()
        if isinstance(counters, dict)
    }


def keep_counters(places: Places, root: str, observation: Observation) -> None:
    """Write the counters down for the next reading."""
    ports = [nic.rdma for nic in (observation.nics or {}).values() if nic.rdma]
    if ports:
        now = {f"{port.device}/{port.port}": port.counters for port in ports}
        with suppress(OSError):  # a full disk: nothing to compare with next time
            write_atomic(f"{places.state}/counters.json", {"boot": boot_id(root), "ports": now})


def moved(observation: Observation) -> dict[str, dict[str, int]]:
    """Return by port the error counters that rose since the last reading, and by how much."""
    found: dict[str, dict[str, int]] = {}
    for nic in (observation.nics or {}).values():
        if nic.rdma is None:
            continue
        name = f"{nic.rdma.device}/{nic.rdma.port}"
        before: Mapping[str, int] = (observation.earlier or {}).get(name, {})
        rose = {
            counter: nic.rdma.counters[counter] - before[counter]
            for counter in sorted(_ERRORS & before.keys())
            if nic.rdma.counters.get(counter, 0) > before[counter]
        }
        if rose:
            found[name] = rose
    return found


def note_bad(run: Run, judgement: Judgement) -> None:
    """Log what is bad and drains nobody; the same words again only after a while."""
    path = f"{run.places.state}/noted.json"
    earlier = read_state(path)
    told: dict[str, float] = {}
    for finding in judgement.findings:
        if finding.status not in BAD or check_is_draining(finding.check):
            continue
        when = earlier.get(finding.message)
        if not isinstance(when, (int, float)) or not _lately(when):
            run.note("noted", finding.message, verdict=finding.status, check=finding.check, cause=finding.cause)
            when = time.time()
        told[finding.message] = when
    if told != earlier:
        with suppress(OSError):  # then the same is told again
            write_atomic(path, told)


def settle(run: Run, judgement: Judgement, make_client: Callable[[Run], Any] = client) -> str:
    """Count the run, and act when it is one bad run too many. Return the action, empty when there was none."""
    path = f"{run.places.state}/strikes.json"
    with lock(f"{run.places.state}/strikes.lock", wait=True):
        state = read_state(path)
        count = state.get("strikes")
        strikes = max(0, count) if isinstance(count, int) else 0
        if not judgement.draining:
            unsure = sorted({finding.check for finding in judgement.findings if finding.status == UNKNOWN})
            if unsure and not _said_lately(state, "unknown", ",".join(unsure)):
                say_unknown(run, judgement)
                state.update({"action": "unknown", "check": ",".join(unsure), "said": time.time()})
                write_atomic(path, state)
            if strikes and not any(check_is_draining(check) for check in unsure):
                run.note("recovered", f"good again after {strikes} bad runs", verdict=STATUS_OK)
                write_atomic(path, {"strikes": 0})
            return ""
        finding = judgement.draining[0]
        strikes = min(strikes + 1, 1000)
        state["strikes"] = strikes
        write_atomic(path, state)
    if strikes < run.expected.strikes:
        text = f"bad run {strikes} of {run.expected.strikes} before a drain: {finding.message}"
        run.note("strike", text, verdict=finding.status, check=finding.check)
        return "strike"
    acted = act(run, judgement, make_client, quiet=lambda action, check: _said_lately(state, action, check))
    if acted.evidence and acted.action in ("drained", "over-budget"):
        leave_digest(run, acted)
    if acted.said:
        with lock(f"{run.places.state}/strikes.lock", wait=True):
            state = read_state(path)  # the other hook may have counted a run meanwhile
            state.update({"action": acted.action, "check": acted.finding.check, "said": time.time()})
            write_atomic(path, state)
    return acted.action


def _said_lately(state: Mapping[str, Any], action: str, check: str) -> bool:
    """True when the same was said a short while ago: a state that lasts is not told with every run."""
    return _lately(state.get("said")) and (state.get("action"), state.get("check")) == (action, check)


def _lately(when: Any) -> bool:
    return isinstance(when, (int, float)) and 0 <= time.time() - when < _REMIND
