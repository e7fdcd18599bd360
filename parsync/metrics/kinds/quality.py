"""Placement quality: how many tasks got a machine that they prefer, over tasks and by preference
set; what their places cost, and what they got of the values that the workload brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from parsync.metrics.metric import (
    Counters,
    Merges,
    Metric,
    NativeMetric,
    OverTime,
    RecordBatch,
    Rows,
    Scope,
    TableColumns,
    TimeSeries,
    add_at,
    ratio,
)
from parsync.metrics.quantity import Better, Count, Figures, Number, Quantity, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from shared_state.tasks import NO_PREFERENCE, Int64


class PreferenceFigures(Figures):
    """The placement of submitted tasks that prefer some machine, by the window of their submission:
    one that is never committed counts as not preferred."""

    submitted_prefers: Count
    preferred: Count
    preferred_share: Number | None = quantity(
        "Share on preferred machines",
        Unit.SHARE,
        Better.HIGHER,
        "First commits on a preferred machine of all submitted tasks that prefer some.",
        headline=True,
        column_label="Preferred",
        per_scheduler=True,
    )


class PreferenceMetric(NativeMetric):
    """First commits on preferred machines."""

    kind = "preferences"
    description = "How many tasks with preferences got a preferred machine."
    figures_model = PreferenceFigures
    reads: ClassVar[TableColumns] = {
        "submissions": ("agent", "submit_us", "prefers"),
        "tasks": ("agent", "submit_us", "first", "preferred"),
    }
    plots = (
        OverTime(
            "Placement quality over time",
            part="preferred",
            whole="submitted_prefers",
            unit=Unit.SHARE,
            axis="On a preferred machine",
            caption="Tasks submitted at each moment whose first commit was on a preferred machine, "
            "of those that prefer any.",
            up_to_all=True,
        ),
    )

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        names = ("submitted_prefers", "preferred")
        self.count = Counters(names, run)
        self.timeline = TimeSeries(names, run.agents, run.bucket_us)

    def add_up(self, rows: Rows) -> None:
        agent, submit_us, slot = rows["agent"], rows["submit_us"], rows.slot("submit_us")
        if rows.table == "submissions":
            rows.add(self.count["submitted_prefers"], (agent, slot), rows["prefers"])
            rows.add_over_time(
                self.timeline, "submitted_prefers", agent, submit_us, rows["prefers"]
            )
        else:
            firsts = rows.first_commits
            hits = firsts.where(firsts["preferred"] == 1)
            hits.add(self.count["preferred"], (agent, slot))
            hits.add_over_time(self.timeline, "preferred", agent, submit_us)

    def figures(self, scope: Scope) -> PreferenceFigures:
        submitted = scope.sum(self.count["submitted_prefers"])
        preferred = scope.sum(self.count["preferred"])
        return PreferenceFigures(
            submitted_prefers=submitted,
            preferred=preferred,
            preferred_share=ratio(preferred, submitted),
        )


# Of a set with fewer tasks the share says little: that of 100 tasks is within 10 percentage points
# of what it would be in a longer run, with 95 % confidence.
LEAST_TASKS = 100
_NOT_SEEN = -1


class PreferenceSetFigures(Figures):
    """Shares over the preference sets with at least LEAST_TASKS submitted tasks, by the window of
    the submission. A mean over tasks can rise while some set is starved. Here each set counts once,
    whatever its number of tasks, and the worst one stands beside the mean. A task that is never
    committed counts as not preferred.

    Shares and worst_preference_set are None where no set has enough tasks; all are None where the
    sets of the run's tasks are not known.
    """

    set_preferred_share_worst: Number | None = quantity(
        "Share on preferred machines, worst set",
        Unit.SHARE,
        Better.HIGHER,
        f"Of the preference sets with at least {LEAST_TASKS} submitted tasks, that with the lowest "
        "share.",
        column_label="Worst set",
        beside="preferred_share",
    )
    set_preferred_share_mean: Number | None = quantity(
        "Share on preferred machines, mean of sets",
        Unit.SHARE,
        Better.HIGHER,
        f"Over the preference sets with at least {LEAST_TASKS} submitted tasks, each counted once.",
        column_label="Set mean",
        beside="preferred_share",
    )
    preference_sets_counted: Count | None = quantity(
        "Preference sets with enough tasks",
        Unit.COUNT,
        Better.NEITHER,
        f"Those with at least {LEAST_TASKS} submitted tasks, which the figures by set rest on.",
    )
    preference_sets: Count | None = quantity(
        "Preference sets", Unit.COUNT, Better.NEITHER, "Those with any submitted task."
    )
    worst_preference_set: Count | None


@dataclass(frozen=True, slots=True)
class _SetCounts:
    """Tasks by set, agent and slot, where there are any: columns of equal length.

    Attributes:
        submitted: Tasks submitted.
        preferred: Those of them whose first commit was on a preferred machine.
    """

    preference: Int64
    agent: Int64
    slot: Int64
    submitted: Int64
    preferred: Int64


class PreferenceSetMetric(NativeMetric):
    """Submitted tasks and first commits on preferred machines, by preference set."""

    kind = "preference_sets"
    description = "How well each preference set is served."
    figures_model = PreferenceSetFigures
    reads: ClassVar[TableColumns] = {
        "submissions": ("agent", "job", "submit_us"),
        "tasks": ("task", "first", "preferred"),
    }
    merges: ClassVar[Merges] = {
        "_rows": np.add,
        "_preferred": np.logical_or,
        "_agent": np.maximum,
        "_last_us": np.maximum,
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self._rows = np.zeros(1, np.int64)  # so far
        self._counts: tuple[int, _SetCounts | None] | None = None  # after so many rows
        self._jobs = None if run.preferences is None else run.jobs
        tasks = 0 if run.preferences is None else len(run.preferences.preference)
        jobs = 0 if self._jobs is None else len(self._jobs)
        self._preferred = np.zeros(tasks, np.bool_)
        self._agent = np.full(jobs, _NOT_SEEN, np.int32)
        self._last_us = np.full(jobs, _NOT_SEEN, np.int64)  # the last submission of each job

    def add_up(self, rows: Rows) -> None:
        if self._jobs is None:
            return
        rows.count(self._rows)
        if rows.table == "submissions":
            job = rows["job"].place_among(self._jobs.ids)
            rows.store(self._agent, (job,), rows["agent"])
            rows.largest(self._last_us, (job,), rows["submit_us"])
        else:
            hits = rows.first_commits.where(rows["preferred"] == 1)
            hits.store(self._preferred, (rows["task"],), 1)

    def figures(self, scope: Scope) -> PreferenceSetFigures:
        rows = int(self._rows[0])
        if self._counts is None or self._counts[0] != rows:
            self._counts = rows, self._counted()
        _, counts = self._counts
        if counts is None:
            return PreferenceSetFigures.unknown()
        submitted, preferred = _by_set(counts, scope.agents, scope.slots)
        counted = np.flatnonzero(submitted >= LEAST_TASKS)
        shares = preferred[counted] / submitted[counted]
        known = len(counted) > 0
        return PreferenceSetFigures(
            set_preferred_share_worst=float(shares.min()) if known else None,
            set_preferred_share_mean=float(shares.mean()) if known else None,
            preference_sets_counted=len(counted),
            preference_sets=int(np.count_nonzero(submitted)),
            worst_preference_set=int(counted[shares.argmin()]) if known else None,
        )

    def _counted(self) -> _SetCounts | None:
        """The counts of all tasks with preferences that were submitted; None where the sets of the
        run's tasks are not known."""
        run, tasks = self.run, self.run.preferences
        if tasks is None or run.job_of is None or self._jobs is None:
            return None
        row = np.flatnonzero((tasks.preference != NO_PREFERENCE) & (run.job_of >= 0))
        place = self._jobs.places(run.job_of[row])
        arrived = tasks.submit_us[row] <= self._last_us[place]
        row, place = row[arrived], place[arrived]
        slot = run.slot_of(tasks.submit_us[row])
        cell = (
            tasks.preference[row] * np.int64(run.agents) + self._agent[place]
        ) * run.slots + slot
        cells, of_cell, submitted = np.unique(cell, return_inverse=True, return_counts=True)
        preferred = np.bincount(of_cell[self._preferred[row]], minlength=len(cells))
        rest, its_slot = np.divmod(cells, run.slots)
        its_set, its_agent = np.divmod(rest, run.agents)
        return _SetCounts(
            its_set, its_agent, its_slot, submitted.astype(np.int64), preferred.astype(np.int64)
        )


