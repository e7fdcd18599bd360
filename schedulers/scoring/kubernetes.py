"""Kubernetes' scheduling queue and its priority preemption.

After pkg/scheduler/internal/queue/scheduling_queue.go and
pkg/scheduler/framework/preemption/preemption.go. A task that finds no room, and one whose claim is
rejected, has failed an attempt and waits:

    new --> ACTIVE --- finds a machine ----------------------------> claimed
              ^   \\
              |    \\-- none ------> UNSCHEDULABLE --- an event, or 5 minutes ---> BACKING OFF
              |    \\-- nominated -------------------------------------------------^   |
              |             claim rejected ----------------------------------------^   |
              +------------------------ its back-off is over ---------------------------+

There is an *event* when the view shows more room on some machine than at the end of the last plan,
or a machine that has come up. The back-off counts from the failed attempt, and doubles with each.

With priority preemption the scheduler looks, for a task that finds no room, for a machine where it
fits once tasks of lower priority have ended. The task is *nominated* to that machine, and backs
off. Meanwhile tasks of equal or lower priority see its room there as taken. At its next attempt it
claims the machine, and those tasks whose room it still needs end with the same transaction. If it
does not fit there any more, it is tried like any other task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedulers import _native
from schedulers.interface import (
    NONE,
    ChangeKind,
    PendingReason,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.running_tasks import FirstSeen, RunningTasks
from schedulers.scoring.scheduler import ScoringRule, ScoringScheduler
from shared_state.tasks import NO_GANG, Int32, Int64, TaskBatch
from shared_state.view import ClusterView

_HIGHEST = (1 << 31) - 1  # of the priorities that a task may have
_CLOSED = 1 << 50  # more than any machine has
# what a plan may do to a running task, as in native/priority_preemption.hpp
_RUNS_ON, _MAY_END, _ENDS = np.uint8(0), np.uint8(1), np.uint8(2)


@dataclass(frozen=True, slots=True)
class QueueRules:
    """How long tasks wait, and whether they preempt.

    Attributes:
        initial_backoff_us, max_backoff_us: The back-off after the first failed attempt, and the
            longest.
        max_unschedulable_us: After which time without an event a task is tried again.
        preempts: Whether tasks of lower priority may be ended.
        candidate_percentage, candidates_at_least: How many of the machines that could make room are
            compared.
    """

    initial_backoff_us: int
    max_backoff_us: int
    max_unschedulable_us: int
    preempts: bool
    candidate_percentage: int
    candidates_at_least: int

    def backoffs_us(self) -> Int64:
        """The back-off after 0, 1, 2, ... failed attempts, up to the longest."""
        found, backoff_us = [0], self.initial_backoff_us
        while backoff_us < self.max_backoff_us:
            found.append(backoff_us)
            backoff_us *= 2
        return np.array([*found, self.max_backoff_us], np.int64)


class _Nomination(NamedTuple):
    """A machine that a task is nominated to, and the allocations, int64[v], that end for it."""

    machine: int
    priority: int
    request: Int64  # [1, R]
    victims: Int64


class _Waiting(NamedTuple):
    """The tasks in the queue, n of them.

    Attributes:
        tasks: The tasks.
        attempts: int64[n], those that failed.
        since_us: int64[n], when the last one did; of a new task, when it was offered.
        unschedulable: bool[n], which wait for an event.
    """

    tasks: TaskBatch
    attempts: Int64
    since_us: Int64
    unschedulable: NDArray[np.bool_]

    def take(self, rows: NDArray[np.bool_]) -> _Waiting:
        return _Waiting(
            self.tasks.take(rows),
            self.attempts[rows],
            self.since_us[rows],
            self.unschedulable[rows],
        )

    def join(self, other: _Waiting) -> _Waiting:
        return _Waiting(
            TaskBatch.concatenate([self.tasks, other.tasks]),
            np.concatenate([self.attempts, other.attempts]),
            np.concatenate([self.since_us, other.since_us]),
            np.concatenate([self.unschedulable, other.unschedulable]),
        )


class _Running:
    """The running tasks that may end, by machine; on a machine the most important first.

    Attributes:
        tasks: The tasks, n of them.
        fate: uint8[n], _MAY_END, or _ENDS for those that the plan under way ends already.
        lowest: The lowest priority.
    """

    def __init__(self, running: RunningTasks, since_us: Int64, machines: int) -> None:
        order = np.lexsort(
            (running.allocation, since_us, -running.priority.astype(np.int64), running.machine)
        )
        self.tasks = running.take(order)
        self.fate: NDArray[np.uint8] = np.full(len(order), _MAY_END, np.uint8)
        self.lowest = int(running.priority.min(initial=_HIGHEST))
        offsets = np.searchsorted(self.tasks.machine, np.arange(machines + 1))
        self._columns = (
            offsets.astype(np.int64),
            self.tasks.priority,
            since_us[order],
            self.tasks.request,
        )

    def columns(self, of: Int64 | None = None) -> tuple[object, ...]:
        """As native code takes them. of: the allocations that may end, int64[v]; None: all."""
        if of is None:
            return (*self._columns, self.fate)
        runs_on = (self.fate == _MAY_END) & ~np.isin(self.tasks.allocation, of)
        return (*self._columns, np.where(runs_on, _RUNS_ON, self.fate))


class QueueingScheduler(ScoringScheduler):
    """Places tasks as the kind `kubernetes` does, from Kubernetes' scheduling queue.

    Each plan tries the tasks that are active, one after the other: those of higher priority first,
    then those that have waited longer since their last attempt. Gangs are tried together, at the
    priority of their most important task, and do not preempt.

    The successor of a lost scheduler does not know how often tasks have failed, and which are
    nominated. All tasks that wait are new to it, as to a Kubernetes scheduler that starts again.
    (Kubernetes reads nominations from the pods.)

    Args:
        rule: The rule of the kind.
        rules: Of the queue.
        environment: Where the scheduler lives.
    """

    def __init__(
        self, rule: ScoringRule, rules: QueueRules, environment: SchedulerEnvironment
    ) -> None:
        super().__init__(rule, environment)
        self.rules = rules
        self._backoffs_us = rules.backoffs_us()
        none = np.zeros(0, np.int64)
        nobody = TaskBatch.empty(len(environment.cell.dimensions))
        self._waiting = _Waiting(nobody, none, none, np.zeros(0, np.bool_))
        self.nominations: dict[int, _Nomination] = {}  # by task
        # The failed attempts of tasks whose claims are under way, if there are any; and of those
        # whose claims were rejected, with the time.
        self._claimed: dict[int, int] = {}
        self._rejected: dict[int, tuple[int, int]] = {}
        self._seen: Int64 | None = None  # what was free at the end of the last plan
        self._first_seen = FirstSeen()
        self._running: tuple[RunningTasks, _Running] | None = None  # those of the last plan
        self._machines = environment.cell.machines

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        now_us = context.now_us
        self._move_unschedulable(view, now_us)
        self._add(tasks, now_us)
        rows, level = self._active(now_us)
        self.begin_work(len(rows))
        if not len(rows) and not len(tasks):
            nobody = tasks, np.zeros(0, np.int32)
            self._remember_room(view, *nobody)
            return Plan.from_machines(
                *nobody, operations=self.operations, retry_at_us=self._next_attempt_us()
            )
        cycle = _Cycle(self, self._waiting.tasks, level, view, context)
        try:
            machine = cycle.try_all(rows)
        finally:
            cycle.end()
        placed = machine >= 0
        claims, machine = self._waiting.take(placed), machine[placed]
        self._fail(rows, now_us)
        self._claim(claims)
        self._waiting = self._waiting.take(~placed)
        left = np.isin(self._waiting.tasks.task, tasks.task)
        self._remember_room(view, claims.tasks, machine)
        return Plan(
            task=claims.tasks.task,
            machine=machine,
            request=claims.tasks.request,
            gang=claims.tasks.gang,
            evict=cycle.evicted,
            pending=self._waiting.tasks.task[left],
            pending_reason=np.where(
                self._waiting.since_us[left] == now_us,
                np.int8(PendingReason.NO_ROOM),
                np.int8(PendingReason.HELD_BACK),
            ),
            operations=self.operations,
            retry_at_us=self._next_attempt_us(),
        )

    def observe(self, changes: TaskChanges) -> None:
        """Learn which claims were rejected, and which tasks run."""
        if changes.kind is ChangeKind.REJECTED:
            for task in changes.task.tolist():
                self._rejected[task] = self._claimed.pop(task, 0) + 1, changes.at_us
        elif changes.kind is ChangeKind.COMMITTED and self._claimed:
            for task in changes.task.tolist():
                self._claimed.pop(task, None)
        elif changes.kind is ChangeKind.ADOPTED:
            runs = np.isin(self._waiting.tasks.task, changes.task)
            for task in self._waiting.tasks.task[runs].tolist():
                self.nominations.pop(task, None)
            self._waiting = self._waiting.take(~runs)

    # What waits.

    def _add(self, tasks: TaskBatch, now_us: int) -> None:
        """Add tasks that were offered: new ones, and those whose claims were rejected."""
        if not len(tasks):
            return
        attempts, since_us = np.zeros(len(tasks), np.int64), np.full(len(tasks), now_us, np.int64)
        if self._rejected:
            for row, task in enumerate(tasks.task.tolist()):
                if task in self._rejected:
                    attempts[row], since_us[row] = self._rejected.pop(task)
        added = _Waiting(tasks, attempts, since_us, np.zeros(len(tasks), np.bool_))
        self._waiting = self._waiting.join(added) if len(self._waiting.attempts) else added

    def _move_unschedulable(self, view: ClusterView, now_us: int) -> None:
        """Let tasks that wait for an event back off if there was one, or if they waited long."""
        waiting = self._waiting
        if not waiting.unschedulable.any():
            return
        if self._seen is not None and bool((view.free > self._seen).any()):
            waiting.unschedulable[:] = False
        over = waiting.since_us <= now_us - self.rules.max_unschedulable_us
        waiting.unschedulable[over] = False

    def _due_us(self) -> Int64:
        """When each task becomes active if there is no event before, int64[n]: a gang once all of
        its tasks are."""
        waiting = self._waiting
        last = len(self._backoffs_us) - 1
        wait_us = self._backoffs_us[np.minimum(waiting.attempts, last)]
        wait_us[waiting.unschedulable] = self.rules.max_unschedulable_us
        due_us: Int64 = waiting.since_us + wait_us
        for members in self._gangs():
            due_us[members] = due_us[members].max()
        return due_us

    def _gangs(self) -> list[NDArray[np.intp]]:
        """The rows of each gang that waits."""
        gang = self._waiting.tasks.gang
        if not (gang != NO_GANG).any():
            return []
        gangs = np.unique(gang[gang != NO_GANG]).tolist()
        return [np.flatnonzero(gang == one) for one in gangs]

    def _active(self, now_us: int) -> tuple[NDArray[np.intp], Int64]:
        """The rows of the tasks to try, in order, and the priority of every task, int64[n]: of a
        gang the highest."""
        waiting = self._waiting
        level, since_us = waiting.tasks.priority.astype(np.int64), waiting.since_us.copy()
        place = np.arange(len(level))
        for members in self._gangs():
            level[members] = level[members].max()
            since_us[members] = since_us[members].max()
            place[members] = members[0]
        rows = np.flatnonzero(self._due_us() <= now_us)
        order = np.lexsort((rows, place[rows], since_us[rows], -level[rows]))
        return rows[order], level

    def _fail(self, rows: NDArray[np.intp], now_us: int) -> None:
        """These tasks have had an attempt; for those that are claimed it may fail later."""
        waiting = self._waiting
        waiting.attempts[rows] += 1
        waiting.since_us[rows] = now_us
        waiting.unschedulable[rows] = True
        if self.nominations:
            nominated = np.fromiter(self.nominations, np.int64, len(self.nominations))
            waiting.unschedulable[rows] = ~np.isin(waiting.tasks.task[rows], nominated)

    def _claim(self, claims: _Waiting) -> None:
        """Tasks leave the queue, for their claims may be accepted."""
        again = claims.attempts > 0
        for task, attempts in zip(
            claims.tasks.task[again].tolist(), claims.attempts[again].tolist(), strict=True
        ):
            self._claimed[task] = attempts

    def _remember_room(self, view: ClusterView, claims: TaskBatch, machine: Int32) -> None:
        """What is free once the claims of this plan have been taken out of the view."""
        if not self._waiting.unschedulable.any():
            self._seen = None
            return
        self._seen = view.free.copy()
        np.subtract.at(self._seen, machine, claims.request)

    def _next_attempt_us(self) -> int | None:
        """When the next task becomes active, if there is no event before."""
        return int(self._due_us().min()) if len(self._waiting.attempts) else None

    # What the attempts of a plan need.

    def running(self, context: PlanContext) -> _Running | None:
        """The running tasks that may end; None for a scheduler that preempts none."""
        running = context.running
        if not self.rules.preempts or running is None:
            return None
        if self._running is None or self._running[0] is not running:
            since_us = self._first_seen.since_us(running.allocation, context.now_us)
            self._running = running, _Running(running, since_us, self._machines)
        return self._running[1]

    def make_room(
        self, tasks: TaskBatch, row: int, view: ClusterView, running: _Running
    ) -> tuple[int, Int64]:
        """The machine where ending tasks makes room for one without any, -1: none, and which of the
        running tasks end there, int64[v]."""
        machine, victims, looked_at = self._scorer.make_room(
            view,
            tasks.request[row],
            int(tasks.priority[row]),
            int(tasks.preference[row]),
            self.rules.candidate_percentage,
            self.rules.candidates_at_least,
            *running.columns(),
        )
        self.looked_at += looked_at
        return machine, victims

    def victims_of(
        self, nomination: _Nomination, view: ClusterView, running: _Running
    ) -> Int64 | None:
        """Which of a nominated task's victims still have to end, int64[v]; None: it does not fit
        on its machine even then."""
        machine, victims, looked_at = _native.select_victims(
            view,
            nomination.request[0],
            nomination.priority,
            nomination.machine,
            *running.columns(nomination.victims),
        )
        self.looked_at += looked_at
        return victims if machine >= 0 else None


class _Cycle:
    """The attempts of one plan. While it lasts, the view shows as taken what the plan claims, and
    what nominated tasks of the priority at hand or above are to get.

    Args:
        scheduler: The scheduler.
        tasks: The tasks of its queue, n of them.
        level: int64[n], their priorities, those of gangs made equal.
        view, context: Of the plan.

    Attributes:
        evicted: The allocations that end, int64[e].
    """

    def __init__(
        self,
        scheduler: QueueingScheduler,
        tasks: TaskBatch,
        level: Int64,
        view: ClusterView,
        context: PlanContext,
    ) -> None:
        self._scheduler, self._tasks, self._level = scheduler, tasks, level
        self._view, self._context = view, context
        self._running = scheduler.running(context)
        self._nominations = scheduler.nominations
        self._machine: Int32 = np.full(len(tasks), -1, np.int32)
        self._tickets: list[int] = []  # of claims
        self._shown: dict[int, int] = {}  # tickets of nominations, by task
        # The highest priority of those that end, by machine, while it is open to higher ones.
        self._victims: dict[int, int] = {}
        self._has_drawn = False
        self.evicted: Int64 = NONE

    def try_all(self, rows: NDArray[np.intp]) -> Int32:
        """Try tasks in order. Returns a machine for each task of the queue, int32[n], -1: none."""
        if self._running is None:
            self._search(rows, False)
            return self._machine
        level, task = self._level[rows], self._tasks.task[rows]
        gang = self._tasks.gang[rows]
        at, end = 0, 0
        while at < len(rows):
            if end <= at or level[at] != level[at - 1]:
                end = int(np.searchsorted(-level, -level[at], side="right"))
                self._show(int(level[at]))
            if int(task[at]) in self._nominations:
                self._retry(int(rows[at]))
                at += 1
                continue
            nominated = (i for i in range(at + 1, end) if int(task[i]) in self._nominations)
            preempts = self._running.lowest < int(level[at])
            at += self._search(rows[at : next(nominated, end)], preempts)
            last = int(rows[at - 1])
            if preempts and self._machine[last] < 0 and gang[at - 1] == NO_GANG:
                self._nominate(last, self._running)
        return self._machine

    def end(self) -> None:
        """Leave the view as it was."""
        for ticket in (*self._tickets, *self._shown.values()):
            self._view.withdraw(ticket)

    def _search(self, rows: NDArray[np.intp], stop_at_wait: bool) -> int:
        """Try tasks by the rule of the kind, up to the first one without room if stop_at_wait.
        Returns how many were tried."""
        tasks = self._tasks.take(rows)
        machine, tried = self._scheduler.search(
            tasks, self._view, self._context, continues=self._has_drawn, stop_at_wait=stop_at_wait
        )
        self._has_drawn = True
        self._machine[rows] = machine
        placed = np.flatnonzero(machine >= 0)
        if len(placed) and self._running is not None:  # others may follow
            self._take(machine[placed], tasks.request[placed])
        return tried

    def _take(self, machine: Int32, request: Int64) -> None:
        self._tickets.append(self._view.claim(machine, request))

    def _show(self, level: int) -> None:
        """Show what tasks of this priority see as taken, which are the next to be tried."""
        for task, nomination in self._nominations.items():
            if nomination.priority >= level and task not in self._shown:
                self._show_one(task, nomination)
        # Where tasks end, all claims have to be of higher priority than these.
        for machine, highest in list(self._victims.items()):
            if highest >= level:
                del self._victims[machine]
                closed = np.full((1, self._tasks.request.shape[1]), _CLOSED)
                self._take(np.array([machine], np.int32), closed)

    def _show_one(self, task: int, nomination: _Nomination) -> None:
        machine = np.array([nomination.machine], np.int32)
        self._shown[task] = self._view.claim(machine, nomination.request)

    def _forget(self, task: int) -> _Nomination:
        """A task is not nominated any more."""
        if task in self._shown:
            self._view.withdraw(self._shown.pop(task))
        return self._nominations.pop(task)

    def _retry(self, row: int) -> None:
        """Try a nominated task on its machine, and then on all."""
        assert self._running is not None, "tasks are nominated by schedulers that preempt"
        nomination = self._forget(int(self._tasks.task[row]))
        chosen = self._scheduler.victims_of(nomination, self._view, self._running)
        if chosen is None:
            self._search(np.array([row]), True)
            if self._machine[row] < 0:
                self._nominate(row, self._running)
            return
        machine = nomination.machine
        self._machine[row] = machine
        self._take(np.array([machine], np.int32), nomination.request)
        if len(chosen):
            running = self._running.tasks
            self.evicted = np.concatenate([self.evicted, running.allocation[chosen]])
            self._running.fate[chosen] = _ENDS
            highest = int(running.priority[chosen].max())
            self._victims[machine] = max(self._victims.get(machine, highest), highest)

    def _nominate(self, row: int, running: _Running) -> None:
        """Look for a machine where ending tasks makes room for one without any."""
        tasks, priority = self._tasks, int(self._tasks.priority[row])
        if running.lowest >= priority:
            return
        machine, victims = self._scheduler.make_room(tasks, row, self._view, running)
        if machine < 0:
            return
        for task, other in list(self._nominations.items()):
            if other.machine == machine and other.priority < priority:
                self._forget(task)
        nomination = _Nomination(
            machine,
            priority,
            tasks.request[row : row + 1].copy(),
            running.tasks.allocation[victims],
        )
        self._nominations[int(tasks.task[row])] = nomination
        self._show_one(int(tasks.task[row]), nomination)
