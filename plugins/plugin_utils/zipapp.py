"""Pack the node program (the tree under slurm/) into a zipapp that is the same, byte for byte, wherever it is built."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

ENTRY_SCRIPTS = ("prolog", "epilog", "health")
FILES = (*ENTRY_SCRIPTS, "job_submit.lua")
MAIN = b'"""Start weaklink\'s command line."""\n\nfrom weaklink.__main__ import console\n\nconsole()\n'
_EPOCH = (1980, 1, 1, 0, 0, 0)


def source() -> Path:
    """Return the checkout's or the collection's slurm/ folder: it lies beside plugins/."""
    return Path(__file__).resolve().parents[2] / "slurm"


def contents(folder: Path) -> dict[str, bytes]:
    """Return what goes into the zipapp: name -> content, in order of names."""
    found = {"__main__.py": MAIN}
    for path in sorted((folder / "weaklink").rglob("*")):
        if path.is_file() and path.suffix in (".py", ".json", ".yml", ".typed"):
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    for name in FILES:
        if (folder / name).is_file():
            found[name] = (folder / name).read_bytes()
    return dict(sorted(found.items()))


def fingerprint(files: dict[str, bytes]) -> str:
    """Return the name of a release: 20 hex digits over names and contents (not over the archive: zlib differs)."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:20]


def build(files: dict[str, bytes], shebang: str = "") -> bytes:
    """Return the archive as bytes: fixed times, order and modes; with ``shebang`` it can be started by itself."""
    buffer = io.BytesIO()
    if shebang:
        buffer.write(f"#!{shebang}\n".encode())
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = (0o755 if name in ENTRY_SCRIPTS else 0o644) << 16
            archive.writestr(info, content)
    return buffer.getvalue()
