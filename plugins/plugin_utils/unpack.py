"""Runs on the target: unpack the zipapp that comes on standard input into a folder named by its hash.

argv: the cache folder, the release's hash. Standard library of Python 3.9 alone; sent as text, never imported there.
"""

import compileall
import hashlib
import io
import os
import py_compile
import shutil
import sys
import zipfile

KEEP = 3


def main(cache, release):
    """Unpack, compile, and let the finished folder appear by one rename."""
    os.umask(0o022)
    os.makedirs(cache, mode=0o755, exist_ok=True)
    info = os.lstat(cache)
    if info.st_uid != os.geteuid() or info.st_mode & 0o022 or os.path.islink(cache):
        sys.exit("%s: is not ours alone (owner %d, mode %o); remove it and run again" % (cache, info.st_uid, info.st_mode))
    packed = sys.stdin.buffer.read()
    if not packed:
        sys.exit("nothing came on standard input; use a connection that can feed it (ssh with pipelining)")
    archive = zipfile.ZipFile(io.BytesIO(packed))
    digest = hashlib.sha256()
    for name in sorted(archive.namelist()):
        content = archive.read(name)
        digest.update(("%s\0%d\0" % (name, len(content))).encode())
        digest.update(content)
    if digest.hexdigest()[:20] != release:
        sys.exit("the program arrived damaged; run again, and check the connection when it stays so")
    fresh = os.path.join(cache, ".new-%d" % os.getpid())
    archive.extractall(fresh)
    compileall.compile_dir(fresh, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    final = os.path.join(cache, release)
    if os.path.isdir(final):
        shutil.rmtree(fresh)  # another run was faster
    else:
        os.rename(fresh, final)
    tidy(cache, final)


def tidy(cache, final):
    """Remove all but the newest releases, and what killed runs left."""
    folders = [os.path.join(cache, name) for name in os.listdir(cache) if not name.startswith(".")]
    folders.sort(key=lambda path: os.lstat(path).st_mtime, reverse=True)
    for old in [path for path in folders if path != final][KEEP - 1 :]:
        shutil.rmtree(old, ignore_errors=True)


main(*sys.argv[1:])
