"""Judge a list of mounts: all there, and over RDMA where that is asked for. Pure."""

from typing import Any

from weaklink.checks.tools import storage_rules as rules
from weaklink.checks.tools.base import Context, Judged, close, say
from weaklink.model.finding import FAIL, UNKNOWN, Finding
from weaklink.observe.tools.mounts import Record

RULES = (rules.PRESENT, rules.TRANSPORT, rules.RAN)


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; context: required_mounts, require_rdma (lists of mount points)."""
    wanted = rules.paths(context, "required_mounts")
    rdma = rules.paths(context, "require_rdma") or []
    top = {mount.point.rstrip("/") or "/": mount for mount in record.mounts}
    there = {path for path, mount in top.items() if mount.type != "autofs"}
    missing = [path for path in wanted or [] if path not in there]
    protos = {path: top[path].proto for path in top if path in there}
    kinds = {path: mount.type for path, mount in top.items()}
    findings: list[Finding] = []
    if not record.mounts and not record.troubles:
        findings.append(say(rules.RAN, "mounts", UNKNOWN, "no mount is listed; nothing can be said of them"))
    elif not record.troubles:
        findings += rules.transports(rdma, protos, kinds)
        findings += [
            say(rules.PRESENT, path, FAIL, f"{path}: not mounted; mount it, see the server")
            for path in missing
            if path not in rdma
        ]
    else:  # what is not in a cut list may stand in the rest
        findings += rules.transports([path for path in rdma if path in there], protos, kinds)
    facts: dict[str, Any] = {
        "mounts": {
            path: {"type": mount.type, **({"proto": mount.proto} if mount.proto else {}), "source": mount.source}
            for path, mount in top.items()
        },
        "missing": missing if record.mounts else None,
        "not_rdma": rules.not_rdma(rdma, protos, kinds) if record.mounts else None,
    }
    return close("mount", facts, findings, record.troubles, f"{len(record.mounts)} mounts, those wanted are right")
