"""Read ``scontrol show node``: several lines a node, -o, ``--json`` of all data parsers.

Reason, Comment and Extra are free text that may hold ``Key=value``, quotes and brackets: in the form of many lines each
has a line of its own; in the form of one line they stand last, so the first of them ends what is plain.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools import slurm_nodes
from weaklink.observe.tools.slurm_nodes import Node
from weaklink.observe.tools.text import Trouble, integer, whole

NAME = "scontrol-node"
_START = re.compile(r"(?:scontrol: ?)?\s{0,3}NodeName=(\S{1,255})")
_FIELD = re.compile(r"(?:(?<=\s)|\A)([A-Za-z][A-Za-z_]{1,40}(?:/[a-z]{1,10})?)=(\S*)")
_FREE = re.compile(r"(?:(?<=\s)|\A)(Reason|Comment|Extra)=")
_OWN_LINE = re.compile(r"\s{0,8}(Reason|Comment|Extra|OS)=(.*)\Z")
_AFTER = re.compile(r" (Comment|Extra|InstanceId|InstanceType|ReservationName)=")
_SYSTEM = re.compile(r" OS=.{0,400}? (?=RealMemory=)")  # free text too, but no person's
_STAMP = re.compile(r" ?\[([^\s\[\]@]{1,64})@([^\[\]@]{1,40})\](?=\s|\Z)")
_IN_FULL = re.compile(r"\bArch=|\bCPUAlloc=|\bCoresPerSocket=")
_STATE_LAST = re.compile(r"\bState=[^\s=]{1,200}\Z")  # ThreadsPerCore follows in every version
_REFUSED = re.compile(
    r"(?m)^(?:slurm_load_node error|Node \S+ not found"
    rf"|{slurm_nodes.SHELL}scontrol: (?:command )?not found)"
)
_MOST = 100_000


class Record(NamedTuple):
    """The nodes, the tool's own error, the version of Slurm."""

    nodes: tuple[Node, ...]
    error: Optional[str]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is scontrol's list of nodes."""
    head = head[:65_536]
    if head.lstrip().startswith("{"):
        return 75 if '"nodes"' in head and '"state"' in head and '"real_memory"' in head else 0
    if re.search(r"(?m)^\s{0,3}NodeName=\S+", head):
        return 92 if re.search(r"(?m)(?:^|\s)(?:NodeAddr|NodeHostName|CPUTot|CfgTRES|CPUAlloc)=", head) else 30
    return 60 if _REFUSED.search(head) else 0


def parse(lines: Iterable[str]) -> Record:
    """Return the nodes; never raises."""
    rest = iter(lines)
    nodes: list[Node] = []
    troubles: list[Trouble] = []
    error: Optional[str] = None
    block: list[str] = []
    begun = 0
    for at, line in enumerate(rest, 1):
        if not block and not nodes and line.lstrip().startswith("{"):
            return _json(chain([line], rest))
        if _START.match(line):
            _close(block, begun, nodes, troubles)
            block, begun = [line], at
            if len(nodes) >= _MOST:
                troubles.append(Trouble(at, f"more than {_MOST} nodes; the rest was not read"))
                block = []
                break
        elif block:
            if len(block) < 400:  # noqa: PLR2004 - a node has 25 lines; a reason may have many
                block.append(line)
        elif error is None and slurm_nodes.ERROR.search(line):
            error = line.strip()[:200]
    _close(block, begun, nodes, troubles)
    if block and _IN_FULL.search(block[0]) and _STATE_LAST.search(block[-1]):
        troubles.append(Trouble(begun, "the output ends in the state of its last node, which may go on"))
    version = next((node.version for node in nodes if node.version), None)
    return Record(tuple(nodes), error, version, tuple(troubles[:20]))


