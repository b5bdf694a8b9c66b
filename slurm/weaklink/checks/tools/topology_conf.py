"""Judge topology.conf: would slurmctld take it, and does it reach every node. Pure.

What is fatal and what is only a warning follows Slurm's topology/tree and topology/block plugins.
"""

from collections.abc import Iterator
from typing import Any, Optional

from weaklink.checks.tools.base import NOTE, Context, Judged, Rule, close, demand, say
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN, Finding
from weaklink.observe.tools.topology_conf import Record, Unit

VALID = Rule(
    "topology.valid",
    ("topology-invalid",),
    FAIL,
    NOTE,
    "the plugin refuses unknown keys, a switch defined twice or without children, a child that is not defined, a "
    "loop, lines of another plugin, blocks smaller than the base block",
    "correct the line; restart slurmctld in a test instance first",
)
ONE_LEAF = Rule(
    "topology.one_leaf",
    ("topology-invalid",),
    FAIL,
    NOTE,
    "topology/tree knows one leaf a node, so a rail-optimised fabric cannot be written with one leaf a rail",
    "one pseudo-leaf for each scalable unit, in which all rails of its nodes end",
)
NODES = Rule(
    "topology.nodes",
    ("topology-invalid",),
    DEGRADED,
    NOTE,
    "nodes of the file against those of slurm.conf: a node that is missing here gets no job with others, one that "
    "slurm.conf does not know is ignored with a warning",
    "add or remove the nodes named",
)
ROOT = Rule(
    "topology.root",
    ("topology-invalid",),
    DEGRADED,
    NOTE,
    "no switch reaches all nodes: jobs cannot span the islands",
    "add a switch above them, unless the islands are meant",
)
RAN = Rule(
    "topology.ran",
    ("test-did-not-run",),
    UNKNOWN,
    NOTE,
    "a file without a switch or block says nothing",
    "give the file",
)
RULES = (VALID, ONE_LEAF, NODES, ROOT, RAN)


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; context: plugin, slurm_nodes."""
    plugin = demand(context, "plugin", str, "").lower()
    known = demand(context, "slurm_nodes", list)
    if known is not None and not all(isinstance(name, str) for name in known):
        raise ValueError(f"context: key 'slurm_nodes': found {known!r:.60}, wanted a list of names")
    tree = _Tree(record)
    listed = tree.listed
    strange = [name for name in listed if known is not None and name not in set(known)]
    lacking = [name for name in known or [] if name not in listed]
    findings: list[Finding] = []
    if plugin.endswith(("/default", "/flat", "/none")):
        pass  # the file is not read
    elif not (record.units or record.problems or record.troubles):
        findings.append(say(RAN, "topology.conf", UNKNOWN, "no switch and no block is defined"))
    else:
        findings += _refused(record, tree, plugin)
        findings += _shared(tree, plugin)
        if not record.troubles:
            findings += _nodes(strange, lacking)
            findings += _roots(tree)
    facts: dict[str, Any] = {
        "switches": len(tree.switches),
        "blocks": len(tree.blocks),
        "root": tree.roots[0] if len(tree.roots) == 1 else None,
        "roots": tree.roots,
        "leaf_nodes": {unit.name: len(unit.nodes) for unit in tree.switches.values() if unit.nodes},
        "block_nodes": {unit.name: len(unit.nodes) for unit in tree.blocks.values()},
        "block_sizes": list(record.block_sizes),
        "unknown_nodes": strange,
        "unlisted_nodes": lacking,
        "bad_children": tree.bad_children,
        "several_leaves": list(tree.shared),
    }
    return close(
        "topology", facts, findings, record.troubles, f"{len(record.units)} switches or blocks, all nodes listed"
    )


class _Tree:
    """What follows from the units: roots, children that are not there, loops, nodes under several leaves."""

    def __init__(self, record: Record) -> None:
        self.switches = {unit.name: unit for unit in record.units if not unit.block}
        self.blocks = {unit.name: unit for unit in record.units if unit.block}
        seen: dict[str, Unit] = {}
        self.twice: list[Unit] = []
        for unit in record.units:
            if unit.name in seen:
                self.twice.append(unit)
            seen.setdefault(unit.name, unit)
        children = {child for unit in self.switches.values() for child in unit.children}
        self.bad_children = [
            child
            for child in dict.fromkeys(child for unit in self.switches.values() for child in unit.children)
            if child not in self.switches
        ]
        self.loop = _loop(self.switches)
        self.roots = [] if self.loop else [name for name in self.switches if name not in children]
        self.listed: dict[str, list[str]] = {}
        for unit in record.units:
            for node in unit.nodes:
                self.listed.setdefault(node, []).append(unit.name)
        self.shared = {node: units for node, units in self.listed.items() if len(set(units)) > 1}


def _loop(switches: dict[str, Unit]) -> Optional[list[str]]:
    """Return a way that comes back to its beginning, or None: depth first, without recursion."""
    done: set[str] = set()
    for start in switches:
        path: list[str] = []
        on_path: set[str] = set()
        waiting: list[tuple[str, bool]] = [(start, True)]
        while waiting:
            name, entering = waiting.pop()
            if not entering:
                path.pop()
                on_path.discard(name)
                done.add(name)
            elif name in on_path:
                return [*path[path.index(name) :], name]
            elif name in switches and name not in done:
                path.append(name)
                on_path.add(name)
                waiting.append((name, False))
                waiting += [(child, True) for child in switches[name].children]
    return None


def _refused(record: Record, tree: _Tree, plugin: str) -> Iterator[Finding]:
    for line, what in record.problems:
        yield say(VALID, f"line {line}", FAIL, f"line {line}: {what}; correct it")
    for kind, units, other in (("/block", tree.switches, "SwitchName"), ("/tree", tree.blocks, "BlockName")):
        if plugin.endswith(kind) and units and not record.yaml:
            text = f"{plugin} does not know {other}; write the file for it, or take the other plugin"
            yield say(VALID, plugin, FAIL, text)
    for unit in tree.twice:
        yield say(
            VALID, unit.name, FAIL, f"line {unit.line}: {unit.name} is defined for the second time; define it once"
        )
    troubled = {line for line, _ in record.problems}
    for unit in tree.switches.values():
        if not (unit.nodes or unit.children or unit.line in troubled):
            yield say(
                VALID, unit.name, FAIL, f"line {unit.line}: {unit.name} has neither nodes nor switches; give it some"
            )
    for child in tree.bad_children:
        yield say(VALID, child, FAIL, f"{child} is named as a child, but no SwitchName defines it; define it")
    if tree.loop:
        yield say(VALID, tree.loop[0], FAIL, f"switches form a loop: {' > '.join(tree.loop[:8])}; a tree has none")
    yield from _small_blocks(record, tree)


def _small_blocks(record: Record, tree: _Tree) -> Iterator[Finding]:
    base = min(record.block_sizes, default=0)
    for unit in tree.blocks.values():
        if len(unit.nodes) < base:
            text = f"line {unit.line}: block {unit.name} has {len(unit.nodes)} nodes, the base block {base}; fill it"
            yield say(VALID, unit.name, DEGRADED, text)


def _shared(tree: _Tree, plugin: str) -> Iterator[Finding]:
    if tree.shared and not plugin.endswith("/block"):
        node, units = next(iter(tree.shared.items()))
        text = (
            f"{len(tree.shared)} nodes are under several leaves ({node}: {', '.join(units[:4])}); use one leaf a node"
        )
        yield say(ONE_LEAF, node, FAIL, text, nodes=list(tree.shared)[:50])
    elif tree.shared:
        node, units = next(iter(tree.shared.items()))
        text = f"{len(tree.shared)} nodes are in several blocks ({node}: {', '.join(units[:4])}); a node has one block"
        yield say(ONE_LEAF, node, FAIL, text, nodes=list(tree.shared)[:50])


def _nodes(strange: list[str], lacking: list[str]) -> Iterator[Finding]:
    if lacking:
        text = f"{len(lacking)} nodes of slurm.conf are under no switch ({', '.join(lacking[:4])}); add them to a leaf"
        yield say(NODES, lacking[0], DEGRADED, text, nodes=lacking[:50])
    if strange:
        text = f"{len(strange)} nodes are not in slurm.conf ({', '.join(strange[:4])}); remove or define them"
        yield say(NODES, strange[0], DEGRADED, text, nodes=strange[:50])


def _roots(tree: _Tree) -> Iterator[Finding]:
    if len(tree.roots) > 1 and not tree.bad_children:
        text = f"{len(tree.roots)} switches have none above them ({', '.join(tree.roots[:4])}); jobs cannot span them"
        yield say(ROOT, tree.roots[0], DEGRADED, text, roots=tree.roots[:50])
