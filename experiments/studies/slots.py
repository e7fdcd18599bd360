"""What `agora slots` does: one simulation of ParSync's slots, its figures by phase, its table, its
time series and its drawing."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich import box
from rich.console import Group
from rich.text import Text

from experiments.analysis.model_files import writing
from experiments.campaign.progress import ProgressReport
from experiments.command_line import error_console, output_console
from experiments.config.slot_settings_file import load_settings, settings_text, with_values
from experiments.figures import style
from experiments.files import whole_file
from experiments.report.fitted_table import FittedTable
from experiments.studies.model_settings import ReproduceScale, default_settings
from parsync.metrics.quantity import counted, duration, share
from parsync.model.slot_settings import SlotSettings
from parsync.model.slot_simulator import ConflictsAndScores, Ending, SlotResults, simulate
from shared_state.errors import AgoraError

_FACTOR = 2  # A of the setting without a file

_ENDINGS = {
    Ending.COMMITTED: "All tasks were committed, the last at {at_s:.4g} s.",
    Ending.HORIZON: "The run ended at the horizon, at {end_s:.4g} s. {left} not committed: delays "
    "are those of the others.",
    Ending.GROWING_BACKLOG: "The run ended at {end_s:.4g} s: its backlog could no longer be "
    "committed in time. {left} not committed: delays are those of the others.",
}


@dataclass(frozen=True, slots=True)
class SlotsOptions:
    """The options of `agora slots`, which `agora slots --help` explains."""

    file: Path | None
    assignments: Sequence[str]
    scale: ReproduceScale | None
    out: Path | None


def start(options: SlotsOptions) -> None:
    """Simulate, print the table, and write the results if a directory is given.

    Raises:
        AgoraError: A setting is wrong, or nothing can be written.
    """
    settings = with_values(_settings(options), options.assignments)
    settings.to_native()  # refuses what cannot be simulated, before anything is created
    if options.out is not None:
        _create(options.out)
    with ProgressReport(error_console()) as report, report.stage("simulating"):
        found = simulate(settings)
    figures = phase_figures(settings, found)
    if options.out is not None:
        _write(options.out, settings, found)
    output_console().print(phases_table(figures, _title(settings), _ending(found)))


def _settings(options: SlotsOptions) -> SlotSettings:
    if options.file is None:
        return default_settings(options.scale or ReproduceScale.SMOKE, _FACTOR)
    if options.scale is not None:
        raise AgoraError("--scale: has no effect with FILE")
    return load_settings(options.file)


def _create(directory: Path) -> None:
    try:
        directory.mkdir(parents=True)
    except FileExistsError as error:
        raise AgoraError(f"--out {directory}: already exists; choose another name") from error
    except OSError as error:
        raise AgoraError(f"--out {directory}: {error.strerror}") from error


def _write(directory: Path, settings: SlotSettings, found: SlotResults) -> None:
    """The settings, the time series, and their plot."""
    table = directory / "slots.csv"
    with writing(directory):
        (directory / "settings.toml").write_text(settings_text(settings), "utf-8")
        with whole_file(table) as unfinished, unfinished.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(COLUMNS)
            for row in series_rows(found):
                rows.writerow("" if value is None else f"{value:.12g}" for value in row)
        figure = draw(settings, found)
        style.save(figure, figure, directory, "slots")
    error_console().print(Text(f"results: {directory}"), soft_wrap=True)


def _title(settings: SlotSettings) -> str:
    strategies = ", ".join(dict.fromkeys(group.strategy.value for group in settings.groups))
    return (
        f"{counted(settings.schedulers, 'scheduler')} ({strategies}) on "
        f"{settings.slots + settings.extra_slots:,} slots in "
        f"{counted(settings.partitions, 'partition')}. Sync policy {settings.sync.value}, "
        f"G = {settings.gap_s:g} s, T = {settings.task_s:g} s, V = {settings.score_variance:g}, "
        f"seed {settings.seed}."
    )


def _ending(found: SlotResults) -> str:
    left = int(found.backlog[-1].sum()) if len(found.backlog) else 0
    return _ENDINGS[found.ending].format(
        at_s=found.last_commit_s,
        end_s=float(found.end_ns[-1]) / 1e9,
        left=f"{counted(left, 'task')} {'was' if left == 1 else 'were'}",
    )


COLUMNS = (
    "start_s",
    "end_s",
    "group",
    "arrived",
    "claims",
    "conflicts",
    "same_tick_conflicts",
    "quality_conflicts",
    "stale_conflicts",
    "visible_conflicts",
    "commits",
    "delay_mean_s",
    "delay_p10_s",
    "delay_p50_s",
    "delay_p90_s",
    "score_mean",
    "backlog",
    "utilisation",
    "score_in_use",
    "best_score",
)


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    """What happened in some time.

    Attributes:
        label: The time, in words.
        group: The schedulers counted, from 0; None: all.
        found: Conflicts per claim, their causes, and the scores of the slots in use.
        delay_mean_s, delay_p90_s: Of the tasks committed then; None if there were none.
        score: Mean score of the slots granted then; None if there were none.
        utilisation: The share of the cell's slot-time in use.
        backlog: Tasks arrived and not committed, at the end.
    """

    label: str
    group: int | None
    found: ConflictsAndScores
    delay_mean_s: float | None
    delay_p90_s: float | None
    score: float | None
    utilisation: float
    backlog: int


def phase_figures(settings: SlotSettings, found: SlotResults) -> list[PhaseFigures]:
    """The figures of each phase, of the time after the last, and of the whole run: of all groups,
    and, where there are several, of each. A bin of time counts where it begins."""
    groups = [None, *range(len(settings.groups))] if len(settings.groups) > 1 else [None]
    return [
        _figures(found, label, bins, group)
        for label, bins in _times(settings, found)
        for group in groups
    ]


def series_rows(found: SlotResults) -> Iterator[tuple[float | int | None, ...]]:
    """A row of COLUMNS for each bin of time and group of schedulers. Utilisation and the scores of
    the slots in use are those of the cell, by all groups."""
    utilisation = found.utilisation()
    for at, (start_ns, end_ns) in enumerate(zip(found.start_ns, found.end_ns, strict=True)):
        bins = slice(at, at + 1)
        cell = found.conflicts_and_scores(bins)
        for group in range(found.commits.shape[1]):
            yield (
                start_ns / 1e9,
                end_ns / 1e9,
                group,
                *(
                    int(column[at, group])
                    for column in (
                        found.arrived,
                        found.claims,
                        found.conflicts,
                        found.same_tick_conflicts,
                        found.quality_conflicts,
                        found.stale_conflicts,
                        found.visible_conflicts,
                        found.commits,
                    )
                ),
                delay_mean_s(found, bins, group),
                *(found.delay_quantile_s(part, bins, group) for part in (0.1, 0.5, 0.9)),
                score_mean(found, bins, group),
                int(found.backlog[at, group]),
                float(utilisation[at]),
                cell.score_in_use,
                cell.best_score,
            )


def delay_mean_s(found: SlotResults, bins: slice, group: int | None) -> float | None:
    """Mean delay of the tasks committed then; None if there were none."""
    mean_ns = _ratio(_sum(found.delay_ns, bins, group), _sum(found.commits, bins, group))
    return None if mean_ns is None else mean_ns / 1e9


def score_mean(found: SlotResults, bins: slice, group: int | None) -> float | None:
    """Mean score of the slots granted then; None if there were none."""
    steps = _ratio(_sum(found.score_steps, bins, group), _sum(found.commits, bins, group))
    return None if steps is None else found.lowest_score + steps * found.score_step


def _times(settings: SlotSettings, found: SlotResults) -> Iterator[tuple[str, slice]]:
    """The bins of each phase, of what is after them, and all."""
    start_s, starts_s = 0.0, found.start_ns / 1e9
    for phase in settings.phases:
        end_s = start_s + phase.duration_s
        first, last = np.searchsorted(starts_s, (start_s, end_s))
        yield f"{start_s:g} to {end_s:g} s", slice(int(first), int(last))
        start_s = end_s
    after = int(np.searchsorted(starts_s, start_s))
    if after < len(starts_s):
        yield f"{start_s:g} to {found.end_ns[-1] / 1e9:.4g} s", slice(after, len(starts_s))
    if len(settings.phases) > 1 or after < len(starts_s):
        yield "whole run", slice(0, len(starts_s))


def _figures(found: SlotResults, label: str, bins: slice, group: int | None) -> PhaseFigures:
    length_ns = (found.end_ns - found.start_ns)[bins].sum()
    backlog = found.backlog[bins][-1:]
    return PhaseFigures(
        label=label,
        group=group,
        found=found.conflicts_and_scores(bins, group),
        delay_mean_s=delay_mean_s(found, bins, group),
        delay_p90_s=found.delay_quantile_s(0.9, bins, group),
        score=score_mean(found, bins, group),
        utilisation=float(found.busy_ns[bins].sum() / max(1, length_ns * found.slots)),
        backlog=_sum(backlog, slice(None), group),
    )


def _sum(column: NDArray[np.int64], bins: slice, group: int | None) -> int:
    """The sum of a column [B, H] over bins, of a group or of all."""
    return int((column[bins] if group is None else column[bins, group]).sum())


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


_NONE = "–"
_NOTE = (
    "Conflicts: with a claim at the same instant, over a slot of more than mean weight, or of a "
    "stale view alone. Visible: the slot was in use when the claim was decided. Mean scores: of "
    "the slots in use, and of as many of the best slots."
)


def phases_table(figures: Sequence[PhaseFigures], title: str, ending: str) -> Group:
    """Two tables with a row for each phase, and below it one for each group of schedulers, if there
    are several: what happened, and why claims conflicted and how good the slots in use were.

    Args:
        figures: In the order of the rows.
        title: What is simulated, in a sentence.
        ending: How the run ended, in a sentence.
    """
    width = max(len(one.label) for one in figures)
    heads = ("conflicts", "mean delay", "90 % within", "score", "utilisation", "backlog")
    table = _empty(heads, width)
    for one in figures:
        table.add_row(
            _name(one),
            _share(one.found.conflict_rate),
            *(
                _NONE if value_s is None else duration(value_s * 1e6)
                for value_s in (one.delay_mean_s, one.delay_p90_s)
            ),
            _score(one.score),
            share(one.utilisation) if one.group is None else "",
            f"{one.backlog:,}",
        )
    return Group(Text(title), table, Text(ending), _causes(figures, width), Text(_NOTE))


def _causes(figures: Sequence[PhaseFigures], width: int) -> FittedTable:
    heads = ("same tick", "preferred", "stale", "visible", "in use", "best")
    table = _empty(heads, width)
    for one in figures:
        found, of_cell = one.found, one.group is None
        table.add_row(
            _name(one),
            _share(found.same_tick_conflict_share),
            _share(found.quality_conflict_share),
            _share(found.stale_conflict_share),
            _share(found.visible_conflict_share),
            _score(found.score_in_use) if of_cell else "",
            _score(found.best_score) if of_cell else "",
        )
    return table


def _empty(heads: Sequence[str], width: int) -> FittedTable:
    table = FittedTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", min_width=width)
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _name(one: PhaseFigures) -> str:
    return one.label if one.group is None else f"  group {one.group}"


def _share(value: float | None) -> str:
    return _NONE if value is None else share(value)


def _score(value: float | None) -> str:
    return _NONE if value is None else f"{value:.2f}"


def draw(settings: SlotSettings, found: SlotResults) -> Figure:
    """Conflicts, delay, score and backlog of each group of schedulers, and the utilisation of the
    cell. Dotted lines separate the phases."""
    with style.drawing(rows=2, columns=2) as (figure, panels):
        figure.set_size_inches(2 * style.WIDTH_IN, 1.6 * style.HEIGHT_IN)
        conflicts, delay, score, backlog = panels.ravel()
        _lines(conflicts, "Conflicts per claim", found, _conflict_rate)
        _lines(delay, "Mean delay", found, _delay_mean_us)
        _lines(score, "Mean score of the slots", found, score_mean)
        _lines(backlog, "Backlog (tasks)", found, _backlog)
        for axes in (conflicts, delay, backlog):
            axes.set_ylim(bottom=0)
        style.share_axis(conflicts)
        style.duration_axis(delay, "y", log=False)
        _utilisation(backlog, found)
        for axes in panels.ravel():
            _separate_phases(axes, settings)
            style.time_axis(axes, float(found.end_ns[-1]) / 1e3)
        if len(settings.groups) > 1:
            style.legend(figure, conflicts)
    return figure


def _lines(
    axes: Axes,
    label: str,
    found: SlotResults,
    value_of: Callable[[SlotResults, slice, int], float | None],
) -> None:
    """A line for each group of schedulers, with gaps where there is no value."""
    bins, groups = found.commits.shape
    middle_s = (found.start_ns + found.end_ns) / 2e9
    for group in range(groups):
        values: NDArray[np.float64] = np.full(bins, np.nan)
        for at in range(bins):
            value = value_of(found, slice(at, at + 1), group)
            values[at] = np.nan if value is None else value
        axes.plot(middle_s, values, label=f"group {group}", **style.line_style(group))
    axes.set_ylabel(label)


def _conflict_rate(found: SlotResults, bins: slice, group: int) -> float | None:
    return found.conflicts_and_scores(bins, group).conflict_rate


def _delay_mean_us(found: SlotResults, bins: slice, group: int) -> float | None:
    mean_s = delay_mean_s(found, bins, group)
    return None if mean_s is None else mean_s * 1e6


def _backlog(found: SlotResults, bins: slice, group: int) -> float:
    return float(found.backlog[bins, group].sum())


def _utilisation(axes: Axes, found: SlotResults) -> None:
    beside = axes.twinx()
    middle_s = (found.start_ns + found.end_ns) / 2e9
    beside.plot(middle_s, found.utilisation(), color=style.INK, linestyle="--", linewidth=1.2)
    beside.set_ylim(0, 1.02)
    beside.grid(visible=False)
    beside.set_ylabel("Utilisation (dashed)")
    style.share_axis(beside)


def _separate_phases(axes: Axes, settings: SlotSettings) -> None:
    end_s = 0.0
    for phase in settings.phases:
        end_s += phase.duration_s
        axes.axvline(end_s, color=style.INK, linestyle=":", linewidth=0.8)
