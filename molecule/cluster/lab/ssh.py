"""How one gets into the machines: ``ssh -F .lab/ssh_config c1 COMMAND`` from anywhere on this host."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from . import layout, network
from .errors import LabError
from .image import Image
from .layout import Node

_HOST_KEY_ALIAS = layout.NAMESPACE


def render_config(nodes: Sequence[Node], state: Path) -> str:
    """Return the text of ssh_config for ``nodes``; ``state`` is the folder of key and known_hosts. Pure."""
    lines = [f"Host {node.name} {node.address()}\n    HostName {node.address()}" for node in nodes]
    lines.append(
        f"""Host {" ".join(f"{node.name} {node.address()}" for node in nodes)}
    User root
    IdentityFile "{state}/id_ed25519"
    IdentitiesOnly yes
    BatchMode yes
    UserKnownHostsFile "{state}/known_hosts"
    GlobalKnownHostsFile none
    HostKeyAlias {_HOST_KEY_ALIAS}
    StrictHostKeyChecking yes
    ProxyCommand ip netns exec {layout.NAMESPACE} socat - TCP:%h:%p,nodelay
    KexAlgorithms curve25519-sha256
    Compression no
    ConnectTimeout 20
    ServerAliveInterval 15
    ServerAliveCountMax 8
    ControlMaster auto
    ControlPersist 600
    ControlPath {layout.RUN_DIR}/ssh/%h
    LogLevel ERROR"""
    )
    return "\n".join(lines) + "\n"


def write_files(nodes: Sequence[Node], state: Path, image: Image) -> None:
    """Write ssh_config, key and known_hosts into ``state``."""
    state.mkdir(parents=True, exist_ok=True)
    Path(layout.RUN_DIR, "ssh").mkdir(parents=True, exist_ok=True, mode=0o700)
    _replace(state / "id_ed25519", image.key.read_text())
    _replace(state / "known_hosts", f"{_HOST_KEY_ALIAS} {image.host_key.read_text()}")
    _replace(state / "ssh_config", render_config(nodes, state))


def _replace(path: Path, text: str) -> None:
    """Write a file that only its owner may read, in one step: ssh may be reading the old one."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
    fresh.rename(path)


def command_line(state: Path, node: str, command: str | Sequence[str]) -> list[str]:
    """Return the ssh command line: ``command`` is shell text, or an argument list that is quoted."""
    text = command if isinstance(command, str) else shlex.join(command)
    return ["ssh", "-F", str(state / "ssh_config"), node, text]


def run(
    state: Path,
    node: str,
    command: str | Sequence[str],
    *,
    timeout: float = 60.0,
    check: bool = True,
    stdin: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` on ``node`` and return its result with text output.

    ``timeout`` is in seconds; a LabError tells of a time-out, of a machine out of reach (ssh's status 255) and, with
    ``check``, of a status other than 0.
    """
    argv = command_line(state, node, command)
    try:
        result = subprocess.run(
            argv, input=stdin or "", capture_output=True, text=True, errors="replace", timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{node}: {argv[-1]}: no end after {timeout:.0f} s") from error
    if check and result.returncode != 0:
        raise LabError(
            f"{node}: {argv[-1]}",
            found=f"status {result.returncode}" + (" (out of reach)" if result.returncode == 255 else ""),  # noqa: PLR2004 - ssh's own failure
            output=result.stderr + result.stdout,
        )
    return result


def _banner(node: Node) -> bool:
    """Tell whether the machine's ssh daemon greets; costs the machine next to nothing."""
    try:
        with network.connect(node.address(), 22, 2.0) as connection:
            return connection.recv(8).startswith(b"SSH-")
    except OSError:
        return False


def wait_ready(state: Path, node: Node, timeout: float, alive: Path) -> float:
    """Wait until a command runs on ``node`` over ssh; return the seconds it took.

    ``alive`` is the pid file of the machine. A LabError when it dies meanwhile or after ``timeout`` seconds.
    """
    start = time.monotonic()
    console = alive.with_name("console")
    while time.monotonic() - start < timeout:
        if _banner(node):
            with suppress(LabError):
                run(state, node.name, "true", timeout=30.0)
                return time.monotonic() - start
        if not alive.exists():
            raise LabError(f"{node.name}: the machine went away while it booted", todo=f"read {console}")
        time.sleep(0.3)
    text = console.read_text(errors="replace") if console.exists() else ""
    raise LabError(f"{node.name}: no ssh after {timeout:.0f} s", todo=f"read {console}", output=text)


def forget(state: Path, node: Node) -> None:
    """Drop the ssh connections to ``node``: its machine is off or new, and a kept one would hang for minutes."""
    if Path(layout.RUN_DIR, "ssh", node.address()).exists():
        argv = ["ssh", "-F", str(state / "ssh_config"), "-O", "exit", node.name]
        subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=10.0, check=False)
    Path(layout.RUN_DIR, "ssh", node.address()).unlink(missing_ok=True)
    network.drop_connections(node.address())


def forget_masters() -> None:
    """Drop all ssh connections into the lab."""
    network.drop_connections()
    shutil.rmtree(Path(layout.RUN_DIR, "ssh"), ignore_errors=True)
    Path(layout.RUN_DIR, "ssh").mkdir(parents=True, exist_ok=True, mode=0o700)
