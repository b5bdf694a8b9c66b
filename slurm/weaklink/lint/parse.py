"""Read NCCL settings from configuration files, shell scripts and environments, each as its reader does. Pure.

A configuration file is read as NCCL does (``setEnvFile`` in src/misc/param.cc): a comment only where ``#`` is the very
first character, the name up to the first ``=``, everything after it the value, no quotes, no trimming. A script is read
as a shell does, as far as plain assignments go; ``mpirun -x`` and ``srun --export`` count too.
"""

import re
from typing import NamedTuple, Optional

from weaklink.lint.base import CONTRADICTION, Judgement

CONF = "conf"
SCRIPT = "script"
ENVIRONMENT = "environment"
PARAM_SOURCE = "NCCL src/misc/param.cc, setEnvFile"

# What a value holds that its writer did not mean as part of it.
COMMENT = "comment"
SPACE = "space"
QUOTES = "quotes"
RETURN = "carriage return"
LONG = "length"

_MAX_VALUE = 1023
_MAX_BYTES = 4 << 20
_SCRIPT_NAMES = (".sh", ".bash", ".sbatch", ".slurm", ".job")
_SCRIPT_LINE = re.compile(r"(?m)^\s*(?:export|declare -x|srun|mpirun|mpiexec|unset|source)\s")
_DUMP_LINE = re.compile(r"(?m)^(?:PATH|HOME|PWD|USER|SHELL|LANG|SHLVL|SLURM_\w+)=")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_WORD = re.compile(r"""(?:[^\s"'\\;&|()]|\\.|"(?:\\.|[^"\\])*"|'[^']*')+""", re.DOTALL)
_INLINE = re.compile(r"\s+#(.*)$", re.DOTALL)
_NCCL_NAME = re.compile(r"NCCL_\w+")


class InputError(Exception):
    """Something that cannot be read or judged; the text says what and where."""


class Setting(NamedTuple):
    """One assignment. ``value`` is what was meant, ``raw`` what is read; ``spoiled`` says how they differ.

    ``comment`` is what stands directly above it and, as its last line, beside it; ``dynamic`` marks what a shell
    computes when it runs.
    """

    name: str
    value: str
    raw: str
    file: str
    line: int
    comment: str = ""
    spoiled: tuple[str, ...] = ()
    dynamic: bool = False


class Source(NamedTuple):
    """One file (or the environment): its form, its settings in order, and what was found wrong while reading it."""

    file: str
    form: str
    settings: tuple[Setting, ...]
    oddities: tuple[Judgement, ...] = ()


def read(file: str, data: bytes) -> Source:
    """Return the settings in ``data``; ``file`` is its name, which also tells the form. Raises InputError."""
    if len(data) > _MAX_BYTES:
        raise InputError(f"{file}: {len(data)} bytes; wanted a file of settings, at most {_MAX_BYTES}")
    if b"\0" in data:
        return _nul_separated(file, data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(
            f"{file}:{line}: byte 0x{data[error.start]:02x} is no UTF-8; wanted a text file of NCCL settings"
        ) from error
    form = _form(file, text)
    if form == CONF:
        return _conf(file, text)
    return _script(file, text) if form == SCRIPT else _dump(file, text.splitlines())


def environment(name: str, variables: dict[str, str]) -> Source:
    """Return the settings of an environment."""
    settings = [Setting(key, value, value, name, 0) for key, value in variables.items() if key.startswith("NCCL_")]
    return Source(name, ENVIRONMENT, tuple(settings))


def _form(file: str, text: str) -> str:
    base = file.rsplit("/", 1)[-1].lower()
    if base.endswith(".conf"):
        return CONF
    if base.endswith(_SCRIPT_NAMES) or text.startswith("#!") or _SCRIPT_LINE.search(text):
        return SCRIPT
    return ENVIRONMENT if _DUMP_LINE.search(text) else CONF


def _nul_separated(file: str, data: bytes) -> Source:
    """Read what /proc/PID/environ gives; anything else with a NUL is no text."""
    records = [record.decode("utf-8", "replace") for record in data.split(b"\0") if record]
    if not records or not all(_ASSIGNMENT.fullmatch(record) for record in records):
        at = data.index(b"\0")
        raise InputError(f"{file}: byte {at} is NUL: a binary file; wanted a text file of NCCL settings")
    return _dump(file, records)


def _dump(file: str, lines: list[str]) -> Source:
    settings = []
    for number, line in enumerate(lines, 1):
        match = _ASSIGNMENT.fullmatch(line)
        if match and match[1].startswith("NCCL_"):
            settings.append(Setting(match[1], match[2], match[2], file, number))
    return Source(file, ENVIRONMENT, tuple(settings))


# ---- configuration files


def _conf(file: str, text: str) -> Source:
    settings: list[Setting] = []
    oddities: list[Judgement] = []
    above = ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#"):
            above = f"{above}\n{line.lstrip('#').strip()}".strip()
            continue
        comment, above = above, ""
        name, equals, raw = line.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name):
            oddity = _unread(file, number, line, name if equals else None)
            oddities += [oddity] if oddity else []
        elif name.upper().startswith("NCCL_"):
            settings.append(_conf_setting(name, raw, file, number, comment))
    return Source(file, CONF, tuple(settings), tuple(oddities))


