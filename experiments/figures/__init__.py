"""Every figure of a run: one PNG and one SVG each, drawn from the summary and the series beside
it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from matplotlib.figure import Figure

from experiments.analysis.run_directory import Run
from experiments.figures import drawings, frontier, style
from experiments.figures.style import in_drawable_letters
from parsync.metrics import registry
from parsync.metrics.kinds.conflicts import ConflictMetric
from parsync.metrics.kinds.delay import DelayMetric
from parsync.metrics.kinds.offers import OffersMetric
from parsync.metrics.kinds.preemption import PreemptionMetric
from parsync.metrics.kinds.quality import PreferenceMetric
from parsync.metrics.kinds.regret import BATCHES_PER_RUN
from parsync.metrics.metric import OverTime
from shared_state.errors import AgoraError


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure that a run may have.

    Attributes:
        draw: Draws it; returns None where the run has nothing for it.
        caption: What to look for in it.
        of_seeds: It shows paired seeds or frontiers, which run after the arms.
    """

    name: str
    title: str
    draw: Callable[[Run], Figure | None]
    caption: str
    of_seeds: bool = False


@dataclass(frozen=True, slots=True)
class ShownFigure:
    """A figure and the file that a page shows."""

    spec: FigureSpec
    svg: Path


@dataclass(frozen=True, slots=True)
class RenderedFigure(ShownFigure):
    """A figure and its files."""

    png: Path


Drawn = Mapping[str, RenderedFigure]  # by name
NOTHING_DRAWN: Drawn = MappingProxyType({})


_BAND = (
    "Line: median among the schedulers of an arm; band, where no more than six arms share a panel: "
    "10th to 90th percentile."
)

_BOUND = (
    "Where requests differ, or gangs are placed, the optimum is a lower bound: the axis says so, "
    "and regret is at most what is shown."
)


def _over_time(name: str, plot: OverTime) -> FigureSpec:
    """A figure that a metric declares."""
    caption = " ".join(filter(None, (plot.caption, _BAND, plot.look_for)))
    return FigureSpec(name, plot.title, partial(drawings.metric_over_time, plot), caption)


FIGURES: tuple[FigureSpec, ...] = (
    FigureSpec(
        "frontier",
        "What quality costs in delay: each architecture over its knob",
        frontier.of_run,
        "Large marks: the arms. Lines: architectures as one setting of theirs trades delay for "
        "quality: how long tasks wait for a preferred machine, or tau. Up and left is better. "
        "Marks are medians over the paired seeds, bars their intervals; the lines rest on fewer "
        "seeds. "
        "The command agora frontier runs more points, at any loads.",
        of_seeds=True,
    ),
    FigureSpec(
        "trade_off",
        "What quality costs in delay",
        drawings.trade_off,
        "Up is better placed, left is sooner: an arm that another one beats on both counts lies "
        "to the lower right of it. Marks: median over the paired seeds with its interval, "
        "small dots single seeds; without seeds, this run.",
        of_seeds=True,
    ),
    _over_time("delay_over_time", DelayMetric.plots[0]),
    FigureSpec(
        "delay_distribution",
        "Distribution of the delay",
        drawings.delay_distribution,
        "Share of all submitted tasks committed within a delay, counted time only. A curve that "
        "ends below 100 % left the rest uncommitted.",
    ),
    _over_time("conflicts_over_time", ConflictMetric.plots[0]),
    FigureSpec(
        "conflicts_by_age",
        "Conflict rate against age of state",
        drawings.conflicts_by_age,
        "The older the state a claim was planned on, the likelier somebody else was first: a line "
        "that rises is staleness at work, a flat one is plain crowding. Ages with fewer than 50 "
        "claims are left out.",
    ),
    _over_time("preferred_over_time", PreferenceMetric.plots[0]),
    _over_time("evictions_over_time", PreemptionMetric.plots[0]),
    FigureSpec(
        "backlog_over_time",
        "Tasks waiting over time",
        drawings.backlog,
        f"Submitted and not yet committed, per scheduler. {_BAND} What is built up at the peak "
        "has to be worked off after it.",
    ),
    FigureSpec(
        "throughput",
        "Throughput",
        drawings.throughput,
        "First commits per second, all schedulers of an arm; grey: tasks submitted. Below grey a "
        "queue builds up, above it drains.",
    ),
    FigureSpec(
        "utilisation",
        "Utilisation of the cell",
        drawings.utilisation,
        "Share of the first resource in use. Better placed tasks end sooner, so at equal load "
        "less use can mean better work.",
    ),
    _over_time("dominant_shares_over_time", OffersMetric.plots[0]),
    FigureSpec(
        "quota_shares",
        "Quota groups over time",
        drawings.quota_shares,
        "Solid: what the running tasks of each quota group hold of the first resource. Dashed: the "
        "group's fair share of what all groups want, where the arm has quotas. A group below its "
        "share waits for tasks of others to end, one above it gives room back as its tasks end.",
    ),
    FigureSpec(
        "staleness_by_partition",
        "Staleness by partition",
        drawings.staleness_by_partition,
        "Age of each partition in the schedulers' views, averaged over time and schedulers. "
        "Policies that renew every partition once per gap are alike here, whatever their order; "
        "they differ in how many partitions are fresh at one moment.",
    ),
    FigureSpec(
        "rivals",
        "Who loses to whom",
        drawings.rivals,
        "Conflicts of the row's scheduler with the column's, of all claims of the arm, on one "
        "scale. A dark column is a scheduler that keeps being first.",
    ),
    FigureSpec(
        "solver_time",
        "Solver time per flow round",
        drawings.solver_time,
        "One dot per round of a flow scheduler, line: median. The solver alone, without graph "
        "update and extraction.",
    ),
    FigureSpec(
        "decision_regret",
        "Decision regret",
        drawings.decision_regret,
        "Cost of what a transaction got, waiting for the claims it lost, minus the least cost its "
        "tasks could have had on the true state just before. Small dots: random transactions, "
        f"{BATCHES_PER_RUN} or more of a run; large marks: those of a phase together. At 0 "
        f"nothing better was to be had. {_BOUND}",
    ),
    FigureSpec(
        "system_regret",
        "System regret",
        drawings.system_regret,
        "Cost of all running and waiting tasks minus the least possible, at the same random "
        "instants for every arm. Running tasks stay and waiting ones are placed; or all may move, "
        f"at no price. {_BOUND}",
    ),
)


