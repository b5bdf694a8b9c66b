"""Daemons as systemd sees them, all in one call."""

from collections.abc import Sequence
from typing import Optional

from weaklink.model.process import EXITED, RunResult

_STATES = frozenset(
    {"active", "inactive", "failed", "activating", "deactivating", "reloading", "maintenance", "unknown", "refreshing"}
)


def parse_is_active(units: Sequence[str], result: RunResult) -> Optional[dict[str, str]]:
    """Return the state by unit out of ``systemctl is-active UNIT…``; None when systemd could not be asked."""
    lines = result.out.split()
    if result.status != EXITED or len(lines) != len(units) or not set(lines) <= _STATES:
        return None
    return dict(zip(units, lines))
