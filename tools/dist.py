"""Make what one installs from: ``dist/weaklink-V.pyz``, the wheel, and the Ansible collection. ``make dist`` runs it.

Nothing is fetched. The zipapp and the wheel are written here and are the same, byte for byte, for the same sources; the
collection is packed by ansible-galaxy, which puts times of files into it.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import tomllib

ROOT = Path(__file__).resolve().parents[1]


def _load_zipapp() -> ModuleType:
    """Load the packer that the action plugin uses; its name is that of a standard module, so not by import."""
    spec = importlib.util.spec_from_file_location("weaklink_zipapp", ROOT / "plugins/plugin_utils/zipapp.py")
    if spec is None or spec.loader is None:
        raise ImportError("plugins/plugin_utils/zipapp.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


zipapp = _load_zipapp()
_EPOCH = (1980, 1, 1, 0, 0, 0)
# What must never get into the collection's archive.
FORBIDDEN = re.compile(
    r"(^|/)(\.venv|\.lab|\.git|\.collections|__pycache__|\.[a-z]+_cache|\.hypothesis)(/|$)|\.pyc$|^tests/"
)


# Bytes; sources alone are a small part of it. More means that something strayed in.
MOST_BYTES = 4 * 1024 * 1024


class DistError(Exception):
    """Something could not be built; the text says what and why."""


def version() -> str:
    """Return weaklink's version, as its package says."""
    text = (ROOT / "slurm/weaklink/__init__.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if match is None:
        raise DistError('slurm/weaklink/__init__.py: no __version__; wanted a line __version__ = "1.2.3"')
    return match.group(1)


def build_zipapp(folder: Path) -> Path:
    """Write the program that runs by itself on any node."""
    path = folder / f"weaklink-{version()}.pyz"
    path.write_bytes(zipapp.build(zipapp.contents(ROOT / "slurm"), shebang="/usr/bin/env python3"))
    path.chmod(0o755)
    return path


def _metadata() -> tuple[str, str]:
    """Return METADATA and entry_points.txt of the wheel, out of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version()}"]
    lines += [f"Summary: {project['description']}", f"License: {project['license']['text']}"]
    lines += [f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {need}" for need in project["dependencies"]]
    for extra, needs in sorted(project["optional-dependencies"].items()):
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {need}; extra == "{extra}"' for need in needs]
    scripts = "".join(f"{name} = {target}\n" for name, target in sorted(project["scripts"].items()))
    return "\n".join(lines) + "\n", f"[console_scripts]\n{scripts}"


def build_wheel(folder: Path) -> Path:
    """Write the wheel of the Python package."""
    name = f"weaklink-{version()}"
    info = f"{name}.dist-info"
    metadata, scripts = _metadata()
    files = {path: text for path, text in zipapp.contents(ROOT / "slurm").items() if path.startswith("weaklink/")}
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/entry_points.txt"] = scripts.encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: weaklink-dist\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = [f"{path},{_digest(content)},{len(content)}" for path, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    path = folder / f"{name}-py3-none-any.whl"
    path.write_bytes(buffer.getvalue())
    return path


def _digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def build_collection(folder: Path) -> Path:
    """Let ansible-galaxy pack the collection, and look into what it packed."""
    galaxy = Path(sys.executable).with_name("ansible-galaxy")
    command = [str(galaxy), "collection", "build", "--force", "--output-path", str(folder), str(ROOT)]
    env = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=300)
    path = folder / f"weaklink-cluster-{version()}.tar.gz"
    if done.returncode != 0 or not path.exists():
        raise DistError(f"ansible-galaxy made no {path.name}: {done.stderr.strip() or done.stdout.strip()}")
    with tarfile.open(path) as archive:
        stray = [name for name in archive.getnames() if FORBIDDEN.search(name)]
    if path.stat().st_size > MOST_BYTES:
        stray = stray or [f"{path.stat().st_size} bytes"]
    if stray:
        path.unlink()
        raise DistError(
            f"{path.name}: holds {stray[0]} and {len(stray) - 1} more; add it to build_ignore in galaxy.yml"
        )
    return path


def main(folder: Path = ROOT / "dist") -> int:
    """Build everything into ``folder`` (what was there goes) and say what came of it: name, size, SHA-256."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        for path in (build_zipapp(folder), build_wheel(folder), build_collection(folder)):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            print(f"{digest}  {path.stat().st_size / 1024:6.0f} KiB  {folder.name}/{path.name}")
    except DistError as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
