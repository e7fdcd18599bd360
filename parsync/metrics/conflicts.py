"""Claims that the cell rejected because the state they were planned on was old."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import histogram
from parsync.metrics.counters import Counters, TimeSeries, add_at
from parsync.metrics.figures import Count, Figures, Number
from parsync.metrics.metric import Metric, Scope, TableColumns, ratio
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.metrics.record_batch import RecordBatch
from parsync.metrics.run_frame import RunFrame
from shared_state.tasks import Int64
from shared_state.transaction import Reason, is_conflict

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


class ConflictMetric(Metric):
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

    def fold(self, batch: RecordBatch) -> None:
        if batch.table == "tasks":
            answered = batch.slot("commit_us")
            self._aged(batch["agent"], answered, batch["age_us"], Outcome.ACCEPTED)
        elif batch.table == "commits":
            self._commits(batch)
        else:
            self._rejections(batch)

    def _commits(self, batch: RecordBatch) -> None:
        agent, slot = batch["agent"], batch.slot("commit_us")
        conflicts = batch["stale"].astype(np.int64) + batch["full"] + batch["evicted"]
        sent = batch["claims"] > 0
        self.count.add("transactions", agent[sent], slot[sent])
        self.count.add("conflicted_transactions", agent[conflicts > 0], slot[conflicts > 0])
        for name in _PER_TRANSACTION:
            # what is NOT_KNOWN adds nothing
            self.count.add(name, agent, slot, np.maximum(batch[name], 0))
        self._series.add("claims", agent, batch["commit_us"], batch["claims"])
        self._series.add("conflicts", agent, batch["commit_us"], conflicts)

    def _rejections(self, batch: RecordBatch) -> None:
        slot = batch.slot("at_us")
        conflict = is_conflict(batch["reason"])
        for outcome, mask in ((Outcome.CONFLICT, conflict), (Outcome.OTHER, ~conflict)):
            self._aged(batch["agent"][mask], slot[mask], batch["age_us"][mask], outcome)
        counted = conflict & (slot < self.run.outside)
        rival = batch["rival"][counted]
        agent = batch["agent"][counted]
        # nobody else claimed the machine
        itself = (rival < 0) & (batch["reason"][counted] != Reason.EVICTED)
        unknown = self.run.agents
        rival = np.where(itself, agent, np.where((rival < 0) | (rival >= unknown), unknown, rival))
        add_at(self.rivals, agent, rival, 1)

    def _aged(
        self, agent: NDArray[Any], slot: NDArray[np.intp], age_us: Int64, outcome: int
    ) -> None:
        self.count.add("aged_claims", agent, slot)
        self.count.add("age_us", agent, slot, age_us)
        counted = slot < self.run.outside
        place = self.run.group_of[agent[counted]] * Outcome.COUNT + outcome
        bucket = histogram.bucket_of(age_us[counted])
        add_at(self.ages.reshape(-1, histogram.BUCKETS), place, bucket, 1)

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
