"""What the figures of a run show, except its frontiers: the data behind each, in coarser steps of
time and as bands among schedulers, and how it is drawn. Numbers of figures are ParSync's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from experiments.analysis.run_directory import Run
from experiments.analysis.summary_model import ArmSummary
from experiments.config.decision_basis import basis_titles
from experiments.figures import style
from experiments.figures.frontier import Limits, limits
from experiments.figures.style import is_drawable, label
from parsync.metrics import histogram
from parsync.metrics.kinds.conflicts import Outcome
from parsync.metrics.metric import OverTime
from parsync.metrics.quantity import Unit

AT_LEAST = " (delay at least)"  # tasks never placed are charged until the run was last seen
MOST_QUOTA_GROUPS = 8  # the largest of more
MOST_POINTS = 60

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of a run with its place in the order of colours.

    Attributes:
        name: Its name as a label.
    """

    index: int
    name: str
    figures: ArmSummary
    series: dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Panel:
    """Arms that may stand on one axis: of one runtime and one clock class.

    Attributes:
        title: What their delays rest on; "" if all arms of the figure rest on it.
    """

    title: str
    arms: list[Arm]


def _arms(run: Run) -> Iterator[Arm]:
    for index, arm in enumerate(run.summary.arms):
        place = run.places.get(arm.slug, index)
        yield Arm(place, label(arm.name), arm, run.series[arm.slug])


def _panels(run: Run, has_data: Callable[[Arm], bool]) -> list[Panel]:
    """The arms with data, in sets that may be compared (ComparedArms.sets). Arms of different sets
    never share an axis: their delays, and what follows from delays, rest on different times."""
    by_slug = {arm.figures.slug: arm for arm in _arms(run) if has_data(arm)}
    sets = run.summary.sets()
    titles = basis_titles([one.arms[0].basis for one in sets])
    found = [
        Panel(title, [by_slug[arm.slug] for arm in one.arms if arm.slug in by_slug])
        for title, one in zip(titles, sets, strict=True)
    ]
    found = [panel for panel in found if panel.arms]
    return [replace(panel, title="") for panel in found] if len(found) == 1 else found


