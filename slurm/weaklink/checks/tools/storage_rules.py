"""Rules over mounts and LNet, and what several judges of them share. Pure."""

from collections.abc import Iterator, Mapping
from typing import Optional

from weaklink.checks.tools.base import DRAIN, NOTE, Context, Rule, demand, say
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding

PRESENT = Rule(
    "mount.listed",
    ("mount-missing",),
    FAIL,
    DRAIN,
    "every path of required_mounts is mounted (an autofs trigger alone is not yet the file system)",
    "mount it; see that the server answers",
)
TRANSPORT = Rule(
    "mount.rdma",
    ("rdma-not-used", "test-did-not-run"),
    FAIL,
    DRAIN,
    "proto= of each path of require_rdma (not mountproto=), or the transport of its connections, is rdma",
    "unmount it; check that xprtrdma is loaded and RDMA to the server works; mount with proto=rdma,port=20049",
)
RAN = Rule(
    "mount.ran", ("test-did-not-run",), UNKNOWN, NOTE, "a list without a mount allows no judgement", "read /proc/mounts"
)
LNET_NET = Rule(
    "lnet.network",
    ("rdma-not-used", "lnet-down"),
    FAIL,
    DRAIN,
    "the network of required_net is configured and has an interface that is up",
    "lnetctl net add --net o2ib --if ib0, or correct lnet.conf and modprobe's options; load ko2iblnd",
)
LNET_UP = Rule(
    "lnet.state",
    ("lnet-down",),
    FAIL,
    DRAIN,
    "LNet is configured and its interfaces are up; 'Network is down' means that it is not started",
    "lnetctl lnet configure --all (or lctl network up); look at dmesg for LNetError",
)
LNET_HEALTH = Rule(
    "lnet.health",
    ("lustre-peer-timeout",),
    DEGRADED,
    NOTE,
    "the health value of an interface (not of lo) is below its maximum of 1000",
    "look at dmesg for LNet errors; check the link and the peer; it recovers by itself when the cause is gone",
)
LNET_PEER = Rule(
    "lnet.peer",
    ("lustre-peer-timeout",),
    FAIL,
    DRAIN,
    "a ping of a peer failed, or a peer's state is down",
    "check RDMA to the server (ping, ibv_rc_pingpong) and the server's LNet",
)
LNET_RAN = Rule(
    "lnet.ran",
    ("test-did-not-run", "not-root"),
    UNKNOWN,
    NOTE,
    "an output that holds neither a network nor an error of LNet allows no judgement",
    "run it again as root",
)


_RDMA = frozenset({"rdma", "rdma6"})
_NETWORKED = frozenset({"nfs", "nfs4", "lustre", "autofs", None})


def paths(context: Context, key: str) -> Optional[list[str]]:
    """Return the mount points that ``context`` lists at ``key``, without ends such as ``/home/``; None for none."""
    names = demand(context, key, list)
    if names is None:
        return None
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"context: key {key!r}: found {names!r:.60}, wanted a list of mount points")
    return [name.rstrip("/") or "/" for name in names]


def transports(wanted: list[str], found: Mapping[str, Optional[str]], kinds: Mapping[str, str]) -> Iterator[Finding]:
    """Judge ``found`` (mount point → transport) against the mount points that must use RDMA."""
    for path in wanted:
        kind = kinds.get(path)
        proto = found.get(path)
        if path not in found:
            text = f"{path}: not mounted, wanted NFS over RDMA; mount it, see that the server answers"
            yield say(TRANSPORT, path, FAIL, text)
        elif proto in _RDMA:
            continue
        elif proto is None and kind not in _NETWORKED:
            text = f"{path}: {kind} lies there, wanted NFS over RDMA; unmount it, mount the right file system"
            yield say(TRANSPORT, path, FAIL, text, found=kind)
        elif proto is None:
            text = f"{path} ({kind or 'unknown type'}): nothing here says its transport, wanted rdma"
            yield say(TRANSPORT, path, UNKNOWN, text, "test-did-not-run")
        else:
            text = f"{path} ({kind}): goes over {proto}, wanted rdma; check xprtrdma and the RDMA port, mount it again"
            yield say(TRANSPORT, path, FAIL, text, found=proto)


def not_rdma(wanted: list[str], found: Mapping[str, Optional[str]], kinds: Mapping[str, str]) -> list[str]:
    """Return the mount points of ``wanted`` that are there and certainly do not use RDMA."""
    return [
        path
        for path in wanted
        if path in found and found[path] not in _RDMA and (found[path] is not None or kinds.get(path) not in _NETWORKED)
    ]
