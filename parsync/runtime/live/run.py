"""Runs one arm on Ray, from its assembly to its merged measurements."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.arm_directory import write_assembly
from parsync.runtime.assembly import Assembly
from parsync.runtime.calibration import MeasuredTimes
from parsync.runtime.live.calls import ActorFailed, Unavailable
from parsync.runtime.live.cell_host import CellHost
from parsync.runtime.live.hosts import CoordinatorHost, SchedulerHost, WorkerHost, WorkloadSource
from parsync.runtime.live.liveness import HEAD_S, RayLiveness, RunStatus, SilentActors
from parsync.runtime.live.logs import CELL_LOG, remove_records, write_log_ends
from parsync.runtime.live.meters import StepWaitsByProtocol, joined_waits
from parsync.runtime.live.plan import (
    CELL,
    COORDINATOR_NAME,
    SOURCE,
    WORKER_POOL,
    Finished,
    LiveOptions,
    RunInputs,
    plan_run,
)
from parsync.runtime.live.ray_glue.actors import NAMESPACE, ActorDied, RunActors, answer
from parsync.runtime.live.ray_glue.cluster import connect, connected, disconnect
from parsync.runtime.live.ray_glue.internals import last_log_line
from parsync.runtime.live.ray_glue.nodes import check_nodes, home_and_head
from parsync.runtime.live.recovered_measurements import Restart, complete
from parsync.runtime.live.steps import ActorLost
from parsync.spec.arm import SeededArm
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

START_S = 120.0
LEAD_NS = 300_000_000  # between the decision to begin and time 0
POLL_S = 0.25
DRAIN_POLL_S = 0.05
FINISH_S = 60.0
HEADLESS_S = 20.0  # for all actors together, some of which may have been on the head node
BACK_S = 0.2  # between two looks whether an actor is back


@dataclass(frozen=True, slots=True)
class LiveOutcome:
    """The result of a live run.

    Attributes:
        ended_us: Run time of the end.
        drained: Whether every task was committed or given up by then.
        waiting: Tasks that were not; -1 if unknown.
        partial: The run did not get to its end: it was interrupted, an actor was lost for good, or
            a scheduler broke its contract. `notes` say what happened.
        interrupted: By Ctrl-C.
        notes: Lines for the user.
        metrics: Of all actors, completed from the logs where one was restarted or lost
            (recovered_measurements.py).
        journal_dir: Where the logs are.
        records_dir: Where the Parquet parts are; None if there are none.
        tick_us: The time between a host's regular steps.
        waited: How long tasks waited for ticks and steps.
        round_trip_us: Of steps, int64[steps].
        repeats: Attempts at steps that failed.
        recovered_steps: Steps with which a restarted cell came back.
        replayed_steps: Those of them that no checkpoint held.
        resubmitted: Tasks that were submitted again to restarted hosts.
        times: What a calibration is made of.
        restarts: Of any actor.
        epochs: By actor: how many it had.
        broken: Whether a scheduler broke its contract.
        digest: Of the cell's log; "" if there is none.
        recovered: The actors whose measurements were computed from the logs.
        held: The actors, if options.hold keeps them. They end when this object is dropped.
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
    waited: StepWaitsByProtocol
    round_trip_us: np.ndarray
    repeats: int
    recovered_steps: int
    replayed_steps: int
    resubmitted: int
    times: MeasuredTimes
    restarts: tuple[Restart, ...]
    epochs: dict[str, int]
    broken: bool = False
    digest: str = ""
    recovered: tuple[str, ...] = ()
    held: RunActors | None = None


def run_live(
    arm: SeededArm,
    workload: Workload,
    options: LiveOptions,
    drain_us: int,
    make_metrics: Callable[[], RunMetrics],
    on_status: Callable[[RunStatus], None],
) -> LiveOutcome:
    """Run an arm on Ray until every task is committed, at most drain_us past the workload's end.

    A scheduler's call that is under way at the end is waited for, up to its limit. Ctrl-C ends the
    run early, with the measurements so far. Afterwards the actors are gone, unless options.hold
    keeps them; Ray stays.

    Args:
        arm: The arm.
        workload: Its workload.
        options: How it runs.
        drain_us: The longest time after the workload's end.
        make_metrics: Creates an actor's accumulators. It is pickled.
        on_status: Called with the status of the run a few times per second.

    Raises:
        AgoraError: Ray cannot be reached, or journal_dir holds another run's log.
    """
    options = _absolute(options)
    if (options.journal_dir / CELL_LOG).exists():
        raise AgoraError(
            f"{options.journal_dir / CELL_LOG}: exists; every run needs a directory of its own"
        )
    options.journal_dir.mkdir(parents=True, exist_ok=True)
    if options.records_dir is not None:
        options.records_dir.mkdir(parents=True, exist_ok=True)
    connect(options.address, options.object_store_mb, options.hold)
    if options.address is not None:
        check_nodes(options.journal_dir)
    assembly = Assembly.of(arm, workload)
    write_assembly(options.journal_dir, arm, workload, options.workload_dir)
    actors = RunActors(f"{NAMESPACE}{uuid.uuid4().hex[:12]}", arm.name)
    held = False
    try:
        live_run = _LiveRun(actors, assembly, options, make_metrics)
        outcome = live_run.run(drain_us, on_status)
        held = options.hold and live_run.end()
        outcome = replace(outcome, held=actors) if held else outcome
    finally:
        if not held and connected():
            actors.dismiss()
        remove_records(options.journal_dir)
    stopped = (*outcome.notes, "stopped early")[0] if outcome.partial else ""
    digest, problem = write_log_ends(outcome.journal_dir, stopped, outcome.recovered)
    if problem:
        outcome = replace(outcome, partial=True, notes=(*outcome.notes, problem))
    return replace(outcome, digest=digest)


