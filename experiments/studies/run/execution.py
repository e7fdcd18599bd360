"""The execution of `agora run`: checks, what it will do and about how long that takes, then the
stages of the run, then the report.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

import numpy as np
from rich.console import Console
from rich.text import Text

from experiments.analysis.run_directory import SUMMARY, write_manifest
from experiments.campaign.arm_runners import LiveRunner, arm_runner
from experiments.campaign.expected_time import BUSY, START_S, ExpectedTimes, check_length
from experiments.campaign.live_size import fitted
from experiments.campaign.points import Point, paired_points
from experiments.campaign.preconditions import (
    check_arms,
    check_memory,
    check_new,
    make_run_directory,
    naming_file,
)
from experiments.campaign.progress import ProgressReport, processors, time_text
from experiments.campaign.running import ArmRunner, make_workload
from experiments.command_line import error_console
from experiments.config.run_config import RunConfig
from experiments.interruption import Interruption, stop_signals_noted
from experiments.report.gangs import gangs_announced
from experiments.studies.frontiers.execution import as_it_is, check_grid
from experiments.studies.frontiers.grid import make_grid
from experiments.studies.run.fluid_bound import expected_rates
from experiments.studies.run.killed_runs import run_in_progress
from experiments.studies.run.resolve import resolve
from experiments.studies.run.run_options import RunOptions
from experiments.studies.run.sensitivity import changed_points
from experiments.studies.run.stages import Stages
from parsync.metrics.quantity import counted
from parsync.runtime.assembly import Assembly
from parsync.runtime.command_line import BAD_INPUT
from parsync.workload.workload import Workload
from schedulers.unplaceable import REASONS, Unplaceable
from shared_state.errors import AgoraError
from shared_state.tasks import NO_GANG


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
            stages.later_runs()
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


ACTORS_S = 5.0  # before and after a live arm
REPORT_S = 10.0


def run_announcement(config: RunConfig, workload: Workload) -> tuple[str, float]:
    """The parts of a run in words with the time that they take together on this machine, and that
    time in seconds."""
    arms, live = len(config.arms), sum(config.is_live(arm) for arm in config.arms)
    parts: list[str] = []
    first, later = announced_runs(config)
    if first:
        parts.append(f"{counted(arms, 'arm')} in virtual time")
    if live:
        apart = f"{live} live{_live_cell(config, workload)}"
        parts.append(apart if first else f"{counted(live, 'arm')} live")
    if config.seeds > 1:
        parts.append(f"{config.seeds} paired seeds")
        if config.frontier.architectures:
            parts.append("frontiers")
        if changed_points(config):
            parts.append("other decision times")

    times = ExpectedTimes(workload, config.workload.make_warm_up(config.seed))

    def processor_s(points: Sequence[Point]) -> float:
        return sum(times.run_s(point.arm) for point in points)

    side_by_side = processors() / BUSY if processors() > 1 else 1.0
    beside = side_by_side if live else 1  # without live arms, arms run one after the other
    expected_s = processor_s(first) / beside + processor_s(later) / side_by_side
    expected_s += live * (workload.end_us / 1e6 + ACTORS_S) + REPORT_S
    if later:
        expected_s += START_S
    return f"{', '.join(parts)}: about {time_text(expected_s)}.", expected_s


def _live_cell(config: RunConfig, workload: Workload) -> str:
    """The cell of the separate live runs, if it is not that of the others."""
    machines = config.live_cell
    return "" if machines is None else f" on {machines:,} of {workload.cell.machines:,} machines"


def unplaceable_notes(config: RunConfig, workload: Workload) -> list[str]:
    """The units of the workload that can never be placed: one line for each reason, with the arms
    that it concerns if not all."""
    arms_of: dict[str, list[str]] = {}
    for arm in config.arms:
        assembly = Assembly.of(
            arm.seeded(config.seed, config.heartbeat_us, 1, live=False), workload
        )
        for said in _unplaceable(assembly):
            arms_of.setdefault(said, []).append(f"'{arm.name}'")
    return [
        f"{said}." if len(arms) == len(config.arms) else f"{said} (in arm {', '.join(arms)})."
        for said, arms in arms_of.items()
    ]


def _unplaceable(assembly: Assembly) -> list[str]:
    """The units that the agents of an arm can never place: one line for each reason."""
    units = {agent: assembly.unplaceable(agent) for agent in range(assembly.arm.agents)}
    if not any(found is not None for found in units.values()):
        return []
    workload = assembly.workload
    agent_of_batch, _ = assembly.owners()
    agent = np.full(len(workload.tasks), -1, np.int32)
    agent[workload.arrival_rows] = np.repeat(agent_of_batch, np.diff(workload.arrival_offsets))
    reason = np.full(len(agent), -1, np.int8)
    for number, found in units.items():
        if found is None:
            continue
        first_us = np.minimum(found.task_us, found.gang_us)
        never = (agent == number) & (first_us <= workload.tasks.submit_us)
        reason[never] = found.reason[never]
    lines = []
    for present in np.unique(reason[reason >= 0]).tolist():
        gang = workload.tasks.gang[reason == present]
        gangs, tasks = len(np.unique(gang[gang != NO_GANG])), len(gang)
        what = counted(tasks, "task")
        if (gang != NO_GANG).all():
            what += f" of {counted(gangs, 'gang')}"
        if present == Unplaceable.LARGER_THAN_EVERY_MACHINE:
            is_larger = f"{'is' if tasks == 1 else 'are'} {REASONS[present]}"
            lines.append(f"{what} {is_larger} and will not be placed")
        else:
            lines.append(f"{what} can never be placed: {REASONS[present]}")
    return lines


def announced_runs(config: RunConfig) -> tuple[Sequence[Point], Sequence[Point]]:
    """What a run does in virtual time, before its live arms and after them.

    Each point runs once: the paired seeds begin with what ran first, and the frontiers have points
    of the paired seeds. The predictions of the live arms stand there as these arms; what they are
    calibrated on is not known yet.
    """
    live = [arm for arm in config.arms if config.is_live(arm)]
    first = [Point(config, arm, config.seed) for arm in config.arms]
    if config.compared_runtime == "ray":
        first = []
    later: list[Point] = []
    if config.seeds > 1:
        later += paired_points(config)
        if config.frontier.architectures:
            later += [point for _, point in make_grid(as_it_is(config)).points()]
        later += [point for _, point in changed_points(config)]
    done = {point.key() for point in first}
    distinct = {point.key(): point for point in later if point.key() not in done}
    predicted = live if config.virtual.calibration is None else []
    return first, [*distinct.values(), *(Point(config, arm, config.seed) for arm in predicted)]
