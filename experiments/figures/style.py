"""How all figures look: colours that colour-blind readers can tell apart, sizes that stay readable
on a telephone, phases shaded.

Figures are drawn in one column's width; a page sets as many side by side as fit. Three colours are
placeholders: ink, grid and paper are replaced by the page's own when a figure is inlined
(inline_svg), so that one drawing serves light and dark pages.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font
from matplotlib.ticker import Formatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from experiments.analysis.run_directory import Run
from experiments.analysis.summary_model import Phase
from experiments.files import whole_file
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
# As many as colours, so that arms of similar colours differ in their marks.
MARKERS: tuple[Any, ...] = (
    *("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "d", "h"),
    *((3, 1, 0), (4, 1, 0), (8, 1, 0)),  # stars of so many points
)

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
PANEL_IN = 2.1  # height of each of several panels
BAND_ALPHA = 0.09
TIME = "Time (s)"
MANY_LINES = 6  # from more on a panel is higher, and has no bands, which would hide lines
MARKS = 6  # of a line that many others cross
MOST_DIGITS = 12
LONGEST_LABEL = 40
FONT = "DejaVu Sans"  # which matplotlib brings along


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def marker(index: int) -> Any:
    """The marker of the index-th arm; arms of one colour have different ones."""
    return MARKERS[(index + index // len(COLOURS)) % len(MARKERS)]


def line_style(index: int) -> dict[str, Any]:
    """Colour and dashes of the index-th arm, the same in every figure."""
    return {"color": colour(index), "linestyle": DASHES[index % len(DASHES)]}


def marked_line(index: int, points: int) -> dict[str, Any]:
    """The line of the index-th arm with a few of its marks, at other points than those of the arms
    before and after it.

    Args:
        points: Of the line.
    """
    step = max(1, points // MARKS)
    every = (index * step // 4 % step, step)
    return {**line_style(index), "marker": marker(index), "markersize": 4.5, "markevery": every}


@contextmanager
def drawing(
    rows: int = 1, columns: int = 1, height_in: float = HEIGHT_IN
) -> Iterator[tuple[Figure, Any]]:
    """A figure in the common style with its axes (one Axes, or an array of them)."""
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        axes = figure.subplots(rows, columns)
        yield figure, axes


@contextmanager
def drawing_panels(
    titles: Sequence[str], lines: Sequence[int] = ()
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with a panel for each title, one below the other, on equal axes; a lone panel has no
    title.

    Args:
        lines: How many lines each panel has: where there are many, it is higher.
    """
    count = len(titles)
    high = [1.5 if of > MANY_LINES else 1.0 for of in lines] or [1.0] * count
    height_in = HEIGHT_IN if count == 1 else 0.9 + PANEL_IN * sum(high)
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        grid = figure.subplots(
            count, 1, sharex=True, sharey=True, squeeze=False, height_ratios=high
        )
        panels = [row[0] for row in grid]
        for axes, title in zip(panels, titles, strict=True):
            if title:
                axes.set_title(title, loc="left", fontsize=8.5, pad=14)
        yield figure, panels


def equal_y(panels: Sequence[Axes]) -> None:
    """Give drawn panels the widest of their ranges of y."""
    lows, highs = zip(*(axes.get_ylim() for axes in panels), strict=True)
    for axes in panels:
        axes.set_ylim(min(lows), max(highs))


def label_panels(panels: Sequence[Axes], x: str, y: str) -> None:
    """Label the axes that panels share: the one along the bottom once."""
    for axes in panels:
        axes.set_xlabel(x if axes is panels[-1] else "")
        axes.set_ylabel(y)


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


def legend(figure: Figure, *panels: Axes) -> None:
    """The arms of all panels below the plot, two to a row, each once."""
    entries: dict[Any, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    legend_of(figure, [(handle, label) for label, handle in entries.items()])


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
    axes.set_xlabel(TIME)


class TickLabels(Formatter):
    """Labels of an axis with as few digits as tell its ticks apart.

    Args:
        text: The label of a value with so many significant digits.
        digits: The fewest.
    """

    def __init__(self, text: Callable[[float, int], str], digits: int = 3) -> None:
        self._text = text
        self._digits = digits

    def __call__(self, value: float, place: int | None = None) -> str:
        return self._text(value, self._digits)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """The labels of all ticks of the axis. Those outside its limits are not shown."""
        assert self.axis is not None, "labels belong to an axis"
        low, high = sorted(self.axis.get_view_interval())
        shown = {value for value in values if low <= value <= high}
        digits = next(
            (
                digits
                for digits in range(self._digits, MOST_DIGITS)
                if len({self._text(value, digits) for value in shown}) == len(shown)
            ),
            self._digits,
        )
        return [self._text(value, digits) for value in values]


def count_axis(axes: Axes, which: str = "y") -> None:
    """Counts on an axis, with thousands set apart."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(TickLabels(lambda value, digits: f"{value:,.{digits - 3}f}"))


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
    axis.set_major_formatter(
        TickLabels(lambda value, digits: duration(value, digits) if value > 0 else "0")
    )


def share_axis(axes: Axes, which: str = "y") -> None:
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(TickLabels(lambda value, digits: f"{100 * value:.{digits}g} %", 4))


def label(name: str) -> str:
    """A name shortened to at most LONGEST_LABEL characters.

    The middle is cut out: the ends of long names differ as often as their beginnings. A leading
    underscore gets a space before it, because legends leave out names that begin with one.
    """
    if len(name) > LONGEST_LABEL:
        end = LONGEST_LABEL // 2 - 1
        name = f"{name[: LONGEST_LABEL - end - 1]}…{name[-end:]}"
    return f" {name}" if name.startswith("_") else name


def in_drawable_letters(run: Run) -> Run:
    """The run with its arms named after their folders where their names cannot be drawn."""
    arms = [
        arm if is_drawable(arm.name) else arm.model_copy(update={"name": arm.slug})
        for arm in run.summary.arms
    ]
    return replace(run, summary=run.summary.model_copy(update={"arms": arms}))


def is_drawable(name: str) -> bool:
    """Whether matplotlib shows it as it is read: it has a font for it, and does not need to join
    its letters or to write from right to left."""
    return all(
        ord(character) in _characters() and unicodedata.bidirectional(character) not in ("R", "AL")
        for character in name
    )


@cache
def _characters() -> frozenset[int]:
    return frozenset(FT2Font(findfont(FontProperties(family=FONT))).get_charmap())
