"""Claims that the cell rejected because the state they were planned on was old: how many, how many
from day to day, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import _native, histogram
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
    ratio,
)
from parsync.metrics.quantity import Better, Count, Figures, Number, Unit, quantity
from parsync.metrics.run_frame import Days, RunFrame
from parsync.metrics.tables import CONFLICT_COLUMNS, NOT_KNOWN
from parsync.schema import names_of
from parsync.workload.workload import Workload
from schedulers.objective import native_columns
from shared_state.observed_cell import NativeObserver
from shared_state.tasks import Int64
from shared_state.transaction import CONFLICTS, Reason

OUTCOMES = tuple(names_of(Reason).values())
_PER_TRANSACTION = ("decision_us", "claims", *OUTCOMES)


class Outcome:
    """First axis of the counts by age of state."""

    ACCEPTED = 0
    CONFLICT = 1
    OTHER = 2
    COUNT = 3


class ConflictFigures(Figures):
    """Transactions and claims belong to the window in which the answer came. A conflict is a claim
    rejected as stale, full, evicted or held (the room was held for an offer); collateral of a gang
    and machines that are down are counted apart. A transaction with any conflict has failed."""

    transactions: Count
    claims: Count
    accepted: Count
    conflicts: Count
    stale: Count
    full: Count
    evicted: Count
    gang: Count
    machine_down: Count
    duplicate: Count
    held: Count
    machine_down_rate: Number | None
    conflict_rate: Number | None = quantity(
        "Conflict rate",
        Unit.SHARE,
        Better.LOWER,
        "Claims rejected because another scheduler was first (stale, full, evicted, held) of all "
        "claims.",
        headline=True,
        column_label="Conflicts",
        per_scheduler=True,
    )
    held_rate: Number | None = quantity(
        "Claims on offered room",
        Unit.SHARE,
        Better.LOWER,
        "Claims rejected because the room was held for an offer, of all claims; they are part of "
        "the conflicts.",
        headline=True,
        column_label="Held",
    )
    conflict_fraction: Number | None = quantity(
        "Failed per successful transaction",
        Unit.PLAIN,
        Better.LOWER,
        "Omega's conflict fraction; a transaction with any conflict has failed.",
    )
    gang_rate: Number | None = quantity(
        "Gang collateral",
        Unit.SHARE,
        Better.LOWER,
        "Claims that fitted but whose gang did not, of all claims.",
    )
    age_mean_us: Number | None = quantity(
        "Age of the state decided on",
        Unit.DURATION,
        Better.NEITHER,
        "Averaged over claims, at the cell's commit.",
    )


class ConflictMetric(NativeMetric):
    """Outcomes of claims, by the age of the state they were planned on and by rival."""

    kind = "conflicts"
    description = "Claims that the cell rejected because the state they were planned on was old."
    figures_model = ConflictFigures
    reads: ClassVar[TableColumns] = {
        "tasks": ("agent", "commit_us", "age_us"),
        "commits": ("agent", "commit_us", *_PER_TRANSACTION),
        "rejections": ("agent", "at_us", "age_us", "reason", "rival"),
    }
    plots = (
        OverTime(
            "Conflict rate over time",
            part="conflicts",
            whole="claims",
            unit=Unit.SHARE,
            axis="Claims in conflict",
            caption="Claims rejected as stale, full, evicted or held, of all claims answered at "
            "each moment.",
            look_for="Compare the same load before and after the peak.",
        ),
    )
    merges: ClassVar[Merges] = {"ages": np.add, "rivals": np.add}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        names = ("transactions", "conflicted_transactions", "age_us", "aged_claims")
        self.count = Counters((*names, *_PER_TRANSACTION), run)
        self.ages = np.zeros((len(run.groups), Outcome.COUNT, histogram.BUCKETS), np.int64)
        # Conflicts of the row's agent with the column's. An agent's own column: nobody else had
        # claimed the machine. The last column: rival not known.
        self.rivals = np.zeros((run.agents, run.agents + 1), np.int64)
        self.timeline = TimeSeries(("claims", "conflicts"), run.agents, run.bucket_us)

    def add_up(self, rows: Rows) -> None:
        if rows.table == "tasks":
            self._aged(rows, rows.slot("commit_us"), Outcome.ACCEPTED)
        elif rows.table == "commits":
            self._commits(rows)
        else:
            self._rejections(rows)

    def _commits(self, rows: Rows) -> None:
        agent, commit_us = rows["agent"], rows["commit_us"]
        place = agent, rows.slot("commit_us")
        conflicts = rows.claims_in_conflict
        rows.where(rows["claims"] > 0).add(self.count["transactions"], place)
        rows.where(conflicts > 0).add(self.count["conflicted_transactions"], place)
        for name in _PER_TRANSACTION:
            # what is NOT_KNOWN adds nothing
            rows.add(self.count[name], place, rows[name].clip(0, np.iinfo(np.int64).max))
        rows.add_over_time(self.timeline, "claims", agent, commit_us, rows["claims"])
        rows.add_over_time(self.timeline, "conflicts", agent, commit_us, conflicts)

    def _rejections(self, rows: Rows) -> None:
        slot, conflict = rows.slot("at_us"), rows["reason"].is_one_of(CONFLICTS)
        self._aged(rows.where(conflict), slot, Outcome.CONFLICT)
        self._aged(rows.where(~conflict), slot, Outcome.OTHER)
        agent, rival, unknown = rows["agent"], rows["rival"], self.run.agents
        # nobody else claimed the machine
        itself = (rival < 0) & (rows["reason"] != Reason.EVICTED)
        known = rival.is_within(0, unknown - 1).choose(rival, unknown)
        counted = rows.where(conflict & (slot < self.run.outside))
        counted.add(self.rivals, (agent, itself.choose(agent, known)))

    def _aged(self, rows: Rows, slot: ColumnValue, outcome: int) -> None:
        agent, age_us = rows["agent"], rows["age_us"]
        rows.add(self.count["aged_claims"], (agent, slot))
        rows.add(self.count["age_us"], (agent, slot), age_us)
        counted = rows.where(slot < self.run.outside)
        group = counted.take(self.run.group_of, agent, "agent")
        counted.add(self.ages, (group, outcome, age_us.histogram_bucket()))

    def figures(self, scope: Scope) -> ConflictFigures:
        count = {name: scope.sum(self.count[name]) for name in self.count}
        claims, failed = count["claims"], count["conflicted_transactions"]
        conflicts = sum(count[name] for name in CONFLICT_COLUMNS)
        return ConflictFigures(
            transactions=count["transactions"],
            claims=claims,
            conflicts=conflicts,
            conflict_rate=ratio(conflicts, claims),
            held_rate=ratio(count["held"], claims),
            conflict_fraction=ratio(failed, count["transactions"] - failed),
            age_mean_us=ratio(count["age_us"], count["aged_claims"]),
            gang_rate=ratio(count["gang"], claims),
            machine_down_rate=ratio(count["machine_down"], claims),
            **{name: count[name] for name in OUTCOMES},
        )

    def arrays(self, scope: Scope) -> Mapping[str, NDArray[Any]]:
        return {"ages": self.ages}


_DAILY = ("", "batch_", "service_")


def _median(of: str, what: str) -> Any:
    """Declare the median of the daily values of one kind of attempt."""
    return quantity(
        f"Daily conflict fraction{of}",
        Unit.PLAIN,
        Better.LOWER,
        f"Median over the days of {what} with a conflict, over those without one (Omega); of runs "
        "shorter than two days, over tenths of the run.",
    )


def _deviation(of: str) -> Any:
    return quantity(
        f"Deviation of the daily conflict fraction{of}",
        Unit.PLAIN,
        Better.NEITHER,
        "Median absolute deviation from the median.",
    )


class DailyConflictFigures(Figures):
    """Conflict fractions day by day: of transactions by the day of the answer, and of scheduling
    attempts of batch and service jobs by the day on which they began (Omega: Schwarzkopf et al.,
    EuroSys 2013, section 4: the conflict fraction is the median of the daily values, its error bars
    the median absolute deviation). Runs of less than two days have tenths in place of days. Days
    without transactions do not count. None if no transaction succeeded on half of the days. Figures
    by class are None where the run has no service jobs."""

    conflict_fraction_median: Number | None = _median("", "transactions")
    conflict_fraction_mad: Number | None = _deviation("")
    batch_conflict_fraction_median: Number | None = _median(
        " of batch jobs", "attempts of batch jobs"
    )
    batch_conflict_fraction_mad: Number | None = _deviation(" of batch jobs")
    service_conflict_fraction_median: Number | None = _median(
        " of service jobs", "attempts of service jobs"
    )
    service_conflict_fraction_mad: Number | None = _deviation(" of service jobs")


class DailyConflictMetric(NativeMetric):
    """Transactions and attempts with claims, and those of them with a conflict, by day."""

    kind = "daily_conflicts"
    description = "How often transactions conflict from day to day."
    figures_model = DailyConflictFigures
    reads: ClassVar[TableColumns] = {
        "commits": ("agent", "commit_us", "claims", *CONFLICT_COLUMNS),
        "job_attempts": ("agent", "job", "start_us", "claims", "conflicts"),
    }
    merges: ClassVar[Merges] = {"_tried": np.add, "_failed": np.add}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self._days = Days(run)
        shape = (len(_DAILY), run.agents, run.slots, self._days.count)
        self._tried, self._failed = np.zeros((2, *shape), np.int64)

    def add_up(self, rows: Rows) -> None:
        if rows.table == "commits":
            self._add(0, rows, "commit_us", rows.claims_in_conflict > 0)
            return
        if self.run.service_jobs is None or self.run.jobs is None:
            return
        job = rows["job"].place_among(self.run.jobs.ids)
        rows = rows.where(job >= 0)
        is_service = rows.take(self.run.service_jobs, job, "job") == 1
        for number, mine in ((1, ~is_service), (2, is_service)):
            self._add(number, rows.where(mine), "start_us", rows["conflicts"] > 0)

    def _add(self, number: int, rows: Rows, time: str, failed: ColumnValue) -> None:
        """Count transactions on the days of their times. number: of the kind in _DAILY."""
        # times are not known of transactions that were lost with a killed scheduler
        sent = rows.where((rows["claims"] > 0) & (rows[time] != NOT_KNOWN))
        day = (rows[time] // self._days.length_us).clip(0, self._days.count - 1)
        place = number, rows["agent"], rows.slot(time), day
        sent.add(self._tried, place)
        sent.where(failed).add(self._failed, place)

    def figures(self, scope: Scope) -> DailyConflictFigures:
        whole = self._days.is_whole(self._days.counted_us(scope.slots))
        chosen = np.ix_(np.array(scope.agents), np.array(scope.slots), np.flatnonzero(whole))
        found: dict[str, float | None] = {}
        for name, tried, failed in zip(_DAILY, self._tried, self._failed, strict=True):
            median, mad = _median_and_deviation(
                tried[chosen].sum(axis=(0, 1)), failed[chosen].sum(axis=(0, 1))
            )
            found[f"{name}conflict_fraction_median"] = median
            found[f"{name}conflict_fraction_mad"] = mad
        return DailyConflictFigures(**found)


def _median_and_deviation(tried: Int64, failed: Int64) -> tuple[float | None, float | None]:
    """The median of failed over successful transactions, int64[days] each, and the median absolute
    deviation. A day on which all fail has an infinite fraction."""
    tried, failed = tried[tried > 0], failed[tried > 0]
    if not len(tried):
        return None, None
    succeeded = tried - failed
    fraction = np.divide(failed, succeeded, out=np.full(len(tried), np.inf), where=succeeded > 0)
    median = float(np.median(fraction))
    if not np.isfinite(median):
        return None, None
    mad = float(np.median(np.abs(fraction - median)))
    return median, mad if np.isfinite(mad) else None


class ConflictCauses(Figures):
    """Shares of the conflicts by cause, which add up to 1. None without conflicts, or if not
    observed.

    A claim that is rejected as stale, full or evicted has one cause, the first of these that
    applies. Its rival is the other scheduler that last claimed the machine (CommitResult.rival). A
    claim that is rejected as held lost to an offer and not to a claim: its cause is staleness.

    1. Same tick: the rival's claim was decided at the same microsecond of the cell. No
       synchronisation could have shown it.
    2. Contention for quality: the rejected task and the rival's both prefer the machine.
    3. Staleness: everything else. The machine was one of many that would have done, and was taken
       after the state that the claim was planned on.

    Section 6.2 of ParSync explains its conflicts by the last two, without counting them apart.
    """

    same_tick_conflict_share: Number | None = quantity(
        "Conflicts in the same tick",
        Unit.SHARE,
        Better.NEITHER,
        "Of all conflicts, those with a claim that was decided at the same microsecond.",
    )
    quality_conflict_share: Number | None = quantity(
        "Conflicts over preferred machines",
        Unit.SHARE,
        Better.NEITHER,
        "Of all conflicts, those of two tasks that both prefer the machine, in different ticks.",
    )
    stale_conflict_share: Number | None = quantity(
        "Conflicts by staleness alone",
        Unit.SHARE,
        Better.NEITHER,
        "Of all conflicts, the others: the room was taken after the state that was planned on.",
    )

    @classmethod
    def of(cls, same_tick: int = 0, quality: int = 0, stale: int = 0) -> Self:
        """The shares of so many conflicts by cause."""
        conflicts = same_tick + quality + stale
        return cls(
            same_tick_conflict_share=ratio(same_tick, conflicts),
            quality_conflict_share=ratio(quality, conflicts),
            stale_conflict_share=ratio(stale, conflicts),
        )


class ConflictCauseWatch(NativeObserver):
    """Observes a cell and counts the causes of conflicts.

    It counts transactions that are decided after the first settle_us of a phase, and before the
    phase's end.
    """

    native: _native.ConflictCauses

    def __init__(self, workload: Workload, settle_us: int) -> None:
        causes = _native.ConflictCauses(
            workload.cell.machines,
            np.ascontiguousarray(workload.tasks.preference, np.int32),
            native_columns(workload.catalog, workload.cell),
            [phase.start_us + settle_us for phase in workload.phases],
            [phase.end_us for phase in workload.phases],
        )
        super().__init__(causes)

    def causes(self) -> ConflictCauses:
        """The shares so far."""
        return ConflictCauses.of(*self.native.counts())
