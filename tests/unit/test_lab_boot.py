"""The boot files: module order, the archive format, the kernel's payload; and the recipe's name."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from lab import boot, recipe
from lab.errors import LabError

DEPENDENCIES = """\
kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz kernel/lib/crc16.ko.xz kernel/fs/mbcache.ko.xz
kernel/fs/jbd2/jbd2.ko.xz:
kernel/lib/crc16.ko.xz:
kernel/fs/mbcache.ko.xz:
kernel/drivers/block/virtio_blk.ko.xz:
kernel/arch/x86/crypto/crc32c-intel.ko.xz: kernel/lib/crc16.ko.xz
"""


def test_modules_come_after_what_they_need_and_once() -> None:
    table = boot.parse_dependencies(DEPENDENCIES)
    order = [boot.module_name(path) for path in boot.load_order(["virtio_blk", "ext4", "crc32c_intel"], table)]
    assert order[0] == "virtio_blk"
    assert order.index("jbd2") < order.index("ext4")
    assert order[-1] == "crc32c_intel"
    assert len(order) == len(set(order)) == 6


def test_module_that_is_built_in_is_left_out() -> None:
    assert boot.load_order(["virtio_pci"], boot.parse_dependencies(DEPENDENCIES)) == []


def test_archive_is_read_by_another_program(tmp_path: Path) -> None:
    data = boot.archive(["bin"], [("init", 0o755, b"#!/bin/sh\n"), ("bin/odd", 0o644, b"12345")])
    subprocess.run(["cpio", "-i", "--quiet"], input=data, cwd=tmp_path, check=True)
    assert (tmp_path / "bin/odd").read_bytes() == b"12345"
    assert (tmp_path / "init").stat().st_mode & 0o777 == 0o755


def test_archive_entries_are_aligned_and_end_with_the_trailer() -> None:
    data = boot.archive(["a"], [("b", 0o644, b"x")])
    assert len(data) % 4 == 0
    assert data.startswith(b"070701")
    assert data.count(b"070701") == 3
    assert b"TRAILER!!!\0" in data[-16:]


def _kernel(payload: bytes) -> bytes:
    """A file laid out as a bzImage: one boot sector, four setup sectors, then the payload."""
    head = bytearray(512 * 5)
    head[0x1F1] = 4
    struct.pack_into("<II", head, 0x248, 16, len(payload))
    return bytes(head) + b"\0" * 16 + payload + b"the tail"


def test_kernel_is_cut_out_and_unpacked() -> None:
    elf = b"\x7fELF" + bytes(range(256)) * 40
    packed = subprocess.run(["zstd", "-qc"], input=elf, capture_output=True, check=True).stdout
    size = struct.pack("<I", len(elf))  # the kernel's build appends the unpacked size, which zstd complains about
    assert boot.extract_kernel(_kernel(packed + size)) == elf


def test_kernel_with_another_compression_is_refused() -> None:
    with pytest.raises(LabError, match="no zstd-compressed ELF"):
        boot.extract_kernel(_kernel(b"\x1f\x8b" + bytes(100)))


def test_fingerprint_follows_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    before = recipe.fingerprint()
    assert before == recipe.fingerprint()
    monkeypatch.setattr(recipe, "PACKAGES", [*recipe.PACKAGES, "strace"])
    changed = recipe.fingerprint()
    monkeypatch.setitem(recipe.FILES, "etc/motd", recipe.File("hello\n"))
    assert len({before, changed, recipe.fingerprint()}) == 3


def test_management_generator_touches_one_nic_only() -> None:
    script = recipe.FILES["etc/systemd/system-generators/lab-network"]
    assert script.mode == 0o755
    assert script.text.count("[Match]") == 1
    assert "52:54:00:00:00:" in script.text
    assert script.text.count("10.77.") == 1
