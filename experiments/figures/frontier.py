"""Frontiers: delay against quality, a line for each architecture over the values of its knob."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.analysis.frontier_model import (
    FRONTIER,
    FrontierPoint,
    FrontierSummary,
    pair_key,
    read_frontier,
)
from experiments.analysis.run_directory import Run
from experiments.analysis.statistics import Interval
from experiments.analysis.summary_model import ArmSummary
from experiments.config.decision_basis import basis_title, by_basis
from experiments.figures import style
from experiments.figures.style import is_drawable, label
from parsync.metrics.quantity import Better, Quantity, Unit

Limits = tuple[float, float, float]  # low, estimate and high
_SHORT = {"preferred_share": "Preferred machine"}


def draw_condition(
    summary: FrontierSummary, condition: int, members: Sequence[int], delay: str, quality: str
) -> Figure | None:
    """The frontiers of some architectures under one condition; None if none has both figures."""
    drawn = False
    with style.drawing() as (figure, axes):
        for index in members:
            points = summary.points_of(index, condition)
            name = architecture_label(summary, index)
            drawn |= _line(axes, points, delay, quality, index, name)
        _bound(axes, summary, condition, quality)
        _finish(axes, summary.quantity(delay), summary.quantity(quality))
        style.legend(figure, axes)
    return figure if drawn else None


def of_run(run: Run) -> Figure | None:
    """The frontier of a run's architectures and its arms on it, a panel for each set that may be
    ranked; None if the run has no frontier."""
    path = run.directory / FRONTIER
    if not path.is_file():
        return None
    frontier = read_frontier(path)
    place = {arm.name: index for index, arm in enumerate(run.summary.arms)}
    arms = [(arm, arm.basis) for arm in run.summary.arms]
    with_lines = {architecture.arm for architecture in frontier.architectures}
    sets = [one for one in by_basis(arms) if _any_named(one, with_lines)]
    if not sets:
        return None
    delay, quality = "delay_mean_us", "preferred_share"
    titles = [basis_title(members[0].basis) for members in sets] if len(sets) > 1 else [""]
    with style.drawing_panels(titles, [len(one) for one in sets]) as (figure, panels):
        for axes, members in zip(panels, sets, strict=True):
            named = {arm.name for arm in members}
            for index, architecture in enumerate(frontier.architectures):
                if architecture.arm in named:
                    points, name = frontier.points_of(index, 0), architecture.name
                    if name == architecture.arm:
                        _line(axes, points, delay, quality, place[name], None, False)
                    else:  # a colour of its own, and its place in the legend
                        told = f"{_name(name, index)} (line)"
                        _line(axes, points, delay, quality, len(place) + index, told, False)
            for arm in members:
                _mark(run, axes, arm, place[arm.name])
            _bound(axes, frontier, 0, quality)
        for axes in panels:
            _finish(axes, frontier.quantity(delay), frontier.quantity(quality))
            axes.set_xlabel(axes.get_xlabel() if axes is panels[-1] else "")
        style.legend(figure, *panels)
    return figure


def _any_named(arms: Sequence[ArmSummary], names: set[str]) -> bool:
    return any(arm.name in names for arm in arms)


def _line(
    axes: Axes,
    points: Sequence[FrontierPoint],
    delay: str,
    quality: str,
    index: int,
    name: str | None,
    bars: bool = True,
) -> bool:
    """The points of an architecture, with their intervals (bars), and those joined that no other of
    them dominates. Open marks: dominated, or the delay is a lower bound. Returns whether any was
    drawn."""
    known = [
        (point, x, y)
        for point in points
        if (x := limits(point.figures.get(delay))) is not None
        and (y := limits(point.figures.get(quality))) is not None
        and x[1] > 0
    ]
    if not known:
        return False
    colour, marker = style.colour(index), style.marker(index)
    kept = [row for row in known if row[0].not_dominated.get(pair_key(delay, quality))]
    kept.sort(key=lambda row: row[1][1])
    axes.plot(
        [x for _, (_, x, _), _ in kept],
        [y for _, _, (_, y, _) in kept],
        alpha=0.8,
        linewidth=1.2,
        **style.line_style(index),
    )
    for point, x, y in known:
        is_open = point not in [row[0] for row in kept]
        if bars:
            _bars(axes, x, y, colour)
        axes.plot(
            x[1],
            y[1],
            linestyle="none",
            color=colour,
            marker=marker,
            markersize=5,
            markerfacecolor=style.PAPER if is_open else colour,
        )
    if name is not None:
        axes.plot([], [], marker=marker, markersize=5, label=name, **style.line_style(index))
    return True


def _bars(axes: Axes, x: Limits, y: Limits, colour: str) -> None:
    """The intervals of a point."""
    axes.errorbar(
        x[1],
        y[1],
        # an interval that reaches 0 cannot be drawn on a logarithmic axis
        xerr=[[x[1] - max(x[0], x[1] / 10)], [x[2] - x[1]]],
        yerr=[[y[1] - y[0]], [y[2] - y[1]]],
        linestyle="none",
        color=colour,
        elinewidth=0.8,
        capsize=1.5,
    )


def _bound(axes: Axes, summary: FrontierSummary, condition: int, quality: str) -> None:
    """The best quality that any scheduler could reach, as a line; nothing where it is not known."""
    bound = summary.conditions[condition].bound
    value = None if bound is None else getattr(bound, quality, None)
    if bound is not None and value is not None:
        name = "Estimated bound" if bound.is_estimate else "Bound"
        axes.axhline(value, color=style.INK, linewidth=1.0, linestyle=(0, (1, 2)), label=name)


def _mark(run: Run, axes: Axes, arm: ArmSummary, index: int) -> None:
    """An arm of the run: its median over the paired seeds, or the run's own figures."""
    paired = run.summary.paired.arms.get(arm.slug, {})
    x, y = (
        limits(paired.get("delay_mean_us")),
        limits(paired.get("preferred_share")),
    )
    delay = x[1] if x else arm.overall.value("delay_mean_us")
    share = y[1] if y else arm.overall.preferred_share
    if delay and share is not None:
        if x and y:
            _bars(axes, x, y, style.colour(index))
        axes.plot(
            delay,
            share,
            linestyle="none",
            marker=style.marker(index),
            color=style.colour(index),
            markersize=8,
            label=_name(arm.name, index),
        )


def architecture_label(summary: FrontierSummary, index: int) -> str:
    """The name of an architecture, shortened; its number where its name cannot be drawn."""
    return _name(summary.architectures[index].name, index)


def _name(name: str, index: int) -> str:
    return label(name) if is_drawable(name) else f"architecture {index + 1}"


def _finish(axes: Axes, delay: Quantity, quality: Quantity) -> None:
    axes.margins(0.1)
    style.duration_axis(axes, "x", log=True)
    axes.set_xlabel(f"{delay.label}  (left is better)")
    if quality.unit is Unit.SHARE:
        style.share_axis(axes)
    else:
        style.count_axis(axes)
    if quality.better is Better.LOWER:
        axes.invert_yaxis()
    axes.set_ylabel(f"{_SHORT.get(quality.key, quality.label)}\n(up is better)")


def limits(interval: Interval | None) -> Limits | None:
    """Low, estimate and high; of few seeds the estimate alone."""
    if interval is None or interval.estimate is None:
        return None
    middle = interval.estimate
    if interval.low is None or interval.high is None:
        return middle, middle, middle
    return interval.low, middle, interval.high
