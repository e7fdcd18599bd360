"""The agent of the locking protocol: locks, a view of what is locked, rounds and commits around one
scheduler.

One decision round: ask for locks on some partitions; once they are granted, synchronise just these;
let the scheduler plan one batch on them, or as much of it as hold_s allows; wait for the decision
time; commit; release the locks when the answer has come. Tasks that found no room come first in the
next round, which locks other partitions if some are free.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send, SetTimer, StartDecision
from parsync.core.event import Event
from parsync.core.events import (
    CommitReply,
    CommitRequest,
    DecisionDone,
    SampleDue,
    Started,
    SyncReply,
    SyncRequest,
    TasksAdopted,
    TasksEnded,
    TasksSubmitted,
)
from parsync.core.head_of_line import PassedOver, UnitSizes, head_of_line_us
from parsync.core.queued_tasks import NO_TASKS, QueuedTasks, split_batch
from parsync.metrics.agent_log import AgentLog
from parsync.metrics.record import Record
from parsync.metrics.tables import NOBODY, Waiting
from parsync.protocols._native import QueueHolds
from parsync.protocols.drives_scheduler import DrivesScheduler
from parsync.protocols.locking.events import LockRequest, LocksGranted, LocksReleased, RetryDue
from parsync.protocols.sorting_out import SortingOut
from parsync.protocols.spec import AgentEnvironment
from parsync.protocols.task_observer import TaskObserver
from parsync.protocols.waiting_tasks import WaitingPart, record_waiting
from schedulers.capability import Capability, observes_changes
from schedulers.interface import (
    ChangeKind,
    PartitionRanking,
    PendingReason,
    Plan,
    PlanContext,
)
from shared_state.random import stream_key
from shared_state.tasks import NO_GANG, Int32, Int64
from shared_state.transaction import CommitMode, ConflictCheck, Reason, Transaction
from shared_state.view import ClusterView


class Activity(IntEnum):
    """What the agent is doing."""

    IDLE = 0  # nothing to decide
    WAITING_FOR_LOCKS = 1
    SYNCING = 2  # waiting for the state of what it has locked
    DECIDING = 3
    COMMITTING = 4
    PAUSING = 5  # no partition had room


@dataclass(slots=True)
class _Round:
    """What is being decided or committed."""

    tasks: QueuedTasks
    start_us: int
    plan: Plan | None = None
    synced_us: Int64 | None = None
    ticket: int = -1
    decision_us: int = 0


class LockingAgent(DrivesScheduler):
    """Drives one scheduler: an Agent (parsync.core.agent)."""

    def __init__(self, environment: AgentEnvironment) -> None:
        shared, options = environment.shared, environment.member.options
        assert environment.scheduler is not None, "ProtocolCapability.RUNS_SCHEDULERS is declared"
        capabilities = environment.member.capabilities
        self.index = environment.index
        self.name = environment.name
        self.queued = 0
        self.scheduler = environment.scheduler
        self._observer = TaskObserver(self.scheduler, observes_changes(capabilities))
        self._clock = environment.clock
        self._seed = shared.seed
        self._table = shared.table
        self._lock_table = shared.cell_side
        self._sample_us = shared.sample_us
        self._partitions = shared.partitioning.count
        self._wanted = options.locked_partitions or self._partitions
        self._retry_us = round(options.retry_s * 1e6)
        self._round_tasks: int | None = None
        if options.hold_s is not None:
            hold_us = round(options.hold_s * 1e6)
            self._round_tasks = self._clock.tasks_within(hold_us, self._wanted)
        self._gang = None if (shared.table.gang == NO_GANG).all() else shared.table.gang
        self._view = ClusterView(shared.cell, shared.partitioning, False, environment.static_state)
        self._order: Int32 = np.arange(self._partitions, dtype=np.int32)
        self._seen_us = np.zeros(self._partitions, np.int64)  # when each was synchronised last
        self._log = AgentLog(self.index, shared.cell, shared.table, shared.catalog)
        self._sorting_out = SortingOut(environment, self._log)
        self._offers_all = Capability.PLANS_WHOLE_QUEUE in capabilities
        self._queue: deque[QueuedTasks] = deque()
        self._left = NO_TASKS  # what the rounds before have left of a batch
        # what found no room, where others go ahead
        self._passed: PassedOver | None = None
        sizes = UnitSizes(shared.table, shared.catalog)
        has_order = not self._offers_all and not sizes.are_alike
        self._holds = QueueHolds(self._log) if has_order else None
        hold_queue_us = head_of_line_us(options.head_of_line_s)
        if hold_queue_us != 0 and has_order:
            self._passed = PassedOver(sizes, hold_queue_us, self._gang)
        self._without_room: Int64 = NO_TASKS.task  # in the last round
        self._cell = shared.cell
        self._round: _Round | None = None
        self._rounds = 0
        self._in_vain = 0  # partitions looked at since a task was placed
        self._epoch = 0
        self._activity = Activity.IDLE

    @property
    def doing(self) -> str:
        """What it does at the moment, in a few words."""
        return self.doing_text(self._activity, self.queued, self._rounds)

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case LocksGranted():
                return self._granted(event)
            case SyncReply():
                return self._synced(now_us, event)
            case DecisionDone():
                return self._decided(now_us)
            case CommitReply():
                return self._committed(now_us, event)
            case TasksSubmitted(task):
                return self._submitted(now_us, QueuedTasks.new(task, 1))
            case TasksEnded():
                if self._observer.on_ended(now_us, event) is ChangeKind.FINISHED:
                    return []
                return self._submitted(now_us, QueuedTasks.new(event.task, 0))
            case TasksAdopted():
                self._observer.on_adopted(now_us, event)
                return []
            case RetryDue(number):
                is_due = self._activity is Activity.PAUSING and number == self._rounds
                return self._ask() if is_due else []
            case SampleDue(sample):
                self._record_sample(now_us)
                due = self._sample_timer(max(now_us, sample * self._sample_us))
                return [*self._log.flush(), due]
            case Started(epoch):
                self._epoch = epoch
                return [self._release(), self._sample_timer(now_us)]
        raise TypeError(f"agent cannot handle {type(event).__name__}")

    def decide(self, decision: int, now_us: int) -> None:
        """Plan the round on what is locked, and take the claims out of the view."""
        round_ = self._round
        assert round_ is not None and decision == self._rounds, "a decision is of the open round"
        context = PlanContext(
            now_us,
            stream_key(self._seed, self.name, decision),
            PartitionRanking.OPTIMISTIC,
            self._order,
        )
        round_.plan, round_.synced_us, round_.ticket, _ = self.scheduler.plan_and_claim(
            round_.tasks.task, self._view, context
        )

    def decision_us(self, elapsed_ns: int) -> int:
        """How long the round just planned takes to decide. Only locked partitions are looked at.

        Args:
            elapsed_ns: Wall time of decide(), used by Measured clocks only.
        """
        round_ = self._round
        assert round_ is not None and round_.plan is not None, "decide() comes first"
        plan = round_.plan
        tasks = len(round_.tasks) - int(np.count_nonzero(_too_large(plan)))
        round_.decision_us = self._clock.duration_us(
            tasks, tasks * self._wanted, plan.operations, elapsed_ns, plan.priced_machines
        )
        return round_.decision_us

    def finish(self, now_us: int) -> list[Record]:
        """The measurements not yet handed out, at the end of a run."""
        self._record_sample(now_us)
        if self._holds is not None:
            self._holds.end(now_us, 0)
        no_machine = np.zeros(self._cell.machines, np.bool_)  # is out of its reach
        record_waiting(
            self._log, self._waiting(now_us), self._table, self._cell, self._view, no_machine
        )
        return self._log.flush()

    def _waiting(self, now_us: int) -> list[WaitingPart]:
        """The tasks that wait, by why they do."""
        why, ahead, lacks = Waiting.NOT_TRIED, NOBODY, self._without_room
        if self._passed is not None:
            lacks = self._passed.all_tasks()
            holder = self._passed.holder(now_us)
        else:
            holder = lacks
        if len(holder):
            why, ahead = Waiting.BEHIND, int(holder[0])
        left = self._left.task[~np.isin(self._left.task, lacks)]
        return [
            WaitingPart(lacks, Waiting.NO_ROOM),
            WaitingPart(left, why, ahead),
            *(WaitingPart(work.task, why, ahead) for work in self._queue),
        ]

    def _submitted(self, now_us: int, tasks: QueuedTasks) -> list[Effect]:
        tasks = self._sorting_out.placeable(now_us, tasks)
        if not len(tasks):
            return []
        self.queued += len(tasks)
        self._queue.append(tasks)
        looks = (
            self._activity is Activity.PAUSING
            and self._passed is not None
            and not self._passed.holds(now_us)
        )
        return self._ask() if looks or self._activity is Activity.IDLE else []

    def _ask(self) -> list[Effect]:
        """Ask for locks if there is anything to decide."""
        if not self._has_batch and not self._passed:
            self._activity = Activity.IDLE
            return []
        self._activity = Activity.WAITING_FOR_LOCKS
        return [Send(self._lock_table, LockRequest(self.index, self._epoch, self._wanted))]

    @property
    def _has_batch(self) -> bool:
        """Whether there is a batch to begin, or the rest of one."""
        return len(self._queue) > 0 or len(self._left) > 0

    def _granted(self, event: LocksGranted) -> list[Effect]:
        """Ask the master for the state of the locked partitions. What is known of others is
        forgotten, so that the scheduler sees these only."""
        if event.epoch != self._epoch:
            return []  # meant for the agent before this host was restarted
        self._activity = Activity.SYNCING
        self._view.reset()
        nothing_known = np.zeros(len(event.partition), np.int64)
        return [Send(MASTER, SyncRequest(self.index, event.partition, nothing_known, False))]

    def _synced(self, now_us: int, event: SyncReply) -> list[Effect]:
        for delta in event.deltas:
            age_us = max(0, delta.at_us - int(self._seen_us[delta.partition]))
            self._log.sync(now_us, delta.partition, age_us, len(delta.row))
            self._seen_us[delta.partition] = delta.at_us
            self._view.apply(delta)
        self._rounds += 1
        self._round = _Round(self._next_tasks(now_us), now_us)
        self._activity = Activity.DECIDING
        return [StartDecision(self._rounds)]

    def _next_tasks(self, now_us: int) -> QueuedTasks:
        """What is left of a batch, or else the next batch: as much as a round may have. Everything
        queued if the kind wants that. What was passed over takes turns with the batches."""
        if self._offers_all:
            tasks = QueuedTasks.join([self._left, *self._queue])
            self._queue.clear()
            self._left = NO_TASKS
            return tasks
        if self._passed is not None:
            self._passed.on_view_changed()  # each round sees other partitions, or a later state
            place = self._passed.due(now_us, self._has_batch)
            if place is not None:
                return self._passed.take(place, self._round_tasks)
            self._passed.pass_on()
        batch = self._left if len(self._left) else self._queue.popleft()
        tasks, self._left = split_batch(batch, self._round_tasks, self._gang)
        return tasks

    def _decided(self, now_us: int) -> list[Effect]:
        round_ = self._round
        assert round_ is not None and round_.plan is not None, "DecisionDone follows decide()"
        assert round_.synced_us is not None, "a plan comes with the time of its state"
        plan = round_.plan
        self._log.round(now_us, plan, round_.decision_us)
        too_large = plan.pending[_too_large(plan)]
        if len(too_large):
            self.queued -= len(too_large)
            self._sorting_out.record(now_us, too_large)
        if not len(plan.task):
            self._log.attempts(round_.start_us, round_.decision_us, round_.tasks.task)
            return self._end_round(now_us, 0, too_large)
        self._activity = Activity.COMMITTING
        transaction = Transaction(
            scheduler=self.index,
            sequence=self._rounds,
            task=plan.task,
            machine=plan.machine,
            request=plan.request,
            synced_us=round_.synced_us,
            commit_mode=CommitMode.INCREMENTAL,
            conflict_check=ConflictCheck.RESOURCE_FIT,
        )
        return [Send(MASTER, CommitRequest(self.index, transaction))]

    def _committed(self, now_us: int, event: CommitReply) -> list[Effect]:
        round_, result = self._round, event.result
        if round_ is None or result.sequence != self._rounds:
            return []  # an answer repeated after a restart
        plan = round_.plan
        assert plan is not None and round_.synced_us is not None, "plans come before commits"
        self._view.settle(round_.ticket, result.reason, result.version)
        by_task = np.argsort(round_.tasks.task, kind="stable")
        row = by_task[np.searchsorted(round_.tasks.task, plan.task, sorter=by_task)]
        round_.tasks.attempts[row] += 1
        counts, _, _ = self._log.commit(
            now_us,
            plan.task,
            plan.machine,
            round_.synced_us,
            round_.tasks.attempts[row],
            round_.tasks.first[row],
            result,
            round_.start_us,
            round_.decision_us,
            int(PartitionRanking.OPTIMISTIC),
            round_.tasks.task,
        )
        accepted = counts[Reason.ACCEPTED]
        self.queued -= accepted + counts[Reason.DUPLICATE]
        rejected = self._observer.on_outcome(now_us, plan, result, accepted)
        done = plan.task if rejected is None else plan.task[~rejected]
        gone = np.concatenate([done, plan.pending[_too_large(plan)]])
        return self._end_round(now_us, accepted, gone)

    def _end_round(self, now_us: int, placed: int, gone: Int64) -> list[Effect]:
        """Release the locks and go on; after a pause if no partition has room.

        Args:
            placed: How many tasks were placed.
            gone: Tasks of the round that wait no more.
        """
        round_ = self._round
        assert round_ is not None
        self._round = None
        unplaced = round_.tasks.take(~np.isin(round_.tasks.task, gone))
        self._in_vain = 0 if placed or not len(unplaced) else self._in_vain + self._wanted
        looks = self._partitions
        assert round_.plan is not None, "rounds that end were planned"
        no_room = np.isin(unplaced.task, round_.plan.pending)
        holder = self._without_room = unplaced.task[no_room]
        if self._passed is not None:
            if no_room.any():
                self._passed.on_no_room(round_.start_us, unplaced.take(no_room))
            unplaced = unplaced.take(~no_room)
            if not self._passed.holds(now_us):
                looks *= len(self._passed) + len(self._queue) + 1
            holder = self._passed.holder(now_us)
        if self._holds is not None:
            self._holds.see(now_us, holder, self.queued)
        self._left = QueuedTasks.join([unplaced, self._left])
        if self._in_vain < looks:
            return [self._release(), *self._ask()]
        self._in_vain = 0
        self._activity = Activity.PAUSING
        return [self._release(), SetTimer(now_us + self._retry_us, RetryDue(self._rounds))]

    def _release(self) -> Send:
        return Send(self._lock_table, LocksReleased(self.index, self._epoch))

    def _sample_timer(self, now_us: int) -> SetTimer:
        following = now_us // self._sample_us + 1
        return SetTimer(following * self._sample_us, SampleDue(following))

    def _record_sample(self, now_us: int) -> None:
        staleness_us = max(0, now_us - int(self._seen_us.mean()))
        self._log.sample(now_us, self.queued, 0, False, staleness_us)


def _too_large(plan: Plan) -> NDArray[np.bool_]:
    """Which of the waiting tasks of a plan can never be placed."""
    is_so: NDArray[np.bool_] = plan.pending_reason == PendingReason.TOO_LARGE
    return is_so
