"""The machine's own Debian mirror, read from its apt sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .errors import LabError


def debian_mirror(etc: Path = Path("/etc/apt")) -> str:
    """Return the URI from which this machine gets Debian itself; a LabError where its sources name none.

    Both forms of source are read: one line each (sources.list) and stanzas (deb822, *.sources). An archive is taken
    for Debian's when it offers this Debian release without a suffix ("bookworm", not "bookworm-security") in "main".
    """
    texts = [(path, path.read_text(errors="replace")) for path in _files(etc)]
    for path, text in texts:
        entries = stanzas(text) if path.suffix == ".sources" else lines(text)
        for uri, suites, components in entries:
            debian = uri.rstrip("/").endswith("/debian") and "main" in components
            if debian and any(re.fullmatch(r"[a-z]+", suite) for suite in suites):
                return uri
    raise LabError(
        "no Debian mirror found",
        found=", ".join(str(path) for path, _ in texts) or f"no source files in {etc}",
        wanted="a deb source whose URI ends in /debian with component main",
        todo="add the mirror to /etc/apt/sources.list",
    )


def _files(etc: Path) -> list[Path]:
    parts = sorted((etc / "sources.list.d").glob("*"))
    return [p for p in [etc / "sources.list", *parts] if p.suffix in {".list", ".sources"} and p.is_file()]


def lines(text: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield URI, suites, components of each ``deb`` line of a sources.list."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s*(.*)", line)
        if match:
            yield match[1], [match[2]], match[3].split("#")[0].split()


def stanzas(text: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield URI, suites, components of each enabled binary stanza of a deb822 source file."""
    for stanza in re.split(r"\n\s*\n", "\n".join(line for line in text.splitlines() if not line.startswith("#"))):
        fields: dict[str, str] = {}
        key = ""
        for line in stanza.splitlines():
            if line[:1].isspace() and key:
                fields[key] += " " + line.strip()
            elif ":" in line:
                key, _, value = line.partition(":")
                key = key.strip().lower()
                fields[key] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in {"no", "false"}:
            continue
        for uri in fields.get("uris", "").split():
            yield uri, fields.get("suites", "").split(), fields.get("components", "").split()
