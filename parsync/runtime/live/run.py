"""Runs one arm on Ray, from its assembly to its merged measurements."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parsync.core.metrics import RunMetrics
from parsync.core.workload import Workload
from parsync.runtime.assembly import ArmSpec, Assembly
from parsync.runtime.live.actors import DueEnds, Finished, SchedulerHost, WorkerHost, WorkloadSource
from parsync.runtime.live.assembly_file import write_assembly
from parsync.runtime.live.cell import CELL_LOG
from parsync.runtime.live.cell_host import CellHost
from parsync.runtime.live.cluster import Troupe, connect, share
from parsync.runtime.live.coordinator_host import CoordinatorHost
from parsync.runtime.live.monitor import Overview
from parsync.runtime.live.plan import (
    CELL,
    COORDINATOR_NAME,
    SOURCE,
    WORKER_POOL,
    LiveOptions,
    Substance,
    plan_run,
)
from parsync.runtime.live.ports import answer
from parsync.runtime.live.steps import ActorFailed, ActorLost, Unavailable
from parsync.runtime.live.waits import NOT_WAITED, Waited
from shared_state.errors import AgoraError

START_S = 120.0
LEAD_NS = 300_000_000  # between the decision to begin and time 0
POLL_S = 0.25
DRAIN_POLL_S = 0.05
FINISH_S = 60.0


@dataclass(frozen=True, slots=True)
class LiveOutcome:
    """ended_us: run time of the end. drained: every task was committed or given up by then;
    waiting: tasks that were not (-1 unknown).

    partial: interrupted (by Ctrl-C), or an actor was lost for good; `notes` say what happened.
    metrics: all actors' merged. tick_us: a host's step interval. waited: how long tasks waited for
    ticks and steps. round_trip_us: int64[steps], measured step round trips. repeats: steps sent
    again.
    recovered_steps: steps a restarted cell came back with; replayed_steps: those of them that no
    checkpoint held.
    resubmitted: tasks submitted again to restarted hosts. lives: of each actor.
    """

    ended_us: int
    drained: bool
    waiting: int
    partial: bool
    interrupted: bool
    notes: tuple[str, ...]
    metrics: RunMetrics
    journal_dir: Path
    records_dir: Path | None
    tick_us: int
    waited: Waited
    round_trip_us: np.ndarray
    repeats: int
    recovered_steps: int
    replayed_steps: int
    resubmitted: int
    lives: dict[str, int]


def run_live(
    arm: ArmSpec,
    workload: Workload,
    options: LiveOptions,
    drain_us: int,
    make_metrics: Callable[[], RunMetrics],
    on_overview: Callable[[Overview], None],
) -> LiveOutcome:
    """Run until every task is committed, at most drain_us past the workload's end; the actors are
    gone afterwards, Ray stays.

    on_overview: a few times a second. make_metrics: each actor's accumulators; it must survive
    pickling. Ctrl-C ends the run early, with what it has. Raises AgoraError if Ray cannot be
    reached, or journal_dir holds another run's log.
    """
    if (options.journal_dir / CELL_LOG).exists():
        raise AgoraError(
            f"{options.journal_dir / CELL_LOG}: exists; every run needs a directory of its own"
        )
    options.journal_dir.mkdir(parents=True, exist_ok=True)
    if options.records_dir is not None:
        options.records_dir.mkdir(parents=True, exist_ok=True)
    connect(options.address, options.object_store_mb, options.hold)
    assembly = Assembly.of(arm, workload)
    write_assembly(options.journal_dir, assembly)
    troupe = Troupe(f"agora-{uuid.uuid4().hex[:12]}")
    try:
        return _Performance(troupe, assembly, options, make_metrics).run(drain_us, on_overview)
    finally:
        troupe.dismiss()


class _Performance:
    """One run's actors, from first to last."""

    def __init__(
        self,
        troupe: Troupe,
        assembly: Assembly,
        options: LiveOptions,
        make_metrics: Callable[[], RunMetrics],
    ) -> None:
        plan = plan_run(troupe.namespace, assembly, options)
        self._options = options
        self._end_us = assembly.workload.end_us
        self._make_metrics = make_metrics
        # restarted actors are built from it
        self._shared = share(Substance(assembly, make_metrics))
        create = troupe.create
        self._coordinator = create(
            COORDINATOR_NAME, CoordinatorHost, False, False, plan, self._shared
        )
        self._cell = create(CELL, CellHost, True, False, plan)
        self._hosts = {
            host.host: create(host.name, SchedulerHost, True, True, plan, host)
            for host in plan.hosts
        }
        self._workers = create(WORKER_POOL, WorkerHost, False, False, plan)
        self._source = create(SOURCE, WorkloadSource, False, False, plan)
        self._notes: list[str] = []
        self._interrupted = False

    def run(self, drain_us: int, on_overview: Callable[[Overview], None]) -> LiveOutcome:
        self._start()
        overview = Overview(0, -1, None, -1, False, (), (), {})
        partial = False
        try:
            while True:
                time.sleep(POLL_S if overview.at_us < self._end_us else DRAIN_POLL_S)
                overview = answer(self._coordinator.overview.remote())
                on_overview(overview)
                if overview.errors:
                    self._notes += overview.errors
                    partial = True
                    break
                lost = self._lost_for_good(overview)
                if lost is not None:
                    self._notes.append(f"{lost}: its process is gone")
                    partial = True
                    break
                if overview.at_us >= self._end_us and (
                    overview.quiet or overview.at_us >= self._end_us + drain_us
                ):
                    break
        except KeyboardInterrupt:
            self._notes.append("interrupted")
            self._interrupted = partial = True
        except Unavailable as error:
            self._notes.append(f"{COORDINATOR_NAME}: {error}")
            partial = True
        return self._finish(overview, partial)

    def _lost_for_good(self, overview: Overview) -> str | None:
        """The worker pool or the source, if it is silent and does not answer (a cell that is away
        keeps their loops waiting, not them)."""
        for name, actor in ((WORKER_POOL, self._workers), (SOURCE, self._source)):
            if name in overview.silent:
                try:
                    answer(actor.ready.remote())
                except Unavailable:
                    return name
        return None

    def _start(self) -> None:
        everyone = [
            self._coordinator,
            self._cell,
            *self._hosts.values(),
            self._workers,
            self._source,
        ]
        try:
            answer([actor.ready.remote() for actor in everyone], START_S)
        except Unavailable as error:
            raise ActorLost(f"an actor does not start: {error}") from error
        origin_ns = time.time_ns() + LEAD_NS
        answer(self._cell.start.remote(origin_ns))
        answer(self._coordinator.attach.remote(self._cell, list(self._hosts.values()), origin_ns))

    def _finish(self, overview: Overview, partial: bool) -> LiveOutcome:
        """Coordinator and source first, cell last: whoever still speaks has somebody to speak
        to."""
        metrics = self._make_metrics()
        round_trip_us: list[np.ndarray] = []
        repeats = recovered = replayed = resubmitted = 0
        waited = NOT_WAITED
        last = (self._source, *self._hosts.values(), self._workers, self._cell)
        due_ends: DueEnds | None = None
        phases_ended: str | None = self._finish_one(self._coordinator)
        if phases_ended is not None:
            partial = True
            self._notes.append(phases_ended)
        for actor in last:
            finished: Finished | None = (
                self._finish_one(actor, due_ends)
                if actor is self._cell
                else self._finish_one(actor)
            )
            if finished is None:
                partial = True
                continue
            due_ends = finished.due_ends
            metrics.merge(finished.metrics)
            round_trip_us.append(finished.round_trip_us)
            repeats += finished.repeats
            waited += finished.waited
            if actor is self._source:
                resubmitted = finished.recovered
            if actor is self._cell:
                recovered, replayed = finished.recovered, finished.replayed
            self._notes += finished.notes
            if finished.error is not None:
                partial = True
                self._notes.append(finished.error)
        return LiveOutcome(
            ended_us=overview.at_us,
            drained=overview.quiet,
            waiting=overview.waiting,
            partial=partial,
            interrupted=self._interrupted,
            notes=tuple(dict.fromkeys(self._notes)),
            metrics=metrics,
            journal_dir=self._options.journal_dir,
            records_dir=self._options.records_dir,
            tick_us=self._options.tick_us,
            waited=waited,
            round_trip_us=np.concatenate(round_trip_us) if round_trip_us else np.zeros(0, np.int64),
            repeats=repeats,
            recovered_steps=recovered,
            replayed_steps=replayed,
            resubmitted=resubmitted,
            lives=dict(overview.lives),
        )

    def _finish_one(self, actor: Any, *arguments: Any) -> Any:
        """What the actor hands over; None if it cannot."""
        try:
            return answer(actor.finish.remote(*arguments), FINISH_S)
        except (Unavailable, ActorFailed) as error:
            self._notes.append(str(error))
            return None
