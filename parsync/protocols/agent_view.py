"""An agent's view of the cell: how it is refreshed, how fresh each partition of it is, and which
running tasks may have to make room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send
from parsync.core.events import RunningReply, RunningRequest, SyncRequest
from parsync.protocols import _native
from parsync.protocols.spec import AgentEnvironment
from schedulers.interface import Capability, Plan
from schedulers.running_tasks import RunningTasks
from shared_state.tasks import Int32
from shared_state.transaction import CommitResult
from shared_state.view import ClusterView


class Preemptible:
    """The running tasks of lower priority that an agent may plan to end, as the master showed them
    last. It asks for those of a partition whenever it synchronises that.

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


class AgentView(_native.AgentView):
    """The view of one agent (parsync/protocols/native/agent_view.hpp). Partitions that its group
    may not use are never synchronised, so that their machines stay closed to it.

    Attributes:
        cell: What the agent believes about the cell.
        order: The partitions from the freshest to the stalest, int32[P]; in their order before the
            first synchronisation.
        changed: Whether the view has changed since the agent last set this to False.
        with_seqnum: Whether it holds sequence numbers.
        preemptible: Running tasks that may have to make room; None if the scheduler preempts none.
    """

    def __init__(
        self,
        environment: AgentEnvironment,
        only_partitions: Sequence[int] | None = None,
        first_turn: int = 0,
        with_seqnum: bool = False,
    ) -> None:
        """A view that shows nothing yet.

        Args:
            environment: The agent's.
            only_partitions: Those that its group may use; None: all.
            first_turn: Of agents that turn to equally fresh partitions from different places, where
                this one begins.
            with_seqnum: Whether it holds the machines' sequence numbers, which transactions then
                carry (ConflictCheck.SEQUENCE_NUMBER).
        """
        shared = environment.shared
        self.cell = ClusterView(
            shared.cell, shared.partitioning, with_seqnum, environment.static_state
        )
        self._visible = sorted(only_partitions or range(shared.partitioning.count))
        super().__init__(self.cell, self._visible, first_turn)
        self.with_seqnum = with_seqnum
        self.preemptible = None
        if Capability.PREEMPTS in environment.member.capabilities:
            self.preemptible = Preemptible(environment)
        self._agent = environment.index
        self._all = np.array(self._visible, np.int32)
        self._all.setflags(write=False)  # it is part of messages
        self._partitioning = shared.partitioning

    def request(self, partition: Int32 | None = None) -> list[Effect]:
        """Ask the master for what has changed in those of some partitions, int32[k], that the agent
        may use; None: in all. The answer is a SyncReply."""
        if partition is None:
            partition = self._all
        elif len(self._visible) < len(self.order):
            partition = partition[np.isin(partition, self._all)]
        if not len(partition):
            return []
        version = self.cell.versions[partition]
        request = Send(MASTER, SyncRequest(self._agent, partition, version, self.with_seqnum))
        if self.preemptible is None:
            return [request]
        # its answer comes first: a round may begin with that to the other
        return [*self.preemptible.request(partition), request]

    def settle(self, ticket: int, result: CommitResult) -> None:
        """Take in the cell's answer to the claims of a ticket of ClusterView.claim()."""
        self.cell.settle(ticket, result.reason, result.version)

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """The machines that the agent may not use, bool[M]."""
        offsets = self._partitioning.offsets
        partition = np.repeat(np.arange(len(self.order)), np.diff(offsets))
        return ~np.isin(partition, self._visible)
