"""The execution of `agora run`: checks, then every arm, then the paired seeds, then the report."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote

from rich.console import Console
from rich.live import Live
from rich.text import Text

from experiments import restarts
from experiments.arm_config import ArmConfig
from experiments.command_line import BAD_INPUT
from experiments.config import RunConfig
from experiments.finishing import arm_result, finish_run, preview
from experiments.interruption import Interruption, stop_signals_noted
from experiments.kept_arms import keep_arm
from experiments.killed_runs import run_in_progress
from experiments.live_table import live_table
from experiments.preconditions import check_arms, check_memory, check_new, make_run_directory
from experiments.resolve import resolve
from experiments.run_options import RunOptions
from experiments.running import ArmRun, ArmRunner, make_workload, run_arm_virtual
from experiments.summary import SUMMARY, slugs, workload_facts, write_seed
from experiments.summary_model import SeedFigures
from experiments.sweeps.engine import run_points
from experiments.sweeps.points import paired_points
from experiments.sweeps.progress import Progress
from experiments.version import version_text
from parsync.metrics.live import Snapshot
from parsync.metrics.quantity import counted
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError


def start(options: RunOptions) -> int:
    """Run what the options of `agora run` describe. Return the exit status.

    Everything that can be refused is tried before the run directory is made.

    Raises:
        AgoraError: An option, the configuration or the workload is wrong, or the run failed.
    """
    console = Console(stderr=True)
    config = resolve(options)
    if options.out is not None:
        check_new(options.out)
    with _named(options.config):
        check_memory(config, None)
        workload = make_workload(config, config.seed)
        check_memory(config, workload)
        check_arms(config, workload)
    too_large = int(workload.facts["tasks_larger_than_every_machine"])
    if too_large:
        is_larger = f"{counted(too_large, 'task')} {'is' if too_large == 1 else 'are'} larger"
        console.print(f"{is_larger} than every machine and will not be placed.")
    # Nothing is lost up to here: a stop signal ends the command at once.
    with stop_signals_noted() as interruption:
        try:
            with _runner(config, options.hold) as runner:
                interruption.check()
                directory = make_run_directory(options.out, config, workload)
                with run_in_progress(directory):
                    status = run(config, workload, directory, console, runner, interruption)
                if options.hold and not interruption.received:
                    _hold(console, interruption)
        except KeyboardInterrupt:
            status = interruption.exit_status
        return interruption.exit_status if interruption.received else status


@contextlib.contextmanager
def _named(config: Path | None) -> Iterator[None]:
    """Prefix errors with the configuration's file, if there is one."""
    try:
        yield
    except AgoraError as error:
        raise error if config is None else AgoraError(f"{config}: {error}") from error


@contextlib.contextmanager
def _runner(config: RunConfig, hold: bool) -> Iterator[ArmRunner]:
    """Return the runner of the configured runtime. Ray is imported only if it is used."""
    if config.runtime == "virtual":
        yield run_arm_virtual
        return
    from experiments.running_live import leave, prepare, run_arm_live

    prepare(config, hold)
    try:
        yield partial(run_arm_live, held=[] if hold else None)
    finally:
        leave()


def _hold(console: Console, interruption: Interruption) -> None:
    from parsync.runtime.live.dashboard import dashboard_note

    console.print(dashboard_note(), highlight=False, markup=False, soft_wrap=True)
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
    console: Console,
    run_arm: ArmRunner,
    interruption: Interruption,
) -> int:
    """Run every arm, then all of them over the paired seeds, then write the report.

    Where only some arms run on Ray, all run in virtual time first, and their table is shown.

    A run that ends early writes what it has, marked partial. If it has nothing, its directory is
    removed. If a scheduler breaks its contract, its arm ends; the other arms still run, the paired
    seeds do not.

    Returns:
        The exit status: 0, or that of the stop signal.

    Raises:
        AgoraError: Anything but a signal ended the run, or the results cannot be written.
    """
    interruption.note = _report_later(directory)
    facts, version = workload_facts(workload), version_text()
    results: list[ArmRun] = []
    in_virtual_time: list[ArmRun] = []
    seeds: dict[int, dict[str, SeedFigures]] = {}
    broken: list[str] = []  # arms that one of their schedulers ended
    reason, status = "", 0
    jobs = _jobs(config, directory, run_arm)
    shown = sum(job.runner is run_arm_virtual for job in jobs) if config.runtime == "ray" else 0
    try:
        for number, job in enumerate(jobs, start=1):
            arm = job.arm
            reason = f"'{arm.name}': interrupted"
            title = f"{number}/{len(jobs)} {arm.name}{job.where}"
            result = _run_arm(config, job, workload, title, console, interruption)
            if job.runner is run_arm_virtual and not result.stopped:
                in_virtual_time.append(result)
            if job.folder is not None:
                results.append(result)
            if result.broken and job.folder is not None:
                broken.append(f"'{arm.name}': {result.stopped}")
            elif result.stopped and not result.broken:
                reason = f"'{arm.name}': {result.stopped}"
                status = interruption.exit_status if result.interrupted else BAD_INPUT
                break
            if job.folder is not None:
                so_far = arm_result(config, result, {}, config.is_live(arm))
                keep_arm(directory, so_far, job.slug, facts, version, result.stopped)
            if number == shown and in_virtual_time:
                console.print(preview(config, workload, in_virtual_time))
            reason = "interrupted"
            if number < len(jobs) or config.seeds > 1:
                interruption.check()
            reason = ""
        if broken and not reason:
            reason, status = "the paired seeds did not run" if config.seeds > 1 else "", BAD_INPUT
        elif not reason and config.seeds > 1:
            reason = "interrupted during the paired seeds"
            _paired_seeds(config, directory, console, seeds, interruption)
            reason = ""
    except KeyboardInterrupt:
        status = interruption.exit_status
    except (AgoraError, MemoryError) as error:
        reason, status = str(error) or "not enough memory", BAD_INPUT
    if not results:
        shutil.rmtree(directory, ignore_errors=True)
        if status == BAD_INPUT:
            raise AgoraError(reason)
        console.print("Stopped before the first arm ended; nothing was written.")
        return status
    place = {arm.name: number for number, arm in enumerate(config.arms)}
    results.sort(key=lambda result: place[result.arm.name])
    reason = "; ".join([*broken, *([reason] if reason else [])])
    missing = len(config.arms) - len(results)
    if reason and missing:
        reason += f"; {missing} of {len(config.arms)} arms did not run"
    try:
        _finish(config, workload, results, seeds, directory, reason, console, interruption)
    except AgoraError as error:
        if not (directory / SUMMARY).exists() and all(result.stopped for result in results):
            shutil.rmtree(directory, ignore_errors=True)  # nothing in it can be used
        raise AgoraError(reason or str(error)) from error
    if status == BAD_INPUT:
        raise AgoraError(reason)
    return status


