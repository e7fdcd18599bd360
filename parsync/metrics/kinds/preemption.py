"""What preemption wastes and what it gains: the evictions that schedulers plan, what became of the
evicted tasks and of those that took their places, and how long urgent tasks wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.metric import (
    Merges,
    Metric,
    NativeMetric,
    OverTime,
    RecordBatch,
    Rows,
    Scope,
    TableColumns,
    TimeSeries,
    is_incomplete,
    ratio,
)
from parsync.metrics.quantity import Better, Count, Figures, Number, Unit, quantity
from parsync.metrics.run_frame import JobIndex, RunFrame
from schedulers.interface import ChangeKind
from shared_state.tasks import Int64


class PreemptionFigures(Figures):
    """Evictions by the scheduler that planned them and the window in which they happened, and what
    followed from them, whenever it did.

    Who planned an eviction is known from the claims on the machine at that moment: the cell ends a
    task of another scheduler only for accepted claims in its place, of higher priority. If there
    was none, or the task's own scheduler was given a place there, it was an eviction of its own.

    An evicted task starts over. Costs are those of the workload, never a policy's own. What an
    eviction saved may be negative.
    """

    migrations: Count = quantity(
        "Migrations",
        Unit.COUNT,
        Better.NEITHER,
        "Tasks that their own scheduler evicted, and that started again where they cost less.",
    )
    preemptions_own: Count = quantity(
        "Own tasks preempted",
        Unit.COUNT,
        Better.NEITHER,
        "All other tasks that their own scheduler evicted.",
    )
    preemptions_of_others: Count = quantity(
        "Tasks of others preempted",
        Unit.COUNT,
        Better.NEITHER,
        "Tasks that another scheduler evicted for tasks of higher priority.",
    )
    preemption_lost_us: Count = quantity(
        "Work thrown away",
        Unit.DURATION,
        Better.LOWER,
        "Run time of evicted tasks until their eviction, summed. Tasks that ran before the run "
        "count from its beginning.",
        headline=True,
        column_label="Thrown away",
    )
    preemption_wait_us: Count = quantity(
        "Waiting of evicted tasks",
        Unit.DURATION,
        Better.LOWER,
        "From the eviction of tasks to their next start, summed; “≥”: those that did not start "
        "again count until the run was last observed.",
    )
    preemption_wait_saved_us: Count = quantity(
        "Waiting saved by preemption",
        Unit.DURATION,
        Better.HIGHER,
        "Of tasks that took the place of an evicted one: how much later that one would have ended "
        "by itself, summed. An upper limit: another place might have been free sooner.",
    )
    preemption_cost_saved: Number = quantity(
        "Placement cost saved by preemption",
        Unit.PLAIN,
        Better.HIGHER,
        "Cost of the place that evicted tasks had, less that of the place where they started "
        "again, summed.",
    )
    preemption_run_saved_us: Number = quantity(
        "Run time saved by preemption",
        Unit.DURATION,
        Better.HIGHER,
        "How much shorter evicted tasks run where they started again, because they prefer that "
        "machine, summed; of tasks that ran to their end.",
    )


class _Starts(NamedTuple):
    """Starts of tasks, n of them, by task, then time: int64[n] each but `preferred`, bool[n]."""

    task: Int64
    start_us: Int64
    agent: Int64
    machine: Int64
    cost: Int64
    preferred: NDArray[np.bool_]


class _Evictions(NamedTuple):
    """Evictions by task, then time: int64[n] each.

    Attributes:
        agent: Of the scheduler that planned it, or of a task that nobody owned -1.
        at_us: When.
        kind: _MIGRATED, _OWN or _OF_OTHERS.
        lost_us: How long the task had run.
        next_us: When it started again; _NEVER if it did not.
        wait_saved_us, cost_saved, run_saved_us: As in PreemptionFigures.
    """

    agent: Int64
    at_us: Int64
    kind: Int64
    lost_us: Int64
    next_us: Int64
    wait_saved_us: Int64
    cost_saved: Int64
    run_saved_us: Int64


_MIGRATED, _OWN, _OF_OTHERS = range(3)
_NEVER = np.iinfo(np.int64).max
_TASKS = ("task", "start_us", "agent", "machine", "cost", "preferred")
_EVICTED = ("task", "end_us", "agent", "machine")
_FINISHED = ("task", "end_us")


class PreemptionMetric(Metric):
    """Evictions, and the starts before and after each. Only arms whose schedulers may evict have
    it: it keeps a row of every start and end."""

    kind = "preemption"
    description = "What preemption and migration waste, and what they gain."
    figures_model = PreemptionFigures
    reads: ClassVar[TableColumns] = {
        "tasks": _TASKS,
        "ends": ("task", "machine", "agent", "end_us", "change"),
    }
    plots: ClassVar[Sequence[OverTime]] = (
        OverTime(
            title="Evictions over time",
            part="evictions",
            whole="starts",
            unit=Unit.SHARE,
            axis="Evictions per start",
            caption="Tasks that each scheduler evicted at a moment, divided by the tasks that it "
            "started then; a task that starts again counts again.",
            look_for="Evictions that do not become fewer as a phase goes on: tasks that are moved "
            "to and fro get no work done.",
        ),
    )

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self._started: list[tuple[NDArray[Any], ...]] = []
        self._evicted: list[tuple[NDArray[Any], ...]] = []
        self._finished: list[tuple[NDArray[Any], ...]] = []
        self._found: tuple[int, _Starts, _Evictions] | None = None  # of so many batches

    @classmethod
    def applies(cls, run: RunFrame) -> bool:
        return run.preempts

    def fold(self, batch: RecordBatch) -> None:
        if batch.table == "tasks":
            self._started.append(tuple(batch[name] for name in _TASKS))
            return
        change = batch["change"]
        for kind, names, kept in (
            (ChangeKind.EVICTED, _EVICTED, self._evicted),
            (ChangeKind.FINISHED, _FINISHED, self._finished),
        ):
            rows = change == kind
            if rows.any():
                kept.append(tuple(batch[name][rows] for name in names))

    def merge(self, other: PreemptionMetric) -> None:
        self._started += other._started
        self._evicted += other._evicted
        self._finished += other._finished

    def figures(self, scope: Scope) -> PreemptionFigures:
        rows, inside = self._within(scope)
        of_kind = np.bincount(rows.kind[inside], minlength=3)
        again = inside & (rows.next_us != _NEVER)
        return PreemptionFigures(
            migrations=int(of_kind[_MIGRATED]),
            preemptions_own=int(of_kind[_OWN]),
            preemptions_of_others=int(of_kind[_OF_OTHERS]),
            preemption_lost_us=int(rows.lost_us[inside].sum()),
            preemption_wait_us=int((rows.next_us - rows.at_us)[again].sum()),
            preemption_wait_saved_us=int(rows.wait_saved_us[inside].sum()),
            preemption_cost_saved=float(rows.cost_saved[inside].sum()),
            preemption_run_saved_us=float(rows.run_saved_us[inside].sum()),
        )

    def lower_bounds(self, scope: Scope, figures: Any) -> Mapping[str, float | None]:
        rows, inside = self._within(scope)
        waiting = rows.at_us[inside & (rows.next_us == _NEVER)]
        if not len(waiting):
            return {}
        still_us = np.maximum(scope.last_us - waiting, 0).sum()
        return {"preemption_wait_us": float(figures.preemption_wait_us + still_us)}

    def series(self) -> Mapping[str, Int64]:
        starts, rows = self._all()
        known = rows.agent >= 0
        over_time = TimeSeries(("starts", "evictions"), self.run.agents, self.run.bucket_us)
        over_time.add("starts", starts.agent, starts.start_us)
        over_time.add("evictions", rows.agent[known], rows.at_us[known])
        return over_time.by_name()

    def _within(self, scope: Scope) -> tuple[_Evictions, NDArray[np.bool_]]:
        """All evictions, and which of them are within a scope."""
        rows = self._all()[1]
        inside = np.isin(self.run.slot_of(rows.at_us), scope.slots)
        return rows, inside & np.isin(rows.agent, scope.agents)

    def _all(self) -> tuple[_Starts, _Evictions]:
        """The starts, and what became of each eviction."""
        batches = len(self._started) + len(self._evicted) + len(self._finished)
        if self._found is None or self._found[0] != batches:
            task, start_us, agent, machine, cost, preferred = _joined(self._started, len(_TASKS))
            starts = _Starts(task, start_us, agent, machine, cost, preferred != 0)
            self._found = batches, starts, self._followed(starts)
        return self._found[1:]

    def _followed(self, starts: _Starts) -> _Evictions:
        task, at_us, owner, machine = _joined(self._evicted, len(_EVICTED))
        if not len(task):
            return _Evictions(*(task,) * len(_Evictions._fields))
        if not len(starts.task):  # all ran as the run began
            nothing = np.full(1, -1, np.int64)
            starts = _Starts(nothing, nothing, nothing, nothing, nothing, nothing >= 0)
        had = _last_before(starts, task, at_us)
        known = had >= 0
        following = np.where(known, had + 1, np.searchsorted(starts.task, task))
        following = np.minimum(following, len(starts.task) - 1)
        again = (starts.task[following] == task) & (starts.start_us[following] >= at_us)
        both = known & again
        cost_saved = np.where(both, starts.cost[had] - starts.cost[following], 0)
        since_us = np.where(known, starts.start_us[had], 0)
        preferred = known & starts.preferred[had]

        elsewhere_us = self._run_us(starts, task)
        finishes = elsewhere_us >= 0
        on_preferred_us = elsewhere_us * self.run.preferred_permille // 1000
        would_end_us = since_us + np.where(preferred, on_preferred_us, elsewhere_us)
        left_us = np.where(known & finishes, np.maximum(would_end_us - at_us, 0), 0)
        better = starts.preferred[following].astype(np.int64) - preferred
        by, takers = self._takers(starts, task, machine, at_us, owner)
        own = by == owner
        return _Evictions(
            agent=by,
            at_us=at_us,
            kind=np.where(own, np.where(cost_saved > 0, _MIGRATED, _OWN), _OF_OTHERS),
            lost_us=np.maximum(at_us - since_us, 0),
            next_us=np.where(again, starts.start_us[following], _NEVER),
            wait_saved_us=np.where(_rank(machine, at_us, left_us, task) < takers, left_us, 0),
            cost_saved=cost_saved,
            run_saved_us=np.where(both & finishes, (elsewhere_us - on_preferred_us) * better, 0),
        )

    def _takers(
        self, starts: _Starts, task: Int64, machine: Int64, at_us: Int64, owner: Int64
    ) -> tuple[Int64, Int64]:
        """Who planned each eviction, and how many tasks started on its machine at its moment:
        int64[n] each. If it was not the owner, it is whose task there has the highest priority; of
        equals the first."""
        rows = np.flatnonzero(np.isin(starts.start_us, at_us))
        agent = starts.agent[rows]
        # the pairs of machine and time, numbered; of one pair the highest priority comes first
        places = np.concatenate([starts.machine[rows], machine])
        times = np.concatenate([starts.start_us[rows], at_us])
        agents = np.concatenate([agent, owner])
        priority = np.concatenate([self._priority(starts.task[rows]), self._priority(task)])
        ends = np.arange(len(places)) >= len(rows)
        order = np.lexsort((agents, -priority, ends, times, places))
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (np.diff(places[order]) != 0) | (np.diff(times[order]) != 0)
        pair = np.empty(len(order), np.int64)
        pair[order] = np.cumsum(begins) - 1
        started, ended = pair[: len(rows)], pair[len(rows) :]
        takers = np.bincount(started, minlength=len(order))[ended]
        width = 2 + max(int(agent.max(initial=0)), int(owner.max(initial=0)))
        claimed = np.isin(ended * width + owner, started * width + agent)
        first = order[begins][ended]
        by_other = ~claimed & (priority[first] > priority[len(rows) :])
        return np.where(by_other, agents[first], owner), takers

    def _priority(self, task: Int64) -> Int64:
        """The priorities of tasks, int64[n]; 0 where nobody makes room for others."""
        if self.run.priority is None:
            return np.zeros(len(task), np.int64)
        return self.run.priority[task].astype(np.int64)

    def _run_us(self, starts: _Starts, task: Int64) -> Int64:
        """How long each of these tasks, int64[n], runs on a machine that it does not prefer, by
        its run that reached its end; -1 if none did."""
        ended, end_us = _joined(self._finished, len(_FINISHED))
        if not len(ended):
            return np.full(len(task), -1, np.int64)
        place = np.minimum(np.searchsorted(ended, task), len(ended) - 1)
        last = _last_before(starts, task, end_us[place])
        ran_us = end_us[place] - starts.start_us[last]
        slower_us = ran_us * 1000 // self.run.preferred_permille
        ran_us = np.where(starts.preferred[last], slower_us, ran_us)
        return np.where((ended[place] == task) & (last >= 0), ran_us, -1)


def _joined(parts: list[tuple[NDArray[Any], ...]], columns: int) -> tuple[Int64, ...]:
    """The columns of all parts, of which the first are the task and a time, by these two."""
    if not parts:
        return (np.zeros(0, np.int64),) * columns
    joined = [np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True)]
    order = np.lexsort((joined[1], joined[0]))
    return tuple(column[order] for column in joined)


def _last_before(starts: _Starts, task: Int64, at_us: Int64) -> Int64:
    """The row of each task's last start before a time, int64[n] each; -1 if there is none."""
    rows = np.arange(len(starts.task))
    asked = np.arange(len(task)) + len(rows)
    every = np.concatenate([starts.task, task]), np.concatenate([starts.start_us, at_us])
    # at one time what is asked about comes first: a task may start elsewhere as it is evicted
    order = np.lexsort((-np.concatenate([rows, asked]), every[1], every[0]))
    last = np.maximum.accumulate(np.where(order < len(rows), order, -1))
    found = np.empty(len(order), np.int64)
    found[order] = last
    row = found[asked]
    return np.where((row >= 0) & (starts.task[row] == task), row, -1)


