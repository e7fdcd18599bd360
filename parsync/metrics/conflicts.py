"""Claims that the cell rejected because the state they were planned on was old."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import histogram
from parsync.metrics.counters import Counters, TimeSeries
from parsync.metrics.figures import Count, Figures, Number
from parsync.metrics.metric import NativeMetric, Scope, TableColumns, ratio
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.table_fold import ColumnValue, Rows
from shared_state.tasks import Int64
from shared_state.transaction import CONFLICTS, Reason

OUTCOMES = ("accepted", "stale", "full", "machine_down", "evicted", "gang", "duplicate")
_PER_TRANSACTION = ("decision_us", "claims", *OUTCOMES)


class Outcome:
    """First axis of the counts by age of state."""

    ACCEPTED = 0
    CONFLICT = 1
    OTHER = 2
    COUNT = 3


class ConflictFigures(Figures):
    """Transactions and claims belong to the window in which the answer came. A conflict is a claim
    rejected as stale, full or evicted; collateral of a gang and machines that are down are counted
    apart. A transaction with any conflict has failed."""

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
    machine_down_rate: Number | None
    conflict_rate: Number | None = quantity(
        "Conflict rate",
        Unit.SHARE,
        Better.LOWER,
        "Claims rejected because another scheduler was first (stale, full, evicted) of all claims.",
        headline=True,
        column_label="Conflicts",
        per_scheduler=True,
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

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        names = ("transactions", "conflicted_transactions", "age_us", "aged_claims")
        self.count = Counters((*names, *_PER_TRANSACTION), run)
        self.ages = np.zeros((len(run.groups), Outcome.COUNT, histogram.BUCKETS), np.int64)
        # Conflicts of the row's agent with the column's. An agent's own column: nobody else had
        # claimed the machine. The last column: rival not known.
        self.rivals = np.zeros((run.agents, run.agents + 1), np.int64)
        self._series = TimeSeries(("claims", "conflicts"), run.agents, run.bucket_us)

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
        conflicts = rows["stale"] + rows["full"] + rows["evicted"]
        rows.where(rows["claims"] > 0).add(self.count["transactions"], place)
        rows.where(conflicts > 0).add(self.count["conflicted_transactions"], place)
        for name in _PER_TRANSACTION:
            # what is NOT_KNOWN adds nothing
            rows.add(self.count[name], place, rows[name].clip(0, np.iinfo(np.int64).max))
        rows.add_over_time(self._series, "claims", agent, commit_us, rows["claims"])
        rows.add_over_time(self._series, "conflicts", agent, commit_us, conflicts)

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

    def merge(self, other: ConflictMetric) -> None:
        self.count.merge(other.count)
        self.ages += other.ages
        self.rivals += other.rivals
        self._series.merge(other._series)

    def figures(self, scope: Scope) -> ConflictFigures:
        count = {name: scope.sum(self.count[name]) for name in self.count}
        claims, failed = count["claims"], count["conflicted_transactions"]
        conflicts = count["stale"] + count["full"] + count["evicted"]
        return ConflictFigures(
            transactions=count["transactions"],
            claims=claims,
            conflicts=conflicts,
            conflict_rate=ratio(conflicts, claims),
            conflict_fraction=ratio(failed, count["transactions"] - failed),
            age_mean_us=ratio(count["age_us"], count["aged_claims"]),
            gang_rate=ratio(count["gang"], claims),
            machine_down_rate=ratio(count["machine_down"], claims),
            **{name: count[name] for name in OUTCOMES},
        )

    def series(self) -> Mapping[str, Int64]:
        return self._series.by_name()

    def arrays(self, scope: Scope) -> Mapping[str, NDArray[Any]]:
        return {"ages": self.ages}
