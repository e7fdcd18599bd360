"""The execution of `agora extra-slots`: searches for S_extra over one axis."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from experiments.campaign.directories import run_continued
from experiments.campaign.expected_time import check_length, on_this_machine_s
from experiments.campaign.progress import Progress, ProgressReport, time_text
from experiments.campaign.task import Arrays
from experiments.consoles import error_console, output_console
from experiments.extra_slots_points import AXES, Axis, Point, Points, PointSetting, points_of
from experiments.figures import extra_slots as figure_of
from experiments.figures import style
from experiments.interruption import Interruption
from experiments.model_files import writing
from experiments.model_runs.run import ModelRuns, number, numbered_seeds
from experiments.model_runs.searches import extra_slots_interval
from experiments.report.extra_slots_terminal import extra_slots_table
from experiments.reproduce.figure import ReproduceScale
from experiments.reproduce.model_settings import search_at, slots
from experiments.statistics import Interval, interval_in_words
from experiments.whole_files import whole_file
from parsync.metrics.quantity import counted

_SEARCHES = "searches"
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
    figure = figure_of.draw(points.axis.label, lines)
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
