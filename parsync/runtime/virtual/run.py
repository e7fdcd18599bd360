"""Runs one arm in virtual time, from its assembly to its digest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parsync.core.addresses import ARRIVALS, COORDINATOR, MASTER, WORKERS
from parsync.core.events import TasksCancelled, TasksFinished, TasksStarted, TasksSubmitted
from parsync.core.master import MasterCore
from parsync.core.participant import Agent, Participant
from parsync.core.workers import WorkerPool
from parsync.metrics.record import GatheredRecords
from parsync.runtime.assembly import Assembly
from parsync.runtime.audit import RunAudit
from parsync.runtime.calibration import Calibration
from parsync.runtime.effects import RecordListener
from parsync.runtime.plan_limit import PLAN_LIMIT_S, plan_limit
from parsync.runtime.virtual.runtime import VirtualRuntime
from parsync.runtime.virtual.stepped import SteppedRuntime
from parsync.spec.arm import SeededArm
from parsync.workload.workload import Workload
from shared_state.observed_cell import CellObserver, ObservedCell

REST_US = 600_000_000  # of a shorter time without activity, everything periodic is handled
STEP_US = 1_000_000  # between two looks whether nothing will happen for so long
SAMPLES_AT_REST = 1024  # between two looks for a stop signal


@dataclass(frozen=True, slots=True)
class VirtualOutcome:
    """The end of a run in virtual time.

    Attributes:
        digest: Of all events.
        ended_us: Virtual time of the end.
        events: How many there were.
        drained: Whether every task was committed or given up by then.
        waiting: Tasks that were not.
    """

    digest: str
    ended_us: int
    events: int
    drained: bool
    waiting: int


def run_virtual(
    arm: SeededArm,
    workload: Workload,
    drain_us: int,
    on_record: RecordListener,
    on_progress: Callable[[int], None],
    message_us: int = 0,
    observer: CellObserver | None = None,
    plan_limit_s: float = PLAN_LIMIT_S,
    calibration: Calibration | None = None,
    audit: RunAudit | None = None,
) -> VirtualOutcome:
    """Run an arm until every task is committed, at most drain_us past the workload's end.

    Args:
        arm: The arm.
        workload: Its workload.
        drain_us: The longest time after the workload's end.
        on_record: Called with the measurements of every sample interval, a Record per table.
        on_progress: Called with the virtual time once per sample interval, or less often while
            nothing happens for long.
        message_us: How long a message takes from one participant to another (0 as in the reference
            model of ParSync section 4.3). The master and the participants beside it share a
            process: a message between two of them takes no time.
        observer: Learns of every call to the cell (parsync.metrics.regret).
        plan_limit_s: Wall time after which a scheduler's call counts as never returning.
        calibration: The times of the live runtime, which is then what is run; message_us has no
            effect.
        audit: Checks all that the cell answers, and what comes of every event.

    Raises:
        ContractBroken: A scheduler, or the code of a protocol that users brought, breaks its
            contract.
        InvariantViolation: The audit found a fault.

    Any exception, Ctrl-C too, passes through. What was recorded before has been handed out then,
    except for the last sample interval.
    """
    assembly = Assembly.of(arm, workload)
    static_state = assembly.static_state()
    agents = [assembly.agent(index, static_state) for index in range(arm.agents)]
    master, workers, arrivals = assembly.master(), assembly.workers(), assembly.arrivals()
    bare_cell = master.cell
    audited: Participant = master
    if audit is not None:
        audited = audit.master(master, observer)
    elif observer is not None:
        master.cell = ObservedCell(master.cell, observer)
    participants: dict[int, Participant] = dict(enumerate(agents))
    participants |= assembly.cell_side(master.cell)
    participants |= {
        MASTER: audited,
        WORKERS: workers,
        COORDINATOR: assembly.coordinator(),
        ARRIVALS: arrivals,
    }
    deciders = dict(enumerate(agents))
    records = GatheredRecords(assembly.tables, on_record)
    runtime: VirtualRuntime | SteppedRuntime
    if calibration is None:
        runtime = VirtualRuntime(
            participants,
            deciders,
            records.take,
            assembly.codec,
            message_us,
            assembly.parts,
            audit,
            records.rows,
        )
    else:
        runtime = SteppedRuntime(assembly, participants, deciders, records.take, calibration, audit)
    pace = _Pace(runtime, agents, arm.sample_us, workload.end_us)
    waiting = -1

    def call_under_way() -> int | None:
        return runtime.events if any(agent.calling for agent in agents) else None

    try:
        with plan_limit(plan_limit_s, call_under_way):
            while True:
                waiting = sum(agent.queued for agent in agents)
                if arrivals.exhausted:
                    waiting += _tasks_under_way(runtime, deciders)
                if arrivals.exhausted and waiting == 0 and runtime.now_us >= workload.end_us:
                    break
                if runtime.now_us >= workload.end_us + drain_us:
                    break
                pace.advance()
                records.hand_out()
                on_progress(runtime.now_us)
    finally:
        try:
            _record_due_ends(runtime, master, workers)
            runtime.finish()
        finally:
            records.hand_out()
    if audit is not None:
        audit.matches(bare_cell)
    return VirtualOutcome(runtime.digest, runtime.now_us, runtime.events, waiting == 0, waiting)


class _Pace:
    """Runs an arm one sample interval after the other, and faster where nothing happens for longer
    than REST_US.

    Args:
        runtime: Whose time is a multiple of sample_us.
        agents: Of the arm.
        sample_us: The length of an interval.
        end_us: The workload's end.
    """

    def __init__(
        self,
        runtime: VirtualRuntime | SteppedRuntime,
        agents: Sequence[Agent],
        sample_us: int,
        end_us: int,
    ) -> None:
        self._runtime = runtime
        self._agents = agents
        self._sample_us = sample_us
        self._end_us = end_us
        self._rest_end_us = 0

    def advance(self) -> None:
        """Run until the end of the interval, or of a later one if nothing happens until then."""
        runtime, sample_us = self._runtime, self._sample_us
        stop_us = runtime.now_us + sample_us
        while runtime.now_us < stop_us:
            if isinstance(runtime, VirtualRuntime) and self._rests(runtime):
                until_us = min(self._rest_end_us, runtime.now_us + SAMPLES_AT_REST * sample_us)
                stop_us = max(stop_us, -(-until_us // sample_us) * sample_us)
                # once per sample, but not more than about once a second
                runtime.rest_until(until_us, -(-STEP_US // sample_us) * sample_us)
            else:
                runtime.run_until(min(stop_us, runtime.now_us + STEP_US))

    def _rests(self, runtime: VirtualRuntime) -> bool:
        """Whether nothing will happen in the cell for a while: no task waits, and no event but
        periodic ones is due. Views are synchronised as usual again a second before one is."""
        now_us = runtime.now_us
        if now_us >= self._rest_end_us and not any(agent.queued for agent in self._agents):
            activity_us = runtime.next_activity_us()
            until_us = self._end_us if activity_us is None else min(activity_us, self._end_us)
            if until_us - now_us > REST_US:
                self._rest_end_us = until_us - STEP_US
        return now_us < self._rest_end_us


def _tasks_under_way(runtime: VirtualRuntime | SteppedRuntime, agents: Mapping[int, Agent]) -> int:
    """The number of submitted tasks that no agent has received yet."""
    return sum(
        len(event.task)
        for address in agents
        for _, event in runtime.under_way(address, TasksSubmitted)
        if isinstance(event, TasksSubmitted)
    )


def _record_due_ends(
    runtime: VirtualRuntime | SteppedRuntime, master: MasterCore, workers: WorkerPool
) -> None:
    """Record when the tasks that still run are due to end.

    Messages that are under way count: starts and cancellations that the worker pool has not
    handled, and ends that the master has not handled.
    """
    for _, event in runtime.under_way(WORKERS, TasksStarted, TasksCancelled):
        assert isinstance(event, TasksStarted | TasksCancelled)
        workers.execute(event)
    due_us, allocation, _ = workers.due_ends()
    for at_us, event in runtime.under_way(MASTER, TasksFinished):
        assert isinstance(event, TasksFinished)
        allocation = np.concatenate([allocation, event.allocation])
        due_us = np.concatenate([due_us, np.full(len(event.allocation), at_us)])
    master.record_due_ends(allocation, due_us)
