"""The runs of a configuration's arms in virtual time: in full with their measurements on disk, or
for their figures only."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from experiments.analysis.cell_watch import CellWatch, Watched, settle_us
from experiments.analysis.summary_model import Restart, SeedFigures
from experiments.config.run_config import RunConfig
from experiments.config.warm_up import warmed_up
from experiments.interruption import Interruption
from experiments.workloads.inspection import digest, offered_permille
from parsync.metrics.live_line import Snapshot
from parsync.metrics.record import Record
from parsync.metrics.run_frame import BUCKET_US, NOT_IN_JOB, Group, RunFrame, TaskPreferences
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import summarise_run
from parsync.metrics.tables import SCHEMAS
from parsync.protocols.registry import tables_of
from parsync.runtime.arm_directory import (
    VIRTUAL_LOG,
    InVirtualTime,
    LogEnd,
    write_assembly,
    write_end,
)
from parsync.runtime.calibration import NO_TIMES, MeasuredTimes
from parsync.runtime.records import RecordSink, merge_parts
from parsync.runtime.virtual.run import VirtualOutcome, run_virtual
from parsync.runtime.workload_files import WORKLOAD_DIR, WORKLOAD_FILE
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import TaskGangs, Workload
from schedulers import registry
from schedulers.flow.options import FlowOptions
from schedulers.interface import Capability, ContractBroken
from shared_state.errors import AgoraError
from shared_state.tasks import TaskClass
from shared_state.transaction import EvictionPolicy

SNAPSHOT_EVERY_S = 0.5
BUCKETS_MAX = 1 << 14  # of a time series


@dataclass(frozen=True, slots=True)
class ArmRun:
    """An arm after its run.

    Attributes:
        digest: The digest of its event log.
        notes: What its times include.
        stopped: Why it did not get to its end, "" if it did.
        interrupted: It was stopped by Ctrl-C.
        broken: It was ended by one of its schedulers, which broke its contract; other arms still
            run.
        watched: What the cell tells of it: regret and the causes of conflicts.
        restarts: Restarts of live actors.
        times: What a calibration is made of; of a live run.
        live: It ran on Ray.
    """

    arm: ArmConfig
    metrics: RunMetrics
    digest: str
    notes: Mapping[str, Any]
    stopped: str
    wall_s: float
    watched: Watched
    interrupted: bool = False
    broken: bool = False
    restarts: Sequence[Restart] = ()
    times: MeasuredTimes = NO_TIMES
    live: bool = False


def make_workload(config: RunConfig, seed: int) -> Workload:
    """The workload of this configuration and seed. Raises AgoraError for one that cannot be read,
    or whose phases are not longer than settle_s."""
    workload = config.workload.make(seed)
    shortest_us = min(phase.end_us - phase.start_us for phase in workload.phases)
    if settle_us(config) >= shortest_us:
        of = "each phase" if len(workload.phases) > 1 else "the workload"
        raise AgoraError(
            f"settle_s: expected less than the {shortest_us / 1e6:g} s of {of}, "
            f"got {config.settle_s:g} s"
        )
    return workload


_PREEMPTION = {Capability.EVICTS, Capability.PREEMPTS}


def is_flow(kind: str | None) -> bool:
    """Whether a kind of scheduler (None: no scheduler) places tasks by a flow."""
    return kind is not None and issubclass(registry.get(kind).options, FlowOptions)


def make_metrics(config: RunConfig, arm: ArmConfig, workload: Workload) -> RunMetrics:
    """Accumulators for one run of an arm."""
    groups: list[Group] = []
    first = 0
    for group in arm.groups:
        groups.append(Group(group.name, tuple(range(first, first + group.count))))
        first += group.count
    job_of = workload.tasks.job.copy()
    # a job that ran before the run began has no completion time of its own
    job_of[workload.initial.task] = NOT_IN_JOB
    return RunMetrics(
        RunFrame(
            workload.phases,
            first,
            partitions=min(arm.partitions, workload.cell.machines),
            settle_us=settle_us(config),
            bucket_us=_bucket_us(workload.end_us),
            groups=groups,
            job_of=job_of,
            run_us=workload.duration_us,
            services=workload.tasks.task_class == TaskClass.SERVICE,
            values=config.workload.values(workload),
            preferences=TaskPreferences(workload.tasks.preference, workload.tasks.submit_us),
            gangs=TaskGangs.of(workload),
            preempts=any(_PREEMPTION & group.capabilities for group in arm.groups),
            flows=any(is_flow(group.kind) for group in arm.groups),
            brought=tables_of(arm.protocol_kinds).keys() - SCHEMAS.keys(),
            priority=(
                workload.tasks.priority if arm.may_evict is EvictionPolicy.LOWER_PRIORITY else None
            ),
            preferred_permille=workload.preferred_permille,
        ),
        tables=tables_of(arm.protocol_kinds),
    )


def _bucket_us(end_us: int) -> int:
    """The width of the buckets of time series: a quarter of a second, in long runs a multiple, so
    that a series has no more than BUCKETS_MAX."""
    return BUCKET_US * -(-end_us // (BUCKET_US * BUCKETS_MAX))


def workload_folder(directory: Path) -> Path | None:
    """The folder of the workload's tables in the run that an arm's directory belongs to; None for
    an arm that is not part of a run."""
    folder = directory.resolve().parents[1] / WORKLOAD_DIR
    return folder if (folder / WORKLOAD_FILE).is_file() else None


class ArmRunner(Protocol):
    """Runs one arm under one of the runtimes. directory: where its Parquet files and logs go.
    interruption: looked at between events."""

    def __call__(
        self,
        config: RunConfig,
        arm: ArmConfig,
        workload: Workload,
        seed: int,
        directory: Path | None,
        on_snapshot: Callable[[Snapshot], None],
        interruption: Interruption,
    ) -> ArmRun: ...


def run_arm_virtual(
    config: RunConfig,
    arm: ArmConfig,
    workload: Workload,
    seed: int,
    directory: Path | None,
    on_snapshot: Callable[[Snapshot], None],
    interruption: Interruption,
) -> ArmRun:
    """Run one arm in virtual time. With directory None only the figures are kept. Ctrl-C and a full
    disk yield a partial result."""
    metrics = make_metrics(config, arm, workload)
    sink = None if directory is None else RecordSink(directory, tables=metrics.tables)

    def take(record: Record) -> None:
        metrics.add(record.table, record.columns)
        if sink is not None:
            sink.add(record.table, record.columns)

    shown_s = time.monotonic()

    def progress(now_us: int) -> None:
        nonlocal shown_s
        if time.monotonic() - shown_s >= SNAPSHOT_EVERY_S:
            shown_s = time.monotonic()
            on_snapshot(metrics.snapshot(now_us))
        interruption.check()

    begun_s = time.monotonic()
    outcome: VirtualOutcome | None = None
    watched = Watched()
    stopped, interrupted, broken, wall_s = "", False, False, 0.0
    spec = arm.seeded(seed, config.heartbeat_us, config.sample_us(workload), live=False)
    drain_us = round(config.drain_s * 1e6)
    message_us = config.virtual.message_us
    calibration = config.virtual.calibration
    try:
        begins = warmed_up(config, arm, workload, seed, lambda _: interruption.check())
        metrics = make_metrics(config, arm, begins)
        watch = CellWatch(config, begins, seed)
        if directory is not None:
            virtual = InVirtualTime(
                drain_us=drain_us, message_us=message_us, calibration=calibration
            )
            shared = workload_folder(directory) if begins is workload else None
            write_assembly(directory, spec, begins, shared, virtual)
        outcome = run_virtual(
            spec,
            begins,
            drain_us,
            take,
            progress,
            message_us,
            watch,
            config.plan_limit_s,
            calibration,
        )
        if sink is not None and directory is not None:
            sink.close()
            merge_parts(directory, metrics.tables)
            log = LogEnd(outcome.events, outcome.digest, 0, outcome.ended_us)
            write_end(directory, {VIRTUAL_LOG: log}, "")
        wall_s = time.monotonic() - begun_s
        watched = watch.watched(outcome.ended_us)
    except KeyboardInterrupt:
        stopped, interrupted = "interrupted", True
    except ContractBroken as error:
        stopped, broken = str(error), True
    except AgoraError as error:  # the records cannot be written: the figures so far are kept
        stopped = str(error)
    if sink is not None:
        with contextlib.suppress(AgoraError):
            sink.abandon()
    try:
        metrics.flush()
    except AgoraError as error:  # of a metric's code: the other figures are kept
        stopped = stopped or str(error)
    if outcome is None:
        wall_s = time.monotonic() - begun_s
    notes: dict[str, Any] = (
        {}
        if outcome is None
        else {"ended_us": outcome.ended_us, "drained": outcome.drained, "waiting": outcome.waiting}
    )
    digest = "" if outcome is None else outcome.digest
    notes["wall_s"] = round(wall_s, 3)
    return ArmRun(arm, metrics, digest, notes, stopped, wall_s, watched, interrupted, broken)


def seed_figures(
    config: RunConfig, arm: ArmConfig, seed: int, workload: Workload | None = None
) -> SeedFigures:
    """The figures of one arm on one seed's workload, in virtual time.

    Args:
        workload: Of this configuration and seed; None: it is made.

    Raises:
        AgoraError: The workload cannot be made, or the arm does not get to its end.
    """
    if workload is None:
        workload = make_workload(config, seed)
    return figures_of_run(seed_run(config, arm, seed, workload), workload)


def seed_run(config: RunConfig, arm: ArmConfig, seed: int, workload: Workload) -> ArmRun:
    """The run of one arm on one seed's workload, in virtual time. Raises AgoraError if it does not
    get to its end."""
    run = run_arm_virtual(config, arm, workload, seed, None, lambda _: None, Interruption())
    if run.stopped:
        raise AgoraError(f"'{arm.name}', seed {seed}: {run.stopped}")
    return run


def figures_of_run(run: ArmRun, workload: Workload) -> SeedFigures:
    """The figures of a run in virtual time that got to its end, on this workload."""
    figures = summarise_run(run.metrics)
    return SeedFigures(
        digest=run.digest,
        workload=digest(workload),
        offered_permille=offered_permille(workload),
        overall=figures.overall.model_copy(update=run.watched.figures()),
        phases=figures.phases,
        groups=figures.groups,
        totals=figures.totals,
    )
