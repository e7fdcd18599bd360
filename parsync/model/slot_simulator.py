"""The slot simulator: many schedulers on the slots of one cell (ParSync sections 4.3 and 5.2).

It stands between the equations of the conflict model and the platform: tasks are alike, a slot has
no other property than its score, and there are no messages but commits. In return a run of the
paper's scale takes seconds. The event model is described in native/slot_simulator.hpp.

What a run found stands in columns by time bin, group and, for conflicts, slice of the gap.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.histogram import BUCKETS, quantile
from parsync.model import _native
from parsync.model.slot_settings import SlotSettings
from shared_state.tasks import Int64

Float64 = NDArray[np.float64]
Counts = NDArray[np.uint32]


class FinishRule(IntEnum):
    """When a simulation has finished: with the last commit, or with the end of the last task."""

    LAST_COMMIT = 0
    LAST_TASK_END = 1


class Ending(IntEnum):
    """Why a simulation ended."""

    RUNNING = 0  # it has not
    COMMITTED = 1  # every task is committed
    HORIZON = 2
    GROWING_BACKLOG = 3  # SlotSettings.growing_bins


@dataclass(frozen=True, slots=True)
class ConflictsAndScores:
    """How often and why claims conflicted, and how good the slots in use were, in some time.

    Attributes:
        conflict_rate: Conflicts per claim; None without claims.
        same_tick_conflict_share, quality_conflict_share, stale_conflict_share: Of the conflicts, by
            cause; together 1. None without conflicts.
        visible_conflict_share: Of the conflicts, those whose slot was in use when the claim was
            decided; None without conflicts.
        score_in_use: The mean score of the slots in use, over the time; None if there were none.
        best_score: The highest mean that as many slots of the cell could have had at every moment.
    """

    conflict_rate: float | None
    same_tick_conflict_share: float | None
    quality_conflict_share: float | None
    stale_conflict_share: float | None
    visible_conflict_share: float | None
    score_in_use: float | None
    best_score: float | None


@dataclass(frozen=True, slots=True)
class SlotResults:
    """The results of one run, over B bins, H groups and L slices of the gap. What counts where is
    defined in native/measurements.hpp.

    Attributes:
        ending: Why the run ended. Unless COMMITTED, delays are those of the tasks that were
            committed, and backlog[-1] counts the others that had arrived.
        decisions, events: How many slots were picked, and how many events the simulation had.
        last_commit_s: When the last task was committed.
        task_s, slots: T and the slots of the cell, extra ones included.
        end_ns: The end of each bin, int64[B]; the last may be short.
        busy_ns: Slots in use, summed over the time of the bin, int64[B].
        busy, idle: Slots at the end of the bin, int64[B].
        in_use_score_ms: Sum over the slots in use of their scores, in steps, summed over the time
            of the bin in ms, int64[B].
        best_score_ms: The same of the best slots of the cell, as many at every moment, int64[B].
        backlog: Tasks arrived and not committed, at the end of the bin, int64[B, H].
        arrived: Tasks, int64[B, H].
        transactions, claims, conflicts, commits: int64[B, H]; conflicts + commits = claims.
        same_tick_conflicts, quality_conflicts, stale_conflicts: Conflicts by cause, int64[B, H];
            together conflicts. native/cell_master.hpp defines them.
        visible_conflicts: Conflicts over slots that were in use when the claim was decided,
            int64[B, H].
        delay_ns: Sum over commits from arrival, int64[B, H].
        conflict_delay_ns: The part of it beyond queueing and deciding each task once, int64[B, H].
        score_steps: Sum over commits of the slot's score, in steps of score_step above
            lowest_score, int64[B, H].
        slice_claims, slice_conflicts, slice_commits, slice_conflict_delay_ns: By part of the time
            since the scheduler's last sync, int64[B, H, L].
        delay, conflict_delay: Histograms in microseconds (parsync.metrics.histogram), uint32[B, H,
            w] up to the largest bucket in use.
        score: Histograms, uint32[B, H, w], over equal parts of the range of scores.
        lowest_score, score_step: The range of scores: 65,535 steps.
    """

    ending: Ending
    decisions: int
    events: int
    last_commit_s: float
    task_s: float
    slots: int
    end_ns: Int64
    busy_ns: Int64
    busy: Int64
    idle: Int64
    in_use_score_ms: Int64
    best_score_ms: Int64
    backlog: Int64
    arrived: Int64
    transactions: Int64
    claims: Int64
    conflicts: Int64
    same_tick_conflicts: Int64
    quality_conflicts: Int64
    stale_conflicts: Int64
    visible_conflicts: Int64
    commits: Int64
    delay_ns: Int64
    conflict_delay_ns: Int64
    score_steps: Int64
    slice_claims: Int64
    slice_conflicts: Int64
    slice_commits: Int64
    slice_conflict_delay_ns: Int64
    delay: Counts
    conflict_delay: Counts
    score: Counts
    lowest_score: float
    score_step: float

    @property
    def start_ns(self) -> Int64:
        """The start of each bin, int64[B]."""
        return np.concatenate([np.zeros(1, np.int64), self.end_ns[:-1]])

    def finishes_by(self, time_s: float, rule: FinishRule = FinishRule.LAST_COMMIT) -> bool:
        """Whether everything was done before time_s."""
        run_s = self.task_s if rule is FinishRule.LAST_TASK_END else 0.0
        return self.ending is Ending.COMMITTED and self.last_commit_s + run_s < time_s

    def between(self, start_s: float, end_s: float) -> slice:
        """The bins that lie within this time."""
        first = int(np.searchsorted(self.start_ns, round(start_s * 1e9)))
        return slice(first, int(np.searchsorted(self.end_ns, round(end_s * 1e9), side="right")))

    def utilisation(self) -> Float64:
        """The share of the cell's slot-time in use, float64[B]."""
        share: Float64 = self.busy_ns / ((self.end_ns - self.start_ns) * self.slots)
        return share

    def conflict_rate(self, bins: slice = slice(None)) -> float:
        """Conflicts per claim; nan without claims."""
        return _ratio(self.conflicts[bins].sum(), self.claims[bins].sum())

    def conflict_rate_by_slice(self, bins: slice = slice(None)) -> Float64:
        """Conflicts per claim in each part of the time between syncs, float64[L]; two parts are the
        halves of G of ParSync section 5.1."""
        conflicts = self.slice_conflicts[bins].sum(axis=(0, 1))
        return _ratios(conflicts, self.slice_claims[bins].sum(axis=(0, 1)))

    def conflict_delay_by_slice(self, bins: slice = slice(None)) -> Float64:
        """Mean seconds of delay that conflicts caused, by the part of the gap in which tasks were
        committed, float64[L]."""
        total_ns = self.slice_conflict_delay_ns[bins].sum(axis=(0, 1))
        mean_ns = _ratios(total_ns, self.slice_commits[bins].sum(axis=(0, 1)))
        return mean_ns * 1e-9

    def mean_delay_s(self, bins: slice = slice(None)) -> float:
        """Mean delay of the tasks committed then; nan if there were none."""
        return _ratio(self.delay_ns[bins].sum(), self.commits[bins].sum()) / 1e9

    def mean_score(self, bins: slice = slice(None)) -> float:
        """Mean score of the slots granted then; nan if there were none."""
        steps = _ratio(self.score_steps[bins].sum(), self.commits[bins].sum())
        return self.lowest_score + steps * self.score_step

    def conflicts_and_scores(
        self, bins: slice = slice(None), group: int | None = None
    ) -> ConflictsAndScores:
        """Why claims conflicted then, those of a group or of all, and how good the slots in use
        were: those of all groups, whatever the group."""

        def count(column: Int64) -> int:
            return int((column[bins] if group is None else column[bins, group]).sum())

        def share_of_conflicts(column: Int64) -> float | None:
            return _known_ratio(count(column), count(self.conflicts))

        busy_ns = int(self.busy_ns[bins].sum())

        def mean_score(column: Int64) -> float | None:
            steps = _known_ratio(int(column[bins].sum()) * 1_000_000, busy_ns)
            return None if steps is None else self.lowest_score + steps * self.score_step

        return ConflictsAndScores(
            conflict_rate=_known_ratio(count(self.conflicts), count(self.claims)),
            same_tick_conflict_share=share_of_conflicts(self.same_tick_conflicts),
            quality_conflict_share=share_of_conflicts(self.quality_conflicts),
            stale_conflict_share=share_of_conflicts(self.stale_conflicts),
            visible_conflict_share=share_of_conflicts(self.visible_conflicts),
            score_in_use=mean_score(self.in_use_score_ms),
            best_score=mean_score(self.best_score_ms),
        )

    def delay_quantile_s(
        self, fraction: float, bins: slice = slice(None), group: int | None = None
    ) -> float | None:
        """A quantile of the delays of the tasks committed then, to within 0.8 %; None if there were
        none."""
        return _delay_quantile_s(self.delay, fraction, bins, group)

    def conflict_delay_quantile_s(
        self, fraction: float, bins: slice = slice(None), group: int | None = None
    ) -> float | None:
        """The same of the part that conflicts caused."""
        return _delay_quantile_s(self.conflict_delay, fraction, bins, group)

    def score_quantile(
        self, fraction: float, bins: slice = slice(None), group: int | None = None
    ) -> float | None:
        """A quantile of the scores of the slots granted then, to within 0.1 % of their range; None
        if there were none."""
        counts = _of_group(self.score, bins, group)
        if not counts.sum():
            return None
        rank = max(1, int(np.ceil(fraction * counts.sum() - 1e-9)))
        bucket = int(np.searchsorted(np.cumsum(counts), rank))
        width = 65_536 // _native.SCORE_BUCKETS
        return self.lowest_score + (bucket + 0.5) * width * self.score_step

    def digest(self) -> str:
        """A fingerprint of all counts: equal settings and seeds give equal ones on any machine."""
        hashed = hashlib.blake2b(digest_size=16)
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                hashed.update(f"{field.name}{value.shape}".encode())
                hashed.update(value.astype(value.dtype.newbyteorder("<")).tobytes())
        hashed.update(f"{self.ending.name} {self.decisions} {self.events}".encode())
        return hashed.hexdigest()


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else float("nan")


