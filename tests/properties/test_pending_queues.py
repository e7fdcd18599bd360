"""The queues of agents against a model of lists, slow and simple, under random orders: what they
offer, give up, pause and explain is the same, whatever the options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsync.core.queued_tasks import NO_TASKS, QueuedTasks, SkippedUnits, UnitSizes
from parsync.core.quotas import TaskQuotas
from parsync.metrics.tables import NOBODY, Waiting
from parsync.protocols.agent_quota import QuotaAccount
from parsync.protocols.pending_queue import (
    NO_EXITS,
    AgentQueue,
    LoserPolicy,
    SchedulerQueue,
)
from parsync.protocols.rounds import Round
from schedulers.interface import PartitionRanking, PendingReason, Plan
from shared_state.tasks import NOWHERE_ELSE, PreferenceCatalog, TaskBatch
from tests.unit.agent_bench import make_table

TASKS, GROUPS, NOT_YET = 48, 2, -1
NO_ROOM, TOO_LARGE = int(PendingReason.NO_ROOM), int(PendingReason.TOO_LARGE)
PREFERRED = int(PendingReason.WAITS_FOR_PREFERRED)
Batch = tuple[list[int], int, bool]  # tasks, rounds in vain, some placed
NOTHING: Batch = ([], 0, False)


def joined(*batches: Batch) -> Batch:
    """Only a batch that stays by itself keeps its rounds."""
    parts = [batch for batch in batches if batch[0]]
    return parts[0] if len(parts) == 1 else ([task for part in parts for task in part[0]], 0, False)


@dataclass
class Options:
    """As drawn."""

    table: TaskBatch
    losers: LoserPolicy
    whole_queue: bool
    attempts_max: int
    attempts_max_unplaced: int
    group: np.ndarray | None  # of each task; None without an account
    is_own_limit: bool
    passes: bool
    head_of_line_us: int | None
    jobs_max: int | None
    constrained: np.ndarray  # bool[tasks]
    gives_up: bool  # jobs, after attempts_max; then rounds do not overlap


@dataclass
class Model:
    """An agent's queue as lists of task ids."""

    options: Options
    line: list[tuple[int, int, int, Batch]] = field(default_factory=list)  # group, level, number
    current: Batch = NOTHING
    tried: dict[int, tuple[int, bool]] = field(default_factory=dict)  # of jobs; some were placed
    losers: list[tuple[list[int], int]] = field(default_factory=list)
    skipped: list[list[Any]] = field(default_factory=list)  # tasks, since_us, view
    without_room: list[int] = field(default_factory=list)
    paused: dict[int, Batch] = field(default_factory=dict)
    pauses: int = 0
    numbers: list[int] = field(default_factory=lambda: [0, 0])  # of the last and the first in line
    place: int | None = None
    view: int = 0
    full: list[tuple[int, bool, list[int]]] = field(default_factory=list)
    turn: int = 0
    turn_is_old: bool = False
    passed_on: bool = True
    released: dict[int, int] = field(default_factory=dict)
    offered_from: tuple[int | None, int] = (None, NOT_YET)
    held: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    granted: np.ndarray | None = None
    held_back: dict[int, list[list[int]]] = field(default_factory=dict)
    admitted: dict[int, set[int]] = field(default_factory=dict)

    # the account

    def room(self, group: int, besides: list[int]) -> np.ndarray:
        assert self.granted is not None and self.options.group is not None
        counted = [t for t in self.held + self.ended + besides if self.options.group[t] == group]
        return self.granted[group] - self.options.table.request[counted].sum(axis=0)

    def fits(self, tasks: list[int], group: int, besides: list[int]) -> bool:
        request = self.options.table.request[tasks]
        asked = request.sum(axis=0)
        return bool(((asked <= self.room(group, besides)) | (asked == 0)).all())

    def within(self, tasks: list[int]) -> list[int]:
        if self.options.group is None:
            return tasks
        ahead: list[list[int]] = [[] for _ in range(GROUPS)]
        stopped: set[int] = set()
        kept: list[int] = []
        for task in tasks:
            group = int(self.options.group[task])
            request = self.options.table.request[task]
            room = self.room(group, ahead[group])
            if group in stopped or not ((request <= room) | (request == 0)).all():
                stopped.add(group)
                continue
            ahead[group].append(task)
            kept.append(task)
        gang = self.options.table.gang
        torn = {int(gang[task]) for task in tasks if task not in kept} - {-1}
        return [task for task in kept if gang[task] not in torn]

    def split(self, tasks: list[int], limit: int | None) -> int:
        gang = self.options.table.gang
        ends = [
            i
            for i in range(1, len(tasks) + 1)
            if i == len(tasks) or gang[tasks[i]] == -1 or gang[tasks[i]] != gang[tasks[i - 1]]
        ]
        if limit is None or limit >= len(tasks):
            return len(tasks)
        return max([end for end in ends if end <= limit], default=min(ends))

    # lines

    def insert(self, batch: Batch, step: int) -> None:
        if not batch[0]:
            return
        self.numbers[step < 0] += step
        number = self.numbers[step < 0]
        table, options = self.options.table, self.options
        keys: dict[tuple[int, int], list[int]] = {}
        for task in batch[0]:
            group = 0 if options.group is None else int(options.group[task])
            by_priority = options.group is not None and not options.is_own_limit
            level = -int(table.priority[task]) if by_priority else 0
            keys.setdefault((group, level), []).append(task)
        for (group, level), tasks in keys.items():
            self.line.append((group, level, number, (tasks, *batch[1:])))
        self.line.sort(key=lambda entry: entry[:3])

    def heads(self, before: list[int]) -> list[tuple[int, int, int, Batch]]:
        found = []
        for group in range(GROUPS):
            mine = [entry for entry in self.line if entry[0] == group]
            if mine and self.head_fits(mine[0][3][0], group, before):
                found.append(mine[0])
        return found

    def head_fits(self, tasks: list[int], group: int, before: list[int]) -> bool:
        if self.options.group is None:
            return True
        gang = self.options.table.gang
        first = [t for t in tasks if t == tasks[0] or gang[t] == gang[tasks[0]] != -1]
        before = [t for t in before if self.options.group[t] == group]
        asks = self.options.table.request[first].sum(axis=0) > 0
        wanted = self.options.table.request[first + before].sum(axis=0)
        return bool(((wanted <= self.room(group, [])) | ~asks).all())

    def new_heads(self) -> list[tuple[int, int, int, Batch]]:
        if not self.options.whole_queue:
            return []
        return [head for head in self.heads(self.current[0]) if not head[3][1]]

    def keep_within(self, batch: Batch) -> Batch:
        fit = self.within(batch[0])
        others = [task for task in batch[0] if task not in fit]
        self.insert((others, *batch[1:]), -1)
        return (fit, *batch[1:])

    # those skipped

    def first_waited(self, now_us: int) -> bool:
        most = self.options.head_of_line_us
        return bool(self.skipped) and most is not None and now_us - self.skipped[0][1] >= most

    def holds(self, now_us: int) -> bool:
        return self.first_waited(now_us) and bool(self.within(self.skipped[0][0]))

    def unit_sizes(self, tasks: list[int]) -> list[tuple[int, bool, list[int]]]:
        """Members, constraint, and the largest request of each unit that has one constraint."""
        table, sizes = self.options.table, []
        units = [[t] for t in tasks if table.gang[t] == -1]
        gangs = sorted({int(table.gang[t]) for t in tasks} - {-1})
        units += [[t for t in tasks if table.gang[t] == gang] for gang in gangs]
        for unit in units:
            kinds = {bool(self.options.constrained[t]) for t in unit}
            if len(kinds) == 1:
                largest = table.request[unit].max(axis=0).tolist()
                sizes.append((len(unit), kinds.pop(), largest))
        return sizes

    def cannot_fit(self, tasks: list[int]) -> bool:
        """Whether each unit is at least as large as one that found no room in this view: by the
        least of all its units, and by its constraint if all have the same."""
        table = self.options.table
        gangs = [int(table.gang[t]) for t in tasks]
        count = 1 if -1 in gangs else min(gangs.count(gang) for gang in gangs)
        kinds = {bool(self.options.constrained[t]) for t in tasks}
        least = table.request[tasks].min(axis=0).tolist()
        return any(
            members <= count
            and (not constraint or kinds == {True})
            and all(a <= b for a, b in zip(request, least, strict=True))
            for members, constraint, request in self.full
        )

    def next_due(self, start: int) -> int | None:
        for place in range(start, len(self.skipped)):
            entry = self.skipped[place]
            if entry[2] == self.view:
                continue
            if self.cannot_fit(entry[0]):
                entry[2] = self.view
            elif self.within(entry[0]):
                return place
        return None

    def due(self, now_us: int, others: bool) -> int | None:
        if self.holds(now_us):
            return 0 if self.skipped[0][2] != self.view else None
        found = self.next_due(self.turn)
        if found is None and self.turn_is_old and (self.passed_on or not others):
            found = self.next_due(0)
        return found

    # the queue

    def has_batch(self) -> bool:
        return bool(self.within(self.current[0])) or bool(self.heads([]))

    def has_losers(self) -> bool:
        while self.losers:
            tasks, since_us = self.losers.pop(0)
            tasks = self.keep_within((tasks, 0, False))[0]
            if tasks:
                self.losers.insert(0, (tasks, since_us))
                return True
        return False

    def has_more(self, now_us: int) -> bool:
        if self.has_losers():
            return True
        batch = self.has_batch()
        return self.due(now_us, batch) is not None or (batch and not self.holds(now_us))

    def has_new(self, now_us: int) -> bool:
        return self.has_more(now_us) if self.options.passes else bool(self.new_heads())

    @property
    def has_waiting(self) -> bool:
        limited = self.options.is_own_limit and bool(self.current[0] or self.line)
        return limited or bool(self.skipped)

    def has_next(self, now_us: int, view_changed: bool) -> bool:
        if self.options.is_own_limit and view_changed:
            self.ended.clear()
        if not self.options.passes:
            return self.has_batch()
        offers = any(self.within(entry[0]) for entry in self.skipped)
        return self.has_more(now_us) or (view_changed and offers)

    def add(self, tasks: list[int]) -> None:
        if self.options.jobs_max is None:
            return self.insert((tasks, 0, False), +1)
        by_job: dict[int, list[int]] = {}
        for task in tasks:
            by_job.setdefault(int(self.options.table.job[task]), []).append(task)
        for job, mine in by_job.items():
            if job in self.admitted or len(self.admitted) < self.options.jobs_max:
                self.admitted.setdefault(job, set()).update(mine)
                self.insert((mine, 0, False), +1)
            else:
                self.held_back.setdefault(job, []).append(mine)

    def leave(self, tasks: list[int]) -> bool:
        for task in tasks:
            job = int(self.options.table.job[task])
            if job in self.admitted:
                self.admitted[job].discard(task)
                if not self.admitted[job]:
                    del self.admitted[job]
        more = False
        while self.held_back and len(self.admitted) < (self.options.jobs_max or 0):
            job = next(iter(self.held_back))
            for mine in self.held_back.pop(job):
                self.admitted.setdefault(job, set()).update(mine)
                self.insert((mine, 0, False), +1)
            more = True
        return more

    def next_batch(self, now_us: int, view_changed: bool) -> int | None:
        self.place = None
        if self.options.passes:
            while self.first_waited(now_us) and not self.holds(now_us):
                tasks, since_us, _ = self.skipped.pop(0)
                self.turn = max(0, self.turn - 1)
                self.released[tasks[0]] = since_us
                self.insert((tasks, 0, False), -1)
            if view_changed:
                if self.next_due(self.turn) is None:
                    self.turn = len(self.skipped)
                self.view, self.full, self.turn_is_old = self.view + 1, [], True
            if self.has_losers():
                return 0
            self.place = self.due(now_us, self.has_batch())
            if self.place is not None:
                return 0
            if self.holds(now_us):
                return None
        return self.begin_batch()

    def begin_batch(self) -> int | None:
        if self.new_heads():
            taken = []
            for head in self.heads(self.current[0]):
                for entry in [entry for entry in self.line if entry[0] == head[0]]:
                    if not entry[3][1]:
                        taken.append(entry)
                    elif self.options.group is not None:
                        break
            self.line = [entry for entry in self.line if entry not in taken]
            taken.sort(key=lambda entry: entry[2])
            self.current = joined(self.current, *(entry[3] for entry in taken))
            return len(self.current[0])
        if self.within(self.current[0]):
            return 0
        heads = self.heads([])
        if not heads:
            return None
        self.insert(self.current, -1)
        group = min(heads, key=lambda head: head[2])[0]
        entry = next(entry for entry in self.line if entry[0] == group)
        self.line.remove(entry)
        self.current = entry[3]
        return len(self.current[0])

    def take(self, limit: int | None) -> Batch:
        if self.losers:
            tasks, since_us = self.losers.pop(0)
            count = self.split(tasks, limit)
            if tasks[count:]:
                self.losers.insert(0, (tasks[count:], since_us))
            self.offered_from = None, since_us
            offered: Batch = (tasks[:count], 0, False)
        elif self.place is not None:
            tasks, since_us, view = self.skipped.pop(self.place)
            if self.place < self.turn:
                self.turn_is_old = self.passed_on = False
            fit = self.within(tasks)
            count = self.split(fit, limit)
            rest = fit[count:] + [task for task in tasks if task not in fit]
            if rest:
                self.skipped.insert(self.place, [rest, since_us, view])
            self.offered_from, self.turn = (self.place, since_us), self.place
            offered = (fit[:count], 0, False)
        else:
            self.current = self.keep_within(self.current)
            count = self.split(self.current[0], limit)
            offered = (self.current[0][:count], *self.current[1:])
            self.current = (self.current[0][count:], *self.current[1:])
            self.passed_on, self.turn, self.offered_from = True, len(self.skipped), (None, NOT_YET)
        self.held += offered[0]
        return offered

    def give_back(self, tasks: list[int]) -> None:
        self.held = [task for task in self.held if task not in tasks]

    def on_planned(self, now_us: int, offered: Batch, pending: dict[int, int]) -> list[int]:
        """Returns the tasks that are left for REQUEUE."""
        self.give_back([*pending])
        self.without_room = []
        left = [task for task in offered[0] if pending.get(task, TOO_LARGE) != TOO_LARGE]
        if self.options.losers is LoserPolicy.REQUEUE:
            return left
        if not self.options.passes:
            self.current = joined((left, 0, False), self.current)
            self.without_room = left
        elif left:
            place, since_us = self.offered_from
            if since_us == NOT_YET:
                since_us = self.released.pop(left[0], now_us)
            self.full += self.unit_sizes(left)
            if place is None:
                place = sum(entry[1] <= since_us for entry in self.skipped)
            self.skipped.insert(place, [left, since_us, self.view])
            if place <= self.turn:
                self.turn += 1
        return []

    def on_committed(
        self,
        offered: Batch,
        since_us: int,
        unplaced: list[int],
        losers: list[int],
        pending: dict[int, int],
    ) -> tuple[list[int], int]:
        """Returns the tasks that are given up, and the key of a pause."""
        self.give_back(losers)
        if self.options.losers is LoserPolicy.BLOCK:
            if self.options.passes and losers:
                self.losers.append((losers, since_us))
            elif losers:
                self.current = joined((losers, 0, False), self.current)
            return self.given_up(offered[0], losers, pending), 0
        unplaced = losers + unplaced
        large = [*pending.values()].count(TOO_LARGE)
        if not unplaced:
            return [], 0
        some_placed = offered[2] or len(unplaced) + large < len(offered[0])
        most = self.options.attempts_max
        if not some_placed:
            most = min(most, self.options.attempts_max_unplaced)
        if offered[1] + 1 >= most:
            return unplaced, 0
        self.pauses += 1
        self.paused[self.pauses] = unplaced, offered[1] + 1, some_placed
        return [], self.pauses

    def given_up(self, offered: list[int], losers: list[int], pending: dict[int, int]) -> list[int]:
        """The tasks that still wait of jobs that have had their chances. Jobs whose tasks only wait
        for a preferred machine have made no attempt."""
        gone: list[int] = []
        if not self.options.gives_up:
            return gone
        waits = [t for t in offered if t in losers or pending.get(t, TOO_LARGE) != TOO_LARGE]
        for job in {int(self.options.table.job[t]) for t in offered}:
            mine = [t for t in offered if self.options.table.job[t] == job]
            mine = [t for t in mine if pending.get(t) != TOO_LARGE]
            attempts, some_placed = self.tried.pop(job, (0, False))
            some_placed |= bool(set(mine) - set(waits))
            if not set(mine) & set(waits):
                self.tried[job] = 0, some_placed
                continue
            attempts += any(pending.get(t) != PREFERRED for t in mine)
            most = self.options.attempts_max
            if not some_placed:
                most = min(most, self.options.attempts_max_unplaced)
            if attempts >= most:
                gone += [t for t in mine if t in waits]
            else:
                self.tried[job] = attempts, some_placed
        self.current = ([t for t in self.current[0] if t not in gone], *self.current[1:])
        self.without_room = [t for t in self.without_room if t not in gone]
        return [t for t in offered if t in gone]

    def holder(self, now_us: int) -> list[int]:
        if self.options.passes:
            return self.skipped[0][0] if self.holds(now_us) else []
        return [] if self.options.whole_queue else self.without_room

    def waiting(self, now_us: int) -> dict[int, tuple[int, int]]:
        """Why each waits, and behind whom."""
        holder = self.holder(now_us)
        why = (Waiting.BEHIND, holder[0]) if holder else (Waiting.NOT_TRIED, NOBODY)
        told = dict.fromkeys(self.current[0], why)
        for group in range(GROUPS):
            mine = [task for entry in self.line if entry[0] == group for task in entry[3][0]]
            room = not mine or self.head_fits(mine, group, [])
            told |= dict.fromkeys(mine, why if room else (Waiting.QUOTA, NOBODY))
        lacks = self.without_room
        if self.options.passes:
            lacks = [task for entry in self.skipped for task in entry[0]]
        told |= dict.fromkeys(lacks, (Waiting.NO_ROOM, NOBODY))
        told |= {task: (Waiting.REJECTED, NOBODY) for tasks, _ in self.losers for task in tasks}
        for tasks, _, _ in self.paused.values():
            told |= dict.fromkeys(tasks, (Waiting.PAUSED, NOBODY))
        for batches in self.held_back.values():
            told |= {t: (Waiting.JOB_NOT_ADMITTED, NOBODY) for batch in batches for t in batch}
        return told


