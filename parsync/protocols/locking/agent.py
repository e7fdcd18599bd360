"""The agent of the locking protocol: locks, a view of what is locked, rounds and commits around one
scheduler.

One decision round: ask for locks on some partitions; once they are granted, synchronise just these;
let the scheduler plan one batch on them, or as much of it as hold_s allows; wait for the decision
time; commit; release the locks when the answer has come. Tasks that found no room come first in the
next round, which locks other partitions if some are free.
"""

from __future__ import annotations

import numpy as np

from parsync.core.effects import Effect, Send, SetTimer
from parsync.core.event import Event
from parsync.core.events import SyncReply
from parsync.core.head_of_line import SkippedUnits, UnitSizes, head_of_line_us
from parsync.protocols.agent_view import AgentView
from parsync.protocols.locking.events import LockRequest, LocksGranted, LocksReleased, RetryDue
from parsync.protocols.locking.queue import LockingQueue
from parsync.protocols.rounds import Activity, Round
from parsync.protocols.scheduler_agent import SchedulerAgent
from parsync.protocols.spec import AgentEnvironment
from schedulers.capability import Capability
from schedulers.interface import PartitionRanking, PendingReason
from shared_state.tasks import NO_GANG


class LockingAgent(SchedulerAgent):
    """Drives one scheduler: an Agent (parsync.core.participant)."""

    def __init__(self, environment: AgentEnvironment) -> None:
        shared, options = environment.shared, environment.member.options
        self._clock = environment.clock
        self._partitions = shared.partitioning.count
        self._wanted = options.locked_partitions or self._partitions
        self._retry_us = round(options.retry_s * 1e6)
        self._round_tasks: int | None = None
        if options.hold_s is not None:
            hold_us = round(options.hold_s * 1e6)
            self._round_tasks = self._clock.tasks_within(hold_us, self._wanted)
        gang = None if (shared.table.gang == NO_GANG).all() else shared.table.gang
        whole_queue = Capability.PLANS_WHOLE_QUEUE in environment.member.capabilities
        sizes = UnitSizes(shared.table, shared.catalog)
        hold_queue_us = head_of_line_us(options.head_of_line_s)
        skipped: SkippedUnits | None = None
        if hold_queue_us != 0 and not whole_queue and not sizes.are_alike:
            skipped = SkippedUnits(sizes, hold_queue_us, gang)
        self._waits = LockingQueue(gang, whole_queue, skipped)
        super().__init__(environment, AgentView(environment), self._waits)
        self.activity = Activity.IDLE
        self._in_vain = 0  # partitions looked at since a task was placed

    def on_started(self, now_us: int) -> list[Effect]:
        return [self._release()]

    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case LocksGranted():
                return self._granted_locks(event)
            case RetryDue(number):
                blocked = self.activity is Activity.BLOCKED_ON_CAPACITY and number == self.rounds
                return self.next(now_us) if blocked else []
        return super().on_event(now_us, event)

    def start_round(self, now_us: int) -> list[Effect]:
        """Ask for locks."""
        self.activity = Activity.WAITING_FOR_GRANT
        return [Send(self.cell_side, LockRequest(self.index, self.epoch, self._wanted))]

    def _granted_locks(self, event: LocksGranted) -> list[Effect]:
        """Ask the master for the state of the locked partitions. What is known of others is
        forgotten, so that the scheduler sees these only."""
        if event.epoch != self.epoch:
            return []  # meant for the agent before this host was restarted
        self.activity = Activity.SYNCING
        self.view.forget()
        return self.view.request(event.partition)

    def on_synced(self, now_us: int, reply: SyncReply) -> list[Effect]:
        return self.open_round(now_us)

    def compose(self, now_us: int, begins: bool) -> tuple[PartitionRanking, int | None]:
        return PartitionRanking.OPTIMISTIC, self._round_tasks

    def decision_us(self, elapsed_ns: int) -> int:
        """How long the round just planned takes to decide. Only locked partitions are looked at.

        Args:
            elapsed_ns: Wall time of decide(), used by Measured clocks only.
        """
        round_ = self.round
        assert round_ is not None and round_.plan is not None, "decide() comes first"
        plan = round_.plan
        too_large = np.count_nonzero(plan.pending_reason == PendingReason.TOO_LARGE)
        tasks = len(round_.offered) - int(too_large)
        round_.decision_us = self._clock.duration_us(
            tasks, tasks * self._wanted, plan.operations, elapsed_ns, plan.priced_machines
        )
        return round_.decision_us

    def on_decided(self, now_us: int, round_: Round) -> None:
        """Nothing is known before the outcome."""

    def transaction_number(self, round_: Round) -> int:
        """That of the round."""
        return round_.number

    def on_round_over(self, now_us: int, round_: Round, placed: int, lost: int) -> list[Effect]:
        """Release the locks and go on; after a pause if no partition has room."""
        self.record_holder(now_us)
        is_in_vain = not placed and (round_.blocked or lost > 0)
        self._in_vain = self._in_vain + self._wanted if is_in_vain else 0
        if self._in_vain < self._partitions * self._waits.turns(now_us):
            return [self._release(), *self.next(now_us)]
        self._in_vain = 0
        self.activity = Activity.BLOCKED_ON_CAPACITY
        return [self._release(), SetTimer(now_us + self._retry_us, RetryDue(self.rounds))]

    def _release(self) -> Send:
        """Give back all that it holds."""
        return Send(self.cell_side, LocksReleased(self.index, self.epoch))
