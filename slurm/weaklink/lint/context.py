"""What a rule may look at beside its own setting."""

from typing import NamedTuple, Optional

from weaklink.lint.facts import Facts
from weaklink.lint.parse import Setting
from weaklink.lint.table import RULES
from weaklink.lint.values import strtoll
from weaklink.lint.version import Version


class Context(NamedTuple):
    """The version of NCCL, the winning setting of each variable, the node's facts (None: not given)."""

    at: Version
    winners: dict[str, Setting]
    facts: Optional[Facts] = None

    def value(self, name: str) -> Optional[str]:
        """Return the value that a variable is set to, None where it is not set or a shell computes it."""
        setting = self.winners.get(name)
        return None if setting is None or setting.dynamic else setting.value

    def number(self, name: str) -> Optional[int]:
        """Return the number that NCCL works with: the setting's, else the default of the version."""
        value = self.value(name)
        if value is None:
            value = RULES[name].default(self.at)
        return None if value is None else strtoll(value)[0]
