"""What an agent measures: rows for the tables, gathered until the next sample."""

from __future__ import annotations

import numpy as np

from parsync.core.events import Record
from parsync.core.measurements import Measurements
from parsync.core.tables import TABLES
from parsync.core.work import Round, Work
from schedulers.interface import Plan
from schedulers.objective import placement_cost
from shared_state.tasks import CellSpec, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import CommitResult, Reason

ROUND_COLUMNS = tuple(TABLES["rounds"])[2:]


class AgentLog:
    """Measurements of agent `agent`; see tables.py for what each column means."""

    def __init__(self, agent: int, cell: CellSpec, table: TaskBatch, catalog: PreferenceCatalog) -> None:
        self._agent = agent
        self._rack = cell.rack
        self._table = table
        self._catalog = catalog
        self._records = Measurements()

    def flush(self) -> list[Record]:
        """Everything since the last flush."""
        return self._records.flush()

    def sync(self, now_us: int, partition: int, age_us: int, rows: int) -> None:
        self._records.add("syncs", 1, self._agent, partition, now_us, age_us, rows)

    def round(self, now_us: int, plan: Plan) -> None:
        """The figures of a flow scheduler's round; others have none."""
        if plan.stats:
            figures = [plan.stats.get(column, 0) for column in ROUND_COLUMNS]
            self._records.add("rounds", 1, now_us, self._agent, *figures)

    def unplaceable(self, now_us: int, task: Int64, abandoned: int) -> None:
        self._records.add("unplaceable", len(task), task, self._agent, now_us, abandoned)

    def sample(
        self,
        now_us: int,
        queued: int,
        average_us: int,
        latency_first: bool,
        busy_us: int,
        wasted_us: int,
        staleness_us: int,
    ) -> None:
        self._records.add(
            "agents", 1, now_us, self._agent, queued, average_us, int(latency_first), busy_us, wasted_us, staleness_us
        )

    def commit(
        self, now_us: int, this: Round, result: CommitResult, claimed: Work, accepted: np.ndarray, count: int
    ) -> None:
        """One transaction, its committed tasks and its rejected claims. accepted: bool[k] with `count` set; claimed: the claims' tasks."""
        plan = this.plan
        assert plan is not None
        reasons = np.bincount(result.reason, minlength=len(Reason))
        self._records.add(
            "commits",
            1,
            self._agent,
            result.sequence,
            this.start_us,
            now_us,
            this.decision_us,
            int(this.ranking),
            len(plan.task),
            count,
            reasons[Reason.STALE],
            reasons[Reason.FULL],
            reasons[Reason.MACHINE_DOWN],
            reasons[Reason.EVICTED],
            reasons[Reason.GANG],
            reasons[Reason.DUPLICATE],
        )
        if count:
            everything = count == len(plan.task)
            task = plan.task if everything else plan.task[accepted]
            machine = plan.machine if everything else plan.machine[accepted]
            age_us = result.age_us if everything else result.age_us[accepted]
            attempts = claimed.attempts if everything else claimed.attempts[accepted]
            first = claimed.first if everything else claimed.first[accepted]
            submit_us = self._table.submit_us[task]
            preference = self._table.preference[task]
            cost: Int64 | int = 0
            preferred: np.ndarray | int = 0
            if self._catalog.sets > 1:
                cost, preferred = placement_cost(self._catalog, self._rack, preference, machine)
            self._records.add(
                "tasks",
                count,
                task,
                self._table.job[task],
                self._agent,
                machine,
                submit_us,
                now_us,
                attempts,
                first,
                preference > 0,
                preferred,
                cost,
                age_us,
            )
        if count < len(plan.task):
            lost = ~accepted
            self._records.add(
                "rejections",
                len(plan.task) - count,
                plan.task[lost],
                self._agent,
                plan.machine[lost],
                result.reason[lost],
                result.rival[lost],
                result.age_us[lost],
                now_us,
            )
