"""What the two pages say is so: the order of tools, formats with a visible end, files and names of the example."""

from __future__ import annotations

import re
from pathlib import Path

from weaklink.explain import tools
from weaklink.explain.context import KEYS

from tests.unit.test_cases import ENDED

ROOT = Path(__file__).resolve().parents[3]
EXPLAIN = (ROOT / "docs/explain.md").read_text(encoding="utf-8")
ADDING = (ROOT / "docs/adding-a-parser-and-a-check.md").read_text(encoding="utf-8")


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_the_order_of_tools_is_the_one_that_settles_ties() -> None:
    assert tuple(quoted(EXPLAIN.partition("\nOrder: ")[2].partition("\n\n")[0])) == tools.ORDER


def test_the_formats_with_a_visible_end_are_those_that_are_tested() -> None:
    listed = quoted(EXPLAIN.partition("seen: ")[2].partition(" and everything in JSON")[0])
    assert set(listed) == set(ENDED)


def test_what_the_pages_name_exists() -> None:
    for text in (EXPLAIN, ADDING):
        for path in re.findall(r"`((?:slurm|tests)/[\w/.-]+)`", text):
            assert (ROOT / path.replace("NNN-tool-gist/", "")).exists(), path
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            assert (ROOT / "docs" / link).exists(), link


def test_the_example_is_as_it_is_shown() -> None:
    rules = {rule.name: rule for rule in tools.judge("nfsstat").RULES}
    assert rules["mount.rdma"].causes == ("rdma-not-used", "test-did-not-run")
    assert {"mounts", "counters", "version", "troubles"} == set(tools.reader("nfsstat").Record._fields)
    assert set(re.findall(r'demand\(context, "(\w+)"', ADDING)) <= KEYS