def _known_ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _ratios(part: Int64, whole: Int64) -> Float64:
    ratio = np.full(len(part), np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio


def _of_group(histograms: Counts, bins: slice, group: int | None) -> Int64:
    groups = slice(None) if group is None else slice(group, group + 1)
    counts: Int64 = histograms[bins, groups].sum(axis=(0, 1), dtype=np.int64)
    return counts


def _delay_quantile_s(
    histograms: Counts, fraction: float, bins: slice, group: int | None
) -> float | None:
    counts = np.zeros(BUCKETS, np.int64)
    used = _of_group(histograms, bins, group)
    counts[: len(used)] = used
    value_us = quantile(counts, fraction)
    return None if value_us is None else value_us / 1e6


_OF_CELL = ("end_ns", "busy_ns", "busy", "idle", "in_use_score_ms", "best_score_ms")
_STEPS = 200_000  # between two looks at Ctrl-C: less than 0.1 s


def simulate(settings: SlotSettings) -> SlotResults:
    """Run a slot simulation to its end. Other threads run meanwhile, and Ctrl-C interrupts it.

    Raises:
        AgoraError: A parameter is wrong, or rates cannot be met; the message names it.
    """
    simulator = _native.SlotSimulator(settings.to_native())
    while simulator.run(_STEPS) == Ending.RUNNING:
        pass
    return _results(simulator, settings)


def _results(simulator: _native.SlotSimulator, settings: SlotSettings) -> SlotResults:
    columns = simulator.columns()
    bins, groups = len(columns["end_ns"]), len(settings.groups)
    cell = {name: columns.pop(name) for name in _OF_CELL}
    shaped = {
        name: column.reshape(
            (bins, groups, settings.gap_slices) if name.startswith("slice_") else (bins, groups)
        )
        for name, column in columns.items()
    }
    by_group = (bins, groups, -1)
    return SlotResults(
        ending=Ending(simulator.ending),
        decisions=simulator.decisions,
        events=simulator.events,
        last_commit_s=simulator.last_commit_ns / 1e9,
        task_s=settings.task_s,
        slots=settings.slots + settings.extra_slots,
        delay=simulator.delay_histograms().reshape(by_group),
        conflict_delay=simulator.conflict_delay_histograms().reshape(by_group),
        score=simulator.score_histograms().reshape(by_group),
        lowest_score=simulator.lowest_score,
        score_step=simulator.score_step,
        **cell,
        **shaped,
    )
