"""What ``weaklink plan`` shows a person: tables of one column a fact, aligned, plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from weaklink.plan.advice import EVIDENCE, Advice
from weaklink.plan.compare import Option
from weaklink.plan.cost import COMPUTE_PARTS
from weaklink.plan.request import Design

WIDTH = 100
HUGE = 10**9


def count(number: int | None) -> str:
    """Return a count with thousands marked, a dash where there is no such tier, no more digits than anybody needs."""
    if number is None:
        return "-"
    return f"{number:,}" if number < HUGE else "> 10^9"


def ratio(value: float) -> str:
    """Return down:up such as ``1:1``, ``4:1``."""
    return f"{value:.3g}:1"


def rate(gbps: float) -> str:
    """Return a rate in the unit that reads best."""
    for limit, unit in ((1e6, "Pb/s"), (1e3, "Tb/s")):
        if gbps >= limit:
            return f"{gbps / limit:,.1f} {unit}"
    return f"{gbps:,.0f} Gb/s"


def amount(value: float, currency: str) -> str:
    """Return money without cents, which no plan is good for."""
    return f"{value:,.0f} {currency}"


def plan(design: Design, cost: dict[str, Any] | None) -> str:
    """Return one design as a table."""
    tiers = [("leaf", design.leaf), ("spine", design.spine), ("core", design.core)]
    named = ", ".join(f"{count(number)} {name}" for name, number in tiers if number is not None)
    between = {name: number for name, number in design.links_by_tier.items() if name != "node-leaf"}
    links = ", ".join(f"{name} {number:,}" for name, number in between.items())
    planes = f", {design.planes} planes" if design.planes > 1 else ""
    blocking = " (non-blocking)" if design.oversubscription <= 1 else ""
    rows = [
        ("topology", f"{design.topology}, {design.tiers} tier{'' if design.tiers == 1 else 's'}{planes}"),
        ("nodes", f"{design.nodes:,} with {design.gpus:,} GPUs; {design.endpoints:,} end points"),
        ("switches", f"{design.switches:,} of {design.request.radix} ports" + (f": {named}" if named else "")),
        ("node links", f"{design.node_links:,}"),
        ("switch links", f"{design.inter_switch_links:,}" + (f" ({links})" if links else "")),
        ("modules", f"{design.modules['node']:,} in nodes, {design.modules['switch']:,} in switches"),
        ("oversubscription", ratio(design.oversubscription) + blocking),
        ("bisection", f"{rate(design.bisection_gbps)} in one direction"),
        ("diameter", f"{design.diameter} hops between switches; {design.mean_hops:.2f} in the mean"),
        ("largest size", f"{count(design.max_endpoints)} end points at this radix and shape"),
    ]
    lines = [f"{name:<17} {text}" for name, text in rows]
    lines += ["", *_cost(cost)] if cost else ["", "cost              not known: give --prices FILE"]
    lines += [""] * bool(design.warnings) + [_wrapped("warning: ", text) for text in design.warnings]
    return "\n".join(lines)


def _cost(cost: dict[str, Any]) -> list[str]:
    example = "; EXAMPLE PRICES, not a quotation" if cost["example"] else ""
    lines = [f"cost in {cost['currency']}, prices of {cost['dated']}{example}"]
    named = {_words(part): cost[part] for part in COMPUTE_PARTS} | {"compute network": cost["compute_total"]}
    lines += [f"  {name:<24} {part:>16,.0f} {_percent(part, cost['total'])}" for name, part in named.items()]
    for name in ("storage", "management"):
        side = cost[name]
        if side:
            what = f"{side['ports']:,} ports, {side['switches']:,} switch{'es' * (side['switches'] > 1)}"
            lines.append(
                f"  {name + ' network':<24} {side['total']:>16,.0f} {_percent(side['total'], cost['total'])}  {what}"
            )
    lines.append(f"  {'total':<24} {cost['total']:>16,.0f}")
    lines.append(f"  {'compute, per end point':<24} {cost['per_endpoint']:>16,.0f}")
    lines.append(f"  {'compute, per GPU':<24} {cost['per_gpu']:>16,.0f}")
    if cost["split"]:
        lines += ["", *_split(cost["split"])]
    return lines


def _split(split: dict[str, Any]) -> list[str]:
    lines = ["budget split       here    guide"]
    for name, guide in split["guide"].items():
        here = split["percent"].get(name)
        lines.append(f"  {name:<12} {'-' if here is None else f'{here:.1f} %':>10} {guide:>6.0f} %")
    return lines + [_wrapped("  - ", text) for text in split["drivers"]]


def _percent(part: float, total: float) -> str:
    return f"{100 * part / total:5.1f} %" if total else "    - %"


def _words(part: str) -> str:
    return {"hcas": "HCAs", "inter_switch_cables": "inter-switch cables"}.get(part, part.replace("_", " "))


def _wrapped(first: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_long_words=False)


def comparison(options: Sequence[Option]) -> str:
    """Return the options as a table, those that cannot be below it with their reasons."""
    able = [option for option in options if option.design is not None]
    lines = _table([_HEAD, *(_row(option) for option in able)]) if able else []
    costs = [option.cost for option in able if option.cost]
    if costs:
        example = "; EXAMPLE PRICES, not a quotation" if costs[0]["example"] else ""
        lines += ["", f"cost: compute network in {costs[0]['currency']}, prices of {costs[0]['dated']}{example}"]
    cannot = [option for option in options if option.design is None]
    if cannot:
        lines += ["", "cannot do this size:"]
        lines += [_wrapped(f"  {option.topology}: ", option.reason) for option in cannot]
    for option in able:
        if option.design and option.design.warnings:
            lines += ["", f"{option.topology}:", *(_wrapped("  - ", text) for text in option.design.warnings)]
    return "\n".join(lines)


_HEAD = (
    "topology",
    "switches",
    "leaf",
    "spine",
    "core",
    "node",
    "between",
    "over-",
    "bisection",
    "hops",
    "largest",
    "cost",
)
_HEAD_2 = ("", "", "", "", "", "links", "switches", "subscr.", "", "max/mean", "size", "")


def _row(option: Option) -> tuple[str, ...]:
    made = option.design
    assert made is not None  # noqa: S101 - the caller keeps only options with a design
    return (
        option.topology + (f" x{made.planes}" if made.planes > 1 else ""),
        count(made.switches),
        count(made.leaf),
        count(made.spine),
        count(made.core),
        count(made.node_links),
        count(made.inter_switch_links),
        ratio(made.oversubscription),
        rate(made.bisection_gbps),
        f"{made.diameter}/{made.mean_hops:.2f}",
        count(made.max_endpoints),
        f"{option.cost['compute_total']:,.0f}" if option.cost else "-",
    )


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    rows = [rows[0], _HEAD_2, *rows[1:]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return [*lines[:2], "-" * max(map(len, lines)), *lines[2:]]


def advice(lines: Iterable[Advice]) -> str:
    """Return the advice by topic; a line that corrects a widely read guide is marked."""
    text: list[str] = []
    topic, used = "", []
    for line in lines:
        if line.topic != topic:
            topic = line.topic
            text += ["", topic] if text else [topic]
        mark = "! " if line.corrects else "- "
        text.append(_wrapped(f"  {mark}", line.text))
        text.append(_wrapped("    ", f"[{line.evidence}] {line.source}"))
        if line.evidence not in used:
            used.append(line.evidence)
    text += ["", "! corrects a widely read guide"]
    text += [f"[{word}] {EVIDENCE[word]}" for word in EVIDENCE if word in used]
    return "\n".join(text)
