"""What documents name exists: tests, make targets, files."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def defined(path: Path, name: str) -> bool:
    return path.is_file() and re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE) is not None


def test_the_rules_name_tests_that_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    file, found = ROOT, 0
    for name in re.findall(r"`((?:unit|slurm|lab)/\w+\.py(?:::\w+)?|::\w+)`", text):
        path, _, test = name.partition("::")
        file = ROOT / "tests" / path if path else file
        assert file.is_file(), name
        assert not test or defined(file, test), f"{file.relative_to(ROOT)} has no {test}"
        found += 1
    assert found >= 20


def test_the_list_of_tests_that_must_run_names_tests_that_exist() -> None:
    for line in (ROOT / "tests/must_run.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            path, _, test = line.split()[1].partition("::")
            assert defined(ROOT / path, test.partition("[")[0]), line


def test_the_readme_names_make_targets_and_files_that_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"make ([a-z][a-z-]*)", readme))
    assert {"demo", "test"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for link in re.findall(r"\]\(([^)#]+)\)", readme):
        assert (ROOT / link).exists(), link
