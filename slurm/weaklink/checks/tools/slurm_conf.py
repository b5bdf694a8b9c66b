"""Judge slurm.conf: what would make its daemons refuse it, or drain the nodes that it describes. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Optional

from weaklink.checks.tools.base import NOTE, Context, Judged, Rule, close, demand, say
from weaklink.model.finding import FAIL, UNKNOWN, Finding
from weaklink.observe.tools.slurm_conf import NodeLine, Record
from weaklink.observe.tools.slurm_text import distance, hosts
from weaklink.observe.tools.text import integer

MEMORY = Rule(
    "slurm_conf.memory",
    ("realmemory-too-high",),
    FAIL,
    NOTE,
    "RealMemory (with DEFAULT) against what slurmd -C prints on a node of the line: a node that has less than "
    "configured is drained with 'Low RealMemory' unless SlurmdParameters=config_overrides",
    "set RealMemory at or below what slurmd -C prints on the smallest node of the line",
)
SIZE = Rule(
    "slurm_conf.size",
    ("node-size-too-high",),
    FAIL,
    NOTE,
    "sockets, cores and threads against slurmd -C, the same way",
    "set them to what slurmd -C prints",
)
SYNTAX = Rule(
    "slurm_conf.syntax",
    ("config-invalid",),
    FAIL,
    NOTE,
    "an empty value, a host list that does not parse, a key with a typing error, a node defined twice, a partition "
    "with a node that is not defined: the daemons refuse to start with these",
    "correct the line; slurmctld -t (24.11 and later) or a test instance tells before the cluster does",
)
RAN = Rule(
    "slurm_conf.ran", ("test-did-not-run",), UNKNOWN, NOTE, "a file without a parameter says nothing", "give slurm.conf"
)
RULES = (MEMORY, SIZE, SYNTAX, RAN)

# Common parameters, in lower case: only a word that is nearly one of them is called a typing error.
_COMMON = frozenset(
    [
        "clustername",
        "slurmctldhost",
        "controlmachine",
        "backupcontroller",
        "selecttype",
        "selecttypeparameters",
        "grestypes",
        "proctracktype",
        "taskplugin",
        "schedulertype",
        "schedulerparameters",
        "slurmctldport",
        "slurmdport",
        "slurmuser",
        "slurmduser",
        "statesavelocation",
        "slurmdspooldir",
        "authtype",
        "accountingstoragetype",
        "accountingstoragehost",
        "accountingstorageenforce",
        "accountingstoragetres",
        "jobacctgathertype",
        "returntoservice",
        "prolog",
        "epilog",
        "prologflags",
        "slurmctldtimeout",
        "slurmdtimeout",
        "messagetimeout",
        "healthcheckprogram",
        "healthcheckinterval",
        "healthchecknodestate",
        "topologyplugin",
        "topologyparam",
        "mpidefault",
        "slurmctldparameters",
        "slurmdparameters",
        "slurmctldlogfile",
        "slurmdlogfile",
        "slurmctlddebug",
        "slurmddebug",
        "slurmctldpidfile",
        "slurmdpidfile",
        "priorityttype",
        "prioritytype",
        "treewidth",
        "killwait",
        "inactivelimit",
        "waittime",
        "propagateresourcelimitsexcept",
        "suspendprogram",
        "resumeprogram",
        "suspendtime",
        "resumetimeout",
        "rebootprogram",
        "jobsubmitplugins",
    ]
) - {"priorityttype"}


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; context: slurmd_C (node → the line that slurmd -C prints there)."""
    reported = _reported(context)
    overrides = "config_overrides" in record.keys.get("slurmdparameters", "").lower()
    high: list[str] = []
    fine: list[str] = []
    findings: list[Finding] = []
    for node in record.nodes:
        known = {name: reported[name] for name in node.names if name in reported}
        said = [] if overrides else list(_node(node, known))
        findings += said
        if any(finding.check == MEMORY.name for finding in said):
            high.append(node.expression)
        elif known and any("realmemory" in keys for keys in known.values()):
            fine.append(node.expression)
    findings += _syntax(record)
    if not (record.nodes or record.partitions or record.keys or record.includes or findings or record.troubles):
        findings.append(say(RAN, "slurm.conf", UNKNOWN, "the file holds no parameter"))
    facts: dict[str, Any] = {
        "real_memory": {
            node.expression: node.number("realmemory") for node in record.nodes if "realmemory" in node.keys
        },
        "too_high": high,
        "ok": fine,
        "nodes": sum(len(node.names) for node in record.nodes),
        "partitions": {partition.name: partition.nodes for partition in record.partitions},
        "includes": list(record.includes),
        "cluster": record.keys.get("clustername"),
    }
    return close("slurm_conf", facts, findings, record.troubles, f"{facts['nodes']} nodes are defined as they are")


