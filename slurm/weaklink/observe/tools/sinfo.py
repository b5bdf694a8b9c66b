"""Read sinfo: tables by their own header (also -N -l, -R, ``|`` between columns), headerless ones, JSON old and new."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, Optional

from weaklink.model.hostlist import expand
from weaklink.observe.tools import slurm_nodes
from weaklink.observe.tools.slurm_nodes import Node
from weaklink.observe.tools.text import Trouble, integer, whole

NAME = "sinfo"
_NODE_COLUMNS = frozenset({"NODELIST", "HOSTNAMES", "NODEHOST", "NODE_HOST", "NODELIST(REASON)"})
_STATES = frozenset({"STATE", "STATECOMPACT", "STATELONG", "STATECOMPLETE", "STATE_COMPLETE"})
_KNOWN = (
    _NODE_COLUMNS
    | _STATES
    | frozenset(
        [
            "PARTITION",
            "AVAIL",
            "TIMELIMIT",
            "NODES",
            "JOB_SIZE",
            "ROOT",
            "OVERSUBS",
            "GROUPS",
            "RESERVATION",
            "CPUS",
            "S:C:T",
            "MEMORY",
            "TMP_DISK",
            "WEIGHT",
            "AVAIL_FE",
            "REASON",
            "USER",
            "TIMESTAMP",
            "GRES",
            "GRES_USED",
            "FREE_MEM",
            "CPU_LOAD",
            "AVAIL_FEATURES",
            "ACTIVE_FEATURES",
            "NODES(A/I)",
            "NODES(A/I/O/T)",
            "CPUS(A/I/O/T)",
            "SHARE",
            "SOCKETS",
            "CORES",
            "THREADS",
            "VERSION",
            "COMMENT",
            "CLUSTER",
            "ALLOCMEM",
            "PRIO_TIER",
        ]
    )
)
_DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\s*\Z")
_WHEN = re.compile(r"\s(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown|unknown)\s+")
_SUMMARY = re.compile(r"(\d{1,7})/(\d{1,7})/(\d{1,7})/(\d{1,7})\Z")
_NO_NODES = frozenset({"n/a", "N/A", "", "(null)"})
_REFUSED = re.compile(rf"(?m)^(?:slurm_load_(?:partitions|node): |{slurm_nodes.SHELL}sinfo: (?:command )?not found)")
_MOST = 100_000


class Record(NamedTuple):
    """Nodes, each once; partitions and whether they take jobs; ``others`` nodes that a summary counts as out."""

    nodes: tuple[Node, ...]
    partitions: dict[str, str]
    others: Optional[int]
    error: Optional[str]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is sinfo's."""
    head = head[:65_536]
    if head.lstrip().startswith("{"):
        if '"sinfo"' in head:
            return 92
        return 76 if '"nodes"' in head and ('"state_flags"' in head or '"openapi/' in head) and '"gres' in head else 0
    lines = head.splitlines()
    if any(_header(line) for line in lines[:20]):
        return 92
    if _REFUSED.search(head):
        return 70
    rows = [line for line in lines[:200] if line.strip()]
    return 40 if rows and all(_bare(line) for line in rows) else 0


def _header(line: str) -> Optional[list[str]]:
    words = [word.strip() for word in (line.split("|") if "|" in line else line.split())]
    if len(words) < 2 or not all(word in _KNOWN for word in words if word):  # noqa: PLR2004 - a node and its state
        return None
    return words if _NODE_COLUMNS & set(words) or "NODES(A/I/O/T)" in words else None


class _Table:
    """Rows on their way to nodes: the columns of the header that holds, and what was found."""

    def __init__(self) -> None:
        self.columns: list[str] = []
        self.bars = False
        self.nodes: dict[str, Node] = {}
        self.partitions: dict[str, str] = {}
        self.others: Optional[int] = None
        self.troubles: list[Trouble] = []