def _unread(file: str, number: int, line: str, name: Optional[str]) -> Optional[Judgement]:
    """Return what is wrong with a line that NCCL skips or stores under a name that nobody reads."""
    found = _NCCL_NAME.search(line.partition("=")[0])
    if not found or line.lstrip().startswith("#"):
        return None
    if name is None:
        why = "has no '=', so NCCL skips the line"
    else:
        why = f"is stored under the name {name!r}, which nothing reads: NCCL trims nothing and knows no `export`"
    value = line.partition("=")[2].strip() or None
    message = f"{found[0]} {why}; write {found[0]}=VALUE from the first column"
    return Judgement(found[0], value, CONTRADICTION, message, PARAM_SOURCE, file, number, effective=False)


def _conf_setting(name: str, raw: str, file: str, line: int, above: str) -> Setting:
    value, spoiled, beside = raw, [], ""
    if len(raw.encode()) > _MAX_VALUE:
        spoiled.append(LONG)
    if value.endswith("\r"):
        value = value[:-1]
        spoiled.append(RETURN)
    inline = _INLINE.search(value)
    if inline:
        beside, value = inline[1].strip(), value[: inline.start()]
        spoiled.append(COMMENT)
    if value != value.strip():
        value = value.strip()
        spoiled.append(SPACE)
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
        spoiled.append(QUOTES)
    return Setting(name, value, raw, file, line, f"{above}\n{beside}".strip(), tuple(spoiled))


# ---- scripts


def _script(file: str, text: str) -> Source:
    settings: list[Setting] = []
    above = ""
    for number, line in _logical_lines(text):
        stripped = line.strip()
        if stripped.startswith(("#!", "#SBATCH")):
            continue
        if stripped.startswith("#"):
            above = f"{above}\n{stripped.lstrip('#').strip()}".strip()
            continue
        code, beside = _split_comment(line)
        comment, above = f"{above}\n{beside}".strip(), ""
        words = [match[0] for match in _WORD.finditer(code)]
        if words[:1] == ["unset"]:
            settings = [setting for setting in settings if setting.name not in words[1:]]
            continue
        for word in words:
            settings += [
                Setting(name, value, value, file, number, comment, dynamic=dynamic)
                for name, value, dynamic in _assignments(word)
            ]
    return Source(file, SCRIPT, tuple(settings))


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Return (number, line) with continued lines joined; a comment is never continued."""
    lines: list[tuple[int, str]] = []
    held, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            held += line[:-1] + " "
            continue
        lines.append((start, held + line))
        held, start = "", 0
    return [*lines, (start, held)] if held else lines


def _split_comment(line: str) -> tuple[str, str]:
    quote = ""
    for index, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#" and (index == 0 or line[index - 1].isspace()):
            return line[:index], line[index + 1 :].strip()
    return line, ""


def _assignments(word: str) -> list[tuple[str, str, bool]]:
    """Return (name, value, whether a shell computes it) of the NCCL assignments in one word of a command."""
    option = re.match(r"--[a-z-]+=", word)
    parts = re.split(r",(?=[A-Za-z_]\w*=)", word[option.end() :]) if option else [word]
    found = []
    for part in parts:
        text = part[1:-1] if len(part) > 1 and part[0] == part[-1] and part[0] in "\"'" else part
        match = _ASSIGNMENT.fullmatch(text)
        if match and match[1].startswith("NCCL_"):
            dynamic = "'" not in word and bool(re.search(r"[$`]", match[2]))
            found.append((match[1], _unquote(match[2]), dynamic))
    return found


def _unquote(text: str) -> str:
    return re.sub(r"""\\(.)|"((?:\\.|[^"\\])*)"|'([^']*)'""", lambda m: m[1] or m[2] or m[3] or "", text)
