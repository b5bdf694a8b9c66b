"""Roles and playbooks as an interface: argument specs equal to defaults, prefixes, comments, names, sizes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())
PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
TASK_FILES = sorted((ROOT / "roles").glob("*/tasks/*.yml"))


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_argument_specs_equal_defaults(role: Path) -> None:
    options = load(role / "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name: option.get("default") for name, option in options.items()} == load(role / "defaults/main.yml")
    for name, option in options.items():
        assert option["description"], name
        assert option["type"], name


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_defaults_are_prefixed_and_each_has_a_comment(role: Path) -> None:
    lines = (role / "defaults/main.yml").read_text(encoding="utf-8").splitlines()
    for before, line in zip(lines, lines[1:], strict=False):
        if re.match(r"\w+:", line):
            assert line.startswith(f"{role.name}_"), line
            assert before.startswith("# "), f"{role.name}: no comment above {line}"


def tasks(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = load(path)
    return found


@pytest.mark.parametrize("path", TASK_FILES, ids=named)
def test_tasks_are_named_and_modules_fully_qualified(path: Path) -> None:
    for task in tasks(path):
        assert task["name"][0].isupper()
        modules = [key for key in task if "." in key]
        assert len(modules) == 1, task
        assert not task.get("ignore_errors")
        assert "shell" not in modules[0]


@pytest.mark.parametrize("path", TASK_FILES, ids=named)
def test_whoever_reveals_keys_logs_nothing(path: Path) -> None:
    for task in tasks(path):
        arguments = task.get("weaklink.cluster.apply")
        if arguments and arguments["desired"] != {} and "reveal" in arguments["desired"]:
            assert task["no_log"] is True
            assert task["check_mode"] is True
        for file in (arguments or {}).get("desired", {}).get("files", []) if isinstance(arguments, dict) else []:
            if isinstance(file, dict) and "key" in file["path"]:
                assert file["secret"] is True, file


@pytest.mark.parametrize("path", TASK_FILES, ids=named)
def test_variables_of_a_task_belong_to_its_role(path: Path) -> None:
    role = path.parts[-3]
    for task in tasks(path):
        names = [*task.get("vars", {}), *([task["register"]] if "register" in task else [])]
        assert all(name.startswith(f"{role}_") for name in names), names


def test_preflight_cannot_be_skipped_by_tags() -> None:
    assert all("always" in task["tags"] for task in tasks(ROOT / "roles/preflight/tasks/main.yml"))


def test_site_only_imports_and_is_short() -> None:
    text = (ROOT / "site.yml").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    imported = []
    for play in yaml.safe_load(text):
        assert set(play) == {"name", "ansible.builtin.import_playbook"}
        imported.append(play["ansible.builtin.import_playbook"])
    assert imported == [named(path) for path in PLAYBOOKS]


@pytest.mark.parametrize("path", PLAYBOOKS, ids=named)
def test_playbooks_are_hosts_and_roles(path: Path) -> None:
    for play in load(path):
        assert set(play) == {"name", "hosts", "roles"}
        for role in play["roles"]:
            prefix, _, name = role["role"].rpartition(".")
            assert prefix == "weaklink.cluster"
            assert (ROOT / "roles" / name / "tasks/main.yml").exists()


def test_every_role_is_used() -> None:
    used = {role["role"].rpartition(".")[2] for path in PLAYBOOKS for play in load(path) for role in play["roles"]}
    assert used == {role.name for role in ROLES}


def test_one_writer_a_file() -> None:
    writers: dict[str, set[str]] = {}
    for path in TASK_FILES:
        for found in re.findall(r"path: (/\S+?)[,}\s]", path.read_text(encoding="utf-8")):
            writers.setdefault(found, set()).add(path.parts[-3])
    shared = {found: roles for found, roles in writers.items() if len(roles) > 1}
    assert shared == {}


def test_versions_agree() -> None:
    text = (ROOT / "slurm/weaklink/__init__.py").read_text(encoding="utf-8")
    assert f'"{load(ROOT / "galaxy.yml")["version"]}"' in text
