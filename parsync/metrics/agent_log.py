"""What an agent measures: rows for the tables, gathered until the next sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.metrics._native import CommitLog
from parsync.metrics.measurements import Measurements
from parsync.metrics.record import Record
from parsync.metrics.tables import NOT_KNOWN, TABLES, Waiting
from schedulers.interface import Plan
from schedulers.objective import native_columns
from schedulers.unplaceable import Unplaceable
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import CONFLICTS, CommitResult, is_conflict

ROUND_COLUMNS = tuple(TABLES["rounds"])[2:]

NO_TASKS = np.zeros(0, np.int64)
_STALE, _FULL, _EVICTED = CONFLICTS


class AgentLog:
    """Measurements of agent `agent`; see tables.py for what each column means."""

    def __init__(
        self, agent: int, cell: CellSpec, table: TaskBatch, catalog: PreferenceCatalog
    ) -> None:
        self._agent = agent
        self._records = Measurements()
        self._busy_us = 0
        self._wasted_us = 0  # of rounds with a conflict (as in Omega's simulator)
        self._job = table.job
        self._outcomes = CommitLog(
            agent,
            np.ascontiguousarray(table.job, np.int64),
            np.ascontiguousarray(table.submit_us, np.int64),
            np.ascontiguousarray(table.preference, np.int32),
            native_columns(catalog, cell),
            self._records.buffer("tasks"),
            self._records.buffer("rejections"),
        )

    def flush(self) -> list[Record]:
        """Everything since the last flush."""
        return self._records.flush()

    def sync(self, now_us: int, partition: int, age_us: int, rows: int) -> None:
        self._records.add("syncs", 1, self._agent, partition, now_us, age_us, rows)

    def round(self, now_us: int, plan: Plan, decision_us: int) -> None:
        """A decision round: its decision time, and the figures that a flow scheduler's plan has."""
        self.decided(decision_us)
        if plan.stats:
            figures = [plan.stats.get(column, 0) for column in ROUND_COLUMNS]
            self._records.add("rounds", 1, now_us, self._agent, *figures)

    def decided(self, decision_us: int) -> None:
        """The decision time of a round, which makes the agent busy."""
        self._busy_us += decision_us

    def attempts(
        self,
        start_us: int,
        decision_us: int,
        task: Int64,
        claimed: Int64 = NO_TASKS,
        placed: Int64 = NO_TASKS,
        conflicted: Int64 = NO_TASKS,
    ) -> None:
        """The scheduling attempts of a round that is over: one for each job that it was about.

        Args:
            start_us, decision_us: When the round began, and its decision time, or NOT_KNOWN.
            task: int64[n], the tasks that it was about.
            claimed, placed, conflicted: int64[k] each, those of them that it claimed, that it
                committed for the first time, and whose claims met a conflict.
        """
        if not len(task):
            return
        counted = (task, claimed, placed, conflicted)
        job = self._job[task]
        if (job == job[0]).all():
            row = (int(job[0]), start_us, decision_us, *map(len, counted))
            self._records.add("job_attempts", 1, self._agent, *row)
            return
        jobs = np.unique(job)
        tasks, *others = (
            np.bincount(np.searchsorted(jobs, self._job[some]), minlength=len(jobs))
            for some in counted
        )
        part_us = decision_us if decision_us == NOT_KNOWN else decision_us * tasks // len(task)
        self._records.add(
            "job_attempts", len(jobs), self._agent, jobs, start_us, part_us, tasks, *others
        )

    def unplaceable(self, now_us: int, task: Int64, reason: NDArray[np.int8] | Unplaceable) -> None:
        """Tasks that are not tried again, and why: an Unplaceable for each, int8[n], or for all."""
        why = int(reason) if isinstance(reason, Unplaceable) else reason
        self._records.add("unplaceable", len(task), task, self._agent, now_us, why)

    def hold(self, task: int, from_us: int, until_us: int, behind: int) -> None:
        self._records.add("holds", 1, task, self._agent, from_us, until_us, behind)

    def waiting(
        self,
        task: Int64,
        why: Waiting,
        ahead: int,
        resource: Int32,
        machines: Int64,
        unseen: Int64,
    ) -> None:
        columns = (task, self._agent, int(why), ahead, resource, machines, unseen)
        self._records.add("waiting", len(task), *columns)

    def sample(
        self,
        now_us: int,
        queued: int,
        average_us: int,
        latency_first: bool,
        staleness_us: int,
    ) -> None:
        self._records.add(
            "agents",
            1,
            now_us,
            self._agent,
            queued,
            average_us,
            int(latency_first),
            self._busy_us,
            self._wasted_us,
            staleness_us,
        )

    def commit(
        self,
        at_us: int,
        task: Int64,
        machine: Int32,
        synced_us: Int64,
        attempts: Int32,
        first: NDArray[np.int8],
        result: CommitResult,
        start_us: int = NOT_KNOWN,
        decision_us: int = NOT_KNOWN,
        ranking: int = NOT_KNOWN,
        tasks: Int64 | None = None,
    ) -> tuple[tuple[int, ...], int, int]:
        """One transaction, its committed tasks and its rejected claims.

        Args:
            at_us: When the agent learned of the outcome, or the cell's time if it never did.
            task, machine: The claims, int64[n] and int32[n].
            synced_us: The cell's time of the state that each was planned on, int64[n].
            attempts: Claims made for each task, this one included, int32[n].
            first: 1 unless the task ran before, int8[n].
            result: The cell's answer.
            start_us, decision_us, ranking: Of the decision round; NOT_KNOWN for a transaction that
                is recovered from the cell's log.
            tasks: int64[m], those that the round was about; None where there was no round.

        Returns:
            How many claims had each Reason, how many tasks were committed for the first time, and
            the sum of these tasks' delays in us.
        """
        # the cell's time, at which it handled the transaction
        cell_us = int(synced_us[0] + result.age_us[0]) if len(task) else at_us
        claims, first_commits, delay_us = self._outcomes.add(
            at_us,
            result.sequence,
            cell_us,
            task,
            machine,
            attempts,
            first,
            result.reason,
            result.rival,
            result.age_us,
        )
        self._records.add(
            "commits",
            1,
            self._agent,
            result.sequence,
            start_us,
            at_us,
            decision_us,
            ranking,
            len(task),
            *claims,
        )
        has_conflict = claims[_STALE] or claims[_FULL] or claims[_EVICTED]
        if decision_us != NOT_KNOWN and has_conflict:
            self._wasted_us += decision_us
        if tasks is not None or decision_us == NOT_KNOWN:
            placed = task
            if first_commits < len(task):
                placed = task[result.accepted & (first == 1)]
            conflicted = task[is_conflict(result.reason)] if has_conflict else NO_TASKS
            about = task if tasks is None else tasks
            self.attempts(start_us, decision_us, about, task, placed, conflicted)
        return claims, first_commits, delay_us
