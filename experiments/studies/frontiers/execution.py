"""The execution of `agora frontier`, and the small frontier of a run: checks, then the runs, as
many as there is time for, then table and page.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from rich.text import Text

from experiments.analysis.cell_watch import settle_us
from experiments.analysis.frontier_model import (
    FRONTIER,
    POINTS,
    FrontierSummary,
    write_frontier,
)
from experiments.analysis.model_files import writing
from experiments.analysis.summary_model import SeedFigures
from experiments.campaign.directories import directory_of, holds
from experiments.campaign.expected_time import ExpectedTimes, check_length
from experiments.campaign.loop import check_address, pool_at, run_tasks
from experiments.campaign.points import Outlook, Point, store_in
from experiments.campaign.preconditions import (
    CONFIG_FILE,
    check_arms,
    check_memory,
    naming_file,
)
from experiments.campaign.progress import Progress, ProgressReport, time_text
from experiments.campaign.running import make_workload
from experiments.campaign.task import Store
from experiments.command_line import error_console, output_console
from experiments.config.flags import numbers_of
from experiments.config.frontier_config import (
    setting_text,
)
from experiments.config.presets import default_config
from experiments.config.run_config import RunConfig, load_config
from experiments.files import whole_file
from experiments.interruption import Interruption, stop_signals_noted
from experiments.studies.frontiers.build import build_frontier, elsewhere_cost
from experiments.studies.frontiers.grid import Grid, Spot, make_grid, with_options
from experiments.studies.frontiers.page import write_frontier_page
from experiments.studies.frontiers.wording import frontier_table
from experiments.toml_text import toml_text
from parsync.metrics.quantity import counted, quantities_of
from parsync.metrics.summary import ScopeFigures
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError
from shared_state.tasks import NO_PREFERENCE

POINTS_OF_RUN = "frontier_points.parquet"  # in a run's directory

# What a row says besides the figures: (name, type, meaning).
_COLUMNS: tuple[tuple[str, Any, str], ...] = (
    ("architecture", pa.string(), "its name"),
    ("arm", pa.string(), "the arm of the configuration whose knob it turns"),
    ("knob", pa.string(), "the path of the setting within the arm's groups; null: it has none"),
    ("value", pa.float64(), "of the knob, if it is a number"),
    ("value_text", pa.string(), "of the knob, for people"),
    (
        "clock_class",
        pa.string(),
        "equal_capacity, own_speed, mixed or unmodelled; only equal ones of the first two are "
        "ranked",
    ),
    ("load_percent", pa.int64(), "the constant load; null: the workload as it is"),
    ("gap_s", pa.float64(), "the synchronisation gap G in seconds; null: the arm's own"),
    ("seed", pa.int64(), "of the workload and of all random draws"),
    ("digest", pa.string(), "of the event log of the run"),
    ("workload_digest", pa.string(), "of the workload of the seed"),
    ("transient", pa.bool_(), "whether backlog or utilisation of some load phase drifted"),
    ("bounds", pa.list_(pa.string()), "the figures of this row that are lower bounds"),
)

# What may change when a frontier goes on: its runs stay what they are.
_MAY_CHANGE = {"frontier.seeds"}

Results = dict[tuple[int, int], SeedFigures]  # by the spot's place in the grid and the seed


@dataclass(frozen=True, slots=True)
class FrontierOptions:
    """The options that were given; None or False for those that were not.

    `agora frontier --help` says what each one means.
    """

    file: Path | None = None
    seeds: int | None = None
    load: str | None = None
    gap: str | None = None
    quick: bool = False
    address: str | None = None
    out: Path | None = None
    long: bool = False


def start(options: FrontierOptions) -> int:
    """Run the frontier that the options of `agora frontier` describe. Return the exit status.

    Raises:
        AgoraError: An option, the configuration or the workload is wrong, or a run failed.
    """
    with ProgressReport(error_console()) as report:
        return _start(options, report)


def _start(options: FrontierOptions, report: ProgressReport) -> int:
    """As start. report: receives the progress."""
    config = _resolve(options)
    with naming_file(options.file), report.stage("making the workloads"):
        grid = make_grid(config)
        first = grid.conditions[0].config
        check_memory(first, None)
        workload = make_workload(first, config.seed)
        check_memory(first, workload)
        config = config.for_workload(workload)
        grid = make_grid(config)
        check_arms(grid.conditions[0].config, workload)
        check_grid(grid, workload)
    text, out = toml_text(config.model_dump(mode="json")), options.out
    if out is not None and out.exists() and not (out / CONFIG_FILE).is_file():
        raise AgoraError(f"--out {out}: already exists and is not the directory of a frontier")
    continues = holds(out, CONFIG_FILE, text, "configuration", _MAY_CHANGE)
    check_address(options.address)
    store = store_in(out) if continues and out is not None else None
    outlook = _outlook(grid, workload, store)
    if options.address is None:
        check_length(outlook.here_s, options.long)
    with stop_signals_noted() as interruption:
        try:
            with directory_of(out, continues, CONFIG_FILE, text, "frontier") as directory:
                status = _run(
                    grid, workload, outlook, directory, options.address, report, interruption
                )
        except KeyboardInterrupt:
            status = interruption.exit_status
        return interruption.exit_status if interruption.received else status


def _resolve(options: FrontierOptions) -> RunConfig:
    if options.file is None:
        config = default_config(options.quick)
    else:
        if options.quick:
            raise AgoraError("--quick: has no effect with a file, which sets everything")
        config = load_config(options.file)
        if not config.frontier.architectures:
            raise AgoraError(
                f"{options.file}: frontier.architectures: missing; expected [[frontier."
                'architectures]] with arm = "...", knob = "options.patience_s" and values = [...]'
            )
    load = None if options.load is None else numbers_of("--load", options.load, int)
    gap = None if options.gap is None else numbers_of("--gap", options.gap, float)
    config = with_options(config, options.seeds, load, gap)
    used = {one.arm for one in config.frontier.architectures}
    return config.model_copy(update={"arms": tuple(arm for arm in config.arms if arm.name in used)})


def check_grid(grid: Grid, workload: Workload) -> None:
    """Make the workload of each load once, and try every arm with it.

    Args:
        grid: What is to run.
        workload: Of the first seed, under the first condition.

    Raises:
        AgoraError: All placements on a workload are equally good; or a workload cannot be made,
            or an arm with some value of its knob cannot run on it.
    """
    for config, spots in _by_load(grid):
        is_first = config is grid.conditions[0].config
        its = workload if is_first else make_workload(config, grid.seeds[0])
        check_memory(config, its)
        if not has_quality(config, its):
            raise AgoraError(
                "frontier: no task of this workload prefers any machine, so placements have no "
                "quality to show beside the delay; remove [frontier], and compare settings with "
                "`agora sweep`"
            )
        for spot in spots:
            try:
                check_arms(config.model_copy(update={"arms": (spot.arm,)}), its)
            except AgoraError as error:
                knob = grid.architectures[spot.architecture].knob
                value = "" if knob is None else f"{knob} = {setting_text(knob, spot.value)}: "
                raise AgoraError(f"frontier: {value}{error}") from error


def _by_load(grid: Grid) -> Iterator[tuple[RunConfig, list[Spot]]]:
    """The configuration of each load, and the different arms that run under it."""
    for load_percent in dict.fromkeys(one.load_percent for one in grid.conditions):
        places = [n for n, one in enumerate(grid.conditions) if one.load_percent == load_percent]
        its = [spot for spot in grid.spots if spot.condition in places]
        distinct = {spot.arm.model_dump_json(): spot for spot in reversed(its)}
        yield grid.conditions[places[0]].config, list(distinct.values())[::-1]


def has_quality(config: RunConfig, workload: Workload) -> bool:
    """Whether placements of the counted tasks differ in quality: tasks prefer machines, or their
    cost elsewhere is known."""
    if config.frontier.dearest_cost or elsewhere_cost(workload):
        return True
    start_us = [phase.start_us + settle_us(config) for phase in workload.phases]
    end_us = [phase.end_us for phase in workload.phases]
    at_us = workload.tasks.submit_us[workload.arrival_rows]
    phase = np.searchsorted(start_us, at_us, side="right") - 1
    counts = (phase >= 0) & (at_us < np.array(end_us)[phase])
    prefers = workload.tasks.preference[workload.arrival_rows] != NO_PREFERENCE
    return bool((counts & prefers).any())


def _run(
    grid: Grid,
    workload: Workload,
    outlook: Outlook,
    directory: Path,
    address: str | None,
    report: ProgressReport,
    interruption: Interruption,
) -> int:
    console = report.console
    again = f"the same options with --out {quote(str(directory))} continue"
    interruption.note = f"the runs that are done are kept; {again}"
    architectures = counted(len(grid.architectures), "architecture")
    text = (
        f"{architectures}, {counted(len(grid.spots), 'point')}, "
        f"{counted(len(grid.seeds), 'seed')}: {counted(grid.runs, 'run')} in virtual time"
    )
    store, left = store_in(directory), len(outlook.left)
    done = sum(key not in outlook.left for key in outlook.keys)
    if done:
        text += f"; {counted(left, 'run')} left"
    if left:
        text += ", about " + (
            f"{time_text(outlook.processor_s)} of processor time"
            if address is not None
            else time_text(outlook.here_s)
        )
    console.print(Text(f"{text}."), soft_wrap=True)
    keys = outlook.keys
    if unusable := store.unusable(dict.fromkeys(keys, ())) or store.unknown(keys):
        console.print(Text(unusable), soft_wrap=True)
    progress = Progress(grid.runs, done)
    with report.stage("frontier") as show:
        results, partial = run_grid(
            grid,
            interruption,
            lambda _: show(f"frontier: {progress.step()}"),
            store=store,
            address=address,
        )
    if partial:
        console.print(Text(f"{partial[0].upper()}{partial[1:]}; {again}."), soft_wrap=True)
    try:
        with report.stage("frontier: bounds"):
            summary = build_frontier(grid, results, workload, partial)
    except AgoraError as error:
        if not partial:
            raise
        console.print(Text(f"No page yet: {error}."), soft_wrap=True)
        return interruption.exit_status
    write_points(directory / POINTS, grid, results)
    write_frontier(directory / FRONTIER, summary)
    # A stop signal that came before is why it is partial: the page is still written.
    check = (lambda: None) if partial else interruption.check
    with report.stage("page"):
        page = write_frontier_page(directory, summary, grid.config.model_dump(mode="json"), check)
    output_console().print(frontier_table(summary))
    console.print(Text(f"page: {page}"), soft_wrap=True)
    return 0


def _outlook(grid: Grid, workload: Workload, store: Store[SeedFigures] | None) -> Outlook:
    """The outlook on the runs of a grid.

    Args:
        workload: Of its first condition. Those of other loads have tasks in proportion.
    """
    first = grid.conditions[0].config
    times = ExpectedTimes(workload, first.workload.make_warm_up(first.seed))
    points = [point for _, point in grid.points()]
    expected_s = [times.run_s(point.arm) * _tasks(point.config) / _tasks(first) for point in points]
    return Outlook.of(points, expected_s, store)


def _tasks(config: RunConfig) -> int:
    """About how many tasks arrive; 1 where only reading the workload tells."""
    outline = config.workload.outline()
    return 1 if outline is None else max(1, outline.tasks)


def run_grid(
    grid: Grid,
    interruption: Interruption,
    on_done: Callable[[int], None],
    *,
    store: Store[SeedFigures] | None = None,
    address: str | None = None,
) -> tuple[Results, str]:
    """Run every point of a grid.

    Args:
        grid: What to run.
        interruption: Of the command.
        on_done: Called with the number of runs that are done, whenever there is one more.
        store: Where the figures of each run are kept, and taken from the next time.
        address: Of a Ray cluster; None: this machine.

    Returns:
        The figures, and why not all are there: "" if they are.

    Raises:
        AgoraError: A point does not get to its end.
    """
    results: Results = {}
    points = grid.points()
    runs = run_tasks(
        [point for _, point in points], interruption, store=store, pool=pool_at(address)
    )
    try:
        with contextlib.closing(runs):
            for index, measured in runs:
                place, point = points[index]
                results[place, point.seed] = measured.figures
                on_done(len(results))
    except KeyboardInterrupt:
        return results, f"interrupted after {len(results)} of {grid.runs} runs"
    return results, ""


class FrontierOfRun:
    """The small frontier of a run, on its workload as it is. It has at most as many seeds as the
    run's arms.

    Args:
        config: The run's; its frontier has architectures.
        known: The figures of arms that have run, by seed and name: they are not run again.
    """

    def __init__(self, config: RunConfig, known: Mapping[int, Mapping[str, SeedFigures]]) -> None:
        self._grid = make_grid(as_it_is(config))
        self._results: Results = {}
        of_key = {
            Point(config, arm, seed).key(): figures[arm.name]
            for seed, figures in known.items()
            for arm in config.arms
            if arm.name in figures
        }
        self._left: list[tuple[int, Point]] = []
        for place, point in self._grid.points():
            if (figures := of_key.get(point.key())) is not None:
                self._results[place, point.seed] = figures
            else:
                self._left.append((place, point))

    @property
    def points(self) -> list[Point]:
        """What has to run. Some are arms under their paired seeds, with the same keys."""
        return [point for _, point in self._left]

    @property
    def is_whole(self) -> bool:
        """Whether every point has its figures."""
        return len(self._results) == self._grid.runs

    def take(self, index: int, figures: SeedFigures) -> None:
        """Take the figures of one of the points."""
        place, point = self._left[index]
        self._results[place, point.seed] = figures

    def write(self, workload: Workload, directory: Path) -> FrontierSummary:
        """Write the frontier, or the seeds of it that are whole, into the directory of the run.

        Args:
            workload: Of the run's seed.
            directory: Of the run.

        Raises:
            AgoraError: No seed is whole, or nothing can be written.
        """
        grid, done = self._grid, len(self._results)
        partial = "" if self.is_whole else f"interrupted after {done} of {grid.runs} runs"
        summary = build_frontier(grid, self._results, workload, partial)
        write_points(directory / POINTS_OF_RUN, grid, self._results)
        write_frontier(directory / FRONTIER, summary)
        return summary


def as_it_is(config: RunConfig) -> RunConfig:
    """The configuration with a frontier on the workload as it is, at the arms' own gaps, with at
    most as many seeds as its arms have."""
    seeds = min(config.frontier.seeds, config.seeds)
    small = config.frontier.model_copy(update={"load_percent": (), "gap_s": (), "seeds": seeds})
    return config.model_copy(update={"frontier": small})


def write_points(path: Path, grid: Grid, results: Mapping[tuple[int, int], SeedFigures]) -> None:
    """Write a table with a row for each run: what was run, and every figure. Each column's metadata
    has its meaning and unit. Raises AgoraError if it cannot be written."""
    rows = [_row(grid, place, seed, results[place, seed]) for place, seed in sorted(results)]
    known = quantities_of(ScopeFigures)
    fields = [pa.field(name, kind, metadata={"description": text}) for name, kind, text in _COLUMNS]
    fields += [
        pa.field(
            one.key,
            pa.float64(),
            metadata={"description": one.description, "unit": one.unit.value, "label": one.label},
        )
        for one in known
    ]
    table = pa.Table.from_pylist(rows, schema=pa.schema(fields))
    with writing(path), whole_file(path) as unfinished:
        parquet.write_table(table, unfinished)


def _row(grid: Grid, place: int, seed: int, run: SeedFigures) -> dict[str, Any]:
    spot = grid.spots[place]
    architecture = grid.architectures[spot.architecture]
    condition = grid.conditions[spot.condition]
    value = spot.value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    figures = {
        one.key: run.overall.value(one.key)
        for one in quantities_of(ScopeFigures)
        if run.overall.value(one.key) is not None
    }
    return {
        "architecture": architecture.title,
        "arm": architecture.arm,
        "knob": architecture.knob,
        "value": float(value) if is_number and value is not None else None,
        "value_text": setting_text(architecture.knob, value),
        "clock_class": grid.bases[spot.architecture].kind.value,
        "load_percent": condition.load_percent,
        "gap_s": condition.gap_s,
        "seed": seed,
        "digest": run.digest,
        "workload_digest": run.workload,
        "transient": any(phase.transient for phase in run.phases),
        "bounds": sorted(run.overall.at_least),
        **figures,
    }
