"""Why an nccl-tests run stopped: the first message that names a reason. What follows from it is passed over."""

import re
from typing import NamedTuple, Optional

from weaklink.model.finding import FAIL, UNKNOWN
from weaklink.observe.tools.nccl_tests_records import Record, Said


class Reason(NamedTuple):
    """Status and cause, with the host and the local devices that the messages of this cause name."""

    status: str
    cause: str
    message: str
    line: int
    host: Optional[str]
    devices: tuple[int, ...]


_MODIFY = "ibv_modify_qp failed"
# Pattern, cause. What names a reason, in no order: the first message in the output decides.
_REASONS = (
    (
        re.compile(r"ibv_modify_qp failed.*(?:Network is unreachable|No route to host|timed out)"),
        "roce-gid-unreachable",
    ),
    (re.compile(r"ibv_modify_qp failed.*Invalid argument"), "gid-index-wrong"),
    (re.compile(_MODIFY), "roce-gid-unreachable"),
    (re.compile(r"Got completion .*(?:error|status=)\s*(?:12\b|13\b|\S*RETRY_EXC)"), "rdma-retry-exceeded"),
    (re.compile(r"Got async event ?: ?port error|async event.*port_err", re.IGNORECASE), "link-down"),
    (re.compile(r"async event.*(?:fatal|catastrophic)", re.IGNORECASE), "nic-driver-hang"),
    (re.compile(r"ibv_(?:reg_mr\w*|create_qp|create_cq|alloc_pd|open_device).* failed"), "rdma-not-used"),
    (re.compile(r"uncorrectable ECC error", re.IGNORECASE), "gpu-requires-reset"),
    (re.compile(r"GPU is lost|fallen off the bus", re.IGNORECASE), "gpu-lost"),
    (re.compile(r"uncorrectable NVLink error|NVLink.*\bfatal\b", re.IGNORECASE), "nvlink-fatal"),
    (re.compile(r"system not yet initialized|Fabric Manager or NVSwitch", re.IGNORECASE), "nvlink-down"),
    (
        re.compile(
            r"driver version is insufficient|library version mismatch|forward compatibility was attempted",
            re.IGNORECASE,
        ),
        "driver-library-mismatch",
    ),
    (
        re.compile(r"Invalid number of GPUs|no CUDA-capable device|invalid device ordinal", re.IGNORECASE),
        "gpu-missing",
    ),
)
_IB_ONLY = {"roce-gid-unreachable": "link-down", "gid-index-wrong": "rdma-not-used"}
# Failures that name no reason: the test did not run, and that is all one knows.
_KINDS = {"failure": 0, "warn": 1, "launcher": 2}


def reason_of(record: Record, transport: str) -> Optional[Reason]:
    """Return why the run stopped, or None where no message says that it failed."""
    for said in record.said:
        cause = cause_of(said.text)
        if cause is not None:
            same = [other for other in record.said if other.host == said.host and cause_of(other.text) == cause]
            devices = tuple(sorted({other.device for other in same if other.device is not None}))
            word = _IB_ONLY.get(cause, cause) if transport.lower() in ("ib", "infiniband") else cause
            return Reason(FAIL, word, f"line {said.line}: {said.text}", said.line, said.host, devices)
    failures = [said for said in record.said if said.kind != "warn"]
    if not failures:
        return None
    first = min(failures, key=_plainness)
    if first.kind == "launcher" and record.rows:
        return None  # it ran, and was ended from outside: what it printed is cut off
    return Reason(UNKNOWN, "test-did-not-run", f"line {first.line}: {first.text}", first.line, first.host, ())


def cause_of(text: str) -> Optional[str]:
    """Return the cause that one message names, or None where it names none."""
    return next((cause for pattern, cause in _REASONS if pattern.search(text)), None)


def _plainness(said: Said) -> tuple[int, int]:
    return (_KINDS[said.kind], said.line)
