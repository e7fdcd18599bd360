"""The figures of a benchmark, after Firmament's figures 7, 8, 9 and 11, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from flowsolver.benchmark.cases import Case, Series
from flowsolver.benchmark.run import BASELINE, Outcome, Result, explanation
from flowsolver.benchmark.solvers import PEERS

_INK, _GRID = "#22252b", "#d5d8de"
_PEER_COLOURS = ("#22252b", "#7f7f7f", "#b3b3b3")
# Okabe and Ito (2008) without black, and yellow darkened.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C6D31", "#6A3D9A")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_PANELS_IN_ROW = 3
_SETTINGS: dict[Any, Any] = {
    "font.size": 9.5,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
}


def draw(series: Series, results: Sequence[Result], limit_s: float, folder: Path) -> list[Path]:
    """Writes <figure>.png and .svg; equal results give equal files. Nothing is drawn of a series
    without an answer."""
    mine = [result for result in results if result.figure == series.figure]
    if not any(result.outcome is Outcome.OK for result in mine):
        return []
    with matplotlib.rc_context({**_SETTINGS, "svg.hashsalt": series.figure}):
        figure = _lines(series, mine, limit_s) if series.ordered else _dots(series, mine, limit_s)
        figure.supxlabel(explanation(mine, limit_s), fontsize=8, x=0.01, ha="left")
        png, svg = folder / f"{series.figure}.png", folder / f"{series.figure}.svg"
        FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})
        FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None, "Creator": None})
    return [png, svg]


def _styles(results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """The same look for a solver in every figure: ours in colours, peers in greys and dashes."""
    solvers = list(dict.fromkeys(result.solver for result in results))
    ours = [name for name in solvers if name not in PEERS]
    peers = [name for name in solvers if name in PEERS]
    looks = {
        **{name: (_COLOURS[k % 8], "-", _MARKERS[k % 8]) for k, name in enumerate(ours)},
        **{
            name: (_PEER_COLOURS[k % 3], (0, (4, 2)), _MARKERS[-1 - k % 3])
            for k, name in enumerate(peers)
        },
    }
    keys = "color", "linestyle", "marker"
    return {name: dict(zip(keys, looks[name], strict=True)) for name in solvers}


def _label(solver: str) -> str:
    return PEERS[solver].title if solver in PEERS else solver.replace("_", " ")


def _lines(series: Series, results: Sequence[Result], limit_s: float) -> Figure:
    figure = Figure(figsize=(7.4, 4.3), layout="constrained")
    axes: Axes = figure.subplots()
    stopped = False
    for solver, style in _styles(results).items():
        mine = [
            r
            for r in results
            if r.solver == solver and r.outcome in (Outcome.OK, Outcome.OVER_TIME)
        ]
        if not mine:
            continue
        at = [r.position for r in mine]
        seconds = [limit_s if r.median_s is None else r.median_s for r in mine]
        axes.plot(at, seconds, label=_label(solver), markersize=5, **style)
        beyond = [r.position for r in mine if r.outcome is Outcome.OVER_TIME]
        if beyond:
            stopped = True
            at_limit = [limit_s] * len(beyond)
            axes.plot(
                beyond,
                at_limit,
                style["marker"],
                color=style["color"],
                markerfacecolor="white",
                markersize=7,
            )
    if stopped:
        axes.axhline(limit_s, color=_INK, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.annotate(
            f"stopped at {limit_s:g} s (hollow)",
            (0, limit_s),
            xycoords=("axes fraction", "data"),
            xytext=(4, 4),
            textcoords="offset points",
            fontsize=8,
        )
    if series.figure != "utilisation":
        axes.set_xscale("log")
        positions = sorted({r.position for r in results})
        axes.set_xticks(positions, [f"{position:,}" for position in positions])
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.axvline(100, color=_INK, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_xlabel(series.axis)
    axes.set_yscale("log")
    axes.set_ylabel("time of a solve")
    _write_times(axes.yaxis)
    axes.set_title(series.title, fontsize=10, loc="left")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center", fontsize=8.5)
    return figure


def _dots(series: Series, results: Sequence[Result], limit_s: float) -> Figure:
    """A panel per graph, with a row per solver: a dot from scratch, and one incremental where there
    are rounds."""
    cases = [case for case in series.cases if any(result.case == case.title for result in results)]
    timed = [result for result in results if result.outcome in (Outcome.OK, Outcome.OVER_TIME)]
    solvers = list(dict.fromkeys(result.solver for result in timed))
    rows, columns = -(-len(cases) // _PANELS_IN_ROW), min(len(cases), _PANELS_IN_ROW)
    size = (3.0 * columns + 1.6, (0.26 * len(solvers) + 0.8) * rows + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for place, panel in enumerate(panels.flat):
        if place >= len(cases):
            panel.set_axis_off()
            continue
        _draw_dots(panel, cases[place], series.incremental, timed, solvers, limit_s)
        panel.set_title(cases[place].label, fontsize=9.5, loc="left")
        panel.set_yticks(range(len(solvers)), [_label(solver) for solver in solvers])
        panel.set_ylim(len(solvers) - 0.5, -0.5)
        panel.tick_params(labelbottom=place + columns >= len(cases))
        panel.set_xscale("log")
        _write_times(panel.xaxis)
    words = [series.title]
    if series.incremental:
        words.append("hollow: from scratch, filled: incremental")
    if any(result.outcome is Outcome.OVER_TIME for result in timed):
        words.append(f"x: stopped at {limit_s:g} s")
    if any(result.solver == BASELINE for result in timed):
        words.append(f"dotted: {_label(BASELINE)}")
    figure.suptitle("; ".join(words), fontsize=10, x=0.01, ha="left")
    return figure


def _draw_dots(
    panel: Axes,
    case: Case,
    incremental: bool,
    timed: Sequence[Result],
    solvers: Sequence[str],
    limit_s: float,
) -> None:
    styles = _styles(timed)
    for row, solver in enumerate(solvers):
        mine = [result for result in timed if (result.case, result.solver) == (case.title, solver)]
        seconds = [limit_s if result.median_s is None else result.median_s for result in mine]
        colour, marker = styles[solver]["color"], styles[solver]["marker"]
        panel.plot(seconds, [row] * len(mine), color=colour, linewidth=1.2)
        for result, at in zip(mine, seconds, strict=True):
            stopped, hollow = result.median_s is None, incremental and result.mode == "scratch"
            panel.plot(
                at,
                row,
                "x" if stopped else marker,
                color=colour,
                markerfacecolor="white" if hollow else colour,
                markersize=6.5,
            )
            if solver == BASELINE and not stopped:
                panel.axvline(at, color=_INK, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)


def _write_times(axis: Axis) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axis.set_minor_formatter(NullFormatter())


def _tick(seconds: float) -> str:
    unit, factor = (
        ("s", 1) if seconds >= 0.999 else ("ms", 1e3) if seconds >= 0.999e-3 else ("µs", 1e6)
    )
    return f"{seconds * factor:.3g} {unit}"