def _absolute(options: LiveOptions) -> LiveOptions:
    """The same directories for processes that work elsewhere."""
    return replace(
        options,
        journal_dir=options.journal_dir.absolute(),
        records_dir=None if options.records_dir is None else options.records_dir.absolute(),
        workload_dir=None if options.workload_dir is None else options.workload_dir.absolute(),
    )


class _LiveRun:
    """One run: creates its actors, follows them, and gathers what they hand over."""

    def __init__(
        self,
        actors: RunActors,
        assembly: Assembly,
        options: LiveOptions,
        make_metrics: Callable[[], RunMetrics],
    ) -> None:
        plan = plan_run(actors.namespace, assembly, options)
        self._options = options
        self._actors = actors
        self._assembly = assembly
        self._plan = plan
        self._end_us = assembly.workload.end_us
        self._make_metrics = make_metrics
        create = actors.create
        # this process keeps nothing in Ray's object store: Ray would end it with this node
        inputs = RunInputs(assembly, make_metrics)
        self._coordinator = create(COORDINATOR_NAME, CoordinatorHost, False, False, plan, inputs)
        self._cell = create(CELL, CellHost, True, False, plan)
        self._hosts = {
            host.name: create(host.name, SchedulerHost, True, True, plan, host)
            for host in plan.hosts
        }
        self._workers = create(WORKER_POOL, WorkerHost, False, False, plan)
        self._source = create(SOURCE, WorkloadSource, False, False, plan)
        self._notes: list[str] = []
        self._lost: list[str] = []  # at the end of the run
        self._failed: list[str] = []  # to hand over what they had
        self._interrupted = False
        self._finish_by_s = math.inf  # without its head node Ray ends this process before long
        self._broken = False
        self._silent = SilentActors(
            self._hosts,
            {host.name: [*map(assembly.arm.agent_name, host.agents)] for host in plan.hosts},
            {WORKER_POOL: self._workers, SOURCE: self._source},
            options.plan_limit_s,
        )

    def run(self, drain_us: int, on_status: Callable[[RunStatus], None]) -> LiveOutcome:
        self._start()
        liveness = RayLiveness(*home_and_head())
        status = RunStatus(0, None, -1, False, (), (), {})
        partial = False
        try:
            while True:
                time.sleep(POLL_S if status.at_us < self._end_us else DRAIN_POLL_S)
                status = answer(self._coordinator.run_status.remote())
                on_status(status)
                reasons = self._reasons_to_end(status, liveness)
                if reasons:
                    self._notes += reasons
                    partial = True
                    break
                if status.at_us >= self._end_us and status.quiet:
                    break
                if status.at_us >= self._end_us + drain_us and not self._silent.held_up():
                    break
        except KeyboardInterrupt:
            self._notes.append("interrupted")
            self._interrupted = partial = True
        except Unavailable as error:
            while not liveness.head_answers() and self._cut_off(liveness) is None:
                time.sleep(POLL_S)  # it may be what the coordinator went with
            self._notes.append(self._cut_off(liveness) or f"{COORDINATOR_NAME}: {error}")
            partial = True
        return self._finish(status, partial)

    def _start(self) -> None:
        everyone = {
            COORDINATOR_NAME: self._coordinator,
            CELL: self._cell,
            **self._hosts,
            WORKER_POOL: self._workers,
            SOURCE: self._source,
        }
        ready = {name: actor.ready.remote() for name, actor in everyone.items()}
        for name, ref in ready.items():
            self._patiently(name, everyone[name].ready.remote, ref)
        origin_ns = time.time_ns() + LEAD_NS
        cell = self._cell.start
        origin_ns = self._patiently(CELL, lambda: cell.remote(origin_ns), cell.remote(origin_ns))
        answer(self._coordinator.attach.remote(origin_ns))

    def _patiently(self, name: str, call: Callable[[], Any], first: Any) -> Any:
        """What an actor answers that may be killed, and built again, as the run starts.

        Args:
            first: A call that is under way.

        Raises:
            ActorLost: It is not built again, or does not answer.
        """
        until_s = time.monotonic() + START_S
        while True:
            try:
                return answer(first, max(0.0, until_s - time.monotonic()))
            except Unavailable as error:
                if isinstance(error, ActorDied) or time.monotonic() > until_s:
                    said = last_log_line(error.__cause__)
                    raise ActorLost(f"{name} does not start: {error}{said}") from error
            time.sleep(BACK_S)
            first = call()

    def _reasons_to_end(self, status: RunStatus, liveness: RayLiveness) -> Sequence[str]:
        """Why the run cannot go on, a line each; empty if it can."""
        gone = self._cut_off(liveness) if liveness.due() else None
        if gone is not None:
            return (gone,)
        broken = status.broken or self._silent.overdue(status.silent)
        if broken:
            self._broken = True
            return broken
        if status.errors:
            return status.errors
        lost = self._silent.lost(status.silent)
        return () if lost is None else (f"{lost}: process is gone",)

    def _cut_off(self, liveness: RayLiveness) -> str | None:
        """Why the run must end whatever its actors do; None if it need not."""
        if not connected() or liveness.home_is_gone():
            disconnect()
            return f"{CELL}, {WORKER_POOL}, {SOURCE} and {COORDINATOR_NAME}: their node is gone"
        if liveness.head_is_gone():
            self._finish_by_s = min(self._finish_by_s, time.monotonic() + HEADLESS_S)
            return f"Ray's head node has not answered for {HEAD_S:g} s"
        return None

    def _finish(self, status: RunStatus, partial: bool) -> LiveOutcome:
        """Let every actor hand over. Coordinator and source come first and the cell last, so that
        each can still step."""
        phases_ended: str | None = self._finish_one(COORDINATOR_NAME, self._coordinator)
        if phases_ended is not None:
            self._notes.append(phases_ended)
        finished: dict[str, Finished | None] = {SOURCE: self._finish_one(SOURCE, self._source)}
        hosts = {n: host for n, host in self._hosts.items() if not self._silent.was_ended(n)}
        # All at once: each may be in the middle of a scheduler's call.
        calls = {n: host.finish.remote() for n, host in hosts.items()} if connected() else {}
        for name, host in self._hosts.items():
            finished[name] = (
                self._finish_one(name, host, first=calls.get(name)) if name in hosts else None
            )
        workers: Finished | None = self._finish_one(WORKER_POOL, self._workers)
        due_ends = None if workers is None else workers.due_ends
        cell: Finished | None = self._finish_one(CELL, self._cell, due_ends)
        finished |= {WORKER_POOL: workers, CELL: cell}
        if self._headless:
            disconnect()
        completed = complete(
            self._plan, self._assembly, finished, self._lost, status.at_us, self._make_metrics
        )
        whole = [one for one in finished.values() if one is not None]
        self._notes += [note for one in whole for note in one.notes]
        errors = [*(one.error for one in whole if one.error is not None), *completed.errors]
        self._notes += [*errors, *completed.notes]
        # What hosts, source and cell leave behind is complete once there is nothing more to do.
        needed = {COORDINATOR_NAME, WORKER_POOL} if status.quiet else set(self._lost)
        partial |= bool(errors or self._failed or phases_ended or needed & set(self._lost))
        source = finished[SOURCE]
        trips = [one.round_trip_us for one in whole]
        return LiveOutcome(
            ended_us=status.at_us,
            drained=status.quiet,
            waiting=status.waiting,
            partial=partial,
            interrupted=self._interrupted,
            notes=tuple(dict.fromkeys(self._notes)),
            metrics=completed.metrics,
            journal_dir=self._options.journal_dir,
            records_dir=self._options.records_dir,
            tick_us=self._options.tick_us,
            waited=joined_waits(one.waited for one in whole),
            round_trip_us=np.concatenate(trips) if trips else np.zeros(0, np.int64),
            repeats=sum(one.repeats for one in whole),
            recovered_steps=0 if cell is None else cell.recovered,
            replayed_steps=0 if cell is None else cell.replayed,
            resubmitted=0 if source is None else source.recovered,
            times=MeasuredTimes.joined(one.times for one in whole),
            restarts=completed.restarts,
            epochs=dict(status.epochs),
            recovered=completed.recovered,
            broken=self._broken or (not self._interrupted and any(one.broken for one in whole)),
        )

    def end(self) -> bool:
        """Let no actor be built again. Returns False if the coordinator, which sees to that, is
        gone."""
        if not connected():
            return False
        try:
            answer(self._coordinator.end.remote())
        except Unavailable:
            return False
        return True

    @property
    def _headless(self) -> bool:
        return self._finish_by_s < math.inf

    def _finish_one(self, name: str, actor: Any, *arguments: Any, first: Any = None) -> Any:
        """What an actor hands over; None if it cannot. One that is being restarted is waited for.

        Args:
            first: A call to it that is under way.
        """
        if not connected():
            self._lost.append(name)
            return None
        patience_s = min(time.monotonic() + FINISH_S, self._finish_by_s)
        while True:
            try:
                left_s = max(0.0, patience_s - time.monotonic())
                call, first = first or actor.finish.remote(*arguments), None
                return answer(call, left_s)
            except ActorFailed as error:
                self._failed.append(name)
                self._notes.append(f"{name}: {error}")
                return None
            except Unavailable as error:
                if isinstance(error, ActorDied) or time.monotonic() > patience_s:
                    self._lost.append(name)
                    self._notes.append(f"{name}: {error}")
                    if not self._headless:
                        self._actors.end(name)
                    return None
                time.sleep(BACK_S)
