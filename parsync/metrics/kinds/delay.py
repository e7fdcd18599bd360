"""How long tasks wait for their first commit, how many never get one, and what waited behind units
that held a queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import histogram
from parsync.metrics.metric import (
    ColumnValue,
    Counters,
    Merges,
    NativeMetric,
    OverTime,
    Rows,
    Scope,
    TableColumns,
    TimeSeries,
    is_incomplete,
    ratio,
)
from parsync.metrics.quantity import Better, Count, Figures, Number, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from schedulers.unplaceable import Unplaceable
from shared_state.tasks import Int64

_PERCENTILES = {"delay_p50_us": 0.5, "delay_p90_us": 0.9, "delay_p99_us": 0.99}


class DelayFigures(Figures):
    """The delay of first commits: from submission until the scheduler learns of the commit, by the
    window of the submission.

    `censored` tasks were submitted and not committed by the end of the run. Quantiles are over all
    submitted tasks, the censored ones beyond every value; the mean is over committed ones. Figures
    are `incomplete` if more than a negligible share of the tasks is censored. `submitted` and
    `censored` are None where nobody recorded submissions.
    """

    submitted: Count | None = quantity(
        "Tasks submitted",
        Unit.COUNT,
        Better.NEITHER,
        "All tasks that arrived; arrivals do not wait for the schedulers.",
        per_scheduler=True,
    )
    committed: Count
    delay_mean_us: Number | None = quantity(
        "Mean delay",
        Unit.DURATION,
        Better.LOWER,
        "From submission to first commit; “≥”: tasks never committed count as waiting until the "
        "run was last observed.",
        headline=True,
        column_label="Delay",
        per_scheduler=True,
    )
    delay_p99_us: Number | None = quantity(
        "99th percentile of the delay",
        Unit.DURATION,
        Better.LOWER,
        "Over all submitted tasks, to within 0.8 %; “≥”: tasks never committed count as waiting "
        "until the run was last observed.",
        headline=True,
        column_label="p99",
        per_scheduler=True,
        unbounded=True,
    )
    censored: Count | None = quantity(
        "Tasks not committed",
        Unit.COUNT,
        Better.LOWER,
        "Submitted and still waiting when the run ended.",
        headline=True,
        column_label="Waiting",
        per_scheduler=True,
    )
    delay_p50_us: Number | None = quantity(
        "Median delay",
        Unit.DURATION,
        Better.LOWER,
        "Over all submitted tasks, to within 0.8 %.",
        unbounded=True,
    )
    delay_p90_us: Number | None = quantity(
        "90th percentile of the delay",
        Unit.DURATION,
        Better.LOWER,
        "Over all submitted tasks, to within 0.8 %.",
        unbounded=True,
    )
    delay_max_us: Number | None
    attempts_mean: Number | None = quantity(
        "Claims per placed task", Unit.PLAIN, Better.LOWER, "1 if no claim was ever rejected."
    )
    incomplete: bool


def _quantile_us(counts: Int64, fraction: float, beyond: int = 0) -> float | None:
    """A quantile in whole microseconds, as delays are: it is up to 0.8 % off, and digits beyond
    them would only pretend to be known."""
    found = histogram.quantile(counts, fraction, beyond)
    return None if found is None else float(round(found))


class DelayMetric(NativeMetric):
    """Delays of first commits."""

    kind = "delay"
    description = "How long tasks wait for their first commit, and how many never get one."
    figures_model = DelayFigures
    reads: ClassVar[TableColumns] = {
        "submissions": ("agent", "submit_us", "tasks"),
        "tasks": ("agent", "submit_us", "commit_us", "first", "attempts"),
    }
    plots = (
        OverTime(
            "Scheduling delay over time",
            part="delay_us",
            whole="committed",
            unit=Unit.DURATION,
            axis="Scheduling delay",
            caption="Mean delay of the tasks submitted at each moment, first commits only.",
            look_for="A line that climbs while the load is constant is a queue that keeps growing; "
            "look at where it comes back down after the peak. Where it breaks off, no task of that "
            "time was committed.",
        ),
    )

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters(("submitted", "committed", "delay_us", "attempts"), run)
        self.delays = np.zeros((run.agents, run.slots, histogram.BUCKETS), np.int64)
        self.timeline = TimeSeries(
            ("submitted", "committed", "delay_us"), run.agents, run.bucket_us
        )
        # by agent and slot
        self._waiting = TimeSeries(("tasks", "since_us"), run.agents * run.slots, run.bucket_us)

    def add_up(self, rows: Rows) -> None:
        if rows.table == "submissions":
            self._submissions(rows)
        else:
            self._first_commits(rows.first_commits)

    def _submissions(self, rows: Rows) -> None:
        agent, submit_us, tasks = rows["agent"], rows["submit_us"], rows["tasks"]
        self._wait(rows, tasks, tasks * submit_us)
        rows.add(self.count["submitted"], (agent, rows.slot("submit_us")), tasks)
        rows.add_over_time(self.timeline, "submitted", agent, submit_us, tasks)

    def _first_commits(self, rows: Rows) -> None:
        agent, submit_us, slot = rows["agent"], rows["submit_us"], rows.slot("submit_us")
        delay_us = rows["commit_us"] - submit_us
        rows.add(self.delays, (agent, slot, delay_us.histogram_bucket()))
        rows.add(self.count["committed"], (agent, slot))
        rows.add(self.count["attempts"], (agent, slot), rows["attempts"])
        rows.add(self.count["delay_us"], (agent, slot), delay_us)
        self._wait(rows, -1, -submit_us)
        rows.add_over_time(self.timeline, "committed", agent, submit_us)
        rows.add_over_time(self.timeline, "delay_us", agent, submit_us, delay_us)

    def _wait(self, rows: Rows, tasks: ColumnValue | int, since_us: ColumnValue) -> None:
        """More tasks wait (fewer, if negative), submitted at times of this sum."""
        submit_us = rows["submit_us"]
        place = rows["agent"] * self.run.slots + rows.slot("submit_us")
        rows.add_over_time(self._waiting, "tasks", place, submit_us, tasks)
        rows.add_over_time(self._waiting, "since_us", place, submit_us, since_us)

    def merge(self, other: DelayMetric) -> None:
        super().merge(other)
        self.delays += other.delays
        self._waiting.merge(other._waiting)

    def figures(self, scope: Scope) -> DelayFigures:
        committed = scope.sum(self.count["committed"])
        censored = self.censored(scope)
        delays = self._of(scope)
        filled = np.flatnonzero(delays)
        submitted = scope.sum(self.count["submitted"])
        return DelayFigures(
            submitted=submitted if censored is not None else None,
            committed=committed,
            censored=censored,
            delay_mean_us=ratio(scope.sum(self.count["delay_us"]), committed),
            delay_max_us=float(histogram.MIDDLE[filled[-1]])
            if len(filled) and not censored
            else None,
            attempts_mean=ratio(scope.sum(self.count["attempts"]), committed),
            **{
                name: _quantile_us(delays, fraction, censored or 0)
                for name, fraction in _PERCENTILES.items()
            },
            incomplete=is_incomplete(censored or 0, submitted),
        )

    def lower_bounds(self, scope: Scope, figures: DelayFigures) -> Mapping[str, float | None]:
        if not figures.incomplete:
            return {}
        tasks, waited_us = self.waiting(scope.agents, scope.slots, scope.last_us)
        charged = self._of(scope)
        np.add.at(charged, histogram.bucket_of(waited_us), tasks)
        sum_us = scope.sum(self.count["delay_us"]) + int(tasks @ waited_us)
        quantiles = {
            name: _quantile_us(charged, fraction) for name, fraction in _PERCENTILES.items()
        }
        mean_us = ratio(sum_us, figures.committed + int(tasks.sum()))
        return {"delay_mean_us": mean_us, **quantiles}

    def censored(self, scope: Scope) -> int | None:
        """Submitted and not committed; None where nobody recorded submissions."""
        if not self.count["submitted"].any():
            return None
        submitted = scope.sum(self.count["submitted"])
        return max(submitted - scope.sum(self.count["committed"]), 0)

    def waiting(
        self, agents: Iterable[int], slots: Iterable[int], last_us: int
    ) -> tuple[Int64, Int64]:
        """Tasks of these agents and slots (of submission) that were submitted and never committed,
        gathered by bucket of their submission: how many, and how long those waited, on average,
        until last_us. int64[k] each."""
        counts = self._waiting.counts.reshape(2, self.run.agents, self.run.slots, -1)
        tasks, since_us = counts[:, list(agents)][:, :, list(slots)].sum(axis=(1, 2))
        left = tasks > 0
        waited_us: Int64 = last_us - since_us[left] // tasks[left]
        return tasks[left], np.maximum(waited_us, 0)

    def arrays(self, scope: Scope) -> Mapping[str, NDArray[Any]]:
        value, share = histogram.distribution(self._of(scope), self.censored(scope) or 0)
        return {"delay_value_us": np.array(value), "delay_share": np.array(share)}

    def _of(self, scope: Scope) -> Int64:
        delays: Int64 = self.delays[np.ix_(scope.agents, scope.slots)].sum(axis=(0, 1))
        return delays


class UnplaceableFigures(Figures):
    """The tasks that left the queue unplaced; they are among the censored tasks.

    Attributes:
        unplaceable: Tasks that their schedulers could never place.
        abandoned: Tasks given up after too many attempts.
    """

    unplaceable: Count
    abandoned: Count


class UnplaceableMetric(NativeMetric):
    """Tasks that leave the queue unplaced."""

    kind = "unplaceable"
    description = "Tasks that can never be placed, and tasks that were given up."
    figures_model = UnplaceableFigures
    reads: ClassVar[TableColumns] = {"unplaceable": ("agent", "at_us", "abandoned")}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters(("unplaceable", "abandoned"), run)

    def add_up(self, rows: Rows) -> None:
        place = rows["agent"], rows.slot("at_us")
        abandoned = rows["abandoned"] == Unplaceable.ABANDONED
        rows.where(abandoned).add(self.count["abandoned"], place)
        rows.where(~abandoned).add(self.count["unplaceable"], place)

    def figures(self, scope: Scope) -> UnplaceableFigures:
        return UnplaceableFigures(**{name: scope.sum(self.count[name]) for name in self.count})


class QueueHoldFigures(Figures):
    """The holds of queues, by the window in which each ended. Both are 0 where no unit held up
    others: such as where all tasks are alike, and where schedulers keep the tasks that wait."""

    held_up_max: Count = quantity(
        "Most tasks held up",
        Unit.COUNT,
        Better.LOWER,
        "The most tasks that waited behind one task or gang that found no room and held the queue "
        "of its scheduler (head_of_line_s).",
        per_scheduler=True,
    )
    hold_max_us: Count = quantity(
        "Longest hold of a queue",
        Unit.DURATION,
        Better.LOWER,
        "The longest time that one task or gang held the queue while others waited behind it.",
        per_scheduler=True,
    )


class QueueHoldMetric(NativeMetric):
    """Holds of queues."""

    kind = "queue_holds"
    description = "What waited behind tasks and gangs that held the queue of their scheduler."
    figures_model = QueueHoldFigures
    reads: ClassVar[TableColumns] = {"holds": ("agent", "from_us", "until_us", "behind")}
    merges: ClassVar[Merges] = {"_behind": np.maximum, "_length_us": np.maximum}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        shape = (run.agents, run.slots)
        self._behind, self._length_us = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    def add_up(self, rows: Rows) -> None:
        place = rows["agent"], rows.slot("until_us")
        rows.largest(self._behind, place, rows["behind"])
        rows.largest(self._length_us, place, rows["until_us"] - rows["from_us"])

    def figures(self, scope: Scope) -> QueueHoldFigures:
        inside = np.ix_(scope.agents, scope.slots)
        return QueueHoldFigures(
            held_up_max=int(self._behind[inside].max(initial=0)),
            hold_max_us=int(self._length_us[inside].max(initial=0)),
        )
