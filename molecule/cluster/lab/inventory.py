"""Which cluster file describes the lab as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import layout
from .errors import LabError


def path(root: Path, state: Path, compute: int) -> Path:
    """Return the cluster file for ``compute`` compute nodes."""
    if compute == layout.DEFAULT_COMPUTE:
        return root / "inventory/lab/cluster.yml"
    return state / "inventory/cluster.yml"


def for_compute(text: str, compute: int) -> str:
    """Return the cluster file's text with ``c[1-3]`` replaced for another number of nodes."""
    wanted = f"c[1-{compute}]" if compute > 1 else "c1"
    standard = f"c[1-{layout.DEFAULT_COMPUTE}]"
    if standard not in text:
        raise LabError("the lab's cluster file does not name its hosts as expected", wanted=standard)
    return text.replace(standard, wanted)


def write(root: Path, state: Path, compute: int) -> None:
    """Write the copy of the lab's inventory for another number of nodes; nothing to do for the standard one."""
    source = root / "inventory/lab"
    target = state / "inventory"
    shutil.rmtree(target, ignore_errors=True)
    if compute == layout.DEFAULT_COMPUTE or not (source / "cluster.yml").exists():
        return
    shutil.copytree(source, target)
    (target / "cluster.yml").write_text(for_compute((source / "cluster.yml").read_text(), compute))
