"""Whether anything runs on this node that a disruptive change would hurt."""

from __future__ import annotations

from weaklink.apply.host import Host

_SQUEUE_SECONDS = 15.0


def in_the_way(host: Host) -> str:
    """Return why disruptive changes have to wait, in one line; empty when nothing speaks against them.

    Without an active slurmd no job can run here. With one, only squeue's own word that there are none is believed.
    """
    if not host.run("systemctl", "is-active", "--quiet", "slurmd.service").ok:
        return ""
    node = host.text("/proc/sys/kernel/hostname").strip().partition(".")[0]
    found = host.run("squeue", "--noheader", "--format=%i", f"--nodelist={node}", seconds=_SQUEUE_SECONDS)
    if not found.ok:
        return f"cannot tell whether jobs run on {node} ({found.failure()}); stop slurmd, or allow disruptive changes"
    running = found.out.split()
    if not running:
        return ""
    return f"{len(running)} job(s) on {node} ({' '.join(running[:5])}); drain it and wait, or allow disruptive changes"
