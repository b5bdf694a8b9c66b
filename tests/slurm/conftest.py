"""Real Slurm daemons for the tests of this folder: started once, cleaned before each test that uses them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster


@pytest.fixture(scope="session")
def daemons() -> Iterator[Cluster]:
    """A slurmctld and three slurmd, for the whole session."""
    from lab import image  # type: ignore[import-not-found,unused-ignore] # only where the image is really needed

    if os.geteuid() != 0:
        pytest.fail("tests with real Slurm daemons make namespaces and mounts: run them as root")
    rootfs = image.ensure().rootfs_dir
    work = Path(tempfile.mkdtemp(prefix="weaklink-slurm-", dir="/var/tmp"))
    cluster = Cluster(rootfs, work)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def cluster(daemons: Cluster) -> Cluster:
    """The running Slurm: no jobs, all nodes idle and healthy."""
    daemons.clean()
    return daemons
