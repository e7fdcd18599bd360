"""The execution of `agora frontier`; `python -m experiments.frontier` is the command."""

from __future__ import annotations

if __name__ == "__main__":  # before the imports, which take a while
    from parsync.runtime.stop_signals import exit_on_stop_signals

    exit_on_stop_signals()

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from rich.text import Text

from experiments.campaign.directories import directory_of, holds
from experiments.campaign.expected_time import ExpectedTimes, check_length, on_this_machine_s
from experiments.campaign.loop import missing
from experiments.campaign.points import KEPT, Point
from experiments.campaign.pool import check_address
from experiments.campaign.progress import Progress, ProgressReport, time_text
from experiments.campaign.store import Store
from experiments.config import RunConfig, load_config
from experiments.consoles import error_console, output_console
from experiments.frontier_presets import default_config
from experiments.frontiers.build import build_frontier
from experiments.frontiers.checks import check_grid
from experiments.frontiers.files import FRONTIER, POINTS, write_frontier, write_points
from experiments.frontiers.grid import Grid, make_grid, with_options
from experiments.frontiers.running import run_grid
from experiments.interruption import Interruption, stop_signals_noted
from experiments.option_values import numbers_of
from experiments.preconditions import (
    CONFIG_FILE,
    check_arms,
    check_memory,
    naming_file,
)
from experiments.report.frontier_page import write_frontier_page
from experiments.report.frontier_terminal import frontier_table
from experiments.running import make_workload
from experiments.summary_model import SeedFigures
from experiments.toml_text import toml_text
from parsync.metrics.quantity import counted
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

# What may change when a frontier goes on: its runs stay what they are.
_MAY_CHANGE = {"frontier.seeds"}


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
    if options.address is None:
        left = missing(_points(grid), _store(out) if continues and out is not None else None)
        expected_s = on_this_machine_s(_processor_s(left, grid, workload), len(left))
        check_length(expected_s, options.long)
    with stop_signals_noted() as interruption:
        try:
            with directory_of(out, continues, CONFIG_FILE, text, "frontier") as directory:
                status = _run(grid, workload, directory, options.address, report, interruption)
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


def _run(
    grid: Grid,
    workload: Workload,
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
    store = _store(directory)
    keys = [point.key() for point in _points(grid)]
    left = missing(_points(grid), store)
    done = set(keys) - {point.key() for point in left}
    if done:
        text += f"; {counted(len(left), 'run')} left"
    if left:
        text += f", about {_expected(left, grid, workload, address)}"
    console.print(Text(f"{text}."), soft_wrap=True)
    if unusable := store.unusable(keys):
        console.print(Text(unusable), soft_wrap=True)
    progress = Progress(grid.runs, sum(key in done for key in keys))
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


def _store(directory: Path) -> Store[SeedFigures]:
    return Store(directory / KEPT, SeedFigures)


def _points(grid: Grid) -> list[Point]:
    return [point for _, point in grid.points()]


def _processor_s(points: Sequence[Point], grid: Grid, workload: Workload) -> float:
    """About how many seconds of a processor runs take; the arguments are those of _expected."""
    first = grid.conditions[0].config
    times = ExpectedTimes(workload, first.workload.make_warm_up(first.seed))
    return sum(times.run_s(point.arm) * _tasks(point.config) / _tasks(first) for point in points)


def _expected(points: Sequence[Point], grid: Grid, workload: Workload, address: str | None) -> str:
    """How long runs will take, as people say it.

    Args:
        points: Of different keys.
        grid: That they belong to.
        workload: Of its first condition. Those of other loads have tasks in proportion.
        address: Of a Ray cluster, whose processors are not known yet.
    """
    expected_s = _processor_s(points, grid, workload)
    if address is not None:
        return f"{time_text(expected_s)} of processor time"
    return time_text(on_this_machine_s(expected_s, len(points)))


def _tasks(config: RunConfig) -> int:
    """About how many tasks arrive; 1 where only reading the workload tells."""
    outline = config.workload.outline()
    return 1 if outline is None else max(1, outline.tasks)


if __name__ == "__main__":
    from experiments.command_line import run_command
    from experiments.commands.frontier import app

    run_command(app)
