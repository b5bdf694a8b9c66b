"""The story that ``make demo`` tells, held step by step; node, kind and severity come from a printed seed."""

import os
import secrets

import pytest
from lab import Lab

from .cluster import Cluster
from .draw import draw
from .narrator import Narrator
from .story import Story

pytestmark = pytest.mark.lab

STEPS = [
    "job_over_rdma",
    "healthy_sweeps",
    "degrade",
    "sweep_drains",
    "why",
    "prolog_catches",
    "admin_takes_over",
    "over_budget",
    "admin_untouched",
    "heal_and_return",
    "observe_mode",
]


@pytest.fixture(scope="module")
def story(lab: Lab) -> Story:
    seed = int(os.environ.get("STORY_SEED") or secrets.randbelow(10_000))
    print(f"\nSTORY_SEED={seed}")
    lab.reset("provisioned")
    told = Story(Cluster(lab), draw(seed, [node.name for node in lab.compute_nodes]), Narrator())
    assert [step.__name__ for _, step in told.steps()] == STEPS
    return told


@pytest.mark.parametrize("step", STEPS)
def test_story(story: Story, step: str, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        story.tell.step(f"{step} (seed {story.cast.seed})")
        getattr(story, step)()