def _by_set(
    counts: _SetCounts, agents: Sequence[int], slots: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tasks submitted and preferred of some agents over some slots: int64[sets] each."""
    inside = np.isin(counts.agent, agents) & np.isin(counts.slot, slots)
    preference = counts.preference[inside]
    submitted, preferred = np.zeros((2, int(preference.max(initial=-1)) + 1), np.int64)
    np.add.at(submitted, preference, counts.submitted[inside])
    np.add.at(preferred, preference, counts.preferred[inside])
    return submitted, preferred


class CostFigures(Figures):
    """The cost of first commits, by the window of the submission."""

    cost_mean: Number | None = quantity(
        "Mean placement cost",
        Unit.PLAIN,
        Better.LOWER,
        "The workload's own cost of where a task was placed.",
        headline=True,
    )


class CostMetric(NativeMetric):
    """The mean cost of first commits."""

    kind = "cost"
    description = "What placements cost by the workload's own costs."
    figures_model = CostFigures
    reads: ClassVar[TableColumns] = {"tasks": ("agent", "submit_us", "first", "cost")}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters(("priced_tasks", "cost"), run)

    def add_up(self, rows: Rows) -> None:
        firsts = rows.first_commits
        place = firsts["agent"], firsts.slot("submit_us")
        firsts.add(self.count["priced_tasks"], place)
        firsts.add(self.count["cost"], place, firsts["cost"])

    def figures(self, scope: Scope) -> CostFigures:
        tasks = scope.sum(self.count["priced_tasks"])
        return CostFigures(cost_mean=ratio(scope.sum(self.count["cost"]), tasks))


class PlacementValueFigures(Figures):
    """What first commits got over what there was to get, by the key of each value's quantity; a
    workload brings its own values."""

    model_config = ConfigDict(extra="allow")


class PlacementValueMetric(Metric):
    """The values that RunFrame was given."""

    kind = "placement_values"
    description = "What placements got of the values that the workload brings."
    figures_model = PlacementValueFigures
    reads: ClassVar[TableColumns] = {"tasks": ("task", "agent", "machine", "submit_us", "first")}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        shape = (2, run.agents, run.slots)
        self._quantities = [
            value.quantity.model_copy(update={"metric": self.kind}) for value in run.values
        ]
        self._sums = {value.quantity.key: np.zeros(shape, np.int64) for value in run.values}

    def folds(self, table: str) -> bool:
        return bool(self.run.values) and super().folds(table)

    def fold(self, batch: RecordBatch) -> None:
        firsts = batch.first_commits
        agent, slot = firsts["agent"], firsts.slot("submit_us")
        for value in self.run.values:
            parts = value.of(firsts["task"], firsts["machine"])
            for sums, part in zip(self._sums[value.quantity.key], parts, strict=True):
                add_at(sums, agent, slot, part)

    def merge(self, other: PlacementValueMetric) -> None:
        for name, sums in self._sums.items():
            sums += other._sums[name]

    def figures(self, scope: Scope) -> PlacementValueFigures:
        shares = {
            key: ratio(scope.sum(got), scope.sum(whole)) for key, (got, whole) in self._sums.items()
        }
        return PlacementValueFigures(**shares)

    def run_quantities(self) -> list[Quantity]:
        return self._quantities
