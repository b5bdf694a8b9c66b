"""The comparison as a picture: small multiples, one panel a question, one bar a topology. matplotlib, no display."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from weaklink.plan.compare import Option
from weaklink.plan.request import Design

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR, _SECOND, _TEXT, _FAINT = "#2b6cb0", "#9cc3e6", "#222222", "#777777"
_ROOM = 1.32  # axis length over longest bar, so that its label fits
_DPI = 150


class Panel(NamedTuple):
    """One panel: its title, one value a topology (or two to stack), and how a value is written."""

    title: str
    values: Sequence[tuple[float, ...]]
    shown: Callable[[float], str]
    parts: tuple[str, ...] = ()
    hint: str = ""


def draw(options: Sequence[Option], title: str) -> bytes:
    """Return a PNG that compares the options that have a design; those that cannot are named below with the reason.

    Raises ValueError where no option has a design.
    """
    able = [option for option in options if option.design is not None]
    if not able:
        raise ValueError("no topology can do this size, so there is nothing to draw")
    panels = _panels([option.design for option in able if option.design], [option.cost for option in able])
    notes = _notes(options, 40 * len(panels))
    height = 1.35 + 0.42 * len(able) + 0.17 * len(notes)
    figure = Figure(figsize=(2.7 * len(panels) + 1.2, height), dpi=_DPI, facecolor="white")
    FigureCanvasAgg(figure)
    bottom = (0.30 + 0.17 * len(notes)) / height
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    figure.subplots_adjust(
        left=1.35 / figure.get_figwidth(), right=0.985, top=1 - 0.98 / height, bottom=bottom, wspace=0.12
    )
    for axis, panel in zip(axes, panels, strict=True):
        _draw_panel(axis, panel, [_name(option) for option in able])
    figure.text(0.012, 1 - 0.12 / height, title, fontsize=13, fontweight="bold", color=_TEXT, va="top")
    if notes:
        figure.text(0.012, 0.10 / height, "\n".join(notes), fontsize=8.5, color=_FAINT, va="bottom", linespacing=1.3)
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return stream.getvalue()


def _name(option: Option) -> str:
    planes = option.design.planes if option.design else 1
    return option.topology + (f"\n{planes} planes" if planes > 1 else "")


def _panels(designs: Sequence[Design], costs: Sequence[dict[str, Any] | None]) -> list[Panel]:
    panels = [
        Panel(
            "switches",
            [(float(made.switches),) for made in designs],
            _whole,
            hint=f"of {designs[0].request.radix} ports",
        ),
        Panel(
            "cables",
            [(float(made.node_links), float(made.inter_switch_links)) for made in designs],
            _whole,
            ("to nodes", "between switches"),
        ),
    ]
    priced = [cost for cost in costs if cost]
    if len(priced) == len(designs):
        hint = "example prices, not a quotation" if priced[0]["example"] else f"prices of {priced[0]['dated']}"
        values = [(cost["compute_total"] / 1e6,) for cost in priced]
        panels.append(Panel(f"cost, million {priced[0]['currency']}", values, _money, hint=hint))
    panels += [
        Panel(
            "oversubscription",
            [(made.oversubscription,) for made in designs],
            _ratio,
            hint="down:up; 1 is non-blocking",
        ),
        Panel(
            "bisection, Tb/s",
            [(made.bisection_gbps / 1e3,) for made in designs],
            _whole,
            hint="one direction; more is better",
        ),
        Panel("diameter", [(float(made.diameter),) for made in designs], _whole, hint="hops between switches, at most"),
    ]
    return panels


def _draw_panel(axis: Axes, panel: Panel, names: Sequence[str]) -> None:
    rows = list(range(len(names)))
    left = [0.0] * len(rows)
    for index in range(len(panel.values[0])):
        widths = [value[index] for value in panel.values]
        label = panel.parts[index] if panel.parts else None
        axis.barh(rows, widths, left=left, height=0.62, color=(_BAR, _SECOND)[index], label=label)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    longest = max(left) or 1.0
    for row, total in zip(rows, left, strict=True):
        axis.text(total + 0.02 * longest, row, panel.shown(total), va="center", fontsize=9, color=_TEXT)
    axis.set_xlim(0, longest * _ROOM)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_yticks(rows, names, fontsize=10, color=_TEXT)
    axis.set_xticks([])
    axis.tick_params(length=0)
    axis.set_title(panel.title, loc="left", fontsize=10, fontweight="bold", color=_TEXT, pad=18)
    axis.text(0, 1.0, panel.hint, transform=axis.transAxes, fontsize=8.5, color=_FAINT, va="bottom")
    if panel.parts:
        axis.legend(
            loc="lower left",
            bbox_to_anchor=(-0.02, 0.965),
            ncols=2,
            frameon=False,
            fontsize=8.5,
            handlelength=0.9,
            handletextpad=0.4,
            columnspacing=1.0,
            borderpad=0.1,
            labelcolor=_FAINT,
        )
    for side in ("top", "right", "bottom"):
        axis.spines[side].set_visible(False)
    axis.spines["left"].set_color("#bbbbbb")


def _notes(options: Sequence[Option], width: int) -> list[str]:
    lines: list[str] = []
    for option in options:
        if option.design is None:
            lines += textwrap.wrap(f"{option.topology} cannot do this size: {option.reason}", width)
    return lines


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _money(value: float) -> str:
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"  # noqa: PLR2004 - three figures are enough


def _ratio(value: float) -> str:
    return f"{value:.3g}:1"
