"""All NCCL variables by name, and the nearest name to one that is not among them."""

from weaklink.lint.rule import Rule
from weaklink.lint.table_debug import DEBUG_RULES, FOREIGN_RULES, INTERNAL_RULES
from weaklink.lint.table_system import SYSTEM_RULES
from weaklink.model import words

RULES: dict[str, Rule] = {rule.name: rule for rule in (*SYSTEM_RULES, *DEBUG_RULES, *INTERNAL_RULES, *FOREIGN_RULES)}


def nearest(name: str) -> str:
    """Return the documented variable that ``name`` looks most like, empty where none does."""
    upper = name.strip().upper()
    if upper in RULES:
        return upper
    documented = [rule.name for rule in RULES.values() if rule.documented]
    return words.nearest(upper, documented, 0.8)
