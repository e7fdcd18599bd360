"""What an agent measures: rows for the tables, gathered until the next sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import _native
from parsync.metrics.record import Measurements, Record
from parsync.metrics.tables import NOT_KNOWN, TABLES, Waiting
from schedulers.interface import Plan
from schedulers.objective import native_columns
from schedulers.unplaceable import Unplaceable
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import CommitResult

ROUND_COLUMNS = tuple(TABLES["rounds"])[2:]

NO_TASKS = np.zeros(0, np.int64)


def round_figures(plan: Plan) -> list[int] | None:
    """The figures that a flow scheduler's plan has, as columns of the table `rounds` after time
    and agent; None for other plans."""
    return [int(plan.stats.get(column, 0)) for column in ROUND_COLUMNS] if plan.stats else None


class AgentLog(_native.AgentLog):  # type: ignore[misc] # compiled
    """Measurements of agent `agent`; see tables.py for what each column means. They wait in
    `records` until they are handed out.

    Calls raise ValueError, and have added nothing, for tasks, machines or reasons that do not exist
    and for columns of another length or dtype.
    """

    def __init__(
        self, agent: int, cell: CellSpec, table: TaskBatch, catalog: PreferenceCatalog
    ) -> None:
        self.records = Measurements()
        super().__init__(
            agent,
            np.ascontiguousarray(table.job, np.int64),
            np.ascontiguousarray(table.submit_us, np.int64),
            np.ascontiguousarray(table.preference, np.int32),
            native_columns(catalog, cell),
            self.records,
        )

    def flush(self) -> list[Record]:
        """Everything since the last flush."""
        return self.records.flush()

    def sync(self, now_us: int, partition: int, age_us: int, rows: int) -> None:
        """A partition of the view was refreshed, which had been of that age: so many rows."""
        super().sync(now_us, partition, age_us, rows)

    def round(self, now_us: int, plan: Plan, decision_us: int) -> None:
        """A decision round: its decision time, and the figures that a flow scheduler's plan has."""
        self.decided(decision_us)
        figures = round_figures(plan)
        if figures is not None:
            super().round(now_us, figures)

    def decided(self, decision_us: int) -> None:
        """The decision time of a round, which makes the agent busy."""
        super().decided(decision_us)

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
        super().attempts(start_us, decision_us, task, claimed, placed, conflicted)

    def unplaceable(self, now_us: int, task: Int64, reason: NDArray[np.int8] | Unplaceable) -> None:
        """Tasks that are not tried again, and why: an Unplaceable for each, int8[n], or for all."""
        super().unplaceable(now_us, task, reason)

    def hold(self, task: int, from_us: int, until_us: int, behind: int) -> None:
        """A task held the queue for that time, with so many others behind it at most."""
        super().hold(task, from_us, until_us, behind)

    def waiting(
        self,
        task: Int64,
        why: Waiting,
        ahead: int,
        resource: Int32,
        machines: Int64,
        unseen: Int64,
    ) -> None:
        """Tasks that still wait as the run ends, int64[n], and why; columns as in the table
        `waiting`, [n] each."""
        super().waiting(task, int(why), ahead, resource, machines, unseen)

    def sample(
        self,
        now_us: int,
        queued: int,
        average_us: int,
        latency_first: bool,
        staleness_us: int,
    ) -> None:
        """The agent as it is at the end of a sample interval; columns as in the table `agents`."""
        super().sample(now_us, queued, average_us, latency_first, staleness_us)

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
        sums: tuple[tuple[int, ...], int, int] = super().commit(
            at_us,
            result.sequence,
            task,
            machine,
            synced_us,
            attempts,
            first,
            result.reason,
            result.rival,
            result.age_us,
            start_us,
            decision_us,
            ranking,
            tasks,
        )
        return sums
