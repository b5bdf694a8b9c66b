"""Judge /proc/self/mountstats: which transport NFS mounts really use. Pure."""

from weaklink.checks.tools import storage_rules as rules
from weaklink.checks.tools.base import Context, Judged, close, say
from weaklink.model.finding import FAIL, UNKNOWN, Finding
from weaklink.observe.tools.mountstats import Record

RULES = (rules.PRESENT, rules.TRANSPORT, rules.RAN)


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; context: require_rdma, required_mounts (NFS mount points)."""
    rdma = rules.paths(context, "require_rdma") or []
    found = {entry.mount.point.rstrip("/") or "/": entry for entry in record.nfs}
    protos = {path: entry.transport for path, entry in found.items()}
    kinds = {path: entry.mount.type for path, entry in found.items()}
    findings: list[Finding] = []
    if not record.mounts and not record.troubles:
        findings.append(say(rules.RAN, "mountstats", UNKNOWN, "no mount is listed; nothing can be said of them"))
    else:
        whole = not record.troubles
        findings += rules.transports([path for path in rdma if whole or protos.get(path)], protos, kinds)
        for path in rules.paths(context, "required_mounts") or []:
            if whole and path not in found and path not in rdma and record.mounts == len(record.nfs):
                findings.append(say(rules.PRESENT, path, FAIL, f"{path}: no NFS mount lies there; mount it"))
    facts = {
        "nfs_mounts": len(record.nfs) if record.mounts else None,
        "transport": protos,
        "not_rdma": rules.not_rdma(rdma, protos, kinds) if record.mounts else None,
        "connections": {path: len(entry.transports) for path, entry in found.items()},
        "nfs_points": list(found),
    }
    return close("mount", facts, findings, record.troubles, f"{len(record.nfs)} NFS mounts use what they should")
