"""One lab for all lab tests; molecule or ``make lab-up`` may have booted it already."""

from pathlib import Path

import pytest
from lab import Lab

from .cluster import Cluster

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def lab() -> Lab:
    machine = Lab(ROOT, progress=print)
    machine.up()
    return machine


@pytest.fixture(scope="session")
def cluster(lab: Lab) -> Cluster:
    return Cluster(lab)
