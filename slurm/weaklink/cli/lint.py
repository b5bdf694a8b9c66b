"""``weaklink lint``: judge NCCL settings, or the fabric of a cluster file, and say why. Changes nothing."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
from typing import TYPE_CHECKING, Any

from weaklink.cli import UsageError
from weaklink.lint.base import Judgement, exit_code, printable, weight

if TYPE_CHECKING:
    from weaklink.lint.facts import Facts
    from weaklink.lint.parse import Source
    from weaklink.lint.version import Version

_ENVIRONMENT = "(environment)"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="weaklink lint", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="nccl|fabric")
    nccl = kinds.add_parser("nccl", help="nccl.conf files, job scripts, dumps of an environment")
    nccl.add_argument(
        "files", metavar="FILE", nargs="*", help="nccl.conf, ~/.nccl.conf, a job script, the output of env"
    )
    nccl.add_argument("--environ", action="store_true", help="judge the environment of this process too")
    nccl.add_argument("--nccl-version", metavar="V", help="e.g. 2.27.3; default: the facts', else the newest known")
    nccl.add_argument("--fabric-facts", metavar="FILE", help="JSON of what this node's fabric is (see docs/lint.md)")
    fabric = kinds.add_parser("fabric", help="cluster.yml")
    fabric.add_argument("file", metavar="FILE", help="cluster.yml")
    for kind in (nccl, fabric):
        kind.add_argument("--json", action="store_true", help="print JSON")
    return parser


def run(argv: list[str]) -> int:
    """Run the command; exit code 0 nothing wrong, 1 something found, 2 bad input, 3 nothing but unknowns."""
    args = _parser().parse_args(argv)
    if args.kind == "nccl":
        judgements, key, more = _nccl(args)
    else:
        judgements, key, more = _fabric(args.file), "key", {}
    if args.json:
        print(json.dumps({**more, "findings": [judgement.as_dict(key) for judgement in judgements]}))
    else:
        _table(judgements)
    return exit_code(judgements)


def _table(judgements: list[Judgement]) -> None:
    for item in sorted(judgements, key=lambda item: -weight(item.klass)):
        place = f"{item.file}:{item.line}" if item.line else item.file
        print(f"{item.klass:<13} {printable(place, 200)}: {printable(item.message, 1000)}")


def _read(name: str) -> bytes:
    """Return a file's bytes; a UsageError says why it cannot be read."""
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        with open(name, "rb") as stream:  # noqa: PTH123 - pathlib costs start-up time on nodes
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise UsageError(f"{name}: no regular file; name a file of settings")
            return stream.read()
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}; name a readable file") from error
    except ValueError as error:
        raise UsageError(f"{name!r}: {error}; name a readable file") from error


# ---- nccl


def _nccl(args: argparse.Namespace) -> tuple[list[Judgement], str, dict[str, Any]]:
    from weaklink.lint import nccl, parse

    if not args.files and not args.environ:
        raise UsageError("nothing to judge; name files, or give --environ")
    twice = [name for name in args.files if args.files.count(name) > 1]
    if twice:
        raise UsageError(f"{twice[0]} is named twice; name each file once")
    facts = _facts(args.fabric_facts) if args.fabric_facts else None
    at = _version(args.nccl_version, facts)
    try:
        sources: list[Source] = [parse.read(name, _read(name)) for name in args.files]
    except parse.InputError as error:
        raise UsageError(str(error)) from error
    if args.environ:
        sources.append(parse.environment(_ENVIRONMENT, dict(os.environ)))
    if facts is not None and facts.unknown_keys:
        names = ", ".join(facts.unknown_keys)
        print(f"weaklink lint: {args.fabric_facts}: keys that mean nothing here: {names}", file=sys.stderr)
    return nccl.judge(sources, at, facts), "variable", {"nccl_version": str(at)}


def _facts(name: str) -> Facts:
    from weaklink.lint.facts import read_facts
    from weaklink.lint.parse import InputError

    try:
        data = json.loads(_read(name))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--fabric-facts {name}: no JSON ({error}); wanted one object") from error
    try:
        return read_facts(data, name)
    except InputError as error:
        raise UsageError(f"--fabric-facts {error}") from error


def _version(text: str | None, facts: Facts | None) -> Version:
    from weaklink.lint.version import NEWEST, version

    spoken = text if text is not None else facts.nccl_version if facts is not None else None
    if spoken is None:
        return NEWEST
    try:
        return version(spoken)
    except ValueError as error:
        raise UsageError(f"--nccl-version: {error}") from error


# ---- fabric


def _fabric(name: str) -> list[Judgement]:
    try:
        from weaklink.model.cluster_file import ClusterError, Document, validate
    except ImportError as error:
        raise UsageError(f"weaklink lint fabric needs the controller's packages ({error}); run it there") from error
    from weaklink.lint import fabric

    try:
        text = _read(name).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: byte {error.start} is no UTF-8; wanted a cluster file") from error
    try:
        document = Document(name, text)
        validate(document)
    except ClusterError as error:
        raise UsageError(str(error)) from error

    def line(path: tuple[Any, ...]) -> int:
        while path and path not in document.lines:
            path = path[:-1]
        return document.lines.get(path, 1)

    return fabric.judge(document.data, line, name)