def all_figures() -> tuple[FigureSpec, ...]:
    """FIGURES, and those that metrics of other packages declare: a run has them if it had the
    metric."""
    of_others = registry.plots_of_others()
    return (
        *FIGURES,
        *(_over_time(f"{kind}_{plot.part}_over_time", plot) for kind, plot in of_others),
    )


def live_figures(specs: Sequence[FigureSpec]) -> list[FigureSpec]:
    """The same figures of a run's live runs (Run.live), under names of their own. There are no
    frontiers among them: these are runs in virtual time."""
    return [
        replace(spec, name=f"live_{spec.name}", title=f"{spec.title} (live)")
        for spec in specs
        if spec.name != "frontier"
    ]


def draw_all(
    run: Run,
    directory: Path,
    check: Callable[[], None],
    specs: Sequence[FigureSpec],
    known: Drawn = NOTHING_DRAWN,
) -> list[RenderedFigure]:
    """Draw every figure the run has data for into an existing directory.

    Args:
        specs: The figures.
        check: Called before each figure.
        known: Figures that are drawn there already, of the same runs.

    Raises:
        AgoraError: A figure cannot be written.
    """
    drawable = in_drawable_letters(run)
    drawn = []
    for spec in specs:
        check()
        if spec.name in known:
            drawn.append(known[spec.name])
            continue
        figure = spec.draw(drawable)
        if figure is None:
            continue
        # A browser has letters that matplotlib lacks: there, arms have their names.
        shown = figure if drawable.summary.arms == run.summary.arms else spec.draw(run)
        assert shown is not None
        with _naming(directory / spec.name):
            png, svg = style.save(figure, shown, directory, spec.name)
        drawn.append(RenderedFigure(spec, svg, png))
    return drawn


def draw_for_page(
    run: Run,
    directory: Path,
    check: Callable[[], None],
    specs: Sequence[FigureSpec],
    known: Drawn = NOTHING_DRAWN,
) -> list[ShownFigure]:
    """As draw_all, but only what a page shows: in two thirds of the time."""
    drawn: list[ShownFigure] = []
    for spec in specs:
        check()
        if spec.name in known:
            drawn.append(known[spec.name])
            continue
        figure = spec.draw(run)
        if figure is None:
            continue
        svg = directory / f"{spec.name}.svg"
        with _naming(directory / spec.name):
            style.write_svg(figure, svg)
        drawn.append(ShownFigure(spec, svg))
    return drawn


@contextmanager
def _naming(place: Path) -> Iterator[None]:
    """Raise AgoraError for a figure that cannot be written."""
    try:
        yield
    except OSError as error:
        raise AgoraError(f"{place}: cannot write the figure: {error.strerror}") from error
