"""The tools whose outputs are read: found by walking the two packages of readers and judges, imported when needed.

A tool exists as soon as ``observe/tools/X.py`` (``NAME``, ``recognise``, ``parse``) and ``checks/tools/X.py``
(``RULES``, ``judge``) do. Works from an archive too: the import system lists the modules, not the file system.
"""

import difflib
import pkgutil
import re
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Optional

import weaklink.checks.tools
import weaklink.observe.tools

# Among equally sure readers the first one here wins: what a tool prints alone before what a log may quote.
ORDER = (
    "nccl-tests", "perftest", "nvidia-smi-topo", "nvidia-smi-nvlink", "nvidia-smi-q", "nvidia-smi-csv", "nvidia-smi",
    "dcgmi", "ibstatus", "ibstat", "ibdev2netdev", "ibv_devinfo", "show_gids", "rdma", "iblinkinfo", "ibqueryerrors",
    "ibnetdiscover", "perfquery", "smpquery", "sminfo", "ibswinfo", "ibdiagnet", "mlxlink", "mlxfwmanager", "mlxconfig",
    "flint", "mlnx_qos", "dcb", "ethtool-S", "ethtool-m", "ethtool", "ip-link", "lldpcli", "lspci", "mountstats",
    "nfsstat", "mounts", "lnetctl", "lctl", "scontrol-node", "sinfo", "topology.conf", "slurm.conf", "opensm.conf",
    "fabricmanager", "dmesg", "syslog",
)  # fmt: skip

ALIASES = {
    "all_reduce_perf": "nccl-tests", "nccl": "nccl-tests", "ib_write_bw": "perftest", "ib_read_bw": "perftest",
    "ib_send_bw": "perftest", "ib_write_lat": "perftest", "ib_read_lat": "perftest", "ib_send_lat": "perftest",
    "nvlink": "nvidia-smi-nvlink", "nvidia-smi-table": "nvidia-smi", "nvidia-smi-query-gpu": "nvidia-smi-csv",
    "dcgm": "dcgmi", "dcgmi-diag": "dcgmi", "nv-fabricmanager": "fabricmanager",
    "nvidia-fabricmanager": "fabricmanager", "ibv-devices": "ibv_devinfo", "rdma-link": "rdma",
    "opensm": "opensm.conf", "mstlink": "mlxlink", "mstflint": "flint", "mstfwmanager": "mlxfwmanager",
    "mlxup": "mlxfwmanager", "mstconfig": "mlxconfig", "mlnxqos": "mlnx_qos", "ethtool-module": "ethtool-m",
    "ethtool-statistics": "ethtool-S", "ethtool-stats": "ethtool-S", "ip": "ip-link", "ip-addr": "ip-link",
    "lldpctl": "lldpcli", "lldp": "lldpcli", "journalctl": "syslog", "journal": "syslog", "messages": "syslog",
    "kern.log": "dmesg", "proc-mounts": "mounts", "mount": "mounts", "findmnt": "mounts", "fstab": "mounts",
    "scontrol": "scontrol-node", "scontrol-show-node": "scontrol-node",
    "topology": "topology.conf", "ibnetdisc": "ibnetdiscover", "lfs": "lctl",
}  # fmt: skip

# Readers that cannot be imported, and why; filled by ``readers``.
BROKEN: dict[str, str] = {}


class UnknownToolError(Exception):
    """No such tool; the text names the nearest ones."""


@cache
def _modules() -> tuple[str, ...]:
    """Return the names of modules that both packages have."""
    judges = {info.name for info in pkgutil.iter_modules(weaklink.checks.tools.__path__)}
    return tuple(info.name for info in pkgutil.iter_modules(weaklink.observe.tools.__path__) if info.name in judges)


def _name_of(module: ModuleType) -> Optional[str]:
    name = getattr(module, "NAME", None)
    whole = isinstance(name, str) and hasattr(module, "recognise") and hasattr(module, "parse")
    return name if whole else None


@cache
def readers() -> dict[str, ModuleType]:
    """Return tool → module with ``recognise`` and ``parse``, in the order that settles ties."""
    found: dict[str, ModuleType] = {}
    for stem in _modules():
        try:
            module = import_module(f"{weaklink.observe.tools.__name__}.{stem}")
        except Exception as error:  # noqa: BLE001 - one reader's fault must not take the others along
            BROKEN[stem] = f"{type(error).__name__}: {error}"
            continue
        name = _name_of(module)
        if name is not None:
            found[name] = module
    rank = {name: at for at, name in enumerate(ORDER)}
    return {name: found[name] for name in sorted(found, key=lambda item: (rank.get(item, len(rank)), item))}


@cache
def reader(name: str) -> ModuleType:
    """Return the module that reads a tool's output; only it is imported where its file is named as the tool is.

    KeyError where there is no such tool.
    """
    stem = _plain(name).replace("-", "_")
    if stem in _modules():
        module = import_module(f"{weaklink.observe.tools.__name__}.{stem}")
        if _name_of(module) == name:
            return module
    return readers()[name]


def judge(name: str) -> Any:
    """Return the module with ``RULES`` and ``judge`` of a tool. KeyError where there is no such tool."""
    stem = reader(name).__name__.rpartition(".")[2]
    return import_module(f"{weaklink.checks.tools.__name__}.{stem}")


def _plain(word: str) -> str:
    return re.sub(r"[\s_./-]+", "-", word.strip()).strip("-").lower()


@cache
def _by_word() -> dict[str, str]:
    """Return every spelling → tool. ``ethtool-s`` is -S, as no tool is ``-s``."""
    words = {_plain(alias): tool for alias, tool in ALIASES.items()}
    words.update({_plain(name): name for name in ORDER})
    return words


def find(word: str) -> Optional[str]:
    """Return the tool that a word names (``ethtool_m``, ``mstflint``), or None."""
    plain = _plain(word)
    known = _by_word().get(plain)
    if known is not None and known in _existing(known):
        return known
    return next((name for name in readers() if _plain(name) == plain), None)


def _existing(name: str) -> tuple[str, ...]:
    try:
        reader(name)
    except KeyError:
        return ()
    return (name,)


def resolve(word: str) -> str:
    """Return the tool that a person names. UnknownToolError, with the nearest names, where there is none."""
    name = find(word)
    if name is not None:
        return name
    spellings = {spelling: tool for spelling, tool in _by_word().items() if tool in readers()}
    spellings.update({_plain(known): known for known in readers()})
    near = difflib.get_close_matches(_plain(word), spellings, n=5, cutoff=0.55)
    hint = list(dict.fromkeys(spellings[spelling] for spelling in near))
    said = f"did you mean {' or '.join(hint)}?" if hint else "weaklink explain --list names all tools"
    raise UnknownToolError(f"no tool {word!r:.80}; {said}")
