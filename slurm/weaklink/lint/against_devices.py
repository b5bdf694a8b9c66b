"""Hold the lists of HCAs and interfaces, and what switches them off, against a node's facts. Pure."""

from typing import Optional

from weaklink.lint import selection
from weaklink.lint.base import CONTRADICTION, DISCOURAGED, NO_OP, OK, PREFIX_MATCH
from weaklink.lint.context import Context
from weaklink.lint.facts import Facts
from weaklink.lint.parse import Setting
from weaklink.lint.values import Remark, number

_LEGACY_PHB = 3  # of the whole numbers that older versions took


def hca_list(facts: Facts) -> str:
    """Return the value of NCCL_IB_HCA that names the compute HCAs and nothing else."""
    return "=" + ",".join(hca.name for hca in facts.compute())


def hca(setting: Setting, context: Context) -> list[Remark]:
    """Hold NCCL_IB_HCA against the HCAs of the node."""
    facts = context.facts
    if facts is None or not facts.hcas:
        return []
    chosen = selection.parse(setting.value)
    if meant(chosen, facts):
        names = ", ".join(chosen.families(list(facts.hcas)))
        text = f"{names} is a prefix, and on this node of the {len(facts.compute())} compute HCAs alone"
        return [Remark(OK, f"{text}; {hca_list(facts)} says the same by whole names")]
    found = _caught(chosen, list(facts.hcas), f"write {hca_list(facts)}")
    selected = {name for name in facts.hcas if chosen.selects(name)}
    missed = [item.name for item in facts.compute() if item.name not in selected]
    others = [f"{item.name} ({item.role})" for item in facts.hcas.values() if _foreign(item.role, item.name, selected)]
    unknown = [entry.name for entry in chosen.entries if not _known(entry, chosen.exact, list(facts.hcas))]
    write = f"write {hca_list(facts)}"
    if missed:
        text = f"leaves out {len(missed)} of {len(facts.compute())} compute HCAs: {_some(missed)}"
        found.append(Remark(CONTRADICTION, f"{text}; their GPUs share the others' bandwidth; {write}"))
    if others:
        found.append(Remark(CONTRADICTION, f"uses HCAs that are not for jobs' traffic: {_some(others)}; {write}"))
    if unknown:
        found.append(Remark(CONTRADICTION, f"names HCAs that this node does not have: {_some(unknown)}; {write}"))
    if not found and not (missed or others or unknown):
        found.append(Remark(OK, f"selects exactly the {len(selected)} compute HCAs of this node"))
    return found


def meant(chosen: selection.Selection, facts: Facts) -> bool:
    """Return whether a list of prefixes, none of them a device's name, takes the compute HCAs and nothing else."""
    names = list(facts.hcas)
    if chosen.exclude or not chosen.entries or len(chosen.families(names)) != len(chosen.entries):
        return False
    return {name for name in names if chosen.selects(name)} == {item.name for item in facts.compute()} != set()


def _foreign(role: str, name: str, selected: set[str]) -> bool:
    return role != "compute" and name in selected


def _known(entry: selection.Entry, exact: bool, names: list[str]) -> bool:
    return entry.name in names if exact else any(name.startswith(entry.name) for name in names)


def _caught(chosen: selection.Selection, names: list[str], write: str) -> list[Remark]:
    return [
        Remark(PREFIX_MATCH, f"on this node the prefix {entry} also matches {_some(others)}; {write}")
        for entry, others in chosen.caught(names).items()
    ]


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")  # noqa: PLR2004 - what fits a line


def ifname(setting: Setting, context: Context) -> list[Remark]:
    """Hold NCCL_SOCKET_IFNAME against the interfaces of the node."""
    facts = context.facts
    if facts is None or not facts.netdevs:
        return []
    chosen = selection.parse(setting.value)
    names = list(facts.netdevs)
    wanted = facts.bootstrap_interface
    write = f"write ={wanted}" if wanted else "name the one of the management network"
    found = _caught(chosen, names, write)
    unknown = [entry.name for entry in chosen.entries if not _known(entry, chosen.exact, names)]
    selected = [name for name in names if chosen.selects(name) and name != "lo"]
    if unknown and not chosen.exclude:
        have = f"this node has {_some(names)}"
        found.append(Remark(CONTRADICTION, f"no interface named {_some(unknown)}: {have}; {write}"))
    elif wanted and wanted not in selected:
        found.append(Remark(CONTRADICTION, f"takes {_some(selected)}, not the bootstrap interface {wanted}; {write}"))
    elif wanted and len(selected) > 1:
        wrong = [name for name in selected if name != wanted]
        found.append(Remark(CONTRADICTION, f"takes interfaces of other networks too: {_some(wrong)}; {write}"))
    elif not wanted:
        storage = [name for name in selected if facts.netdevs[name].role == "storage"]
        if storage:
            found.append(Remark(CONTRADICTION, f"takes interfaces of the storage network: {_some(storage)}; {write}"))
    return found


