"""The execution of `agora slots`: one simulation of ParSync's slots."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from experiments.analysis.model_files import writing
from experiments.campaign.progress import ProgressReport
from experiments.config.slot_settings_file import load_settings, settings_text, with_values
from experiments.consoles import error_console, output_console
from experiments.figures import style
from experiments.studies import slots_figures as figure_of
from experiments.studies.model_runs.settings import ReproduceScale, default_settings
from experiments.studies.slot_series import COLUMNS, phase_figures, series_rows
from experiments.studies.slots_terminal import phases_table
from experiments.whole_files import whole_file
from parsync.metrics.quantity import counted
from parsync.model.slot_results import Ending, SlotResults
from parsync.model.slot_settings import SlotSettings
from parsync.model.slot_simulator import simulate
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
        figure = figure_of.draw(settings, found)
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
