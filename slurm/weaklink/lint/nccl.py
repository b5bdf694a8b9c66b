"""Judge NCCL settings: one setting at a time, together, and against a node's facts. Pure."""

from collections.abc import Callable
from typing import Optional

from weaklink.lint import against_devices, against_roce, units, values
from weaklink.lint.base import (
    CONTRADICTION,
    DEBUG,
    DEPRECATED,
    HIDDEN,
    NO_OP,
    OK,
    UNIT,
    UNKNOWN,
    Judgement,
    weight,
)
from weaklink.lint.context import Context
from weaklink.lint.facts import Facts
from weaklink.lint.parse import CONF, PARAM_SOURCE, Setting, Source
from weaklink.lint.precedence import Lost, Outcome, resolve
from weaklink.lint.rule import DEBUGGING, FABRIC, FOREIGN, Rule
from weaklink.lint.special import SPECIAL
from weaklink.lint.table import RULES, nearest
from weaklink.lint.values import Remark
from weaklink.lint.version import Version

_FACTS_SOURCE = "the given facts of this node"
_AGAINST: dict[str, Callable[[Setting, Context], list[Remark]]] = {
    "NCCL_IB_HCA": against_devices.hca,
    "NCCL_SOCKET_IFNAME": against_devices.ifname,
    "NCCL_IB_DISABLE": against_devices.ib_disable,
    "NCCL_NET": against_devices.net,
    "NCCL_CROSS_NIC": against_devices.cross_nic,
    "NCCL_NET_GDR_LEVEL": against_devices.gdr_level,
    "NCCL_IB_TC": against_roce.traffic_class,
    "NCCL_IB_FIFO_TC": against_roce.traffic_class,
    "NCCL_IB_SL": against_roce.service_level,
    "NCCL_IB_ADAPTIVE_ROUTING": against_roce.adaptive_routing,
    "NCCL_IB_GID_INDEX": against_roce.gid_index,
}


def judge(sources: list[Source], at: Version, facts: Optional[Facts] = None) -> list[Judgement]:
    """Return what there is to say of every setting in ``sources`` for NCCL ``at``, at least one judgement each.

    The judgements of one setting come together, what matters most first. Facts are held against what wins.
    """
    outcome = resolve(sources, at)
    context = Context(at, outcome.winners, facts)
    lost = {id(item.setting): item for item in outcome.lost}
    found: list[Judgement] = []
    for source in sources:
        found += source.oddities
        for setting in source.settings:
            found += _judge(setting, context, lost.get(id(setting)), _lost_of(setting, outcome))
    whole = any(source.form == CONF for source in sources)
    return found + (_missing(context, sources) if whole else [])


def _lost_of(setting: Setting, outcome: Outcome) -> list[Lost]:
    return [item for item in outcome.lost if item.winner is setting]


def _judge(setting: Setting, context: Context, lost: Optional[Lost], beaten: list[Lost]) -> list[Judgement]:
    rule = RULES.get(setting.name)
    remarks = _remarks(setting, rule, context)
    source = PARAM_SOURCE if rule is None else rule.source
    sourced = [(remark, source) for remark in remarks]
    if rule is not None and context.facts is not None and lost is None and not setting.dynamic:
        against = _AGAINST.get(setting.name, _nothing)(setting, context)
        sourced += [(remark, _FACTS_SOURCE) for remark in against]
    if lost is not None:
        sourced.append((_why_lost(setting, lost), PARAM_SOURCE))
    if any(remark.klass != OK for remark, _ in sourced):
        sourced = [(remark, place) for remark, place in sourced if remark.klass != OK]
    elif sourced:  # one judgement that tells everything
        told = "; ".join(remark.message for remark, _ in sourced)
        sourced = [(Remark(OK, told), sourced[-1][1])]
    else:
        sourced = [(_fine(rule, context), source)]
    sourced.sort(key=lambda item: -weight(item[0].klass))
    wins = f" It wins over {beaten[0].setting.file}:{beaten[0].setting.line}." if beaten else ""
    value = HIDDEN if rule is not None and rule.secret else setting.value
    return [
        Judgement(
            setting.name,
            value,
            remark.klass,
            f"{setting.name}={value} (NCCL {context.at}): {remark.message}.{wins}",
            place,
            setting.file,
            setting.line,
            effective=lost is None,
        )
        for remark, place in sourced
    ]


def _nothing(_setting: Setting, _context: Context) -> list[Remark]:
    return []


