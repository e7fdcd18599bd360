"""What `agora extra-slots` does: the searches for extra slots over one axis, their table and their
drawing."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis as DrawnAxis
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter
from rich import box
from rich.console import Group
from rich.text import Text

from experiments.analysis.model_files import writing
from experiments.analysis.statistics import Interval, interval_in_words
from experiments.campaign.directories import run_continued
from experiments.campaign.expected_time import check_length, on_this_machine_s
from experiments.campaign.progress import Progress, ProgressReport, time_text
from experiments.campaign.task import Arrays
from experiments.command_line import error_console, output_console
from experiments.config.flags import numbers_of
from experiments.figures import style
from experiments.files import whole_file
from experiments.interruption import Interruption
from experiments.report.fitted_table import FittedTable
from experiments.studies.model_runs import (
    ModelRuns,
    SearchRun,
    chained,
    extra_slots_interval,
    number,
    numbered_seeds,
)
from experiments.studies.model_settings import (
    ReproduceScale,
    default_settings,
    part,
    search_at,
    slots,
)
from parsync.metrics.quantity import counted
from parsync.model.slot_settings import LONGEST_S, SlotSettings, SyncMode
from shared_state.errors import AgoraError

_SEARCHES = "searches"
_BY_STATE = (SyncMode.STATE_ALIGNED, SyncMode.STATE_STAGGERED)
_COLUMNS = ("seed", "slots", "extra_slots", "too_few", "reason")


_CONSTANTS: dict[str, Callable[[Any], str]] = {
    "sync": str,
    "factor": "A = {:g}".format,
    "rate_per_s": "R = {:,g} tasks/s".format,
    "gap_s": "G = {:g} s".format,
    "variance": "V = {:g}".format,
    "partitions": lambda value: "" if value is None else f"P = {value:g}",
    "latency_ms": "latency {:g} ms".format,
    "service_us": "service time {:g} us".format,
}


@dataclass(frozen=True, slots=True)
class ExtraSlotsOptions:
    """The options of `agora extra-slots`, which `agora extra-slots --help` explains.

    Attributes:
        texts: By the option of each axis: its values, as they were given; None if not set.
    """

    sync: str
    texts: Mapping[str, str | None]
    scale: ReproduceScale
    seeds: int
    out: Path | None
    long: bool = False

    @property
    def seed_numbers(self) -> list[int]:
        """1 to N."""
        return numbered_seeds(self.seeds)


def start(options: ExtraSlotsOptions) -> int:
    """Do the searches, print the table, draw the plot. Return the exit status.

    Raises:
        AgoraError: An option is wrong, or nothing can be written.
    """
    points = points_of(options.sync, options.texts, options.scale)
    directory = options.out or Path("runs") / f"extra-slots-{options.scale}"
    return run_continued(
        directory,
        "search",
        "searches",
        lambda interruption: _search(options, points, directory, interruption),
    )


def _search(
    options: ExtraSlotsOptions, points: Points, directory: Path, interruption: Interruption
) -> None:
    console, seeds = error_console(), options.seed_numbers
    engine = ModelRuns(directory / _SEARCHES)
    work = engine.missing(points.runs, seeds)
    if work:
        expected_s = on_this_machine_s(sum(task.run.expected_s for task in work), len(work))
        check_length(expected_s, options.long)
        time = time_text(expected_s)
        console.print(Text(f"{counted(len(work), 'run')}, about {time}."), soft_wrap=True)
    progress = Progress(len(work))
    with ProgressReport(console) as report, report.stage("searching") as show:
        engine.run(work, interruption, lambda: show(f"searching: {progress.step()}"))
    results = engine.results(points.runs, seeds)
    found = {
        point: [of_seed[point.run.label] for of_seed in results] if point.run else []
        for point in points.points
    }
    lines: dict[str, dict[float, Interval]] = {}
    for point, arrays in found.items():
        lines.setdefault(point.line, {})[point.value] = extra_slots_interval(arrays)
    name = f"extra_slots_{points.axis.option}"
    _write(directory / f"{name}.csv", found, seeds)
    figure = draw(points.axis.label, lines)
    with writing(directory):
        style.save(figure, figure, directory, name)
    title = _title(points, options.scale, len(seeds))
    output_console().print(
        extra_slots_table(points.axis.label, lines, title, _reasons(points.axis, found))
    )
    console.print(Text(f"plot: {directory / name}.png"), soft_wrap=True)


def _title(points: Points, scale: ReproduceScale, seeds: int) -> str:
    """What is searched, and the parameters that have one value."""
    search, shrunk = search_at(scale), scale is ReproduceScale.SMOKE
    texts = [
        text
        for field, form in _CONSTANTS.items()
        if len(values := {getattr(one, field) for one in points.settings}) == 1
        if (text := form(*values))
    ]
    medians = f" Medians over {seeds} seeds, {interval_in_words(seeds)}." if seeds > 1 else ""
    return (
        f"Extra slots, beyond {slots(scale):,}, with which all tasks are committed within "
        f"{100 * search.limit_factor:.0f} % of the time in which they arrive, to within "
        f"{search.resolution:,}. {', '.join(texts)}"
        f"{'; a tenth of the cell and of R' if shrunk else ''}.{medians}"
    )


def _reasons(axis: Axis, found: Mapping[Point, Sequence[Arrays]]) -> list[str]:
    """Why points have no answer: a text for each line and reason."""
    values: dict[tuple[str, str], list[str]] = {}
    for point, seeds in found.items():
        if reason := _reason(point, seeds):
            values.setdefault((point.line, reason), []).append(f"{point.value:,g}")
    return [
        f"{line}, {axis.label}: {'; '.join(several)}: {reason}"
        for (line, reason), several in values.items()
    ]


def _reason(point: Point, seeds: Sequence[Arrays]) -> str:
    """Why a point has no answer; empty if it has one."""
    reasons = [reason for arrays in seeds if (reason := str(arrays["reason"]))]
    if point.run is None or not reasons:
        return point.refused
    some = "" if len(reasons) == len(seeds) else f" (in {len(reasons)} of {len(seeds)} seeds)"
    return reasons[0] + some


def _write(path: Path, found: Mapping[Point, Sequence[Arrays]], seeds: Sequence[int]) -> None:
    """A row for each point and seed; one without a seed for a point that is refused."""
    fields = ("sync", *(axis.field for axis in AXES))
    with writing(path), whole_file(path) as unfinished, unfinished.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow((*fields, *_COLUMNS))
        for point, results in found.items():
            setting = [_plain(point.setting, field) for field in fields]
            if point.run is None:
                rows.writerow((*setting, "", "", "", "", point.refused))
            for seed, arrays in zip(seeds, results, strict=False):
                counts = [_count(arrays, name) for name in ("slots", "least", "too_few")]
                rows.writerow((*setting, seed, *counts, str(arrays["reason"])))


def _plain(setting: PointSetting, field: str) -> str:
    value = getattr(setting, field)
    return "" if value is None else f"{value:.12g}" if isinstance(value, float) else str(value)


def _count(arrays: Arrays, name: str) -> str:
    value = number(arrays, name)
    return "" if value is None else f"{value:.0f}"


@dataclass(frozen=True, slots=True)
class Axis:
    """A parameter that an option sets.

    Attributes:
        option: Without its dashes.
        field: Of PointSetting.
        label: With the unit.
        least, most: What it may be.
        whole: Whether it is a whole number.
    """

    option: str
    field: str
    label: str
    least: float
    most: float
    whole: bool = False


FACTOR = Axis("factor", "factor", "A", 1, 100, whole=True)
AXES = (
    FACTOR,
    Axis("rate", "rate_per_s", "R (tasks/s)", 1, 1e9),
    Axis("gap", "gap_s", "G (s)", 1e-6, 1e4),
    Axis("variance", "variance", "V", 0, 1000),
    Axis("partitions", "partitions", "P", 1, 65_536, whole=True),
    Axis("latency", "latency_ms", "Latency (ms)", 0, 1e6),
    Axis("service", "service_us", "Service time (us)", 0, 1e4),
)
# of the fields of SlotSettings that a refusal may name
_OPTIONS = {"partitions": "partitions", "gap_s": "gap", "schedulers": "factor"}


@dataclass(frozen=True, slots=True)
class PointSetting:
    """A setting of ParSync's section 4.3, in the units of the paper's cell.

    Attributes:
        sync: The sync policy.
        factor: A.
        rate_per_s: R.
        gap_s: G.
        variance: V.
        partitions: P; None: 1 under StateSync, else one for each scheduler.
        latency_ms: One way, to the master.
        service_us: Of the master, per claim.
    """

    sync: SyncMode
    factor: float
    rate_per_s: float
    gap_s: float
    variance: float
    partitions: float | None
    latency_ms: float
    service_us: float

    def settings(self, scale: ReproduceScale) -> SlotSettings:
        """The same for the slot simulator, at a scale."""
        settings, of = default_settings(scale, int(self.factor)), part(scale)
        (phase,) = settings.phases
        partitions = 1 if self.sync in _BY_STATE else settings.schedulers
        return replace(
            settings,
            sync=self.sync,
            phases=(replace(phase, rate_per_s=(self.rate_per_s / of,)),),
            gap_s=self.gap_s,
            score_variance=self.variance,
            partitions=partitions if self.partitions is None else int(self.partitions),
            latency_s=self.latency_ms * 1e-3,
            service_s=self.service_us * 1e-6 * of,
        )


@dataclass(frozen=True, slots=True)
class Point:
    """A value of the axis on a line.

    Attributes:
        line: The line's label.
        value: Of the axis.
        setting: What is searched.
        run: The search; None if the setting is refused.
        refused: Why; empty if it is not.
    """

    line: str
    value: float
    setting: PointSetting
    run: SearchRun | None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Points:
    """All points of a command.

    Attributes:
        axis: The parameter that varies along the lines.
        points: Line by line, each ascending.
    """

    axis: Axis
    points: tuple[Point, ...]

    @property
    def settings(self) -> list[PointSetting]:
        """What is searched, and what is refused."""
        return [point.setting for point in self.points]

    @property
    def runs(self) -> list[SearchRun]:
        """The searches."""
        return [point.run for point in self.points if point.run is not None]


def points_of(sync: str, texts: Mapping[str, str | None], scale: ReproduceScale) -> Points:
    """The points that options ask for.

    Args:
        sync: Names of sync policies, joined by commas.
        texts: By the option of each axis: its values, joined by commas; None if it is not set.
        scale: Of the cell.

    Raises:
        AgoraError: An option is wrong, or no point can be simulated.
    """
    modes = _modes(sync)
    values = {axis.option: _values(axis, texts[axis.option]) for axis in AXES}
    axis = _axis_of(values)
    factors = (None,) if axis is FACTOR else values[FACTOR.option]
    first: dict[str, Any] = {one.field: values[one.option][0] for one in AXES}
    points: list[Point] = []
    for mode, factor in product(modes, factors):
        setting, names = PointSetting(sync=mode, **first), []
        if len(modes) > 1 or len(factors) == 1:
            names.append(mode.value)
        if factor is not None:
            setting = replace(setting, factor=factor)
            if len(factors) > 1:
                names.append(f"A = {factor:g}")
        points += _line(", ".join(names), setting, axis, values[axis.option], scale)
    if all(point.run is None for point in points):
        field, _, _ = points[0].refused.partition(":")
        option = _OPTIONS.get(field, axis.option)
        raise AgoraError(f"--{option}: no point can be simulated: {points[0].refused}")
    return Points(axis, tuple(points))


def _modes(text: str) -> list[SyncMode]:
    names = [mode.value for mode in SyncMode]
    found: list[SyncMode] = []
    for name in (one.strip() for one in text.split(",")):
        if name not in names:
            raise AgoraError(f"--sync {name}: expected one or more of {', '.join(names)}")
        if SyncMode(name) in found:
            raise AgoraError(f"--sync {text}: {name} appears twice")
        found.append(SyncMode(name))
    return found


def _values(axis: Axis, text: str | None) -> tuple[float | None, ...]:
    """The values, ascending; (None,) if the option is not set."""
    if text is None:
        return (None,)
    found = sorted(numbers_of(f"--{axis.option}", text, float))
    for value in found:
        if not axis.least <= value <= axis.most:
            raise AgoraError(f"--{axis.option} {value:g}: expected {axis.least:g} to {axis.most:g}")
        if axis.whole and value != int(value):
            raise AgoraError(f"--{axis.option} {value:g}: expected a whole number")
    return tuple(found)


def _axis_of(values: Mapping[str, tuple[float | None, ...]]) -> Axis:
    several = [axis for axis in AXES if axis is not FACTOR and len(values[axis.option]) > 1]
    if len(several) > 1:
        first, second = (f"--{axis.option}" for axis in several[:2])
        raise AgoraError(f"{first}, {second}: expected only one of them with several values")
    return several[0] if several else FACTOR


def _line(
    label: str,
    setting: PointSetting,
    axis: Axis,
    values: tuple[float | None, ...],
    scale: ReproduceScale,
) -> list[Point]:
    """The points of a line, ascending. The search in the middle begins with nothing, the others
    with their neighbour towards it."""
    search = search_at(scale)
    settings = {value: _changed(setting, axis, value) for value in values if value is not None}
    refused = {
        value: _refusal(one.settings(scale), search.largest) for value, one in settings.items()
    }
    runs: dict[float, SearchRun] = {}

    def make(value: float, neighbour: SearchRun | None) -> SearchRun:
        name = f"{label}, {axis.label} = {value:.12g}"
        runs[value] = SearchRun(name, settings[value].settings(scale), search, neighbour)
        return runs[value]

    possible = [value for value in settings if not refused[value]]
    if possible:
        chained(possible, possible[len(possible) // 2], make)
    return [
        Point(label, value, one, runs.get(value), refused[value]) for value, one in settings.items()
    ]


def _changed(setting: PointSetting, axis: Axis, value: float) -> PointSetting:
    changes: dict[str, Any] = {axis.field: value}
    return replace(setting, **changes)


def _refusal(settings: SlotSettings, extra_slots: int) -> str:
    """Why the simulator takes no such setting, with as many slots and as much time as a search may
    give it; empty if it does."""
    try:
        replace(settings, extra_slots=extra_slots, horizon_s=LONGEST_S).to_native()
    except AgoraError as error:
        return str(error)
    return ""


_NONE = "no answer"


def extra_slots_table(
    axis: str,
    lines: Mapping[str, Mapping[float, Interval]],
    title: str,
    reasons: Sequence[str],
) -> Group:
    """A row for each value of the axis, and a column for each line; below it, why some are empty.

    Args:
        axis: Its label.
        lines: By label: S_extra by the value of the axis; without estimate if there is no answer.
        title: What is searched, in a sentence.
        reasons: A line for each point without an answer.
    """
    table = FittedTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(axis, min_width=len(axis), justify="right")
    for label in lines:
        table.add_column(label, justify="right")
    for value in next(iter(lines.values())):
        table.add_row(f"{value:,g}", *(_cell(found[value]) for found in lines.values()))
    return Group(Text(title), table, *(Text(reason) for reason in reasons))


def _cell(found: Interval) -> str:
    if found.estimate is None:
        return _NONE
    if found.low is None or found.high is None or found.low == found.high:
        return f"{found.estimate:,.0f}"
    return f"{found.estimate:,.0f}\n{found.low:,.0f}–{found.high:,.0f}"


_NO_ANSWER = "no answer"


def draw(axis: str, lines: Mapping[str, Mapping[float, Interval]]) -> Figure:
    """S_extra, and its intervals over seeds. A cross at the top marks a value without an answer.

    Args:
        axis: The label of the axis.
        lines: By label: S_extra by the value of the axis; without estimate if there is no answer.
    """
    with style.drawing() as (figure, axes):
        figure.set_size_inches(2 * style.WIDTH_IN, style.HEIGHT_IN)  # it fills the width of a page
        for index, (label, found) in enumerate(lines.items()):
            _draw_line(axes, index, label, found)
        _mark_missing(axes, list(lines.values()))
        axes.margins(y=0.15)  # room for crosses
        axes.set_ylim(bottom=0)
        axes.set_xlabel(axis)
        axes.set_ylabel("Extra slots needed")
        _format(axes.xaxis)
        _format(axes.yaxis)
        entries = zip(*axes.get_legend_handles_labels(), strict=True)
        style.legend_of(figure, sorted(entries, key=lambda entry: entry[1] == _NO_ANSWER))
    return figure


def _draw_line(axes: Axes, index: int, label: str, found: Mapping[float, Interval]) -> None:
    known = {
        value: (one.estimate, one.low, one.high)
        for value, one in found.items()
        if one.estimate is not None
    }
    axes.errorbar(
        list(known),
        [middle for middle, _, _ in known.values()],
        [
            [0.0 if low is None else middle - low for middle, low, _ in known.values()],
            [0.0 if high is None else high - middle for middle, _, high in known.values()],
        ],
        marker=style.marker(index),
        ms=5,
        label=label,
        **style.line_style(index),
    )


def _mark_missing(axes: Axes, lines: Sequence[Mapping[float, Interval]]) -> None:
    label: str | None = _NO_ANSWER
    for index, found in enumerate(lines):
        missing = [value for value, one in found.items() if one.estimate is None]
        if missing:
            axes.plot(
                missing,
                [0.97 - 0.05 * index] * len(missing),  # several lines may have none at one value
                linestyle="none",
                marker="x",
                color=style.colour(index),
                transform=axes.get_xaxis_transform(),
                label=label,
            )
            label = None  # one entry of the legend


def _format(axis: DrawnAxis) -> None:
    """Thousands as k, and smaller numbers as they are."""
    large = max(map(abs, axis.get_view_interval())) >= 1000
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    axis.set_major_formatter(EngFormatter(sep="") if large else plain)
