"""How all figures look: colours that colour-blind readers can tell apart, sizes that stay readable
on a telephone, phases shaded.

Figures are drawn in one column's width; a page sets as many side by side as fit. Three colours are
placeholders: ink, grid and paper are replaced by the page's own when a figure is inlined
(inline_svg), so that one drawing serves light and dark pages.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from experiments.summary_model import Phase
from experiments.whole_files import whole_file
from parsync.metrics.quantity import duration

INK = "#22252b"
GRID = "#c9ccd3"
PAPER = "#fffffe"
_PAGE_COLOURS = {INK: "currentColor", GRID: "var(--grid)", PAPER: "none"}

# Okabe and Ito (2008), without yellow, which is too pale for lines, and without black; then others
# of middle brightness, which dashes and marks help to tell apart.
COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C6D31", "#7F7F7F"),
    *("#8172B3", "#B0413E", "#6B9A2F", "#1AA3B5", "#C0A000", "#4C5BA8", "#E07B91", "#94A3B8"),
)
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), "-", (0, (5, 1.5, 1, 1.5)), "-", (0, (1.5, 1.2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

LEGEND_ROW_IN = 0.2

_SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 2.0,
    "legend.columnspacing": 1.2,
    "lines.linewidth": 1.6,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name may hold dollars
}

WIDTH_IN, HEIGHT_IN = 4.6, 3.5
BAND_ALPHA = 0.09


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def marker(index: int) -> str:
    """The marker of the index-th arm; arms of one colour have different ones."""
    return MARKERS[(index + index // len(COLOURS)) % len(MARKERS)]


def line_style(index: int) -> dict[str, Any]:
    """Colour and dashes of the index-th arm, the same in every figure."""
    return {"color": colour(index), "linestyle": DASHES[index % len(DASHES)]}


@contextmanager
def drawing(
    rows: int = 1, columns: int = 1, height_in: float = HEIGHT_IN
) -> Iterator[tuple[Figure, Any]]:
    """A figure in the common style with its axes (one Axes, or an array of them)."""
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        axes = figure.subplots(rows, columns)
        yield figure, axes


def save(figure: Figure, shown: Figure, directory: Path, name: str) -> tuple[Path, Path]:
    """Write `figure` as <name>.png and `shown`, most often the same, as <name>.svg; equal figures
    give equal bytes. Their layout is final afterwards."""
    png, svg = directory / f"{name}.png", directory / f"{name}.svg"
    write_png(figure, png)
    figure.set_layout_engine("none")  # laid out once; it is most of the time
    write_svg(shown, svg)
    return png, svg


def write_png(figure: Figure, path: Path) -> None:
    """Write a figure as PNG."""
    with matplotlib.rc_context(_SETTINGS), whole_file(path) as unfinished:
        FigureCanvasAgg(figure).print_png(unfinished, metadata={"Software": None})


def write_svg(figure: Figure, path: Path) -> None:
    """Write a figure as SVG."""
    settings = {**_SETTINGS, "svg.hashsalt": path.stem}
    with matplotlib.rc_context(settings), whole_file(path) as unfinished, warnings.catch_warnings():
        # of letters whose width is not known: an SVG's reader draws them
        warnings.filterwarnings("ignore", r"Glyph .* missing")
        FigureCanvasSVG(figure).print_svg(unfinished, metadata={"Date": None, "Creator": None})


def inline_svg(path: Path, label: str) -> str:
    """The drawing as an element of a page that sets --grid and the text's colour; it takes the
    width it is given."""
    text = path.read_text("utf-8")
    text = text[text.index("<svg") :]
    for ours, pages in _PAGE_COLOURS.items():
        text = text.replace(ours, pages)
    head, rest = text.split(">", 1)
    head = re.sub(r'\s(width|height|xmlns(:xlink)?|version)="[^"]*"', "", head)
    rest = re.sub(r"<metadata>.*?</metadata>", "", rest, flags=re.DOTALL)
    return f'{head} role="img" aria-label="{label}">{rest}'.replace("xlink:href", "href")


def legend(figure: Figure, axes: Axes) -> None:
    """The arms below the plot, two to a row."""
    handles, labels = axes.get_legend_handles_labels()
    legend_of(figure, list(zip(handles, labels, strict=True)))


def legend_of(figure: Figure, entries: Sequence[tuple[Any, Any]]) -> None:
    """As legend, of (handle, label) entries that may come from several axes."""
    if entries:
        rows_more = max(0, -(-len(entries) // 2) - 3)
        width_in, height_in = figure.get_size_inches()
        figure.set_size_inches(width_in, height_in + LEGEND_ROW_IN * rows_more)
        handles, labels = [one for one, _ in entries], [text for _, text in entries]
        figure.legend(handles, labels, loc="outside lower center", ncols=2)


def shade_phases(axes: Axes, phases: Sequence[Phase], settle_us: int) -> None:
    """Each load phase shaded by its load and labelled; a strip at the top marks what is left out of
    the figures."""
    if len(phases) > 20 or not any(phase.load_percent for phase in phases):
        return
    for phase in phases:
        start, end = phase.start_us / 1e6, phase.end_us / 1e6
        load = phase.load_percent or 0
        shade = min(0.5, 0.02 + 0.1 * (load / 100) ** 2)  # a workload may offer any load
        axes.axvspan(start, end, color=INK, alpha=shade, linewidth=0)
        axes.annotate(
            f"{load} %",
            ((start + end) / 2, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8,
        )
        if settle_us:
            at_end = min(start + settle_us / 1e6, end)
            axes.axvspan(start, at_end, ymin=0.985, ymax=1, color=INK, alpha=0.45, linewidth=0)


def time_axis(axes: Axes, end_us: float) -> None:
    axes.set_xlim(0, end_us / 1e6)
    axes.set_xlabel("Time (s)")


def duration_axis(axes: Axes, which: str, log: bool) -> None:
    """Microseconds on an axis, ticked in the unit that suits. To be called when all is drawn."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    if log:
        (axes.set_yscale if which == "y" else axes.set_xscale)("log")
        low, high = axes.get_ylim() if which == "y" else axes.get_xlim()
        axis.set_minor_formatter(NullFormatter())
        if high > 8 * low:
            axis.set_major_locator(
                LogLocator(subs=(1.0, 2.0, 5.0) if high < 200 * low else (1.0,), numticks=9)
            )
        else:
            axis.set_major_locator(MaxNLocator(5))
            axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_locator(MaxNLocator(5))
    axis.set_major_formatter(FuncFormatter(lambda value, _: duration(value) if value > 0 else "0"))


def share_axis(axes: Axes, which: str = "y") -> None:
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g} %"))
