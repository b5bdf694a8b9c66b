"""Judge nfsstat: the transport of the mounts of -m; the counters of -c are reported. Pure."""

from typing import Any

from weaklink.checks.tools import storage_rules as rules
from weaklink.checks.tools.base import Context, Judged, close, say
from weaklink.model.finding import FAIL, UNKNOWN, Finding
from weaklink.observe.tools.nfsstat import Record

RULES = (rules.PRESENT, rules.TRANSPORT, rules.RAN)


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; context: require_rdma, required_mounts (NFS mount points)."""
    rdma = rules.paths(context, "require_rdma") or []
    protos = {mount.point.rstrip("/") or "/": mount.proto for mount in record.mounts}
    kinds = {mount.point.rstrip("/") or "/": mount.type for mount in record.mounts}
    findings: list[Finding] = []
    if not record.mounts and not record.troubles and (rdma or not record.counters):
        text = "nfsstat lists no mount; nothing can be said of their transport (nfsstat -m lists them)"
        findings.append(say(rules.RAN, "nfsstat", UNKNOWN, text))
    else:
        whole = not record.troubles
        findings += rules.transports([path for path in rdma if whole or protos.get(path)], protos, kinds)
        for path in rules.paths(context, "required_mounts") or []:
            if record.mounts and whole and path not in protos and path not in rdma:
                findings.append(say(rules.PRESENT, path, FAIL, f"{path}: no NFS mount lies there; mount it"))
    rpc = record.counters.get("client rpc", {})
    calls, again = rpc.get("calls"), rpc.get("retrans")
    facts: dict[str, Any] = {
        "nfs_mounts": len(record.mounts) if record.mounts else None,
        "transport": protos,
        "not_rdma": rules.not_rdma(rdma, protos, kinds) if record.mounts else None,
        "calls": calls,
        "retrans": again,
        "retrans_fraction": again / calls if calls and again is not None else None,
        "counters": record.counters,
    }
    return close("mount", facts, findings, record.troubles, "the NFS mounts use what they should")