def _reported(context: Context) -> dict[str, dict[str, str]]:
    """What slurmd -C printed, by node; its second line (UpTime) does not matter."""
    found = {}
    for name, text in demand(context, "slurmd_C", dict, {}).items():
        if not isinstance(text, str):
            found_text = f"context: key 'slurmd_C': found {text!r:.60} for {name}"
            raise ValueError(f"{found_text}, wanted what slurmd -C prints")  # noqa: TRY004 - the contract's error
        pairs = (word.partition("=") for word in text.split() if "=" in word)
        found[str(name)] = {key.lower(): value for key, _, value in pairs}
    return found


def _node(node: NodeLine, known: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    wanted = node.number("realmemory")
    least: Optional[tuple[int, str]] = None
    for name, keys in known.items():
        has = integer(keys.get("realmemory"))
        if has is not None and (least is None or has < least[0]):
            least = (has, name)
    if wanted is not None and least is not None and wanted > least[0]:
        text = (
            f"line {node.line}: {node.expression}: RealMemory={wanted}, but {least[1]} reports {least[0]}; "
            f"it will be drained with 'Low RealMemory': set at most {least[0]}"
        )
        yield say(MEMORY, node.expression, FAIL, text, found=wanted, wanted=least[0])
    for name, keys in known.items():
        for ours, theirs in (
            ("sockets", ("socketsperboard", "sockets")),
            ("corespersocket", ("corespersocket",)),
            ("threadspercore", ("threadspercore",)),
            ("cpus", ("cpus",)),
        ):
            configured = node.number(ours)
            has = next((integer(keys[key]) for key in theirs if key in keys), None)
            if ours == "sockets" and has is not None:
                has *= integer(keys.get("boards")) or 1
            if configured is not None and has is not None and configured > has:
                text = f"line {node.line}: {node.expression}: {ours}={configured}, but {name} reports {has}; set {has}"
                yield say(SIZE, node.expression, FAIL, text, found=configured, wanted=has)


def _syntax(record: Record) -> Iterator[Finding]:
    for key, line in record.empty:
        yield say(SYNTAX, key, FAIL, f"line {line}: {key}= has no value, which Slurm refuses; give one or take it out")
    for text, line in record.bad_hosts:
        yield say(SYNTAX, "NodeName", FAIL, f"line {line}: {text}; correct the host list")
    for key, (spelt, line) in record.spelt.items():
        if key not in _COMMON:
            near = next((word for word in sorted(_COMMON) if len(key) > 6 and distance(key, word) == 1), None)  # noqa: PLR2004 - short words are near many
            if near and not _known_pair(key, near):
                yield say(SYNTAX, spelt, FAIL, f"line {line}: {spelt} is no parameter; was {near} meant?")
    seen: dict[str, int] = {}
    for node in record.nodes:
        twice = [name for name in node.names if name in seen]
        if twice:
            text = f"line {node.line}: {twice[0]} is defined in line {seen[twice[0]]} already; define each node once"
            yield say(SYNTAX, twice[0], FAIL, text)
        seen.update(dict.fromkeys(node.names, node.line))
    if record.nodes and not record.includes and not record.bad_hosts and not record.troubles:
        yield from _partitions(record, set(seen))


_PAIRS = frozenset({("slurmuser", "slurmduser"), ("slurmduser", "slurmuser")})


def _known_pair(key: str, near: str) -> bool:
    """Real parameters that differ in one letter from another one (SlurmctldHost has SlurmctldHost1 in old files)."""
    return (key, near) in _PAIRS or key.rstrip("0123456789") == near or near.replace("slurmctld", "slurmd") == key


def _partitions(record: Record, known: set[str]) -> Iterator[Finding]:
    for partition in record.partitions:
        if partition.nodes.upper() in ("", "ALL") or any(name in partition.nodes for name in record.nodesets):
            continue
        try:
            names = hosts(partition.nodes)
        except ValueError as error:
            yield say(SYNTAX, partition.name, FAIL, f"line {partition.line}: {error}; correct the host list")
            continue
        strange = [name for name in names if name not in known]
        if strange:
            text = f"line {partition.line}: {partition.name} names {strange[0]}, which no NodeName defines; define it"
            yield say(SYNTAX, partition.name, FAIL, text, nodes=strange[:20])
