"""What the story's seed decides: which nodes suffer, what from, and how badly."""

import random
from collections.abc import Sequence
from typing import NamedTuple


class Fault(NamedTuple):
    """One fault as the lab's ``fault`` command takes it; ``value`` is Mbit/s, percent or milliseconds by kind."""

    kind: str
    value: float | None = None

    def __str__(self) -> str:
        units = {"rate": "Mbit/s at the switch", "loss": "% lost at the switch", "delay": "ms held back on the wire"}
        if self.value is not None:
            return f"{self.value:g} {units[self.kind]}"
        return {"mtu": "MTU set to 1500 on the NIC", "down": "link down"}[self.kind]


class Draw(NamedTuple):
    """The cast: ``weak`` gets a degraded link, ``broken`` and ``third`` a fault that a prolog can see."""

    seed: int
    weak: str
    weak_fault: Fault
    broken: str
    broken_fault: Fault
    third: str
    third_fault: Fault


# Every one of these leaves the port ACTIVE at full nominal rate.
DEGRADATIONS = {"rate": (5.0, 8.0, 12.0), "loss": (5.0, 8.0, 12.0), "delay": (20.0, 30.0, 40.0)}


def draw(seed: int, nodes: Sequence[str]) -> Draw:
    """Return the cast for ``seed``; needs three compute nodes."""
    if len(nodes) < 3:
        raise ValueError(
            f"the story needs 3 compute nodes, the lab has {len(nodes)}: make lab-down, then LAB_COMPUTE=3 make demo"
        )
    chance = random.Random(seed)  # noqa: S311 - a story, not a secret
    weak, broken, third = chance.sample(sorted(nodes), 3)
    kind = chance.choice(sorted(DEGRADATIONS))
    visible = chance.sample(["mtu", "down"], 2)
    return Draw(
        seed, weak, Fault(kind, chance.choice(DEGRADATIONS[kind])), broken, Fault(visible[0]), third, Fault(visible[1])
    )
