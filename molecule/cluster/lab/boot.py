"""The boot files of the machines, made so that emulated hardware starts fast.

An uncompressed kernel (entered through its PVH note) saves the emulated decompression, and an initramfs with a static
busybox and four modules saves the distribution's general one.
"""

from __future__ import annotations

import lzma
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .errors import LabError

_SETUP_SECTORS = 0x1F1
_PAYLOAD_OFFSET = 0x248
_ELF = b"\x7fELF"


def extract_kernel(image: bytes) -> bytes:
    """Return the uncompressed ELF kernel out of a bzImage with a zstd payload (Linux x86 boot protocol 2.08)."""
    setup = (image[_SETUP_SECTORS] + 1) * 512
    offset, length = struct.unpack_from("<II", image, _PAYLOAD_OFFSET)
    payload = image[setup + offset : setup + offset + length]
    # zstd complains about the size that the kernel appends to the stream; what comes out is complete all the same
    result = subprocess.run(["zstd", "-dcq"], input=payload, capture_output=True, timeout=120, check=False)
    if not result.stdout.startswith(_ELF):
        raise LabError(
            "the kernel's payload is no zstd-compressed ELF file",
            found=result.stdout[:4].hex() or "nothing",
            output=result.stderr.decode(errors="replace"),
        )
    return result.stdout


def parse_dependencies(text: str) -> dict[str, list[str]]:
    """Read modules.dep: module path to the paths it needs, the nearest first."""
    table: dict[str, list[str]] = {}
    for line in text.splitlines():
        path, _, needs = line.partition(":")
        table[path.strip()] = needs.split()
    return table


def module_name(path: str) -> str:
    """Return a module's name as modprobe knows it: ``kernel/fs/jbd2/jbd2.ko.xz`` is ``jbd2``."""
    return path.rsplit("/", 1)[-1].split(".ko", 1)[0].replace("-", "_")


def load_order(names: Sequence[str], table: dict[str, list[str]]) -> list[str]:
    """Return the paths to load for ``names`` and all that they need, each once, needs first.

    Names that are not in the table are built into the kernel and left out.
    """
    paths = {module_name(path): path for path in table}
    order: list[str] = []
    for name in names:
        path = paths.get(name)
        if path is None:
            continue
        order += [entry for entry in [*reversed(table[path]), path] if entry not in order]
    return order


def _entry(name: str, mode: int, data: bytes, inode: int) -> bytes:
    """Return one member of a cpio archive in the "newc" format, padded to four bytes."""
    fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return header + b"\0" * (-len(header) % 4) + data + b"\0" * (-len(data) % 4)


def archive(directories: Sequence[str], files: Sequence[tuple[str, int, bytes]]) -> bytes:
    """Return a cpio archive (newc) of directories and of files given as name, permission bits, content."""
    members = [(name, 0o040755, b"") for name in directories]
    members += [(name, 0o100000 | mode, data) for name, mode, data in files]
    body = b"".join(_entry(name, mode, data, inode) for inode, (name, mode, data) in enumerate(members, 1))
    return body + _entry("TRAILER!!!", 0, b"", 0)


def make_initramfs(root: Path, modules: Sequence[str], init: str) -> bytes:
    """Return an initramfs (uncompressed) with busybox and ``modules`` of the one kernel that ``root`` has."""
    [library] = (root / "usr/lib/modules").iterdir()
    order = load_order(modules, parse_dependencies((library / "modules.dep").read_text()))
    files = [("init", 0o755, init.encode()), ("bin/busybox", 0o755, (root / "usr/bin/busybox").read_bytes())]
    for path in order:
        raw = (library / path).read_bytes()
        plain = lzma.decompress(raw) if path.endswith(".xz") else raw
        files.append((f"modules/{module_name(path)}.ko", 0o644, plain))
    listing = "".join(f"{module_name(path)}.ko\n" for path in order)
    files.append(("modules/order", 0o644, listing.encode()))
    return archive(["bin", "dev", "proc", "sys", "root", "modules"], files)