def _rank(machine: Int64, at_us: Int64, left_us: Int64, task: Int64) -> Int64:
    """The rank of each eviction among those on its machine at its moment, int64[n]: 0 is the one
    that would have run longest."""
    order = np.lexsort((task, -left_us, at_us, machine))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(machine[order]) != 0) | (np.diff(at_us[order]) != 0)
    place = np.arange(len(order))
    rank = np.empty(len(order), np.int64)
    rank[order] = place - np.maximum.accumulate(np.where(begins, place, 0))
    return rank


class UrgentFigures(Figures):
    """First starts of urgent tasks, by the window of their submission: those of more than the
    lowest priority, in arms that let them take the room of others."""

    urgent_tasks: Count = quantity(
        "Urgent tasks", Unit.COUNT, Better.NEITHER, "Submitted tasks above the lowest priority."
    )
    urgent_delay_mean_us: Number | None = quantity(
        "Mean delay of urgent tasks",
        Unit.DURATION,
        Better.LOWER,
        "From submission to first commit; “≥”: tasks never committed count until the run was last "
        "observed.",
    )


class UrgentMetric(NativeMetric):
    """The delays of urgent tasks."""

    kind = "urgent"
    description = "How long urgent tasks wait."
    figures_model = UrgentFigures
    reads: ClassVar[TableColumns] = {
        "submissions": ("agent", "job", "submit_us"),
        "tasks": ("task", "commit_us", "first"),
    }
    merges: ClassVar[Merges] = {
        "_agent": np.maximum,
        "_last_us": np.maximum,
        "_commit_us": np.maximum,
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        known = run.priority is not None and run.job_of is not None and run.preferences is not None
        self._job_of = run.job_of if known and run.job_of is not None else np.zeros(0, np.int64)
        self._jobs = JobIndex(self._job_of)
        self._agent = np.full(len(self._jobs), -1, np.int32)
        self._last_us = np.full(len(self._jobs), -1, np.int64)  # the last submission of each job
        self._commit_us = np.full(len(self._job_of), -1, np.int64)

    @classmethod
    def applies(cls, run: RunFrame) -> bool:
        priority = run.priority
        return priority is not None and len(priority) > 0 and bool(np.ptp(priority) > 0)

    def add_up(self, rows: Rows) -> None:
        if not len(self._jobs):
            return
        if rows.table == "submissions":
            job = rows["job"].place_among(self._jobs.ids)
            rows.store(self._agent, (job,), rows["agent"])
            rows.largest(self._last_us, (job,), rows["submit_us"])
        else:
            firsts = rows.first_commits
            firsts.store(self._commit_us, (rows["task"],), rows["commit_us"])

    def figures(self, scope: Scope) -> UrgentFigures:
        submit_us, commit_us = self._within(scope)
        placed = commit_us >= 0
        waited_us = int((commit_us - submit_us)[placed].sum())
        return UrgentFigures(
            urgent_tasks=len(placed),
            urgent_delay_mean_us=ratio(waited_us, int(np.count_nonzero(placed))),
        )

    def lower_bounds(self, scope: Scope, figures: Any) -> Mapping[str, float | None]:
        submit_us, commit_us = self._within(scope)
        if not is_incomplete(int(np.count_nonzero(commit_us < 0)), len(commit_us)):
            return {}
        until_us = np.where(commit_us >= 0, commit_us, np.maximum(scope.last_us, submit_us))
        return {"urgent_delay_mean_us": ratio(int((until_us - submit_us).sum()), len(commit_us))}

    def _within(self, scope: Scope) -> tuple[Int64, Int64]:
        """When the urgent tasks of a scope were submitted, and first committed, int64[n] each; -1
        if never."""
        tasks = self.run.preferences
        priority = self.run.priority
        if not len(self._jobs) or tasks is None or priority is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        row = np.flatnonzero((priority > priority.min()) & (self._job_of >= 0))
        place, submit_us = self._jobs.places(self._job_of[row]), tasks.submit_us[row]
        inside = np.isin(self.run.slot_of(submit_us), scope.slots)
        inside &= np.isin(self._agent[place], scope.agents) & (submit_us <= self._last_us[place])
        return submit_us[inside], self._commit_us[row[inside]]
