"""Real Slurm daemons for the tests of this folder: started once, cleaned before each test that uses them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.slurm.cluster import Cluster, running


@pytest.fixture(scope="session")
def daemons() -> Iterator[Cluster]:
    """A slurmctld and three slurmd, for the whole session."""
    from lab import image  # type: ignore[import-not-found,unused-ignore] # only where the image is really needed

    if os.geteuid() != 0:
        pytest.fail("tests with real Slurm daemons make namespaces and mounts: run them as root")
    with running(image.ensure().rootfs_dir) as cluster:
        yield cluster


@pytest.fixture
def cluster(daemons: Cluster) -> Cluster:
    """The running Slurm: no jobs, all nodes idle and healthy."""
    daemons.clean()
    return daemons