@st.composite
def drawn_options(draw: st.DrawFn) -> Options:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    table = make_table(TASKS)
    request = rng.integers(0, 4, (TASKS, 2))
    request[:, 0] += 1
    gang = np.full(TASKS, -1, np.int64)
    if draw(st.booleans()):
        for first in range(0, TASKS, 4):
            gang[first : first + int(rng.integers(1, 4))] = first
    constrained = rng.random(TASKS) < draw(st.sampled_from([0, 0.5]))
    table = replace(
        table,
        request=request,
        gang=gang,
        preference=constrained.astype(np.int32),
        priority=rng.integers(0, 2, TASKS).astype(np.int32),
        job=np.arange(TASKS) // 4,
    )
    losers = draw(st.sampled_from([LoserPolicy.BLOCK, LoserPolicy.BLOCK, LoserPolicy.REQUEUE]))
    passes = losers is LoserPolicy.BLOCK and draw(st.booleans())
    kind = draw(st.sampled_from(["none", "quota", "own limit"]))
    group = {"none": None, "quota": np.arange(TASKS) // 8 % GROUPS, "own limit": np.zeros(TASKS)}
    of_task = group[kind]
    return Options(
        table,
        losers,
        not passes and draw(st.booleans()),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 4)),
        None if of_task is None else of_task.astype(np.int32),
        kind == "own limit",
        passes,
        draw(st.none() | st.integers(1, 8)),
        draw(st.none() | st.integers(1, 3)),
        constrained,
        losers is LoserPolicy.BLOCK and not passes and of_task is None and draw(st.booleans()),
    )