@dataclass(frozen=True, slots=True)
class _Job:
    """A run of an arm. folder: where it leaves its files; None: only its figures are shown."""

    arm: ArmConfig
    slug: str
    runner: ArmRunner
    folder: Path | None
    where: str


def _jobs(config: RunConfig, directory: Path, run_arm: ArmRunner) -> list[_Job]:
    """The runs of all arms. Where only some arms run on Ray, every arm runs in virtual time first:
    that takes seconds, and the live runs confirm or contradict it."""
    arms = list(zip(config.arms, slugs([arm.name for arm in config.arms]), strict=True))
    folder = directory / "arms"
    live = [arm for arm in config.arms if config.is_live(arm)]
    if len(live) in (0, len(arms)):
        return [_Job(arm, slug, run_arm, folder / slug, "") for arm, slug in arms]
    virtual = [
        _Job(arm, slug, run_arm_virtual, None if arm in live else folder / slug, ", virtual time")
        for arm, slug in arms
    ]
    return virtual + [
        _Job(arm, slug, run_arm, folder / slug, ", live") for arm, slug in arms if arm in live
    ]


def _run_arm(
    config: RunConfig,
    job: _Job,
    workload: Workload,
    title: str,
    console: Console,
    interruption: Interruption,
) -> ArmRun:
    """Run one arm and show its live table."""
    arm, folder = job.arm, job.folder
    try:
        if folder is not None:
            folder.mkdir()
    except OSError as error:
        raise AgoraError(f"{folder}: {error.strerror}") from error
    names = [f"{group.name}-{place}" for group in arm.groups for place in range(group.count)]
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        begun_s = time.monotonic()

        def show(snapshot: Snapshot) -> None:
            elapsed_s = time.monotonic() - begun_s
            left_s = elapsed_s * (workload.end_us - snapshot.at_us) / max(1, snapshot.at_us)
            live.update(live_table(title, names, snapshot, workload.end_us, left_s))

        result = job.runner(config, arm, workload, config.seed, folder, show, interruption)
    end = (
        "interrupted after"
        if result.interrupted
        else "stopped after"
        if result.stopped
        else "done in"
    )
    why = f": {result.stopped}" if result.broken else ""
    console.print(Text(f"{title}: {end} {result.wall_s:.1f} s{why}"), soft_wrap=True)
    for restart in result.restarts:
        console.print(Text(f"  {restarts.sentence(restart)}"), soft_wrap=True)
    return result


def _finish(
    config: RunConfig,
    workload: Workload,
    results: list[ArmRun],
    seeds: dict[int, dict[str, SeedFigures]],
    directory: Path,
    reason: str,
    console: Console,
    interruption: Interruption,
) -> None:
    if reason:
        console.print("Writing partial results (press Ctrl-C again to quit without the report).")
    try:
        finish_run(config, workload, results, seeds, directory, reason, console, interruption)
    except KeyboardInterrupt:
        if (directory / SUMMARY).exists():
            console.print(Text(f"The results are written; {interruption.note}."), soft_wrap=True)
        raise


def _report_later(directory: Path) -> str:
    return f"`agora report {quote(str(directory))}` makes the report"


def _paired_seeds(
    config: RunConfig,
    directory: Path,
    console: Console,
    figures: dict[int, dict[str, SeedFigures]],
    interruption: Interruption,
) -> None:
    """Run the paired seeds: add figures by seed and arm as they arrive, and write them."""
    slug_of = dict(zip((names := [arm.name for arm in config.arms]), slugs(names), strict=True))
    points = paired_points(config)
    progress = Progress(len(points))
    with (
        console.status("paired seeds") as status,
        contextlib.closing(run_points(points, interruption)) as runs,
    ):
        for point, result in runs:
            of_seed = figures.setdefault(point.seed, {})
            of_seed[point.arm.name] = result
            kept = {slug_of[arm]: its for arm, its in of_seed.items()}
            write_seed(directory, point.seed, kept)
            status.update(f"paired seeds in virtual time: {progress.step()}")
