"""Checks of mounts: there, the right thing, and over the transport that was asked for. Pure."""

from weaklink.checks.base import DRAIN, EVERYWHERE, Check, NotApplicable, Said, say
from weaklink.model.expected import Expected, MountWant
from weaklink.model.finding import FAIL, OK, UNKNOWN
from weaklink.observe import node
from weaklink.observe.records import Observation

_NOTHING = "no mounts are expected on this node"


def _same_kind(found: str, wanted: str) -> bool:
    # The kernel shows nfs4 for what is often written nfs.
    return not wanted or found == wanted or {found, wanted} == {"nfs", "nfs4"}


def _why(observation: Observation) -> str:
    return observation.trouble.get(node.MOUNTS, "the mounts were not read")


def _present_one(want: MountWant, observation: Observation) -> Said:
    wanted = f"{want.source or 'a mount'} ({want.fstype or 'any type'})"
    if observation.mounts is None:
        return say(
            "mount.present", "mount-missing", want.path, UNKNOWN, f"{want.path}: not judged: {_why(observation)}"
        )
    found = observation.mounts.get(want.path)
    if found is None:
        status, text = FAIL, f"not mounted, wanted {wanted}; mount {want.path}, see that the server answers"
    elif found.fstype == "autofs":
        status, text = UNKNOWN, "waits to be mounted at first use (autofs); nothing to judge yet"
    elif not _same_kind(found.fstype, want.fstype) or (want.source and found.source != want.source):
        status, text = FAIL, f"{found.source} ({found.fstype}) is mounted, wanted {wanted}; run site.yml on this node"
    else:
        status, text = OK, f"{found.source} ({found.fstype})"
    return say("mount.present", "mount-missing", want.path, status, f"{want.path}: {text}", wanted=wanted)


def _present(observation: Observation, expected: Expected) -> list[Said]:
    if not expected.mounts:
        return [NotApplicable("mount.present", expected.node, _NOTHING)]
    return [_present_one(want, observation) for want in expected.mounts]


def _transport_one(want: MountWant, observation: Observation) -> Said:
    name, cause = "mount.transport", "rdma-not-used"
    if want.proto is None:
        return NotApplicable(name, want.path, "any transport will do")
    if observation.mounts is None:
        return say(name, cause, want.path, UNKNOWN, f"{want.path}: not judged: {_why(observation)}")
    found = observation.mounts.get(want.path)
    if found is None or not _same_kind(found.fstype, want.fstype):
        return NotApplicable(name, want.path, "it is not mounted (see mount.present)")
    proto = found.options.get("proto")
    if proto is None:
        status, text = UNKNOWN, f"/proc/mounts does not say its transport, wanted {want.proto}"
    elif proto == want.proto:
        status, text = OK, f"proto={proto}"
    else:
        status, text = FAIL, f"proto={proto}, wanted {want.proto}; check RDMA to {found.source}, then mount it again"
    return say(name, cause, want.path, status, f"{want.path}: {text}", found=proto, wanted=want.proto)


def _transport(observation: Observation, expected: Expected) -> list[Said]:
    if not expected.mounts:
        return [NotApplicable("mount.transport", expected.node, _NOTHING)]
    return [_transport_one(want, observation) for want in expected.mounts]


_NEEDS = frozenset({node.MOUNTS})

CHECKS = (
    Check(
        "mount.present", "mount-missing", DRAIN, EVERYWHERE, _NEEDS, "mount it; see that the server answers", _present
    ),
    Check(
        "mount.transport", "rdma-not-used", DRAIN, EVERYWHERE, _NEEDS, "RDMA to the server; mount it again", _transport
    ),
)