def parse(lines: Iterable[str]) -> Record:
    """Return the nodes; never raises."""
    rest = iter(lines)
    table = _Table()
    error: Optional[str] = None
    for at, line in enumerate(rest, 1):
        if not line.strip() or _DATE.match(line) or line.startswith("CLUSTER:"):
            continue
        if not table.nodes and not table.columns and line.lstrip().startswith("{"):
            return _json(chain([line], rest))
        columns = _header(line)
        if columns:
            table.columns, table.bars = columns, "|" in line
        elif slurm_nodes.ERROR.search(line) and not table.columns:
            error = error or line.strip()[:200]
        elif len(table.nodes) > _MOST:
            table.troubles.append(Trouble(at, f"more than {_MOST} nodes; the rest was not read"))
            break
        else:
            _row(table, at, line)
    return Record(tuple(table.nodes.values()), table.partitions, table.others, error, None, tuple(table.troubles[:20]))


def _row(table: _Table, at: int, line: str) -> None:
    cells = _cells(table, line) if table.columns else _bare(line)
    if cells is None:
        table.troubles.append(Trouble(at, f"not a whole row: {line[:80]!r}"))
        return
    partition = cells.get("PARTITION", "").rstrip("*")
    if partition and "AVAIL" in cells:
        table.partitions[partition] = cells["AVAIL"]
    match = _SUMMARY.match(cells.get("NODES(A/I/O/T)", ""))
    if match:
        table.others = (table.others or 0) + int(match[3])
        return
    hosts = next((cells[key] for key in cells if key in _NODE_COLUMNS), "")
    if hosts in _NO_NODES:
        return
    shown = next((cells[key] for key in cells if key in _STATES), None)
    found = slurm_nodes.states(shown) if shown is not None else (None, ())
    try:
        names = expand(hosts)
    except ValueError as error:
        table.troubles.append(Trouble(at, str(error)[:160]))
        return
    if found is None:
        table.troubles.append(Trouble(at, f"{hosts[:60]}: {str(shown)[:40]!r} is no state"))
        return
    count = integer(cells.get("NODES"))
    if count is not None and count != len(names):
        table.troubles.append(Trouble(at, f"{count} nodes, but {len(names)} are named: {hosts[:60]!r}"))
    for name in names[: _MOST + 1]:
        _keep(table, name, found, cells, partition)


def _keep(
    table: _Table, name: str, found: tuple[Optional[str], tuple[str, ...]], cells: dict[str, str], partition: str
) -> None:
    known = table.nodes.get(name)
    reason = slurm_nodes.word(cells.get("REASON"))
    by = slurm_nodes.word(cells.get("USER"))
    node = Node(
        name,
        found[0],
        found[1],
        reason=None if reason in ("none", "None") else reason,
        reason_by=None if by in ("Unknown", "unknown") else by,
        reason_at=slurm_nodes.word(cells.get("TIMESTAMP")),
        gpus=slurm_nodes.gpus(cells.get("GRES")) if "GRES" in cells else None,
        memory_mb=integer(cells.get("MEMORY", "").rstrip("+")),
        partitions=(partition,) if partition else (),
    )
    if known:
        node = node._replace(
            base=known.base or node.base,
            flags=tuple(dict.fromkeys((*known.flags, *node.flags))),
            reason=known.reason or node.reason,
            reason_by=known.reason_by or node.reason_by,
            reason_at=known.reason_at or node.reason_at,
            gpus=known.gpus if node.gpus is None else node.gpus,
            partitions=tuple(dict.fromkeys((*known.partitions, *node.partitions))),
        )
    table.nodes[name] = node


def _cells(table: _Table, line: str) -> Optional[dict[str, str]]:
    """Part a row by its header: by bars, by blanks with the reason's own kept together, or as -R prints it."""
    columns = table.columns
    if table.bars:
        words = [word.strip() for word in line.split("|")]
        return dict(zip(columns, words)) if len(words) >= len(columns) else None
    if columns[0] == "REASON":
        return _reason_first(line)
    words = line.split()
    if len(words) == len(columns) - 1:
        return _one_short(columns, words)
    extra = len(words) - len(columns)
    if extra > 0 and "REASON" in columns:
        place = columns.index("REASON")
        words = [*words[:place], " ".join(words[place : place + extra + 1]), *words[place + extra + 1 :]]
    return dict(zip(columns, words)) if len(words) == len(columns) else None


def _one_short(columns: list[str], words: list[str]) -> Optional[dict[str, str]]:
    """Part a row in which one cell is empty: a partition without nodes, or a node without a reservation."""
    if columns[-1] in _NODE_COLUMNS and any(word in _NO_NODES for word in words):
        return {**dict(zip(columns, words)), columns[-1]: ""}
    if "RESERVATION" in columns:
        return dict(zip([column for column in columns if column != "RESERVATION"], words))
    return None


