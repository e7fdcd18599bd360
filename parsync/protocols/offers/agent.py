"""The agent of the protocol of offers: it drives one scheduler on the room that it was offered.

One decision round: the queue's tasks are planned on the offers on hand, while these are held; after
the decision time the claims are committed, which accepts the offers that they rest on, and the
other offers are declined. Tasks without a place wait for the next offers.

A round is about the whole queue, because a framework of Mesos considers all its tasks when offers
come (as in Omega's simulator of Mesos). It takes the sum of the decision times of its jobs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.events import DecisionDone, SyncReply
from parsync.metrics.kinds.offers import OFFER_WAITS, TABLES
from parsync.protocols._native import looked_at
from parsync.protocols.offers.delay import DelayScheduling
from parsync.protocols.offers.events import (
    Offers,
    OffersAnswered,
    OffersRescinded,
    Revive,
    Subscribe,
    Suppress,
    TasksWanted,
)
from parsync.protocols.offers.offered_room import OfferedRoom
from parsync.protocols.pending_queue import AgentQueue, LoserPolicy, SchedulerQueue
from parsync.protocols.rounds import Activity, ClaimUnit, Round
from parsync.protocols.scheduler_agent import SchedulerAgent
from parsync.protocols.spec import AgentEnvironment
from schedulers.decision_clock import Modelled, ModelledByClass
from schedulers.interface import Capability, PendingReason, Plan
from shared_state.tasks import NO_GANG, Int64
from shared_state.transaction import CommitResult, Reason

_NONE: Int64 = np.zeros(0, np.int64)
# numpy compares with plain numbers three times as fast as with enums
_ACCEPTED, _DUPLICATE = int(Reason.ACCEPTED), int(Reason.DUPLICATE)
_WAITS = (Activity.IDLE, Activity.WAITING_FOR_GRANT, Activity.BLOCKED_ON_CAPACITY)
# rounds without a place after which tasks are given up: they never are
_FOR_EVER = 1 << 40


class OffersAgent(SchedulerAgent):
    """Drives one scheduler: an Agent (parsync.core.participant)."""

    own_tables = TABLES

    def __init__(self, environment: AgentEnvironment) -> None:
        shared, member = environment.shared, environment.member
        options = member.options
        gangs = None if (shared.table.gang == NO_GANG).all() else shared.table.gang
        self._keeps = Capability.KEEPS_PENDING in member.capabilities
        queue: AgentQueue | SchedulerQueue
        if self._keeps:
            queue = SchedulerQueue(True, gangs)
        else:
            queue = AgentQueue(LoserPolicy.BLOCK, _FOR_EVER, _FOR_EVER, gangs, True)
        self._room = OfferedRoom(environment)
        unit = ClaimUnit.CLAIM if gangs is None else ClaimUnit.GANG
        super().__init__(environment, self._room.view, queue, unit=unit)
        self.activity = Activity.IDLE
        self._locks = shared.options.lock
        self._says_wants = shared.options.granularity == "task"
        self._suppresses = options.suppress
        self._hoards = options.gangs == "hoard"
        self._delay: DelayScheduling | None = None
        if options.node_wait_s + options.rack_wait_s > 0:
            waits_us = (round(wait * 1e6) for wait in (options.node_wait_s, options.rack_wait_s))
            self._delay = DelayScheduling(shared, *waits_us)
        self._whole_decision = self._keeps or Capability.PLANS_WHOLE_QUEUE in member.capabilities
        self._is_suppressed = False
        self._answer: OffersAnswered | None = None  # of the round just decided
        # since when tasks have waited without an offer, and without one that they could use
        self._since_us: list[int | None] = [None, None]

    # Offers come and go.

    def on_started(self, now_us: int) -> list[Effect]:
        self._room.start(now_us)
        self._is_suppressed = self._suppresses
        return [
            Send(self.cell_side, Subscribe(self.index, self.epoch, self._is_suppressed)),
        ]

    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Offers():
                return self._on_offers(now_us, event) if event.epoch == self.epoch else []
            case OffersRescinded(epoch, offer):
                if epoch != self.epoch:
                    return []
                self._room.rescind(now_us, offer)
                # the tasks that this room was for; a round that is open says so at its end
                return self._wanted(now_us) if self.queued and self.activity in _WAITS else []
        return super().on_event(now_us, event)

    def _on_offers(self, now_us: int, event: Offers) -> list[Effect]:
        self._room.add(now_us, event)
        self._record_wait(now_us, 0)
        if self.activity not in _WAITS:
            return []
        return self.next(now_us) if self.queued else self._decline_all(now_us)

    def on_queued(self, now_us: int) -> list[Effect]:
        """Ask for offers, if the agent had no tasks before."""
        self._since_us = [now_us if since is None else since for since in self._since_us]
        effects = self._wanted(now_us)
        if self._is_suppressed:
            self._is_suppressed = False
            effects.append(Send(self.cell_side, Revive(self.index, self.epoch)))
        waits = self.activity in (Activity.IDLE, Activity.WAITING_FOR_GRANT) or (
            self.activity is Activity.BLOCKED_ON_CAPACITY and self.queue.has_new(now_us)
        )
        return effects + (self.next(now_us) if waits else [])

    def on_synced(self, now_us: int, reply: SyncReply) -> list[Effect]:
        raise TypeError("an agent that is offered room does not synchronise")

    # A round.

    def start_round(self, now_us: int) -> list[Effect]:
        """Begin at once if there are offers; they are held meanwhile."""
        if not len(self._room):
            self.activity = Activity.WAITING_FOR_GRANT
            return []
        self._room.begin_round()
        return self.open_round(now_us)

    def decide(self, decision: int, now_us: int) -> None:
        """Plan the open round on the offers on hand."""
        round_ = self.round
        assert round_ is not None, "a decision is of the open round"
        if self._delay is None:
            super().decide(decision, now_us)
        else:
            self._decide_with_delay(self._delay, round_, now_us)
        assert round_.plan is not None
        round_.synced_us = self._room.made_us(round_.plan.machine)

    def _decide_with_delay(self, delay: DelayScheduling, round_: Round, now_us: int) -> None:
        """Plan the tasks that some offer is near enough for, and leave those waiting that the
        scheduler puts elsewhere, with their gangs. Their room is not used in this round."""
        offered = round_.offered.task
        allowed = delay.allowed(now_us, offered)
        tries = delay.has_some(offered, allowed, self._room.machine)
        if self._unit is ClaimUnit.GANG:
            tries = self._with_gangs(offered, ~tries, tries)
        task = np.ascontiguousarray(offered[tries])
        planned = self._rounds.plan(task, round_.number, round_.ranking, now_us)
        plan, round_.ticket = planned.plan, planned.ticket
        by_task = np.argsort(task, kind="stable")
        row = by_task[np.searchsorted(task, plan.task, sorter=by_task)]
        near = delay.level(plan.task, plan.machine) <= allowed[tries][row]
        if self._unit is ClaimUnit.GANG:
            near = self._with_gangs(plan.task, ~near, near)
        passed_over = np.concatenate([offered[~tries], plan.task[~near]])
        waits = np.full(len(passed_over), PendingReason.WAITS_FOR_PREFERRED, np.int8)
        round_.plan = replace(
            plan,
            task=plan.task[near],
            machine=plan.machine[near],
            request=plan.request[near],
            gang=plan.gang[near],
            pending=np.concatenate([plan.pending, passed_over]),
            pending_reason=np.concatenate([plan.pending_reason, waits]),
        )
        delay.on_planned(now_us, passed_over, round_.plan.task, round_.plan.machine)

    def _with_gangs(
        self, task: Int64, left: NDArray[np.bool_], others: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """`others` without the gangs of tasks that are left, all bool[n]."""
        gang = self._shared.table.gang[task]
        gone = gang[left]
        return others & ~np.isin(gang, gone[gone != NO_GANG])

    def decision_us(self, elapsed_ns: int) -> int:
        """How long the round just planned takes to decide: the sum of what its jobs take, one after
        the other, up to the last task that was placed. Those after it fit nothing that is left of
        the offers, which takes no time to see. Schedulers that plan their queue as a whole take
        their own time.

        Args:
            elapsed_ns: Wall time of decide(), used by Measured clocks only.
        """
        round_ = self.round
        assert round_ is not None and round_.plan is not None, "decide() comes first"
        if self._whole_decision:
            return super().decision_us(elapsed_ns)
        plan, table, clock = round_.plan, self._shared.table, self._clock
        tasks, jobs, services, service_jobs, batch_jobs = looked_at(
            round_.offered.task, plan.task, table.job, table.task_class
        )
        scanned = tasks * self._room.partitions
        if isinstance(clock, ModelledByClass):
            decision_us = clock.by_class_us(
                tasks - services, services, scanned, plan.priced_machines
            )
            decision_us += clock.service.job_us * max(0, service_jobs - 1)
            decision_us += clock.batch.job_us * max(0, batch_jobs - 1)
        else:
            decision_us = clock.duration_us(
                tasks, scanned, plan.operations, elapsed_ns, plan.priced_machines
            )
            if isinstance(clock, Modelled):
                decision_us += clock.job_us * (jobs - 1)
        round_.decision_us = decision_us
        return decision_us

    def on_decided(self, now_us: int, round_: Round) -> None:
        """Accept the offers that the claims rest on, and decline the others."""
        super().on_decided(now_us, round_)
        plan, room = round_.plan, self._room
        assert plan is not None
        if round_.ticket >= 0:
            self.view.cell.withdraw(round_.ticket)  # the room leaves the view with the offers
        used = room.on_machines_of(plan.machine)
        kept = self._kept_for_gangs(round_, used)
        declined = room.in_round & ~used & ~kept & ~room.rescinded
        accepted = _NONE
        amount = np.zeros((0, room.width), np.int64)
        if self._locks:
            round_.holds = room.offer[used]
        else:
            rows = np.flatnonzero(used & ~room.rescinded)
            accepted, amount = room.offer[rows], self._claimed_of(plan, rows)
        if len(plan.task):
            self._record_wait(now_us, 1)
        if len(accepted) or declined.any():
            self._answer = OffersAnswered(
                self.index, self.epoch, accepted, amount, room.offer[declined]
            )
        room.end_round(now_us, kept)

    def _claimed_of(self, plan: Plan, rows: Int64) -> Int64:
        """What a plan claims of the offers at rows int64[n], int64[n, R]: of several on one machine
        the first are used up first."""
        offered, machines = self._room.amount, self._room.machine[rows].tolist()
        claimed = np.zeros((self._shared.cell.machines, self._room.width), np.int64)
        np.add.at(claimed, plan.machine, plan.request)
        amount = np.zeros((len(rows), self._room.width), np.int64)
        for place, (row, machine) in enumerate(zip(rows.tolist(), machines, strict=True)):
            amount[place] = np.minimum(offered[row], claimed[machine])
            claimed[machine] -= amount[place]
        return amount

    def _kept_for_gangs(self, round_: Round, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The offers, bool[n], that are hoarded for the first gang that found no room: those that
        hold one of its tasks, until they hold all, or the rest if they do not."""
        room, plan, table = self._room, round_.plan, self._shared.table
        kept = np.zeros(len(room), np.bool_)
        if not self._hoards or plan is None or not len(plan.pending):
            return kept
        lacks = plan.pending[
            (plan.pending_reason == PendingReason.NO_ROOM) & (table.gang[plan.pending] != NO_GANG)
        ]
        if not len(lacks):
            return kept
        gang = table.gang[lacks[0]]
        members = lacks[table.gang[lacks] == gang]
        request = table.request[members].max(axis=0)
        asks = request > 0
        rows = np.flatnonzero(room.in_round & ~used & ~room.rescinded)
        holds = (room.amount[rows][:, asks] // request[asks]).min(axis=1)
        before = np.cumsum(holds) - holds
        kept[rows[(holds > 0) & (before < len(members))]] = True
        return kept

    def on_outcome(
        self, now_us: int, round_: Round, result: CommitResult, first_commits: int, delay_us: int
    ) -> None:
        """Count the claims on accepted offers that failed."""
        failed = (result.reason != _ACCEPTED) & (result.reason != _DUPLICATE)
        if failed.any():
            self._add_row(now_us, failed=int(np.count_nonzero(failed)))

    def on_round_over(self, now_us: int, round_: Round, placed: int, lost: int) -> list[Effect]:
        """Go on with the offers that came meanwhile."""
        if self.queued:
            self._since_us = [now_us if since is None else since for since in self._since_us]
            return [*self._wanted(now_us), *self._next_after(now_us, round_)]
        self._since_us = [None, None]
        effects = self._decline_all(now_us)
        self.activity = Activity.IDLE
        if self._suppresses and not self._is_suppressed:
            self._is_suppressed = True
            effects.append(Send(self.cell_side, Suppress(self.index, self.epoch)))
        return effects

    def _wanted(self, now_us: int) -> list[Effect]:
        """Say how large the tasks are that wait, and how many of each size, where the allocator
        offers room for tasks."""
        if not self._says_wants:
            return []
        task = np.concatenate([part.task for part in self.waiting(now_us)])
        if not len(task):
            return []
        request = self._shared.table.request[task]
        sizes, first, tasks = np.unique(request, axis=0, return_index=True, return_counts=True)
        order = np.argsort(first)
        wanted = TasksWanted(self.index, self.epoch, sizes[order], tasks[order])
        return [Send(self.cell_side, wanted)]

    def _decline_all(self, now_us: int) -> list[Effect]:
        if not len(self._room):
            return []
        offer = self._room.remove_all(now_us)
        none = np.zeros((0, self._room.width), np.int64)
        return [Send(self.cell_side, OffersAnswered(self.index, self.epoch, _NONE, none, offer))]

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        effects = super().handle(now_us, event)
        if isinstance(event, DecisionDone) and self._answer is not None:
            effects.append(Send(self.cell_side, self._answer))
            self._answer = None
        return effects

    # Measurements.

    def _record_wait(self, now_us: int, which: int) -> None:
        """An offer has come (0), or one that was used (1): record how long tasks had waited."""
        since_us = self._since_us[which]
        if since_us is None:
            return
        # the next wait is for the next offer
        self._since_us[which] = None
        waited_us = now_us - since_us
        if which == 0:
            self._add_row(now_us, offers=1, first_us=waited_us)
        else:
            self._add_row(now_us, usable=1, usable_us=waited_us)

    def _add_row(
        self,
        now_us: int,
        offers: int = 0,
        first_us: int = 0,
        usable: int = 0,
        usable_us: int = 0,
        failed: int = 0,
    ) -> None:
        columns = offers, first_us, usable, usable_us, failed
        self.log.records.add(OFFER_WAITS, 1, now_us, self.index, *columns)
