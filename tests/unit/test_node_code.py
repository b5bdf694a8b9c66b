"""What holds for code that runs on nodes: the floor of Python, no shell; hooks disturb nothing. Layers: test_layout."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "slurm/weaklink"
HOOK_PARTS = ("observe", "checks", "hooks", "scheduler", "lint", "explain")
FILES = [
    *(path for part in HOOK_PARTS for path in sorted((PACKAGE / part).rglob("*.py"))),
    *(
        PACKAGE / name
        for name in (
            "model/process.py",
            "model/expected.py",
            "model/finding.py",
            "model/nccl.py",
            "__main__.py",
            "cli/__init__.py",
        )
    ),
    *(PACKAGE / f"cli/{name}.py" for name in ("check", "observe")),
    *(PACKAGE.parent / name for name in ("prolog", "epilog", "health")),
]
# These change a node on purpose, or measure. (Unions of types do no harm in apply: it postpones their reading.)
NODE_FILES = [
    *FILES,
    *(path for part in ("apply", "measure") for path in sorted((PACKAGE / part).rglob("*.py"))),
    *(PACKAGE / f"cli/{name}.py" for name in ("apply", "measure")),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE.parent)))
def test_the_floor_is_python_3_9(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    for item in ast.walk(tree):
        # X | Y of types parses on 3.9 and breaks when it is read at run time.
        assert not isinstance(item, getattr(ast, "Match", ())), f"{path}: match"
        if isinstance(item, ast.BinOp) and isinstance(item.op, ast.BitOr):
            sides = {getattr(side, "id", getattr(side, "value", "")) for side in (item.left, item.right)}
            assert not sides & {None, "str", "int", "bytes", "float", "bool"}, f"{path}:{item.lineno}: a union of types"
        if isinstance(item, ast.Call) and getattr(item.func, "id", "") == "zip":
            assert not item.keywords, f"{path}:{item.lineno}: zip(strict=) is of 3.10"


def test_no_shell_anywhere() -> None:
    for path in NODE_FILES:
        for item in ast.walk(ast.parse(path.read_text())):
            if isinstance(item, ast.keyword):
                assert item.arg != "shell", path
            if isinstance(item, ast.Attribute):
                assert item.attr not in ("system", "popen", "Popen"), path


# What hooks may start, by its first words: it reads, and it asks Slurm. Nothing that disturbs a node is among them.
COMMANDS = {
    ("ibv_devinfo",),
    ("ip", "-j", "addr", "show"),
    ("systemctl", "is-active"),
    ("scontrol", "show"),
    ("scontrol", "update"),
    ("scontrol", "create", "reservation"),
    ("scontrol", "delete"),
    ("scontrol", "requeue"),
    ("scontrol", "-o"),
    ("squeue", "-h"),
    ("scancel",),
}
TOOLS = {words[0] for words in COMMANDS} | {
    "reboot",
    "shutdown",
    "mlxconfig",
    "mlxfwreset",
    "flint",
    "modprobe",
    "rdma",
}


def test_node_code_starts_nothing_that_disturbs_a_node() -> None:
    started = set()
    for path in FILES:
        for item in ast.walk(ast.parse(path.read_text())):
            if not isinstance(item, (ast.List, ast.Tuple)) or not item.elts:
                continue
            words = [part.value if isinstance(part, ast.Constant) else None for part in item.elts]
            if words[0] in TOOLS and isinstance(item, ast.List):
                begin = next((known for known in COMMANDS if tuple(words[: len(known)]) == known), None)
                assert begin, f"{path.name}:{item.lineno} starts {words}"
                started.add(begin)
    assert started == COMMANDS  # the list has nothing that is not used


def test_files_are_short() -> None:
    for path in NODE_FILES:
        assert len(path.read_text().splitlines()) < 500, path
        for item in ast.walk(ast.parse(path.read_text())):
            if isinstance(item, ast.FunctionDef):
                assert (item.end_lineno or 0) - item.lineno < 60, f"{path}: {item.name}"