def _reason_first(line: str) -> Optional[dict[str, str]]:
    """Part a row of -R, where the reason stands first and may hold anything: from its time stamp outwards."""
    stamps = list(_WHEN.finditer(line))
    if not stamps:
        return None
    reason = line[: stamps[-1].start()].rsplit(None, 1)
    rest = line[stamps[-1].end() :].split()
    if not reason or not 0 < len(rest) < 3:  # noqa: PLR2004 - perhaps a state, then the nodes
        return None
    found = {
        "REASON": reason[0].strip() if len(reason) > 1 else "",
        "TIMESTAMP": stamps[-1].group(1),
        "NODELIST": rest[-1],
    }
    found["USER"] = reason[-1].partition("(")[0]
    return {**found, "STATE": rest[0]} if len(rest) > 1 else found


def _bare(line: str) -> Optional[dict[str, str]]:
    """Read a row without a header: a node list and a state stand somewhere in it, in this order or the other."""
    words = [word.strip() for word in line.split("|")] if "|" in line else line.split()
    states = [place for place, text in enumerate(words) if text and not text[0].isdigit() and slurm_nodes.states(text)]
    known = [place for place in states if _sure(words[place])]
    if len(known) != 1:
        return None
    state = known[0]
    others = [place for place in range(len(words)) if place != state]
    hosts = next((place for place in (state - 1, len(words) - 1, 0) if place in others and _hosts(words[place])), None)
    if hosts is None:
        return None
    cells = {"STATE": words[state], "NODELIST": words[hosts]}
    if hosts < state < len(words) - 1:
        cells["REASON"] = " ".join(words[state + 1 :])
    return cells


def _sure(text: str) -> bool:
    found = slurm_nodes.states(text)
    return found is not None and found[0] is not None


def _hosts(text: str) -> bool:
    try:
        return bool(expand(text))
    except ValueError:
        return False


def _json(lines: Iterator[str]) -> Record:
    text, trouble = whole(lines)
    troubles = [trouble] if trouble else []
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Record((), {}, None, None, None, (*troubles, Trouble(0, f"not whole JSON: {error!s:.80}")))
    table = _Table()
    table.troubles = troubles
    if isinstance(data, dict) and isinstance(data.get("sinfo"), list):
        for entry in data["sinfo"]:
            _group(table, entry)
    elif isinstance(data, dict) and isinstance(data.get("nodes"), list):
        for number, entry in enumerate(data["nodes"]):
            node = slurm_nodes.from_json(entry)
            if node is None or node.base is None:
                table.troubles.append(Trouble(0, f"entry {number} of nodes holds no node with a state"))
            if node is not None:
                table.nodes[node.name] = node
    else:
        table.troubles.append(Trouble(0, "JSON without a list of nodes"))
    errors = data.get("errors") if isinstance(data, dict) else None
    said = str(errors[0])[:200] if isinstance(errors, list) and errors else None
    version = slurm_nodes.json_version(data.get("meta")) if isinstance(data, dict) else None
    return Record(tuple(table.nodes.values()), table.partitions, None, said, version, tuple(table.troubles[:20]))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _group(table: _Table, entry: Any) -> None:
    """Take in a group of the newer JSON: one state, the names of the nodes that share it."""
    if not isinstance(entry, dict):
        return
    node, listed = entry.get("node"), entry.get("nodes")
    names = listed.get("nodes") if isinstance(listed, dict) else None
    if not isinstance(names, list) or not isinstance(node, dict):
        table.troubles.append(Trouble(0, "a group without names or state"))
        return
    base, flags = slurm_nodes.json_states(node)
    why, gres, partition = (_object(entry.get(key)) for key in ("reason", "gres", "partition"))
    cells = {
        "REASON": str(why.get("description") or ""),
        "USER": str(why.get("user") or ""),
        **({"GRES": str(gres.get("total") or "")} if "total" in gres else {}),
    }
    if base is None and names:
        table.troubles.append(Trouble(0, f"{names[0]!s:.60}: no state"))
    for name in names:
        if isinstance(name, str):
            _keep(table, name, (base, flags), cells, str(partition.get("name") or ""))
