"""Command lines in front of outputs: which line is one, on which host, and which tool's output follows."""

import re
from typing import NamedTuple, Optional

from weaklink.explain import tools

_USER_HOST = re.compile(r"\[?[A-Za-z_][\w.-]{0,40}@([\w.-]{1,253})[ :][^#$%>\n]{0,200}[#$%>](?: (.*))?\Z")
_HOST = re.compile(r"([\w.-]{1,253})[#$>] (.+)\Z")
_BARE = re.compile(r"(?:[#$%]|\+{1,4}) {1,4}(\S.*)\Z")
_BANNER = re.compile(r"(?:==> (\S.{0,200}?) <==|([=#*-])\2{1,80} ?([^=#*-].{0,200}?) ?\2{2,80})\Z")
_SAID = re.compile(
    r"[#=*>\s-]{0,20}(?:(?:running|command|cmd|executing): +|output of:? +)[`'\"]?(.{1,200}?)[`'\"]?:?[\s#=*-]{0,80}\Z",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?<![\w./-])\.{0,2}/[\w./-]{2,200}")
_SAYS = frozenset("rRcCeEoO#=*>- ")
_MARKS = frozenset("[#$%+=*-")

_WRAPPERS = frozenset({
    "sudo", "srun", "mpirun", "mpiexec", "ssh", "timeout", "env", "kubectl", "docker", "podman", "nsenter", "chroot",
    "cat", "zcat", "head", "tail", "watch", "time", "taskset", "numactl", "bash", "sh", "pdsh", "clush", "stdbuf",
    "command", "exec", "less", "grep", "egrep",
})  # fmt: skip
_PERFTEST = re.compile(r"(?:ib|raw_ethernet)_(?:write|read|send|atomic)_(?:bw|lat)\Z")
_NCCL = re.compile(r"\w+_perf(?:_mpi)?\Z")
_FILES = {
    "mounts": "mounts", "mountstats": "mountstats", "slurm.conf": "slurm.conf", "topology.conf": "topology.conf",
    "opensm.conf": "opensm.conf", "messages": "syslog", "syslog": "syslog", "kern.log": "dmesg", "dmesg": "dmesg",
    "fabricmanager.log": "fabricmanager",
}  # fmt: skip
# First word of a command → tool, where its options do not matter.
_PLAIN = {
    name: name
    for name in (
        "dcgmi", "ibstat", "ibstatus", "ibdev2netdev", "ibv_devinfo", "show_gids", "rdma", "iblinkinfo",
        "ibqueryerrors", "ibnetdiscover", "perfquery", "smpquery", "sminfo", "ibswinfo", "ibdiagnet", "mlxlink",
        "flint", "mlxfwmanager", "mlxconfig", "mlnx_qos", "dcb", "lldpcli", "lspci", "dmesg", "mountstats", "nfsstat",
        "lnetctl", "lctl", "sinfo",
    )
}  # fmt: skip
_PLAIN.update(
    {
        "mstlink": "mlxlink", "mstflint": "flint", "mstfwmanager": "mlxfwmanager", "mlxup": "mlxfwmanager",
        "mstconfig": "mlxconfig", "lldpctl": "lldpcli", "mount": "mounts", "findmnt": "mounts",
        "ibswinfo.sh": "ibswinfo", "mlnx_qos.py": "mlnx_qos",
    }
)  # fmt: skip
_CHOOSES = frozenset({"nvidia-smi", "ethtool", "ip", "scontrol", "journalctl"})


class Prompt(NamedTuple):
    """A line in front of an output: the host and the command that it names (empty where it does not)."""

    host: str
    command: str

    @property
    def tool(self) -> Optional[str]:
        """The tool whose output follows; None where the command is none that is known."""
        return tool_of(self.command)


def prompt(line: str, hashes: bool) -> Optional[Prompt]:
    """Return the prompt that a line is, or None.

    ``hashes`` allows ``# ibstat``, which within a file may as well be a comment.
    """
    line = line.rstrip()
    if not line or len(line) > 1_000:  # noqa: PLR2004 - no command line is that long
        return None
    if "@" in line[:60]:
        found = _USER_HOST.match(line)
        if found:
            return Prompt(found.group(1), (found.group(2) or "").strip())
    if line[0] in _SAYS:
        found = _SAID.match(line)
        if found and known(found.group(1)):
            return Prompt("", found.group(1))
    if line[0] in _MARKS:
        return _marked(line, hashes)
    found = _HOST.match(line) if ("# " in line or "$ " in line or "> " in line) else None
    return Prompt(found.group(1), found.group(2)) if found and known(found.group(2)) else None


