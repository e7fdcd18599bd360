"""What an agent whose scheduler preempts knows of the running tasks of lower priority."""

from __future__ import annotations

import numpy as np

from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send
from parsync.core.events import RunningReply, RunningRequest
from parsync.protocols.spec import AgentEnvironment
from schedulers.interface import Plan
from schedulers.running_tasks import RunningTasks
from shared_state.tasks import Int32


class Preemptible:
    """The running tasks that an agent may plan to end, as the master showed them last. It asks for
    those of a partition whenever it synchronises that.

    Args:
        environment: The agent's.

    Attributes:
        running: The tasks, less those that plans end.
    """

    def __init__(self, environment: AgentEnvironment) -> None:
        shared = environment.shared
        self._agent = environment.index
        self._table = shared.table
        self._partition = shared.partitioning.of(np.arange(shared.cell.machines, dtype=np.int32))
        # what has the highest priority never makes room
        self._below = int(shared.table.priority.max(initial=0))
        none64 = np.zeros(0, np.int64)
        self.running = RunningTasks.of(self._table, none64, none64, np.zeros(0, np.int32))

    def request(self, partition: Int32) -> list[Effect]:
        """Ask for the tasks of partitions, int32[k]."""
        return [Send(MASTER, RunningRequest(self._agent, partition, self._below))]

    def on_reply(self, reply: RunningReply) -> None:
        """Replace what is known of some partitions."""
        known = self.running
        kept = ~np.isin(self._partition[known.machine], reply.partition)
        self.running = RunningTasks.of(
            self._table,
            np.concatenate([known.allocation[kept], reply.allocation]),
            np.concatenate([known.task[kept], reply.task]),
            np.concatenate([known.machine[kept], reply.machine]),
        )

    def on_planned(self, plan: Plan) -> None:
        """A plan ends some of them."""
        if len(plan.evict):
            self.running = self.running.take(~np.isin(self.running.allocation, plan.evict))