def coarse(arm: Arm, name: str, until_us: int) -> tuple[Floats, Floats]:
    """Counts in at most MOST_POINTS buckets of time, up to until_us.

    Returns:
        The middle of each bucket in s, and the counts, float64[agents, buckets].
    """
    counts = arm.series[name]
    bucket_us = int(arm.series["bucket_us"][0])
    buckets = min(counts.shape[1], -(-until_us // bucket_us))
    factor = max(-(-buckets // MOST_POINTS), 1)
    padded = np.zeros((counts.shape[0], -(-buckets // factor) * factor))
    padded[:, :buckets] = counts[:, :buckets]
    summed = padded.reshape(counts.shape[0], -1, factor).sum(axis=2)
    width_s = factor * bucket_us / 1e6
    return (np.arange(summed.shape[1]) + 0.5) * width_s, summed


def ratio(part: Floats, whole: Floats) -> Floats:
    """The quotient part / whole; NaN, which is not drawn, where there is no whole."""
    quotient: Floats = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return quotient


def band(values: Floats) -> tuple[Floats, Floats, Floats]:
    """The 10th percentile, median and 90th percentile among schedulers, per column; NaN where no
    scheduler has a value."""
    result = np.full((3, values.shape[1]), np.nan)
    for column in np.flatnonzero(~np.isnan(values).all(axis=0)):
        known = values[:, column]
        result[:, column] = np.percentile(known[~np.isnan(known)], (10, 50, 90))
    return result[0], result[1], result[2]


def _sampled(arm: Arm, table: str, column: str) -> tuple[Floats, Floats]:
    """The time in s and the value of every row of a table of samples, by time; empty if there are
    none."""
    name = f"{table}_{column}"
    if name not in arm.series:
        return np.zeros(0), np.zeros(0)
    return arm.series[f"{table}_at_us"] / 1e6, arm.series[name].astype(np.float64)


def _drawn(
    panels: Sequence[Panel],
    x: str,
    y: str,
    draw: Callable[[Axes, Panel], None],
    finish: Callable[[Axes], None],
) -> Figure | None:
    """A figure with these panels, one below the other; None if there are none.

    Args:
        x, y: The labels of the axes.
        draw: Draws one panel.
        finish: Sets the scale of one panel, when all are drawn.
    """
    if not panels:
        return None
    with style.drawing_panels(
        [panel.title for panel in panels], [len(panel.arms) for panel in panels]
    ) as (figure, drawn):
        for axes, panel in zip(drawn, panels, strict=True):
            draw(axes, panel)
        for axes in drawn:
            finish(axes)
        style.label_panels(drawn, x, y)
        style.legend(figure, *drawn)
    return figure


def _drawn_over_time(
    run: Run,
    panels: Sequence[Panel],
    y: str,
    draw: Callable[[Axes, Panel], None],
    finish: Callable[[Axes], None],
) -> Figure | None:
    """As _drawn, over the time of the run, with its load phases."""

    def finish_over_time(axes: Axes) -> None:
        finish(axes)
        _show_phases(axes, run)

    return _drawn(panels, style.TIME, y, draw, finish_over_time)


def _show_phases(axes: Axes, run: Run) -> None:
    workload = run.summary.workload
    style.shade_phases(axes, workload.phases, run.summary.settle_us)
    style.time_axis(axes, workload.end_us)


def _count_from_zero(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    style.count_axis(axes)


def _draw_band(axes: Axes, panel: Panel, arm: Arm, time: Floats, values: Floats) -> None:
    """The median among an arm's schedulers as a line, and a band from their 10th to their 90th
    percentile, unless the panel has many arms.

    Args:
        panel: That the arm is drawn in.
        time: In s.
        values: float64[agents, len(time)].
    """
    low, median, high = band(values)
    axes.plot(time, median, label=arm.name, **style.marked_line(arm.index, len(time)))
    if len(panel.arms) <= style.MANY_LINES:
        axes.fill_between(
            time, low, high, color=style.colour(arm.index), alpha=style.BAND_ALPHA, linewidth=0
        )


# --- over time ---


def metric_over_time(plot: OverTime, run: Run) -> Figure | None:
    """A figure that a metric declares: the quotient of two series at each moment (delays as in
    Figs. 5a, 6b and 7b; conflicts as in Figs. 6c and 7c, as a rate). None where no arm has its
    series."""
    until_us = run.summary.workload.end_us

    def quotient(arm: Arm) -> tuple[Floats, Floats]:
        time, part = coarse(arm, plot.part, until_us)
        return time, ratio(part, coarse(arm, plot.whole, until_us)[1])

    def draw(axes: Axes, panel: Panel) -> None:
        for arm in panel.arms:
            _draw_band(axes, panel, arm, *quotient(arm))

    panels = _panels(run, lambda arm: _has_series(arm, plot))
    is_log = any(
        bool((values > 0).any()) for panel in panels for _, values in map(quotient, panel.arms)
    )
    return _drawn_over_time(run, panels, plot.axis, draw, lambda axes: _scale(axes, plot, is_log))


def _has_series(arm: Arm, plot: OverTime) -> bool:
    """Whether there is anything to draw: counts by agent, as a run's series.npz has them."""
    counts = [arm.series.get(name) for name in (plot.part, plot.whole)]
    agents = len(arm.series["group_of"])
    shapes = {None if count is None else count.shape for count in counts}
    shape = shapes.pop()
    if shapes or shape is None or len(shape) != 2 or shape[0] != agents:
        return False
    return bool(arm.series[plot.whole].any())


def _scale(axes: Axes, plot: OverTime, is_log: bool) -> None:
    if plot.unit is Unit.DURATION:
        style.duration_axis(axes, "y", log=is_log)
        return
    if plot.unit is Unit.SHARE:
        style.share_axis(axes)
    else:
        style.count_axis(axes)
    if plot.up_to_all:
        axes.set_ylim(0, 1.02)
    else:
        axes.set_ylim(bottom=0)


def throughput(run: Run) -> Figure | None:
    """First commits per second of each arm (Figs. 6a and 7a), and what was submitted."""
    until_us = run.summary.workload.end_us

    def draw(axes: Axes, panel: Panel) -> None:
        time, offered = _rate(panel.arms[0], "submitted", until_us)
        axes.step(
            time,
            offered.sum(axis=0),
            where="mid",
            color=style.INK,
            alpha=0.45,
            linewidth=3,
            label="submitted",
        )
        for arm in panel.arms:
            time, commits = _rate(arm, "first_commits", until_us)
            line = style.marked_line(arm.index, len(time))
            axes.plot(time, commits.sum(axis=0), label=arm.name, **line)

    panels = _panels(run, lambda arm: bool(arm.series["first_commits"].any()))
    return _drawn_over_time(run, panels, "Tasks committed (1/s)", draw, _count_from_zero)


def _rate(arm: Arm, name: str, until_us: int) -> tuple[Floats, Floats]:
    """Events per second over time. The last bucket, which may be cut short, is left out.

    Returns:
        The time in s, and the rates, float64[agents, buckets].
    """
    time, counts = coarse(arm, name, until_us)
    if len(time) < 2:
        return time[:0], counts[:, :0]
    return time[:-1], counts[:, :-1] / (time[1] - time[0])


def utilisation(run: Run) -> Figure | None:
    """The part of the cell's first resource that is in use."""

    def draw(axes: Axes, panel: Panel) -> None:
        for arm in panel.arms:
            time, permille = _sampled(arm, "cell", "used_permille")
            line = style.marked_line(arm.index, len(time))
            axes.plot(time, permille / 1000, label=arm.name, **line)

    def finish(axes: Axes) -> None:
        style.share_axis(axes)
        axes.set_ylim(0, 1.02 if axes.get_ylim()[1] <= 1.05 else None)

    panels = _panels(run, lambda arm: len(_sampled(arm, "cell", "used_permille")[0]) > 0)
    return _drawn_over_time(run, panels, "Cell in use", draw, finish)


def backlog(run: Run) -> Figure | None:
    """Tasks that wait, by scheduler (Fig. 9)."""

    def draw(axes: Axes, panel: Panel) -> None:
        for arm in panel.arms:
            _draw_band(axes, panel, arm, *sampled_by_agent(arm, "queued"))

    def finish(axes: Axes) -> None:
        axes.set_yscale("symlog", linthresh=10)
        _count_from_zero(axes)

    panels = _panels(run, lambda arm: len(_sampled(arm, "agents", "queued")[0]) > 0)
    return _drawn_over_time(run, panels, "Tasks waiting per scheduler", draw, finish)


def sampled_by_agent(arm: Arm, column: str) -> tuple[Floats, Floats]:
    """The samples of all agents, gathered in at most MOST_POINTS steps of time.

    Returns:
        The time in s, and the values, float64[agents, times].
    """
    time, value = _sampled(arm, "agents", column)
    if not len(time):
        return time, np.zeros((0, 0))
    agent = arm.series["agents_agent"]
    distinct = len(np.unique(arm.series["agents_at_us"]))
    steps = min(MOST_POINTS, distinct)
    width = (time[-1] - time[0]) / max(steps - 1, 1) or 1.0
    step = np.minimum(((time - time[0]) / width + 0.5).astype(np.int64), steps - 1)
    shape = (len(arm.series["group_of"]), steps)
    total, rows = np.zeros(shape), np.zeros(shape)
    np.add.at(total, (agent, step), value)
    np.add.at(rows, (agent, step), 1)
    return time[0] + width * np.arange(steps), ratio(total, rows)


def solver_time(run: Run) -> Figure | None:
    """The time of each round of flow schedulers, and the median in each of a few steps of time."""
    end_s = run.summary.workload.end_us / 1e6

    def draw(axes: Axes, panel: Panel) -> None:
        for arm in panel.arms:
            time, solve_us = _sampled(arm, "rounds", "solve_us")
            value = solve_us.clip(1)
            dots: dict[str, Any] = {
                "linestyle": "none",
                "marker": ".",
                "markersize": 3,
                "markeredgewidth": 0,
            }
            axes.plot(time, value, alpha=0.35, color=style.colour(arm.index), **dots)
            edges = np.linspace(0, max(end_s, float(time[-1])), 21)
            step = np.clip(np.searchsorted(edges, time, side="right") - 1, 0, 19)
            filled = np.unique(step)
            middle = ((edges[:-1] + edges[1:]) / 2)[filled]
            median = [np.median(value[step == one]) for one in filled]
            line = style.marked_line(arm.index, len(middle))
            axes.plot(middle, median, label=arm.name, **line)

    panels = _panels(run, lambda arm: len(_sampled(arm, "rounds", "solve_us")[0]) > 0)
    return _drawn_over_time(
        run,
        panels,
        "Solver time per round",
        draw,
        lambda axes: style.duration_axis(axes, "y", log=True),
    )


def quota_shares(run: Run) -> Figure | None:
    """What quota groups hold of the cell's first resource (section 2), a panel for each arm, and
    their shares where the arm has quotas."""
    arms = [arm for arm in _arms(run) if len(_sampled(arm, "quota_use", "held")[0])]
    if not arms:
        return None
    capacity = max(1, run.summary.workload.capacity[0])
    names = {arm.index: _quota_names(run, arm) for arm in arms}
    colour_of = {name: style.colour(k) for k, name in enumerate(_largest_quota_groups(arms, names))}
    height_in = 0.9 + 1.6 * max(len(arms), 1.5)
    with style.drawing(rows=len(arms), height_in=height_in) as (figure, panels):
        for axes, arm in zip(np.atleast_1d(panels), arms, strict=True):
            inside = {"ha": "left", "va": "top", "transform": axes.transAxes}
            axes.text(0.015, 0.96, arm.name, **inside)
            for group, name in enumerate(names[arm.index]):
                if name not in colour_of:
                    continue
                for table, column, line in (
                    ("quota_use", "held", {"linewidth": 1.6}),
                    ("quota_shares", "share", {"linewidth": 1.0, "linestyle": (0, (2.5, 1.5))}),
                ):
                    time, amount = _of_quota_group(arm, table, column, group)
                    axes.plot(time, amount / capacity, color=colour_of[name], **line)
            style.share_axis(axes)
            _show_phases(axes, run)
            axes.set_ylabel("Held of the cell")
        top = max(axes.get_ylim()[1] for axes in np.atleast_1d(panels))
        for axes in np.atleast_1d(panels):
            axes.set_ylim(0, 1.2 * top)  # with room for the arm's name
        entries: list[tuple[Any, str]] = [
            (
                Line2D([], [], color=colour),
                label(name) if is_drawable(name) else "a group whose name cannot be drawn",
            )
            for name, colour in colour_of.items()
        ]
        dashed = Line2D([], [], color=style.INK, linewidth=1.0, linestyle=(0, (2.5, 1.5)))
        style.legend_of(figure, [*entries, (dashed, "fair share")])
    return figure


def _quota_names(run: Run, arm: Arm) -> list[str]:
    """The quota groups in the order of their numbers."""
    config: Mapping[str, Any] = run.summary.config
    of_arm = config["arms"][arm.index].get("quotas", {}).get("groups")
    groups = of_arm or config["workload"].get("quota_groups")
    if groups:
        return [group["name"] for group in groups]
    return [f"group {number}" for number in np.unique(arm.series["quota_use_quota_group"])]


def _largest_quota_groups(arms: list[Arm], names: Mapping[int, list[str]]) -> list[str]:
    """The groups that are drawn, in the order of the first arm: those that hold most in any."""
    most: dict[str, float] = {}
    for arm in arms:
        for group, name in enumerate(names[arm.index]):
            _, held = _of_quota_group(arm, "quota_use", "held", group)
            most[name] = max(most.get(name, 0.0), float(held.mean()) if len(held) else 0.0)
    drawn = sorted(most, key=lambda name: -most[name])[:MOST_QUOTA_GROUPS]
    return [name for name in most if name in drawn]


def _of_quota_group(arm: Arm, table: str, column: str, group: int) -> tuple[Floats, Floats]:
    """The time in s and the amount of the first resource, of one group."""
    time, amount = _sampled(arm, table, column)
    if not len(time):
        return time, amount
    chosen = arm.series[f"{table}_quota_group"] == group
    chosen &= arm.series[f"{table}_resource"] == 0
    return time[chosen], amount[chosen]


# --- distributions, ages and rivals ---


def delay_distribution(run: Run) -> Figure | None:
    """The share of the tasks that were committed within a delay."""

    def draw(axes: Axes, panel: Panel) -> None:
        for arm in panel.arms:
            value, share = arm.series["delay_value_us"], arm.series["delay_share"]
            line = style.marked_line(arm.index, len(value))
            axes.step(value.clip(1), share, where="post", label=arm.name, **line)

    def finish(axes: Axes) -> None:
        style.duration_axis(axes, "x", log=True)
        style.share_axis(axes)
        axes.set_ylim(0, 1.02)

    panels = _panels(run, lambda arm: len(arm.series["delay_value_us"]) > 0)
    return _drawn(panels, "Scheduling delay", "Tasks committed within", draw, finish)


def conflicts_by_age(run: Run) -> Figure | None:
    """The conflict rate against the age of the state that a claim was planned on."""
    panels = _panels(run, lambda arm: bool(arm.series["ages"].any()))
    oldest = max(
        (
            int(np.flatnonzero(arm.series["ages"].any(axis=(0, 1)))[-1])
            for panel in panels
            for arm in panel.arms
        ),
        default=0,
    )
    edges = np.linspace(0, histogram.MIDDLE[oldest] + 1, _AGE_BINS + 1)

    def draw(axes: Axes, panel: Panel) -> None:
        for arm in panel.arms:
            counts = rebinned_ages(arm, edges)
            claims = counts.sum(axis=0)
            enough = np.where(claims >= _FEWEST_CLAIMS, claims, 0)
            rate = ratio(counts[Outcome.CONFLICT], enough)
            axes.plot((edges[:-1] + edges[1:]) / 2, rate, label=arm.name, **_small_marks(arm))

    def finish(axes: Axes) -> None:
        style.share_axis(axes)
        axes.set_xlim(0, edges[-1])
        style.duration_axis(axes, "x", log=False)
        axes.set_ylim(bottom=0)

    x = "Age of the state the claim was planned on"
    return _drawn(panels, x, "Claims in conflict", draw, finish)


_AGE_BINS = 16
_FEWEST_CLAIMS = 50  # a rate on fewer says nothing


def rebinned_ages(arm: Arm, edges_us: Floats) -> Floats:
    """Claims by age of the state they were planned on: float64[Outcome.COUNT, bins], over all
    groups."""
    counts = arm.series["ages"].sum(axis=0)
    bins = np.clip(
        np.searchsorted(edges_us, histogram.MIDDLE, side="right") - 1, 0, len(edges_us) - 2
    )
    result = np.zeros((counts.shape[0], len(edges_us) - 1))
    for outcome in range(counts.shape[0]):
        np.add.at(result[outcome], bins, counts[outcome])
    return result


def _small_marks(arm: Arm) -> dict[str, Any]:
    """The line of an arm with a small mark at each of its points."""
    return {"marker": style.marker(arm.index), "markersize": 4, **style.line_style(arm.index)}


def staleness_by_partition(run: Run) -> Figure | None:
    """How old each partition is in the schedulers' views, on average."""

    def age_us(arm: Arm) -> Floats:
        return np.array(arm.figures.staleness.mean_us, float)  # None becomes NaN: not drawn

    def draw(axes: Axes, panel: Panel) -> None:
        for arm in panel.arms:
            mean_us = age_us(arm)
            axes.plot(np.arange(len(mean_us)), mean_us, label=arm.name, **_small_marks(arm))

    def finish(axes: Axes) -> None:
        if axes is axes.figure.axes[0]:  # all panels have its range
            axes.set_ylim(0, axes.get_ylim()[1] * 1.08)
        style.duration_axis(axes, "y", log=False)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))

    panels = _panels(run, lambda arm: bool(np.isfinite(age_us(arm)).any()))
    return _drawn(panels, "Partition", "Age in the views, average", draw, finish)


def rivals(run: Run) -> Figure | None:
    """Who loses claims to whom, a matrix per arm on one scale; a last column for unknown rivals if
    there are any."""
    shown = [arm for arm in _arms(run) if np.any(arm.figures.rivals)]
    if not shown:
        return None
    shares = [
        np.array(arm.figures.rivals, float) / max(arm.figures.overall.claims, 1) for arm in shown
    ]
    shares = [share if share[:, -1].any() else share[:, :-1] for share in shares]
    highest = max(float(share.max()) for share in shares)
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    with style.drawing(rows, columns, height_in=0.7 + 1.45 * rows) as (figure, axes):
        grid = np.atleast_1d(axes).reshape(-1)
        for place, arm, share in zip(grid, shown, shares, strict=False):
            image = place.imshow(share, cmap="cividis_r", vmin=0, vmax=highest)
            place.set_title("\n".join(wrap(arm.name, 20)), fontsize=8)
            place.grid(False)
            place.tick_params(labelsize=7.5)
            for axis in (place.xaxis, place.yaxis):
                axis.set_major_locator(MaxNLocator(4, integer=True))
        for place in grid[len(shown) :]:
            place.set_visible(False)
        bar = figure.colorbar(image, ax=list(grid), shrink=0.6, aspect=25)
        style.share_axis(bar.ax)
        bar.ax.tick_params(labelsize=7.5)
        figure.supxlabel("Scheduler that was first", fontsize=9)
        figure.supylabel("Scheduler that lost", fontsize=9)
    return figure


# --- placement quality and regret ---


def trade_off(run: Run) -> Figure | None:
    """Mean delay against preferred share (Figs. 5b, 6d and 7d have it over time): every paired seed
    a small dot, the seeds' median with its interval. Without seeds: this run."""

    def has_mark(arm: Arm) -> bool:
        overall = arm.figures.overall
        measured = bool(overall.delay_mean_us) and overall.preferred_share is not None
        return measured or _median(run, arm) is not None

    def draw(axes: Axes, panel: Panel) -> None:
        for arm in panel.arms:
            _mark(axes, run, arm)

    def finish(axes: Axes) -> None:
        axes.margins(0.12)
        style.duration_axis(axes, "x", log=True)
        style.share_axis(axes)

    x, y = "Mean scheduling delay  (left is better)", "Preferred machine\n(up is better)"
    return _drawn(_panels(run, has_mark), x, y, draw, finish)


def _mark(axes: Axes, run: Run, arm: Arm) -> None:
    """An arm and its paired seeds on the axes of delay and preferred share."""
    marker = _marker(arm)
    for seed in arm.figures.seeds:
        x, y = seed.overall.value("delay_mean_us"), seed.overall.preferred_share
        if x and y is not None:
            axes.plot(x, y, linestyle="none", markersize=3, alpha=0.4, markeredgewidth=0, **marker)
    overall, median = arm.figures.overall, _median(run, arm)
    if median is None:
        axes.plot(
            overall.value("delay_mean_us") or np.nan,
            np.nan if overall.preferred_share is None else overall.preferred_share,
            linestyle="none",
            markersize=8,
            label=arm.name + (AT_LEAST if overall.is_bound("delay_mean_us") else ""),
            **marker,
        )
        return
    (low_x, x, high_x), (low_y, y, high_y) = median
    bound = run.summary.paired.arms[arm.figures.slug]["delay_mean_us"].at_least
    axes.errorbar(
        x,
        y,
        # An interval that reaches 0 cannot be drawn on a logarithmic axis: it is cut at a tenth of
        # the estimate.
        xerr=[[x - max(low_x, x / 10)], [high_x - x]],
        yerr=[[y - low_y], [high_y - y]],
        linestyle="none",
        capsize=2,
        markersize=7,
        label=arm.name + (AT_LEAST if bound else ""),
        **marker,
    )


def _median(run: Run, arm: Arm) -> tuple[Limits, Limits] | None:
    """Delay and preferred share over the paired seeds, if there are any."""
    paired = run.summary.paired.arms.get(arm.figures.slug, {})
    delay, share = (limits(paired.get(key)) for key in ("delay_mean_us", "preferred_share"))
    return (delay, share) if delay and share and delay[1] > 0 else None


def _marker(arm: Arm) -> dict[str, Any]:
    return {"marker": style.marker(arm.index), "color": style.colour(arm.index)}


def decision_regret(run: Run) -> Figure | None:
    """Sampled transactions as dots; per phase all of an arm's samples together."""
    panels = _panels(run, lambda arm: bool(arm.figures.regret.decision))
    stretches = _stretches(run)

    def draw(axes: Axes, panel: Panel) -> None:
        for number, arm in enumerate(panel.arms):
            # Arms side by side, or their marks would hide each other.
            place = 0.2 + 0.6 * (number + 0.5) / len(panel.arms)
            _draw_regrets(axes, arm, stretches, place)

    exact = all(
        row.exact for panel in panels for arm in panel.arms for row in arm.figures.regret.decision
    )
    y = f"Cost above {_LEAST[exact]},\nper claim"
    return _drawn_over_time(run, panels, y, draw, _count_from_zero)


_LEAST = {True: "the optimum", False: "a lower bound"}


def _draw_regrets(
    axes: Axes, arm: Arm, stretches: Sequence[tuple[float, float]], place: float
) -> None:
    """The sampled transactions of an arm, and all of a stretch of time together.

    Args:
        stretches: From and to, in us.
        place: Of the mark within its stretch, 0 to 1.
    """
    rows = arm.figures.regret.decision
    at_us, regret, tasks = (
        np.array([getattr(row, key) for row in rows]) for key in ("at_us", "regret", "tasks")
    )
    marker = _marker(arm)
    dots: dict[str, Any] = {
        "linestyle": "none",
        "markersize": 2.5,
        "alpha": 0.3,
        "markeredgewidth": 0,
    }
    axes.plot(at_us / 1e6, regret / tasks, **dots, **marker)
    middle_s, mean = [], []
    for start_us, end_us in stretches:
        inside = (at_us >= start_us) & (at_us < end_us)
        if inside.any():
            middle_s.append((start_us + place * (end_us - start_us)) / 1e6)
            mean.append(regret[inside].sum() / tasks[inside].sum())
    line: dict[str, Any] = {"linestyle": "-", "linewidth": 0.8, "markersize": 6}
    axes.plot(middle_s, mean, label=arm.name, **line, **marker)


def _stretches(run: Run) -> list[tuple[float, float]]:
    """The load phases, or a few equal parts of a run that has only one."""
    phases = run.summary.workload.phases
    if len(phases) > 1:
        return [(phase.start_us, phase.end_us) for phase in phases]
    edges = np.linspace(0, run.summary.workload.end_us, 6)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def system_regret(run: Run) -> Figure | None:
    """The regret of the whole cell over time, if running tasks stay where they are, and if all may
    move."""
    shown = _panels(run, lambda arm: bool(arm.figures.regret.system))
    if not shown:
        return None
    exact = all(
        row.exact for panel in shown for arm in panel.arms for row in arm.figures.regret.system
    )
    parts = {"without_migration": "running tasks stay", "with_migration": "all may move"}
    rows = [(panel, part) for panel in shown for part in parts]
    titles = [f"{panel.title}: {parts[part]}".removeprefix(": ") for panel, part in rows]
    with style.drawing_panels(titles) as (figure, panels):
        for axes, (panel, part) in zip(panels, rows, strict=True):
            for arm in panel.arms:
                samples = arm.figures.regret.system
                axes.plot(
                    [row.at_us / 1e6 for row in samples],
                    [getattr(row, part) for row in samples],
                    label=arm.name,
                    **style.marked_line(arm.index, len(samples)),
                )
        for axes in panels:
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(style.TickLabels(_compact))
            _show_phases(axes, run)
        style.label_panels(panels, style.TIME, f"Above {_LEAST[exact]}")
        style.legend(figure, *panels)
    return figure


def _compact(value: float, digits: int) -> str:
    """A large cost on an axis."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= unit:
            return f"{value / unit:.{digits}g}{name}"
    return f"{value:.{digits}g}"
