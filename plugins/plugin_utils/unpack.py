"""Runs on the target: unpack the zipapp that comes on standard input into a folder named by its hash.

argv: the cache folder, the release's hash. Standard library of Python 3.9 alone; sent as text, never imported there.
"""

import compileall
import hashlib
import io
import os
import py_compile
import re
import shutil
import sys
import time
import zipfile
import zlib

KEEP = 3
# What hooks and the node's own commands run is compiled here, for all users. The rest is for people at a controller:
# Python compiles it when root first runs it, and a slow node need not wait for it.
LATER = re.compile(
    r"/(plan|lint|explain|tools|topology|guard|history|locate|sweep)/"
    r"|/cli/(plan|expect|lint|explain|cluster)|/model/(cluster|fabric)"
)
STALE_SECONDS = 3600  # after which an unfinished folder belongs to a run that was killed


def main(cache: str, release: str) -> None:
    """Unpack, compile, and let the finished folder appear by one rename."""
    os.umask(0o022)
    os.makedirs(cache, mode=0o755, exist_ok=True)
    info = os.lstat(cache)
    if info.st_uid != os.geteuid() or info.st_mode & 0o022 or os.path.islink(cache):
        found = f"owner {info.st_uid}, mode {info.st_mode:o}"
        sys.exit(f"{cache}: is not ours alone ({found}); remove it and run again")
    packed = sys.stdin.buffer.read()
    if not packed:
        sys.exit("nothing came on standard input; use a connection that can feed it (ssh with pipelining)")
    try:
        archive = zipfile.ZipFile(io.BytesIO(packed))
        files = {name: archive.read(name) for name in sorted(archive.namelist())}
    except (zipfile.BadZipFile, EOFError, zlib.error):  # cut short, or changed on the way
        files = {}
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    if digest.hexdigest()[:20] != release:
        sys.exit("the program arrived damaged; run again, and check the connection when it stays so")
    fresh = os.path.join(cache, f".new-{os.getpid()}")
    archive.extractall(fresh)
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(fresh, quiet=2, rx=LATER, invalidation_mode=unchecked)
    final = os.path.join(cache, release)
    if os.path.isdir(final):
        shutil.rmtree(fresh)  # another run was faster
    else:
        os.rename(fresh, final)
    tidy(cache, final)


def tidy(cache: str, final: str) -> None:
    """Remove all but the newest releases, and what killed runs left."""
    folders = [os.path.join(cache, name) for name in os.listdir(cache) if not name.startswith(".")]
    folders.sort(key=lambda path: os.lstat(path).st_mtime, reverse=True)
    old = [path for path in folders if path != final][KEEP - 1 :]
    unfinished = [os.path.join(cache, name) for name in os.listdir(cache) if name.startswith(".new-")]
    old += [path for path in unfinished if os.lstat(path).st_mtime < time.time() - STALE_SECONDS]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)


main(*sys.argv[1:])
