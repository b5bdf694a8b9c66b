"""The machine's Debian mirror, from either form of apt source."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab.apt import debian_mirror, lines, stanzas
from lab.errors import LabError

DEB822 = """\
# a comment
Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb deb-src
# http://snapshot.example/
URIs: http://mirror.example/debian
Suites: bookworm
 bookworm-updates
Components: main contrib
"""


def _sources(etc: Path, **files: str) -> Path:
    (etc / "sources.list.d").mkdir(parents=True)
    for name, text in files.items():
        path = etc / "sources.list" if name == "main" else etc / "sources.list.d" / name.replace("__", ".")
        path.write_text(text)
    return etc


def test_deb822(tmp_path: Path) -> None:
    assert debian_mirror(_sources(tmp_path, debian__sources=DEB822)) == "http://mirror.example/debian"


def test_one_line_with_options(tmp_path: Path) -> None:
    text = (
        "# deb http://old.example/debian bookworm main\n"
        "deb-src http://src.example/debian bookworm main\n"
        "deb http://sec.example/debian-security bookworm-security main\n"
        "deb [arch=amd64 signed-by=/x.gpg] https://mirror.example/debian/ bookworm main contrib # ours\n"
    )
    assert debian_mirror(_sources(tmp_path, main=text)) == "https://mirror.example/debian/"


def test_third_parties_are_passed_over(tmp_path: Path) -> None:
    other = "deb https://packages.example/apt stable main\ndeb https://repo.example/debian nodistro contrib\n"
    etc = _sources(tmp_path, a__list=other, debian__sources=DEB822)
    assert debian_mirror(etc) == "http://mirror.example/debian"


def test_disabled_stanza_is_passed_over(tmp_path: Path) -> None:
    etc = _sources(tmp_path, debian__sources=DEB822.replace("URIs", "Enabled: no\nURIs"))
    with pytest.raises(LabError, match=r"no Debian mirror found.*do: add the mirror"):
        debian_mirror(etc)


def test_no_sources_at_all(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no source files"):
        debian_mirror(tmp_path)


def test_parsers_return_all_parts() -> None:
    assert list(lines("deb http://m/debian trixie main contrib\n")) == [
        ("http://m/debian", ["trixie"], ["main", "contrib"])
    ]
    assert list(stanzas(DEB822))[1] == (
        "http://mirror.example/debian",
        ["bookworm", "bookworm-updates"],
        ["main", "contrib"],
    )
