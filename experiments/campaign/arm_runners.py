"""How the arms of a run are carried out: in virtual time side by side, and one after the other,
live or in virtual time, with a table of what every scheduler is doing."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.text import Text

from experiments.campaign.loop import Processes, run_tasks
from experiments.campaign.points import workload_cache
from experiments.campaign.progress import ProgressReport, time_text
from experiments.campaign.running import ArmRun, ArmRunner, run_arm_virtual
from experiments.campaign.task import Measured, Task
from experiments.config.run_config import RunConfig
from experiments.interruption import Interruption
from experiments.report.fitted_table import FittedTable
from parsync.metrics.kinds.validity import Validity, validity
from parsync.metrics.live_line import SchedulerLine, Snapshot
from parsync.runtime.live.plan import plan_hosts
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

_UNKNOWN = "-"


@dataclass(frozen=True)
class ArmTask(Task[ArmRun]):
    """An arm under the run's own seed, and the folder that receives its files. Its results are
    those files, so no store keeps them."""

    config: RunConfig
    arm: ArmConfig
    folder: Path

    def named(self) -> tuple[str, int]:
        return self.arm.name, self.config.seed

    def __str__(self) -> str:
        return f"'{self.arm.name}'"

    def key(self) -> str:
        return str(self.folder)

    def measure(self, before: Measured[ArmRun] | None) -> Measured[ArmRun]:
        config, seed = self.config, self.config.seed
        try:
            shutil.rmtree(self.folder, ignore_errors=True)  # of a process that was killed
            self.folder.mkdir()
            workload = workload_cache().make(config, seed)
            run = run_arm_virtual(
                config, self.arm, workload, seed, self.folder, lambda _: None, Interruption()
            )
        except OSError as error:
            raise AgoraError(f"{self.folder}: {error.strerror}") from error
        return Measured(run)


def run_arms_virtual(
    config: RunConfig,
    arms: Sequence[tuple[ArmConfig, Path]],
    interruption: Interruption,
    processes: int,
) -> Generator[ArmRun, None, None]:
    """Run arms under the run's own seed, and yield each as it is done.

    Folders of arms that did not get to their end are removed.

    Args:
        config: The run's.
        arms: Each with the folder to create for its files.
        interruption: Looked at several times a second.
        processes: How many run at a time.

    Raises:
        KeyboardInterrupt: A stop signal was received.
        AgoraError: The workload cannot be made, or a process is killed each time.
    """
    left = {arm.name: folder for arm, folder in arms}
    tasks = [ArmTask(config, arm, folder) for arm, folder in arms]
    try:
        runs = run_tasks(tasks, interruption, pool=Processes(processes))
        with contextlib.closing(runs):
            for _, measured in runs:
                del left[measured.figures.arm.name]
                yield measured.figures
    finally:
        for folder in left.values():
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def arm_runner(
    config: RunConfig, hold: bool, report: ProgressReport, *, late: bool = False
) -> Iterator[ArmRunner]:
    """Return the runner of the configured runtime, whose Ray lives as long as the block. Ray is
    imported only if it is used.

    Args:
        config: The run's.
        hold: Whether Ray is kept after the run.
        report: Shows that Ray starts.
        late: Ray starts with LiveRunner.start(), which whoever runs arms calls.

    Raises:
        AgoraError: Ray does not start, or its address does not answer.
    """
    if config.runtime == "virtual":
        yield run_arm_virtual
        return
    runner = LiveRunner(config, hold, report)
    try:
        if not late:
            runner.start()
        yield runner
    finally:
        runner.leave()


class LiveRunner:
    """Runs arms on one Ray: an ArmRunner.

    Args:
        config, hold, report: As for arm_runner.
    """

    def __init__(self, config: RunConfig, hold: bool, report: ProgressReport) -> None:
        self._config = config
        self._hold = hold
        self._report = report
        self._held: list[Any] | None = [] if hold else None
        self._started = False

    def start(self) -> None:
        """Start Ray, or connect to it, unless that was done. AgoraError if it does not start, or
        its address does not answer."""
        if self._started:
            return
        with self._report.stage("starting Ray"):
            from experiments.campaign.running_live import prepare

            prepare(self._config, self._hold)
        self._started = True

    def __call__(
        self,
        config: RunConfig,
        arm: ArmConfig,
        workload: Workload,
        seed: int,
        directory: Path | None,
        on_snapshot: Callable[[Snapshot], None],
        interruption: Interruption,
    ) -> ArmRun:
        """As ArmRunner."""
        from experiments.campaign.running_live import run_arm_live

        assert directory is not None, "a live run has logs"
        return run_arm_live(
            config, arm, workload, seed, directory, on_snapshot, interruption, held=self._held
        )

    def leave(self) -> None:
        """Stop the Ray that was started, or disconnect from the cluster."""
        if self._started:
            from experiments.campaign.running_live import leave

            leave()


@dataclass(frozen=True, slots=True)
class ArmJob:
    """A run of an arm. folder: where it leaves its files."""

    arm: ArmConfig
    runner: ArmRunner
    folder: Path


def run_and_show(
    config: RunConfig,
    job: ArmJob,
    workload: Workload,
    title: str,
    report: ProgressReport,
    interruption: Interruption,
) -> ArmRun:
    """Run one arm and show its live table, or where that cannot be, how far it is."""
    arm, folder = job.arm, job.folder
    try:
        folder.mkdir()
    except OSError as error:
        raise AgoraError(f"{folder}: {error.strerror}") from error
    names = [f"{group.name}-{place}" for group in arm.groups for place in range(group.count)]
    console = report.console
    with report.table(title) as draw:
        begun_s = time.monotonic()

        def show(snapshot: Snapshot) -> None:
            elapsed_s = time.monotonic() - begun_s
            left_s = elapsed_s * (workload.end_us - snapshot.at_us) / max(1, snapshot.at_us)
            at = f"t = {snapshot.at_us / 1e6:.1f} of {workload.end_us / 1e6:.0f} s"
            table = live_table(title, names, snapshot, workload.end_us, left_s)
            draw(table, f"{title}: {at}, about {time_text(max(0.0, left_s))} left")

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
        console.print(Text(f"  {restart.sentence}"), soft_wrap=True)
    if result.live and (found := live_validity(config, result)).is_disturbed:
        console.print(Text(f"  disturbed in {found.text}"), soft_wrap=True)
    return result


def live_validity(config: RunConfig, run: ArmRun) -> Validity:
    """Apply the rule of parsync.metrics.kinds.validity to what actors of a live run measured."""
    spec = run.arm.seeded(0, heartbeat_us=1, sample_us=1, live=True)
    hosts = plan_hosts(spec, config.live.hosts, config.live.tick_ms * 1000)
    return validity(run.metrics.samples("actors"), {host.host: host.name for host in hosts})


def live_table(
    title: str, names: list[str], snapshot: Snapshot, end_us: int, seconds_left: float | None
) -> RenderableType:
    """Return a table with a row per scheduler below the progress and utilisation of the cell. Where
    the terminal is too narrow for all columns, the last ones are in further tables below.

    Args:
        names: Of the schedulers, by agent index.
        end_us: The end of the workload.
        seconds_left: Estimated real time until then; None if unknown.
    """
    table = FittedTable(pad_edge=False)
    table.add_column("scheduler", min_width=12)
    for column in ("queue", "commits/s", "conflicts", "delay p50", "delay p99", "preferred"):
        table.add_column(column, justify="right")
    others = snapshot.schedulers[0].others if snapshot.schedulers else ()
    for figure in others:
        label = figure.quantity.column_label or figure.quantity.label
        table.add_column(Text(label.lower()), justify="right")
    for line in snapshot.schedulers:
        table.add_row(Text(names[line.agent]), *_cells(line))
    used = _UNKNOWN if snapshot.used_permille is None else f"{snapshot.used_permille / 10:.1f} %"
    left = "" if seconds_left is None else f"  about {max(0.0, seconds_left):.0f} s left"
    head = Text.assemble(
        (title, "bold"),
        f"  t = {snapshot.at_us / 1e6:.1f} of {end_us / 1e6:.0f} s  cell used {used}{left}",
    )
    return Stack(
        head,
        ProgressBar(total=max(1, end_us), completed=min(snapshot.at_us, end_us), width=60),
        table,
    )


def _cells(line: SchedulerLine) -> tuple[str, ...]:
    return (
        f"{line.queue:,}",
        f"{line.commits_per_s:,.0f}",
        _percent(line.conflict_rate),
        _milliseconds(line.delay_p50_us),
        _milliseconds(line.delay_p99_us),
        _percent(line.preferred_share),
        *(
            _UNKNOWN if figure.value is None else figure.quantity.text(figure.value)
            for figure in line.others
        ),
    )


def _percent(share: float | None) -> str:
    return _UNKNOWN if share is None else f"{100 * share:.1f} %"


def _milliseconds(us: float | None) -> str:
    return _UNKNOWN if us is None else f"{us / 1000:,.1f} ms"
