"""What several files of unit tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from weaklink.scheduler import ownership

from tests.hooknode import Node


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node of the hooks' tests."""
    # Nobody else drains at the same time here.
    monkeypatch.setattr(ownership, "_SAME_STAMP", 0.0)
    return Node(tmp_path)
