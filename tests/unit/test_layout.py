"""Who may import whom: the layers of the package, held by reading every import statement."""

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "slurm" / "weaklink"

# layer -> layers it may import (itself is always allowed).
ALLOWED = {
    "model": set(),
    "plan": {"model"},
    "lint": {"model"},
    "observe": {"model"},
    "sweep": {"model"},
    "locate": {"model"},
    "checks": {"observe", "model", "lint"},
    "explain": {"observe", "model", "lint", "checks"},
    "apply": {"observe", "model"},
    "measure": {"observe", "model"},
    "scheduler": {"model"},
    "hooks": {"checks", "measure", "scheduler", "observe", "model"},
    "history": {"model"},
    "guard": {"history", "locate", "scheduler", "checks", "sweep", "observe", "model"},
    "accept": {"guard", "history", "locate", "scheduler", "checks", "sweep", "observe", "model"},
    "report": {"guard", "history", "locate", "scheduler", "checks", "sweep", "observe", "model"},
}
NODE_LAYERS = {"observe", "checks", "explain", "lint", "apply", "measure", "scheduler", "hooks"}
CONTROLLER_LAYERS = {"history", "guard", "sweep", "locate", "plan", "report"}

MODULES = sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.append(node.module or "")
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_layer_imports_only_what_it_may(path: Path) -> None:
    parts = path.relative_to(PACKAGE).parts
    layer = parts[0] if len(parts) > 1 else ""
    if layer in ("", "cli"):
        return
    assert layer in ALLOWED, f"{path}: layer {layer} has no line in the table"
    for name in imports(path):
        if not name.startswith("weaklink."):
            continue
        target = name.split(".")[1]
        assert target == layer or target in ALLOWED[layer], f"{path} ({layer}) imports {name}"


def test_node_layers_may_not_even_name_controller_layers() -> None:
    for layer in NODE_LAYERS:
        assert not ALLOWED[layer] & CONTROLLER_LAYERS


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_node_code_needs_the_standard_library_alone(path: Path) -> None:
    parts = path.relative_to(PACKAGE).parts
    layer = parts[0] if len(parts) > 1 else ""
    if layer not in NODE_LAYERS | {"model"} or (layer == "model" and parts[-1].startswith("cluster")):
        return
    for name in imports(path):
        top = name.split(".")[0]
        assert top == "weaklink" or top in sys.stdlib_module_names, f"{path} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_node_code_parses_as_python_3_9(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