def _why_lost(setting: Setting, lost: Lost) -> Remark:
    if lost.winner is None:
        return Remark(NO_OP, lost.why)
    place = f"{lost.winner.file}:{lost.winner.line}" if lost.winner.line else lost.winner.file
    secret = setting.name in RULES and RULES[setting.name].secret
    wins = HIDDEN if secret else lost.winner.value[:60]
    same_file = lost.winner.file == setting.file
    return Remark(NO_OP if same_file else OK, f"has no effect: {place} wins with {wins} ({lost.why})")


def _fine(rule: Optional[Rule], context: Context) -> Remark:
    if rule is not None and rule.section == FABRIC:
        return Remark(OK, "listed under Debugging, yet its right value depends on the site, which may keep it")
    return Remark(OK, f"describes the system; NCCL {context.at} takes it")


def _remarks(setting: Setting, rule: Optional[Rule], context: Context) -> list[Remark]:
    """Return what there is to say without facts; ok remarks only tell more."""
    if rule is None:
        near = nearest(setting.name)
        hint = f"; did you mean {near}?" if near else ""
        return [Remark(UNKNOWN, f"not in NCCL's list of variables, so it most likely does nothing{hint}")]
    unread = _unread(rule, context.at)
    if unread is not None:
        return [unread]
    found = _standing(rule, context.at)
    if setting.dynamic:
        return [*found, Remark(UNKNOWN, "a shell computes the value when it runs; judge the environment (--environ)")]
    found += values.spoiled(setting, rule)
    if not setting.value:
        return [*found, Remark(NO_OP, "empty: NCCL takes its default")]
    return found + _of_value(setting, rule, context)


def _unread(rule: Rule, at: Version) -> Optional[Remark]:
    """Return why NCCL of this version does not read the variable, None where it does."""
    if rule.section == FOREIGN:
        return Remark(DEPRECATED, f"NCCL never reads it; PyTorch did, and now calls it {rule.alias}")
    if rule.removed is not None and at >= rule.removed:
        instead = f"; use {rule.alias}" if rule.alias else ""
        return Remark(DEPRECATED, f"removed in NCCL {rule.removed}: nothing reads it{instead}")
    if at < rule.since:
        return Remark(NO_OP, f"NCCL {at} does not know it; it came with {rule.since}")
    return None


def _standing(rule: Rule, at: Version) -> list[Remark]:
    """Return what holds whatever the value is."""
    found = []
    if rule.deprecated is not None and at >= rule.deprecated:
        instead = f"; use {rule.alias}" if rule.alias else ""
        found.append(Remark(DEPRECATED, f"deprecated since NCCL {rule.deprecated}{instead}"))
    if rule.section == DEBUGGING:
        where = "listed under Debugging" if rule.documented else "read by NCCL and not in its guide"
        text = f"{where}: fine for an experiment, not to be kept in production, where it stops NCCL from choosing"
        found.append(Remark(DEBUG, text))
    return found


def _of_value(setting: Setting, rule: Rule, context: Context) -> list[Remark]:
    wrong = values.check(setting, rule, context.at)
    read = values.number(setting)
    if rule.unit and read is not None:
        misnamed = units.contradicts(setting.comment, rule.unit, read)
        if misnamed:
            said = _said(setting.comment, rule.unit, read)
            wrong.append(Remark(UNIT, f"the comment {said!r} misnames it: {misnamed}{_tail(setting, context)}"))
    default = rule.default(context.at)
    if not any(remark.klass == CONTRADICTION for remark in wrong):
        if default is not None and values.same(setting.value, default, rule):
            where = f" {rule.where}" if rule.where else ""
            wrong.append(Remark(NO_OP, f"{default} is the default of NCCL {context.at}{where}; drop the line"))
        wrong += SPECIAL.get(rule.name, _nothing)(setting, context)
    return wrong


def _said(comment: str, unit: str, read: int) -> str:
    """Return the line of a comment that misnames the unit, the nearest one first."""
    lines = comment.split("\n")
    line = next((line for line in reversed(lines) if units.contradicts(line, unit, read)), " ".join(lines))
    return line[:60]


def _tail(setting: Setting, context: Context) -> str:
    """Return the right reading of a timeout, for the remark about its unit."""
    if setting.name != "NCCL_IB_TIMEOUT":
        return ""
    told = [remark.message for remark in SPECIAL[setting.name](setting, context)]
    return f"; {told[0]}" if told else ""


def _missing(context: Context, sources: list[Source]) -> list[Judgement]:
    place = ", ".join(source.file for source in sources)
    return [
        Judgement(name, value, remark.klass, f"{name} (NCCL {context.at}): {remark.message}.", _FACTS_SOURCE, place)
        for name, value, remark in [*against_devices.missing(context), *against_roce.missing(context)]
    ]