def _marked(line: str, hashes: bool) -> Optional[Prompt]:
    found = _BANNER.match(line)
    if found:
        words = found.group(1) or found.group(3)
        return Prompt("", words) if found.group(1) or known(words) or words in _FILES else None
    found = _BARE.match(line)
    right = found is not None and (hashes or line[0] != "#") and known(found.group(1))
    return Prompt("", found.group(1)) if found is not None and right else None


def _words(command: str) -> list[str]:
    """Return the words from the one that names the program on, wrappers such as sudo and srun taken off."""
    words = command.split("|", maxsplit=1)[0].split()
    for at, word in enumerate(words):
        base = word.rpartition("/")[2]
        if _is_tool(base) or (at and base in _FILES):
            return [base, *words[at + 1 :]]
        if at == 0 and base not in _WRAPPERS and "=" not in base:
            return []
    return []


def _is_tool(base: str) -> bool:
    return base in _PLAIN or base in _CHOOSES or bool(_PERFTEST.match(base) or _NCCL.match(base))


def known(command: str) -> bool:
    """Return whether a text is a command line of a program that is known here."""
    return bool(_words(command))


def tool_of(command: str) -> Optional[str]:
    """Return the tool whose output a command (or a file's path) gives, by its name and options."""
    words = _words(command)
    if not words:
        return _FILES.get(command.strip().rpartition("/")[2])
    base, options = words[0], words[1:]
    if base in _PLAIN:
        return _PLAIN[base]
    if base in _FILES:
        return _FILES[base]
    if _PERFTEST.match(base):
        return "perftest"
    if base in _CHOOSES:
        return _CHOICES[base](options)
    return "nccl-tests"


def _nvidia_smi(options: list[str]) -> Optional[str]:
    if any(word.startswith("--query-") for word in options):
        return "nvidia-smi-csv"
    if "topo" in options:
        return "nvidia-smi-topo"
    if "nvlink" in options:
        return "nvidia-smi-nvlink"
    if any(word in ("-q", "--query", "-x", "-qx") for word in options):
        return "nvidia-smi-q"
    return "nvidia-smi" if all(word.startswith("-i") or word.isdigit() for word in options) else None


def _ethtool(options: list[str]) -> Optional[str]:
    flags = [word for word in options if word.startswith("-") and word not in ("--json", "-I", "--include-statistics")]
    if not flags:
        return "ethtool"
    if flags[0] in ("-S", "--statistics"):
        return "ethtool-S"
    return "ethtool-m" if flags[0] in ("-m", "--module-info", "--dump-module-eeprom") else None


def _ip(options: list[str]) -> Optional[str]:
    what = next((word for word in options if not word.startswith("-")), "")
    return "ip-link" if what and ("link".startswith(what) or "address".startswith(what)) else None


def _scontrol(options: list[str]) -> Optional[str]:
    return "scontrol-node" if any(word.startswith("node") for word in options) else None


def _journalctl(options: list[str]) -> str:
    return "fabricmanager" if any("fabricmanager" in word for word in options) else "syslog"


_CHOICES = {
    "nvidia-smi": _nvidia_smi,
    "ethtool": _ethtool,
    "ip": _ip,
    "scontrol": _scontrol,
    "journalctl": _journalctl,
}


def tool_of_complaint(text: str) -> Optional[str]:
    """Return the tool that an error message names: ``lspci: Cannot …``, ``bash: ibstat: not found``, a path."""
    for line in text.split("\n")[:40]:
        before = line[:400].split(": ")[:-1]
        for word in (*before[:4], *_PATH.findall(line[:400])):
            base = word.strip().rpartition("/")[2]
            if _is_tool(base):
                return tool_of(base)
    return None


def tool_of_file(name: str) -> Optional[str]:
    """Return the tool that a file's name speaks of (``ibstat-node3.txt``, ``ethtool_S_eth0``), or None."""
    base = name.rpartition("/")[2]
    if base in _FILES:
        return _FILES[base]
    words = [word for word in re.split(r"[\s_.-]+", base) if word][:6]
    for count in range(len(words), 0, -1):
        head = " ".join(words[:count])
        if words[0] == "ethtool" and count > 1 and words[1] in ("s", "M"):
            continue
        found = tools.find(head)
        if found is not None:
            return found
    return None
