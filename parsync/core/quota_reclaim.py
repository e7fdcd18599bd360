"""Which of its running tasks an agent ends to give back what its quota groups hold above their
grants."""

from __future__ import annotations

import numpy as np

from parsync.core.quotas import TaskQuotas
from schedulers.running_tasks import OwnAllocations
from shared_state.tasks import Int32, Int64, TaskBatch
from shared_state.transaction import Transaction


class Reclaimer:
    """The running tasks of one agent, and which of them go first.

    Args:
        quotas: The quota group of each task.
        table: Every task (row = id).
    """

    def __init__(self, quotas: TaskQuotas, table: TaskBatch) -> None:
        self._quotas = quotas
        self._table = table
        self._own = OwnAllocations()

    def on_started(self, allocation: Int64, task: Int64, machine: Int32) -> None:
        """Tasks of the agent run, int64[n], int64[n] and int32[n]."""
        self._own.add(allocation, task, machine)

    def on_ended(self, allocation: Int64) -> None:
        """Tasks of the agent run no more."""
        self._own.remove(allocation)

    def transaction(self, agent: int, sequence: int, amount: Int64) -> Transaction | None:
        """What the agent asks of the cell to give amounts back; None if it runs nothing that is to
        end.

        Of each group the tasks of lowest priority end first, and among these the ones that were
        submitted last, until they hold the amount in each resource. Tasks that hold nothing of
        what has to be given back run on.

        Args:
            agent: Its address.
            sequence: The number of the transaction.
            amount: int64[G, R], by quota group and resource.
        """
        victims = self._victims(amount)
        if not len(victims):
            return None
        none64, none32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
        request = np.zeros((0, amount.shape[1]), np.int64)
        return Transaction(agent, sequence, none64, none32, request, none64, evict=victims)

    def _victims(self, amount: Int64) -> Int64:
        """The allocations to end, int64[n]."""
        allocation, task = self._own.everything()
        table, group = self._table, self._quotas.of_task[task]
        chosen: list[Int64] = [np.zeros(0, np.int64)]
        for present in np.flatnonzero(amount.any(axis=1)).tolist():
            holds = table.request[task][:, amount[present] > 0].any(axis=1)
            rows = np.flatnonzero((group == present) & holds)
            of_rows = task[rows]
            order = np.lexsort((-of_rows, -table.submit_us[of_rows], table.priority[of_rows]))
            freed = np.cumsum(table.request[of_rows[order]], axis=0)
            enough = (freed >= amount[present]).all(axis=1)
            chosen.append(allocation[rows[order[: np.count_nonzero(~enough) + 1]]])
        return np.concatenate(chosen)
