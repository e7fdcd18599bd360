"""An agent's view of the cell: how it is refreshed, and how fresh each partition of it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send
from parsync.core.events import SyncReply, SyncRequest
from parsync.metrics.agent_log import AgentLog
from parsync.protocols import _native
from parsync.protocols.optimistic.preemptible import Preemptible
from parsync.protocols.optimistic.sync.policy import SyncContext
from parsync.protocols.optimistic.sync.schedule import SyncSchedule
from parsync.protocols.spec import AgentEnvironment
from schedulers.capability import Capability
from shared_state.tasks import Int32, Int64
from shared_state.view import ClusterView


class AgentView(_native.AgentView):  # type: ignore[misc] # compiled
    """The view of one agent (parsync/protocols/native/agent_view.hpp). Partitions that its group
    may not use are never synchronised, so that their machines stay closed to it.

    Attributes:
        cell: What the agent believes about the cell.
        order: The partitions from the freshest to the stalest, int32[P]; all 0 before the first
            synchronisation.
        changed: Whether the view has changed since the agent last set this to False.
        is_synced: Whether it has ever been synchronised.
        preemptible: Running tasks that may have to make room; None if the scheduler preempts none.
    """

    order: Int32
    changed: bool
    is_synced: bool

    def __init__(
        self, environment: AgentEnvironment, context: SyncContext, checks_seqnum: bool
    ) -> None:
        shared = environment.shared
        self.cell = ClusterView(
            shared.cell, shared.partitioning, checks_seqnum, environment.static_state
        )
        only = environment.member.options.only_partitions
        self._visible = np.array(sorted(only or range(context.partitions)), np.int32)
        self._visible.setflags(write=False)  # it is part of messages
        # Agents turn to equally fresh partitions from different places.
        first_turn = context.index * context.partitions // context.agents
        super().__init__(self.cell, self._visible.tolist(), first_turn)
        self.preemptible = None
        if Capability.PREEMPTS in environment.member.capabilities:
            self.preemptible = Preemptible(environment)
        self._agent = environment.index
        self._partitioning = shared.partitioning
        self._checks_seqnum = checks_seqnum
        self._versions = self.cell.versions  # a window on the view's memory

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """The machines that the agent may not use, bool[M]."""
        offsets = self._partitioning.offsets
        partition = np.repeat(np.arange(len(self.order)), np.diff(offsets))
        return ~np.isin(partition, self._visible)

    def start(self, now_us: int) -> list[Effect]:
        """Ask for everything: nothing is known before the agent's start."""
        super().start(now_us)
        return self.request_all()

    def request_all(self) -> list[Effect]:
        """Ask the master for every partition that the agent may see."""
        return self._ask(self._visible)

    def request(self, partition: Int32) -> list[Effect]:
        """Ask the master for what has changed in those of some partitions that the agent may
        see."""
        if len(self._visible) < len(self.order):
            partition = partition[np.isin(partition, self._visible)]
        return self._ask(partition) if len(partition) else []

    def _ask(self, partition: Int32) -> list[Effect]:
        version = self._versions[partition]
        request = Send(MASTER, SyncRequest(self._agent, partition, version, self._checks_seqnum))
        if self.preemptible is None:
            return [request]
        # its answer comes first: a round may begin with that to the other
        return [*self.preemptible.request(partition), request]

    def on_reply(
        self, now_us: int, reply: SyncReply, rounds: int, log: AgentLog, schedule: SyncSchedule
    ) -> list[Effect]:
        """Apply the master's answer.

        Args:
            rounds: Decision rounds of the agent so far.
            log, schedule: Learn what was refreshed.

        Returns:
            A request for everything if the master was restarted; else nothing.
        """
        applied = super().on_reply(now_us, reply, rounds, log, schedule.rows_changed)
        return [] if applied else self.request_all()

    def staleness_us(self, now_us: int) -> int:
        """The mean age of the partitions that the agent may see."""
        age_us: int = super().staleness_us(now_us)
        return age_us

    def used_permille(self) -> Int64:
        """How much of the first resource is in use in each partition, in thousandths, int64[P]:
        machines that are down, or were never synchronised, count as empty and without capacity."""
        permille: Int64 = super().used_permille()
        return permille
