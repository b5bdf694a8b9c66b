"""The root file system image: built once a recipe, cached for every checkout of this user.

Under ``$XDG_CACHE_HOME/weaklink/image-<fingerprint>/`` lie rootfs/ (the unpacked tree, for chroots and overlays: read
it, never write into it), base.ext4 (the machines' common disk), vmlinux, initrd and id_ed25519 (root's key into the
machines). The folder appears by one rename when it is complete.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from . import boot, recipe
from .apt import debian_mirror
from .errors import LabError
from .tools import Progress, Silence, run

KEEP_IMAGES = 2


class Image(NamedTuple):
    """Where the parts of the built image are."""

    rootfs_dir: Path
    base_ext4: Path
    kernel: Path
    initrd: Path
    key: Path
    host_key: Path


def cache_dir() -> Path:
    """Return the folder of this user's cached images."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "weaklink"


def locate() -> Image:
    """Return where the image of the present recipe is or would be."""
    folder = cache_dir() / f"image-{recipe.fingerprint()}"
    return Image(
        rootfs_dir=folder / "rootfs",
        base_ext4=folder / "base.ext4",
        kernel=folder / "vmlinux",
        initrd=folder / "initrd",
        key=folder / "id_ed25519",
        host_key=folder / "rootfs/etc/ssh/ssh_host_ed25519_key.pub",
    )


def ensure(progress: Progress | None = None) -> Image:
    """Return the image of the present recipe; build it first where it is missing (about a minute, needs root)."""
    image = locate()
    if image.base_ext4.exists():
        os.utime(image.base_ext4.parent)  # in use: the oldest are cleared away first
        return image
    if os.geteuid() != 0:
        raise LabError("building the lab's image needs root", found=f"user {os.geteuid()}", todo="run as root")
    progress = progress or Silence()
    with _lock(progress):
        if not image.base_ext4.exists():
            _build(image, progress)
    return image


@contextmanager
def _lock(progress: Progress) -> Iterator[None]:
    """Let one builder at a time in; others wait and then find the image."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    with (cache_dir() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step("waiting for another build of the image"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(image: Image, progress: Progress) -> None:
    final = image.base_ext4.parent
    for leftover in cache_dir().glob("building-*"):
        _remove(leftover)
    work = Path(tempfile.mkdtemp(prefix="building-", dir=cache_dir()))
    work.chmod(0o755)
    root = work / "rootfs"
    try:
        with progress.step(f"root file system: {len(recipe.PACKAGES)} packages and what they need, {recipe.SUITE}"):
            _bootstrap(root)
        with progress.step("root file system: settings, boot files, disk"):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "weaklink-lab", "-f", str(work / "id_ed25519")])
            customise(root, (work / "id_ed25519.pub").read_text())
            [kernel] = (root / "boot").glob("vmlinuz-*")
            (work / "vmlinux").write_bytes(boot.extract_kernel(kernel.read_bytes()))
            (work / "initrd").write_bytes(boot.make_initramfs(root, recipe.BOOT_MODULES, recipe.INIT))
            _make_disk(root, work / "base.ext4")
        work.rename(final)
    except BaseException:  # Ctrl-C too: nothing half built stays
        _remove(work)
        raise
    _clear_old(final)


def _bootstrap(root: Path) -> None:
    """Fill ``root`` with mmdebstrap."""
    mirror = debian_mirror()
    argv = [
        "mmdebstrap",
        "--mode=root",
        "--variant=apt",
        "--format=directory",
        f"--include={','.join(recipe.PACKAGES)}",
    ]
    argv += ["--aptopt=Apt::Install-Recommends false"]
    argv += [f"--dpkgopt=path-exclude={pattern}" for pattern in recipe.PATH_EXCLUDES]
    argv += ["--dpkgopt=force-unsafe-io"]
    argv += [recipe.SUITE, str(root), f"deb [signed-by={recipe.KEYRING}] {mirror} {recipe.SUITE} main"]
    # INITRD=No: the kernel package's hook leaves the general initramfs out, which would take ten seconds
    result = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=1800,
        check=False,
        env={**os.environ, "INITRD": "No", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"},
    )
    if result.returncode != 0:
        raise LabError(
            f"mmdebstrap could not build Debian {recipe.SUITE}",
            found=f"status {result.returncode} with mirror {mirror}",
            todo="check that the mirror of /etc/apt/sources.list answers and has the suite",
            output=result.stderr,
        )


def customise(root: Path, public_key: str) -> None:
    """Make the fresh tree ``root`` the lab's: files, users, units, root's key."""
    for name in recipe.REMOVED:
        _remove(root / name)
    for name, file in recipe.FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(file.text)
        path.chmod(file.mode)
    for name in recipe.GENERATORS_OFF:
        link = root / "etc/systemd/system-generators" / name
        link.symlink_to("/dev/null")
    authorized = root / "root/.ssh/authorized_keys"
    authorized.parent.mkdir(mode=0o700, exist_ok=True)
    authorized.write_text(public_key)
    authorized.chmod(0o600)
    for user, number in recipe.USERS.items():
        run(["chroot", str(root), "useradd", "-M", "-s", "/bin/bash", "-u", str(number), "-U", user])
    systemctl = ["systemctl", "--root", str(root), "--quiet"]
    run([*systemctl, "disable", *recipe.DISABLED])
    run([*systemctl, "mask", *recipe.MASKED])
    run([*systemctl, "enable", *recipe.ENABLED])
    run([*systemctl, "set-default", "multi-user.target"])
    run(["chroot", str(root), "ldconfig"])
    for name in ("etc/.updated", "var/.updated"):
        path = root / name  # newer than /usr: systemd skips its "after an update" services
        path.touch()
        os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 3600 * 10**9))


def _make_disk(root: Path, disk: Path) -> None:
    with disk.open("wb") as stream:
        stream.truncate(recipe.DISK_SIZE)
    run(["mke2fs", "-q", "-F", *recipe.MKE2FS, "-d", str(root), str(disk)], timeout=300)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _clear_old(newest: Path) -> None:
    """Keep the newest images, and any that a running machine has open as its disk."""
    images = sorted(cache_dir().glob("image-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in images[KEEP_IMAGES:]:
        if old != newest and not _in_use(old):
            _remove(old)


def _in_use(folder: Path) -> bool:
    return any(_target(link).startswith(str(folder)) for link in Path("/proc").glob("[0-9]*/fd/*"))


def _target(link: Path) -> str:
    """Return where a link points to; nothing when its process or descriptor is gone by now."""
    try:
        return str(link.readlink())
    except OSError:
        return ""