def ib_disable(setting: Setting, context: Context) -> list[Remark]:
    """Hold NCCL_IB_DISABLE against the HCAs."""
    if context.facts is not None and context.facts.compute() and number(setting):
        return [Remark(CONTRADICTION, f"jobs then use TCP beside {len(context.facts.compute())} idle compute HCAs")]
    return []


def net(setting: Setting, context: Context) -> list[Remark]:
    """Hold NCCL_NET against the HCAs."""
    if context.facts is not None and context.facts.compute() and setting.value.lower() == "socket":
        return [Remark(CONTRADICTION, f"jobs then use TCP beside {len(context.facts.compute())} idle compute HCAs")]
    return []


def cross_nic(setting: Setting, context: Context) -> list[Remark]:
    """Hold NCCL_CROSS_NIC against the rails."""
    facts, value = context.facts, number(setting)
    if facts is None or value is None or not facts.hcas:
        return []
    if len(facts.compute()) == 1:
        return [Remark(NO_OP, "this node has one compute HCA; there is nothing to cross")]
    return _of_rails(value, facts, {item.rail for item in facts.compute() if item.rail is not None})


def _of_rails(value: int, facts: Facts, rails: set[int]) -> list[Remark]:
    if value == 1 and len(rails) > 1:
        text = f"mixes the {len(rails)} rails of this node, so that traffic between rails climbs the tree; use 2"
        return [Remark(CONTRADICTION, f"{text}{' or 0' if facts.inter_rail in ('slow', 'none') else ''}")]
    if value == 0 and facts.inter_rail == "full":
        return [
            Remark(DISCOURAGED, "rails are joined at full rate here; 2 (the default) may cross them where it helps")
        ]
    if value == 0 and len(rails) > 1:
        return [Remark(OK, f"keeps to the {len(rails)} rails; right where what joins them is slow or absent")]
    if value != 0 and facts.inter_rail == "none":
        return [Remark(CONTRADICTION, "rails are not joined here: traffic that changes rails does not arrive; use 0")]
    return []


def gdr_level(setting: Setting, context: Context) -> list[Remark]:
    """Hold NCCL_NET_GDR_LEVEL against which GPU has an HCA beside it."""
    facts, level = context.facts, number(setting)
    if facts is None or not facts.compute():
        return []
    if setting.value == "LOC" or level == 0:
        return [Remark(CONTRADICTION, "switches GPUDirect RDMA off beside compute HCAs: all data go through the CPU")]
    beside = {item.gpu for item in facts.compute() if item.gpu is not None}
    if setting.value not in ("PHB", "SYS") and (level is None or level < _LEGACY_PHB):
        return []
    if not facts.gpus or not beside:
        return []
    alone = [f"GPU {gpu}" for gpu in range(facts.gpus) if gpu not in beside]
    if alone:
        return [
            Remark(DISCOURAGED, f"on this node it lets {_some(alone)}, without an HCA beside, reach one the long way")
        ]
    return [Remark(DISCOURAGED, f"all {facts.gpus} GPUs of this node have an HCA beside them; nothing here needs it")]


def missing(context: Context) -> list[tuple[str, Optional[str], Remark]]:
    """Return (variable, None, remark) for what is not set and has to be on this node."""
    facts = context.facts
    if facts is None:
        return []
    found: list[tuple[str, Optional[str], Remark]] = []
    others = [item.name for item in facts.hcas.values() if item.role != "compute"]
    if "NCCL_IB_HCA" not in context.winners and facts.compute() and others:
        text = f"not set: NCCL then takes every HCA, also {_some(others)}; set NCCL_IB_HCA={hca_list(facts)}"
        found.append(("NCCL_IB_HCA", None, Remark(CONTRADICTION, text)))
    candidates = [name for name in facts.netdevs if name != "lo" and not name.startswith("docker")]
    wanted = facts.bootstrap_interface
    if "NCCL_SOCKET_IFNAME" not in context.winners and wanted and len(candidates) > 1:
        text = f"not set: NCCL chooses among {_some(candidates)} by name; set NCCL_SOCKET_IFNAME=={wanted}"
        found.append(("NCCL_SOCKET_IFNAME", None, Remark(DISCOURAGED, text)))
    return found
