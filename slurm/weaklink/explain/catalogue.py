"""All tools and their rules, for documents and for a person who asks what is looked at."""

import textwrap
from collections.abc import Iterator
from typing import Any

from weaklink.explain import tools


def catalogue() -> list[dict[str, Any]]:
    """Return every tool with its rules: name, severity, action, causes, how it decides, what to do."""
    return [
        {
            "tool": name,
            "rules": [
                {
                    "name": rule.name,
                    "severity": rule.severity,
                    "action": rule.action,
                    "causes": list(rule.causes),
                    "decides": rule.decides,
                    "remedy": rule.remedy,
                }
                for rule in tools.judge(name).RULES
            ],
        }
        for name in tools.readers()
    ]


def words(width: int = 80) -> Iterator[str]:
    """Yield the catalogue's lines for a terminal."""
    for entry in catalogue():
        yield entry["tool"]
        for rule in entry["rules"]:
            yield f"  {rule['name']} ({rule['severity']}, {rule['action']}): {', '.join(rule['causes'])}"
            for text in (rule["decides"], f"do: {rule['remedy']}"):
                yield from textwrap.wrap(text, width, initial_indent=" " * 6, subsequent_indent=" " * 8)
