"""Check of the daemons that a node needs. Pure."""

from weaklink.checks.base import CLI, HEALTH, NOTE, Check, NotApplicable, Said, say
from weaklink.model.expected import Expected
from weaklink.model.finding import FAIL, OK, UNKNOWN
from weaklink.observe import node
from weaklink.observe.records import Observation

_NAME, _CAUSE = "slurm.daemons", "daemon-down"
_DEAD = frozenset({"inactive", "failed"})


def _daemons(observation: Observation, expected: Expected) -> list[Said]:
    if not expected.daemons:
        return [NotApplicable(_NAME, expected.node, "no daemons are expected on this node")]
    said: list[Said] = []
    for unit in expected.daemons:
        state = (observation.daemons or {}).get(unit)
        if state is None:
            why = observation.trouble.get(node.DAEMONS, "systemd was not asked")
            status, text = UNKNOWN, f"not judged: {why}"
        elif state in _DEAD:
            status, text = FAIL, f"{state}, wanted active; journalctl -u {unit}, then systemctl restart {unit}"
        elif state == "active":
            status, text = OK, state
        else:
            status, text = UNKNOWN, f"{state}; look again when it has settled"
        said.append(say(_NAME, _CAUSE, unit, status, f"{unit}: {text}", state=state))
    return said


CHECKS = (
    Check(
        _NAME,
        _CAUSE,
        NOTE,
        frozenset({HEALTH, CLI}),
        frozenset({node.DAEMONS}),
        "the unit's journal, then a restart",
        _daemons,
    ),
)
