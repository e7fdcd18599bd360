"""What queues at the machines do alike: know what each machine has free, and claim it for agents. A
protocol's own queues build on it."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from parsync.core.addresses import MASTER, WORKERS, sequence_of
from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.events import (
    AllocationsEnded,
    CommitReply,
    CommitRequest,
    MachinesChanged,
    TasksStarted,
)
from parsync.metrics.record import Record
from parsync.protocols.cell_watcher import CellWatcher
from parsync.protocols.claim_checks import check_machines
from parsync.protocols.spec import Environment
from shared_state.tasks import Int32, Int64, fits
from shared_state.transaction import CommitResult, Transaction


class BaseNodeSide(CellWatcher):
    """Queues at the machines. A subclass says what it does with the events of its protocol
    (on_event), with the outcome of claims (on_claimed), and with starts, ends and machine changes
    as it needs to.

    The arrays show a change by the time that its handler is called. What they show is what the
    worker pool has been notified of: another agent's claim may be granted already, and a claim that
    fits here be rejected.

    Attributes:
        environment: The protocol's groups, the workload's tasks, the cell's capacity, the seed.
        used: What tasks use on each machine, int64[machines, resources].
        claimed: What claims ask for whose outcome is not known yet, int64[machines, resources].
            The start of an accepted claim's task comes just before the outcome: in its handler the
            task counts twice.
        up: Which machines are up, bool[machines].
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        capacity = environment.cell.capacity
        self.used = np.zeros(capacity.shape, np.int64)
        self.claimed = np.zeros(capacity.shape, np.int64)
        self.up = np.ones(len(capacity), np.bool_)
        self._limit = environment.cell.limit
        self._request = environment.table.request
        self._transactions = 0
        self._committing: dict[int, Transaction] = {}  # by sequence number

    @abstractmethod
    def on_claimed(
        self, now_us: int, agent: int, task: Int64, machine: Int32, result: CommitResult
    ) -> list[Effect]:
        """Handle the outcome of a claim(). The agent learns of it from the master.

        Args:
            agent, task, machine: As claimed.
            result: The cell's answer. A task with Reason.DUPLICATE runs already, or has run.
        """

    def free(self, machine: Int32) -> Int64:
        """What is neither used nor claimed on machines, int64[n, resources]. Over-commit counts as
        capacity, as it does for the cell."""
        free: Int64 = self._limit[machine] - self.used[machine] - self.claimed[machine]
        return free

    def fits(self, task: Int64, machine: Int32) -> NDArray[np.bool_]:
        """Whether each task has room on its machine, which is up, bool[n]. Each is looked at as if
        it were alone."""
        return fits(self._request[task], self.free(machine)) & self.up[machine]

    def claim(self, now_us: int, agent: int, task: Int64, machine: Int32) -> list[Effect]:
        """Claim a machine for each of an agent's tasks, int64[n] and int32[n], on the state as it
        is here. The outcome comes to on_claimed().

        Raises:
            ValueError: There is no such machine, or not one for each task.
        """
        machine = np.ascontiguousarray(machine, np.int32)
        check_machines(machine, len(task), len(self.up))
        self._transactions += 1
        transaction = Transaction(
            scheduler=agent,
            sequence=sequence_of(WORKERS, self._transactions),
            task=np.ascontiguousarray(task, np.int64),
            machine=machine,
            request=np.ascontiguousarray(self._request[task]),
            synced_us=np.full(len(task), now_us, np.int64),
        )
        self._committing[transaction.sequence] = transaction
        np.add.at(self.claimed, transaction.machine, transaction.request)
        return [Send(MASTER, CommitRequest(WORKERS, transaction))]

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case CommitReply(scheduler=agent, result=result):
                transaction = self._committing.pop(result.sequence)
                np.subtract.at(self.claimed, transaction.machine, transaction.request)
                return self.on_claimed(now_us, agent, transaction.task, transaction.machine, result)
            case TasksStarted():
                np.add.at(self.used, event.machine, self._request[event.task])
            case AllocationsEnded():
                np.subtract.at(self.used, event.machine, self._request[event.task])
            case MachinesChanged():
                self.up[event.machine] = event.up
        return super().handle(now_us, event)

    def finish(self, now_us: int) -> list[Record]:
        """Hand out the measurements that it still holds: none."""
        return []