def _close(block: list[str], begun: int, nodes: list[Node], troubles: list[Trouble]) -> None:
    if not block:
        return
    plain, free, reason = _apart(block)
    fields: dict[str, str] = {}
    for match in _FIELD.finditer(plain):
        fields.setdefault(match[1], match[2])
    found = slurm_nodes.states(fields.get("State", "")) if "State" in fields else None
    if found is None:
        troubles.append(Trouble(begun, f"{fields.get('NodeName', '?')[:80]}: its state does not follow"))
        return
    if found[0] is None:
        troubles.append(Trouble(begun, f"{fields['NodeName'][:80]}: no base state in {fields['State'][:60]!r}"))
    text, by, when = reason
    nodes.append(
        Node(
            name=fields["NodeName"],
            base=found[0],
            flags=found[1],
            reason=text,
            reason_by=by,
            reason_at=when,
            comment=slurm_nodes.word(free.get("Comment")),
            extra=slurm_nodes.word(free.get("Extra")),
            gpus=slurm_nodes.gpus(slurm_nodes.word(fields.get("Gres")), fields.get("CfgTRES")),
            memory_mb=integer(fields.get("RealMemory")),
            partitions=tuple(name for name in fields.get("Partitions", "").split(",") if slurm_nodes.word(name)),
            version=fields.get("Version"),
        )
    )


_Reason = tuple[Optional[str], Optional[str], Optional[str]]


def _apart(block: list[str]) -> tuple[str, dict[str, str], _Reason]:
    """Return the plain fields as one text, the free ones, and the reason with who and when."""
    free: dict[str, str] = {}
    plain: list[str] = []
    reason: list[str] = []
    for number, line in enumerate(block):
        own = _OWN_LINE.match(line) if number else None
        if own and own[1] == "OS":
            continue
        if own:
            reason = [own[2]] if own[1] == "Reason" else []
            free.setdefault(own[1], own[2].strip())
        elif (reason and line[:12].isspace() and line.strip()) or (
            reason and line.strip() and not _FIELD.match(line.strip()) and not line.startswith("#")
        ):
            reason.append(line.strip())
            free["Reason"] = "\n".join(reason)
        else:
            reason = []
            plain.append(_one_line(line, free))
    return "\n".join(plain), free, _stamped(free.get("Reason"))


def _one_line(line: str, free: dict[str, str]) -> str:
    """Take the free texts off a line that holds more; OS has blanks, but what follows it is known by its ``=``."""
    line = _SYSTEM.sub(" ", line, count=1)
    first = _FREE.search(line)
    if first is None:
        return line
    head, rest = line[: first.start()], line[first.start() :]
    key = first[1]
    text = rest[len(key) + 1 :]
    if key == "Reason":
        stamps = list(_STAMP.finditer(text))
        end = stamps[-1].end() if stamps else len(text)
        free.setdefault(key, text[:end])
        text = text[end:]
    else:
        text = f" {key}={text}"
    marks = list(_AFTER.finditer(text))
    for mark, after in zip(marks, [*marks[1:], None]):
        value = text[mark.end() : after.start() if after else len(text)]
        reason = value.find(" Reason=") if mark[1] != "Reason" else -1
        if reason >= 0 and "Reason" not in free:
            free["Reason"] = value[reason + 8 :]
            value = value[:reason]
        free.setdefault(mark[1], value.strip())
    return head


def _stamped(text: Optional[str]) -> _Reason:
    if slurm_nodes.word(text and text.strip()) is None or text is None:
        return None, None, None
    stamps = list(_STAMP.finditer(text))
    if not stamps:
        return text.strip(), None, None
    stamp = stamps[-1]
    return (text[: stamp.start()] + text[stamp.end() :]).strip(), stamp[1], stamp[2]


def _json(lines: Iterator[str]) -> Record:
    text, trouble = whole(lines)
    troubles = [trouble] if trouble else []
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Record((), None, None, (*troubles, Trouble(0, f"not whole JSON: {error!s:.80}")))
    listed = data.get("nodes") if isinstance(data, dict) else None
    if not isinstance(listed, list):
        return Record((), _errors(data), None, (*troubles, Trouble(0, "JSON without a list of nodes")))
    nodes = []
    for number, entry in enumerate(listed):
        node = slurm_nodes.from_json(entry)
        if node is None or node.base is None:
            troubles.append(Trouble(0, f"entry {number} of nodes holds no node with a state"))
        if node is not None:
            nodes.append(node)
    return Record(tuple(nodes), _errors(data), slurm_nodes.json_version(data.get("meta")), tuple(troubles[:20]))


def _errors(data: Any) -> Optional[str]:
    found = data.get("errors") if isinstance(data, dict) else None
    if not isinstance(found, list) or not found:
        return None
    first = found[0]
    return (
        str(first.get("description") or first.get("error") or first)[:200]
        if isinstance(first, dict)
        else str(first)[:200]
    )
