"""An agent's view of the cell: how it is refreshed, and how fresh each partition of it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.protocols import _native
from parsync.protocols.optimistic.preemptible import Preemptible
from parsync.protocols.optimistic.sync.policy import SyncContext
from parsync.protocols.spec import AgentEnvironment
from schedulers.capability import Capability
from shared_state.view import ClusterView


class AgentView(_native.AgentView):
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

    def __init__(
        self, environment: AgentEnvironment, context: SyncContext, checks_seqnum: bool
    ) -> None:
        shared = environment.shared
        self.cell = ClusterView(
            shared.cell, shared.partitioning, checks_seqnum, environment.static_state
        )
        only = environment.member.options.only_partitions
        self._visible = sorted(only or range(context.partitions))
        # Agents turn to equally fresh partitions from different places.
        first_turn = context.index * context.partitions // context.agents
        super().__init__(self.cell, self._visible, first_turn)
        self.preemptible = None
        if Capability.PREEMPTS in environment.member.capabilities:
            self.preemptible = Preemptible(environment)
        self._partitioning = shared.partitioning

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """The machines that the agent may not use, bool[M]."""
        offsets = self._partitioning.offsets
        partition = np.repeat(np.arange(len(self.order)), np.diff(offsets))
        return ~np.isin(partition, self._visible)