class Pair:
    """The queue and its model, given the same orders."""

    def __init__(self, options: Options, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw, self.options, self.model = draw, options, Model(options)
        table = options.table
        self.account: QuotaAccount | None = None
        if options.group is not None:
            self.account = QuotaAccount(TaskQuotas(GROUPS, options.group), table)
            self.grant()
        skipped = None
        gang = table.gang if (table.gang >= 0).any() else None
        if options.passes:
            catalog = replace(PreferenceCatalog.empty(), elsewhere_cost=np.array([0, NOWHERE_ELSE]))
            sizes = UnitSizes(table, catalog)
            skipped = SkippedUnits(sizes, options.head_of_line_us, gang, self.account)
        self.queue = AgentQueue(
            options.losers,
            options.attempts_max,
            options.attempts_max_unplaced,
            gang,
            options.whole_queue,
            skipped,
            self.account,
            None if options.is_own_limit or self.account is None else table.priority,
            options.is_own_limit,
        )
        if options.jobs_max is not None:
            self.queue.limit_jobs(table.job, options.jobs_max)
        if options.gives_up:
            most, most_unplaced = options.attempts_max, options.attempts_max_unplaced
            self.queue.give_up_jobs(table.job, most, most_unplaced)
        self.now_us, self.submitted = 0, 0
        self.attempts: dict[int, int] = {}
        self.placed: list[int] = []
        self.under_way: list[tuple[Round, Batch, list[int], dict[int, int]]] = []

    def some(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self.draw(strategy)

    def grant(self) -> None:
        if self.account is not None:
            amounts = st.lists(st.integers(0, 30), min_size=4, max_size=4)
            amount = np.array(self.some(amounts)).reshape(GROUPS, 2)
            self.account.granted = self.model.granted = amount
            self.account.look()
            self.model.ended.clear()

    def submit(self) -> None:
        last = min(TASKS, self.submitted + 4 * self.some(st.integers(1, 3)))
        tasks = list(range(self.submitted, last))
        self.submitted = last
        if tasks:
            self.queue.add(QueuedTasks.new(np.array(tasks), 1))
            self.model.add(tasks)

    def end(self) -> None:
        if not self.placed:
            return
        task = self.placed.pop(self.some(st.integers(0, len(self.placed) - 1)))
        if self.account is not None:
            self.account.end(np.array([task]))
            self.model.give_back([task])
            self.model.ended.append(task)
        if self.some(st.booleans()):
            assert self.queue.on_finished(np.array([task])) == self.model.leave([task])
        else:
            self.queue.add(QueuedTasks.new(np.array([task]), 0))
            self.model.add([task])

    def rejoin(self) -> None:
        if self.model.paused:
            key = self.some(st.sampled_from(sorted(self.model.paused)))
            self.queue.on_requeue_due(key)
            self.model.insert(self.model.paused.pop(key), +1)

    def round(self) -> None:
        changed = self.some(st.booleans())
        assert self.queue.has_new(self.now_us) == self.model.has_new(self.now_us)
        expected = self.model.has_next(self.now_us, changed)
        assert self.queue.has_next(self.now_us, changed) == expected
        begun = self.model.next_batch(self.now_us, changed)
        assert self.queue.next_batch(self.now_us, changed) == begun
        if begun is None:
            return
        limit = self.some(st.none() | st.integers(1, 5))
        offered, batch = self.queue.take(limit), self.model.take(limit)
        assert offered.task.tolist() == batch[0]
        fates = "ccnnpph" if self.options.gives_up else "ccnnnh"
        fate = self.some(st.lists(st.sampled_from(fates), min_size=TASKS, max_size=TASKS))
        claimed = [task for task in batch[0] if fate[task] == "c"]
        why = {"n": NO_ROOM, "h": TOO_LARGE, "p": PREFERRED}
        pending = {t: why[fate[t]] for t in reversed(batch[0]) if fate[t] != "c"}
        round_ = round_of(offered, self.now_us, claimed, pending)
        exits = self.queue.on_planned(round_)
        since_us = self.model.offered_from[1] if self.options.passes else NOT_YET
        left = self.model.on_planned(self.now_us, batch, pending)
        gone = [task for task, why in pending.items() if why == TOO_LARGE]
        self.model.leave(gone)
        assert (exits.too_large.tolist(), exits.abandoned.tolist(), exits.retry) == (gone, [], 0)
        assert round_.left.task.tolist() == left and round_.since_us == since_us
        blocked = [task for task, why in pending.items() if why != TOO_LARGE]
        assert round_.blocked == (self.options.losers is LoserPolicy.BLOCK and len(blocked) > 0)
        self.under_way.append((round_, batch, left, pending))
        if not claimed or self.options.gives_up or self.some(st.booleans()):
            self.commit(len(self.under_way) - 1)

    def commit(self, which: int = 0) -> None:
        if not self.under_way:
            return
        round_, batch, left, pending = self.under_way.pop(which)
        claimed = self.queue.claimed_tasks(round_)
        tasks = claimed.task.tolist()
        assert round_.plan is not None and tasks == round_.plan.task.tolist()
        assert claimed.attempts.tolist() == [self.attempts.get(task, 0) for task in tasks]
        lost = np.array([self.some(st.booleans()) for _ in tasks], np.bool_)
        losers = QueuedTasks(claimed.task, claimed.attempts + 1, claimed.first).take(lost)
        for task in losers.task.tolist():
            self.attempts[task] = self.attempts.get(task, 0) + 1
        exits = self.queue.on_committed(round_, losers)
        abandoned, retry = self.model.on_committed(
            batch, round_.since_us, left, losers.task.tolist(), pending
        )
        self.model.leave(abandoned)
        assert (exits.abandoned.tolist(), exits.retry) == (abandoned, retry)
        for task in claimed.task[~lost].tolist():
            self.attempts.pop(task, None)
            self.placed.append(task)

    def agree(self) -> None:
        assert self.queue.has_waiting == self.model.has_waiting
        assert self.queue.holder(self.now_us).tolist() == self.model.holder(self.now_us)
        told: dict[int, tuple[int, int]] = {}
        for part in self.queue.waiting(self.now_us):
            for task in part.task.tolist():
                assert task not in told
                told[task] = part.why, part.ahead
        assert told == self.model.waiting(self.now_us)
        if self.account is not None:
            held = np.zeros_like(self.account.held)
            assert self.options.group is not None
            np.add.at(
                held,
                self.options.group[self.model.held],
                self.options.table.request[self.model.held],
            )
            assert (self.account.held == held).all()


def round_of(
    offered: QueuedTasks, now_us: int, claimed: list[int], pending: dict[int, int]
) -> Round:
    k, nothing = len(claimed), np.zeros(0, np.int64)
    plan = Plan(
        np.array(claimed, np.int64),
        np.zeros(k, np.int32),
        np.ones((k, 1), np.int64),
        np.full(k, -1),
        nothing,
        np.array([*pending], np.int64),
        np.array([*pending.values()], np.int8),
        0,
        0,
    )
    return Round(1, now_us, PartitionRanking.OPTIMISTIC, offered, len(offered), plan)


@given(st.data(), drawn_options())
@settings(max_examples=200, deadline=None)
def test_a_queue_does_what_its_model_does(data: st.DataObject, options: Options) -> None:
    play(Pair(options, data.draw))


@given(st.data(), drawn_options(), st.integers(2, 4), st.sampled_from([1, 2, 4]))
@settings(max_examples=60, deadline=None)
def test_jobs_are_given_up_when_the_model_gives_them_up(
    data: st.DataObject, options: Options, attempts_max: int, tasks_of_job: int
) -> None:
    table = replace(
        options.table, job=np.arange(TASKS) // tasks_of_job, gang=np.full(TASKS, -1, np.int64)
    )
    plain = replace(options, losers=LoserPolicy.BLOCK, passes=False, group=None, is_own_limit=False)
    limits = {"attempts_max": attempts_max, "attempts_max_unplaced": 1}
    play(Pair(replace(plain, table=table, gives_up=True, **limits), data.draw), orders_min=40)


def play(pair: Pair, orders_min: int = 1) -> None:
    orders = {
        "submit": pair.submit,
        "grant": pair.grant,
        "end": pair.end,
        "rejoin": pair.rejoin,
        "commit": pair.commit,
        "round": pair.round,
    }
    names = st.sampled_from([*orders, "round", "round", "round"])
    for name in pair.draw(st.lists(names, min_size=orders_min, max_size=60)):
        pair.now_us += pair.draw(st.integers(0, 2))
        orders[name]()
        pair.agree()


@given(st.data(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_scheduler_that_remembers_is_offered_each_task_once(
    data: st.DataObject, whole_queue: bool
) -> None:
    queue = SchedulerQueue(whole_queue)
    batches: list[list[int]] = []
    current: list[int] = []
    kept: dict[int, int] = {}
    attempts: dict[int, int] = {}
    under_way: list[Round] = []
    number = 0
    for _ in range(data.draw(st.integers(1, 25))):
        if data.draw(st.booleans()):
            size = data.draw(st.integers(1, 4))
            batches.append(list(range(number, number + size)))
            number += size
            queue.add(QueuedTasks.new(np.array(batches[-1]), 1))
        changed = data.draw(st.booleans())
        begun = queue.next_batch(0, changed)
        if whole_queue:
            current, batches = current + [task for batch in batches for task in batch], []
            expected = max(1, len(current)) if current or (kept and changed) else None
        elif current:
            expected = 0
        else:
            current = batches.pop(0) if batches else []
            expected = max(1, len(current)) if current or (kept and changed) else None
        assert begun == expected
        if begun is not None:
            limit = data.draw(st.none() | st.integers(1, 3))
            offered = queue.take(limit)
            now, current = current[:limit], current[limit:] if limit else []
            assert offered.task.tolist() == now
            claimed = [task for task in [*now, *kept] if data.draw(st.booleans())]
            pending = {task: 0 for task in now if task not in claimed}
            kept = {t: why for t, why in kept.items() if t not in claimed} | pending
            for task in kept:
                kept[task] = pending[task] = int(
                    data.draw(st.sampled_from([NO_ROOM, PendingReason.PRICED_OUT]))
                )
            round_ = round_of(offered, 0, claimed, pending)
            queue.on_planned(round_)
            under_way.append(round_)
        if under_way and data.draw(st.booleans()):
            round_ = under_way.pop(0)
            tasks = queue.claimed_tasks(round_)
            assert tasks.attempts.tolist() == [attempts.get(t, 0) for t in tasks.task.tolist()]
            lost = np.array([data.draw(st.booleans()) for _ in tasks.task], np.bool_)
            losers = QueuedTasks(tasks.task, tasks.attempts + 1, tasks.first).take(lost)
            attempts |= {task: attempts.get(task, 0) + 1 for task in losers.task.tolist()}
            queue.on_committed(round_, losers)
            current = losers.task.tolist() + current
        assert queue.has_waiting == (len(kept) > 0)
        told = {
            int(task): int(part.why) for part in queue.waiting(0) for task in part.task.tolist()
        }
        names = {NO_ROOM: Waiting.NO_ROOM, int(PendingReason.PRICED_OUT): Waiting.PRICED_OUT}
        waiting = {task: int(names[why]) for task, why in kept.items()}
        new = [task for batch in batches for task in batch]
        assert told == waiting | {task: int(Waiting.NOT_TRIED) for task in current + new}


@pytest.mark.parametrize(("limit", "offered"), [(1, 1), (3, 1), (4, 4), (6, 5), (99, 7)])
def test_no_round_of_a_scheduler_that_remembers_parts_a_gang(limit: int, offered: int) -> None:
    queue = SchedulerQueue(False, np.array([-1, 7, 7, 7, -1, 8, 8]))
    queue.add(QueuedTasks.new(np.arange(7), 1))
    assert queue.next_batch(0, False) == 7
    assert queue.take(limit).task.tolist() == list(range(offered))


def test_tasks_that_can_never_run_leave_a_scheduler_that_remembers() -> None:
    queue = SchedulerQueue(True)
    queue.add(QueuedTasks.new(np.array([4, 5]), 1))
    queue.next_batch(0, False)
    round_ = round_of(queue.take(None), 0, [], {5: TOO_LARGE, 4: NO_ROOM})
    assert queue.on_planned(round_) is NO_EXITS and not round_.blocked
    assert queue.on_committed(round_, NO_TASKS).too_large.tolist() == [5]
    assert queue.has_waiting and queue.next_batch(0, True) is not None
    assert not len(queue.take(None))


def test_jobs_that_ran_before_an_agent_began_count() -> None:
    queue = AgentQueue(LoserPolicy.BLOCK, 1, 1)
    queue.limit_jobs(np.arange(8) // 2, 2)
    queue.on_adopted(np.array([0, 1, 2]))
    queue.add(QueuedTasks.new(np.array([6, 7]), 1))
    assert not queue.has_next(0, True)
    assert not queue.on_finished(np.array([0]))  # a task of the job still runs
    assert queue.on_finished(np.array([2])) and queue.has_next(0, True)


@pytest.mark.parametrize(
    ("most", "unplaced", "claimed", "lost", "rounds"),
    [
        (7, 4, [1, 2, 3], [1, 2, 3], 4),
        (7, 4, [], [], 4),  # rounds that found no room count, too
        (7, 4, [2], [2], 4),
        (7, 4, [1, 2], [1], 7),  # task 2 got a place
        (3, 100, [], [], 3),
    ],
)
def test_requeued_tasks_are_given_up_sooner_if_nothing_of_their_batch_was_ever_placed(
    most: int, unplaced: int, claimed: list[int], lost: list[int], rounds: int
) -> None:
    """Omega's two limits. The first round goes as said; all later ones place nothing."""
    queue = AgentQueue(LoserPolicy.REQUEUE, most, unplaced)
    queue.add(QueuedTasks.new(np.array([1, 2, 3]), 1))
    for number in range(1, rounds + 1):
        assert queue.next_batch(0, False), "rejoined in one piece"
        offered = queue.take(None)
        left = [task for task in offered.task.tolist() if task not in claimed]
        round_ = round_of(offered, 0, claimed, dict.fromkeys(left, NO_ROOM))
        assert queue.on_planned(round_).retry == 0, "those without room pause with the losers"
        work = queue.claimed_tasks(round_)
        exits = queue.on_committed(round_, work.take(np.isin(work.task, lost)))
        assert (exits.retry != 0) == (number < rounds)
        if exits.retry:
            queue.on_requeue_due(exits.retry)
        claimed, lost, gone = [], [], sorted(left + lost)
    assert sorted(exits.abandoned.tolist()) == gone
