"""The execution of `agora run`: checks, then the stages of the run, then the report."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from shlex import quote

from rich.console import Console
from rich.text import Text

from experiments.analysis.run_directory import SUMMARY, write_manifest
from experiments.campaign.arm_runners import LiveRunner, arm_runner
from experiments.campaign.expected_time import check_length
from experiments.campaign.live_size import fitted
from experiments.campaign.preconditions import (
    check_arms,
    check_memory,
    check_new,
    make_run_directory,
    naming_file,
)
from experiments.campaign.progress import ProgressReport
from experiments.campaign.running import ArmRunner, make_workload
from experiments.command_line import BAD_INPUT
from experiments.config.run_config import RunConfig
from experiments.consoles import error_console
from experiments.interruption import Interruption, stop_signals_noted
from experiments.report.gangs import gangs_announced
from experiments.studies.frontiers.execution import as_it_is, check_grid
from experiments.studies.frontiers.grid import make_grid
from experiments.studies.run.announcement import run_announcement, unplaceable_notes
from experiments.studies.run.fluid_bound import expected_rates
from experiments.studies.run.killed_runs import run_in_progress
from experiments.studies.run.resolve import resolve
from experiments.studies.run.run_options import RunOptions
from experiments.studies.run.sensitivity import changed_points
from experiments.studies.run.stages import Stages
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError


def start(options: RunOptions) -> int:
    """Run what the options of `agora run` describe. Return the exit status.

    Everything that can be refused is tried before the run directory is made.

    Raises:
        AgoraError: An option, the configuration or the workload is wrong, or the run failed.
    """
    with ProgressReport(error_console()) as report:
        return _start(options, report)


def _start(options: RunOptions, report: ProgressReport) -> int:
    """As start. report: receives the progress."""
    console = report.console
    config = resolve(options)
    if options.out is not None:
        check_new(options.out)
    with naming_file(options.config), report.stage("making the workload"):
        check_memory(config, None)
        workload = make_workload(config, config.seed)
        check_memory(config, workload)
        config = config.for_workload(workload)
        check_arms(config, workload)
        _check_stages(config, workload)
    if config.live.fit and config.runtime == "ray":
        with report.stage("measuring how large a live run this computer can serve"):
            config = fitted(config)
    with naming_file(options.config):
        _check_live_runs(config)
    said, expected_s = run_announcement(config, workload)
    check_length(expected_s, options.long)
    for note in unplaceable_notes(config, workload):
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    # Nothing is lost up to here: a stop signal ends the command at once.
    with stop_signals_noted() as interruption:
        try:
            # An embedded Ray takes seconds to start, and processors from the arms in virtual time.
            waits = config.compared_runtime == "virtual" and config.live.address is None
            late = waits and not options.hold
            with arm_runner(config, options.hold, report, late=late) as runner:
                interruption.check()
                with report.stage("writing the workload"):
                    directory = make_run_directory(options.out, config, workload)
                with run_in_progress(directory):
                    with report.stage("asking the nodes of the cluster"):
                        _check_nodes(config, directory)
                    if options.hold or (config.runtime == "ray" and config.live.address):
                        _print_dashboard(console)
                    console.print(said, highlight=False, soft_wrap=True)
                    if gangs := gangs_announced(config, workload):
                        console.print(Text(gangs), soft_wrap=True)
                    status = run(config, workload, directory, report, runner, interruption)
                if options.hold and not interruption.received:
                    _hold(console, interruption)
        except KeyboardInterrupt:
            status = interruption.exit_status
        return interruption.exit_status if interruption.received else status


def _check_stages(config: RunConfig, workload: Workload) -> None:
    """Raise AgoraError for what the stages behind the arms could not run: the bound, the frontier,
    or the arms with other decision times."""
    expected_rates(config.workload, workload)
    if config.seeds == 1:
        return
    if config.frontier.architectures:
        check_grid(make_grid(as_it_is(config)), workload)
    changed = {point.arm.model_dump_json(): point.arm for _, point in changed_points(config)}
    check_arms(config.model_copy(update={"arms": tuple(changed.values())}), workload)


def _check_live_runs(config: RunConfig) -> None:
    """Raise AgoraError if live runs with a cell of their own could not run."""
    if config.live_cell is None:
        return
    live = config.of_live_runs()
    chosen = tuple(arm for arm in live.arms if config.has_separate_live_run(arm))
    check_arms(live.model_copy(update={"arms": chosen}), make_workload(live, config.seed))


def _check_nodes(config: RunConfig, directory: Path) -> None:
    """Raise AgoraError, with the run directory removed, if a node of the cluster cannot take part:
    otherwise the arms in virtual time would run before the first live arm finds out."""
    if config.runtime == "virtual" or config.live.address is None:
        return
    from parsync.runtime.live.ray_glue.nodes import check_nodes

    try:
        check_nodes(directory.absolute())
    except BaseException:  # Ctrl-C, too
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _print_dashboard(console: Console) -> None:
    from parsync.runtime.live.ray_glue.cluster import dashboard_note

    console.print(dashboard_note(), highlight=False, markup=False, soft_wrap=True)


def _hold(console: Console, interruption: Interruption) -> None:
    try:
        with interruption.raised_at_once():
            try:
                console.input(
                    "Ray and the actors of the last arm are still running. Press Enter to end "
                    "them. "
                )
            except EOFError:  # there is no standard input
                console.print("Press Ctrl-C to end them.")
                while True:
                    time.sleep(3600)
    except KeyboardInterrupt:
        interruption.forget_ctrl_c()  # the user was asked for it


def run(
    config: RunConfig,
    workload: Workload,
    directory: Path,
    report: ProgressReport,
    run_arm: ArmRunner,
    interruption: Interruption,
) -> int:
    """Run every arm, then all of them over the paired seeds, then the frontier and the report.

    Where some arms run on Ray, and not all or with paired seeds, all run in virtual time first, and
    their table is shown.

    A run that ends early writes what it has, marked partial. If it has nothing, its directory is
    removed. If a scheduler breaks its contract, its arm ends; the other arms still run, the paired
    seeds do not.

    Returns:
        The exit status: 0, or that of the stop signal.

    Raises:
        AgoraError: Anything but a signal ended the run, or the results cannot be written.
    """
    console = report.console
    interruption.note = _report_later(directory)
    try:
        stages = Stages(config, workload, directory, report, run_arm, interruption)
        if isinstance(run_arm, LiveRunner):
            stages.before_live = run_arm.start
    except BaseException:  # before the first arm: there is nothing to keep
        shutil.rmtree(directory, ignore_errors=True)
        raise
    reason, status = "", 0
    try:
        stages.arms()
        if stages.broken:
            reason, status = "the paired seeds did not run" if config.seeds > 1 else "", BAD_INPUT
        else:
            if config.seeds > 1 or config.live_cell is not None:
                stages.predictions()
        if config.seeds > 1 and not stages.broken:
            stages.paired_seeds()
            stages.frontier()
            stages.other_choices()
    except KeyboardInterrupt:
        reason, status = stages.doing, interruption.exit_status
    except (AgoraError, MemoryError) as error:
        reason, status = str(error) or "not enough memory", BAD_INPUT
    if not stages.runs:
        shutil.rmtree(directory, ignore_errors=True)
        if status == BAD_INPUT:
            raise AgoraError(reason)
        console.print("Stopped before the first arm ended; nothing was written.")
        return status
    missing = stages.missing if reason else ""
    reason = "; ".join(part for part in [*stages.broken, reason, missing] if part)
    try:
        _finish(stages, directory, reason, console, interruption)
    except AgoraError as error:
        if not (directory / SUMMARY).exists() and all(run.stopped for run in stages.in_order()):
            shutil.rmtree(directory, ignore_errors=True)  # nothing in it can be used
        raise AgoraError(reason or str(error)) from error
    if status == BAD_INPUT:
        raise AgoraError(reason)
    return status


def _finish(
    stages: Stages, directory: Path, reason: str, console: Console, interruption: Interruption
) -> None:
    if reason:
        console.print("Writing partial results (press Ctrl-C again to quit without the report).")
    try:
        failed = stages.finish(reason)
        write_manifest(directory)
    except KeyboardInterrupt:
        if (directory / SUMMARY).exists():
            write_manifest(directory)
            console.print(Text(f"The results are written; {interruption.note}."), soft_wrap=True)
        raise
    if failed is not None:
        raise failed


def _report_later(directory: Path) -> str:
    return f"`agora report {quote(str(directory))}` makes the report"
