"""An agent's view of the cell: how it is refreshed, and how fresh each partition of it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send
from parsync.core.events import SyncReply, SyncRequest
from parsync.metrics.agent_log import AgentLog
from parsync.protocols.optimistic.preemptible import Preemptible
from parsync.protocols.optimistic.sync.policy import SyncContext
from parsync.protocols.optimistic.sync.schedule import SyncSchedule
from parsync.protocols.optimistic.sync.staleness import average_staleness_us, freshness_order
from parsync.protocols.spec import AgentEnvironment
from schedulers.capability import Capability
from shared_state.tasks import Int32, Int64
from shared_state.transaction import PartitionDelta
from shared_state.view import ClusterView


class AgentView:
    """The view of one agent. Partitions that its group may not use are never synchronised, so that
    their machines stay closed to it.

    Attributes:
        cell: What the agent believes about the cell.
        order: The partitions from the freshest to the stalest, int32[P].
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
        self.order: Int32 = np.zeros(context.partitions, np.int32)
        self.changed = False
        self.preemptible = None
        if Capability.PREEMPTS in environment.member.capabilities:
            self.preemptible = Preemptible(environment)
        self._agent = environment.index
        only = environment.member.options.only_partitions
        self._visible = np.array(sorted(only or range(context.partitions)), np.int32)
        self._visible.setflags(write=False)  # it is part of messages
        self._limit = shared.cell.limit[:, 0]
        self._offsets = shared.partitioning.offsets
        self._checks_seqnum = checks_seqnum
        # windows on the view's memory
        self._synced_us, self._versions = self.cell.synced_us, self.cell.versions
        # as of when a partition that is not synced was known last; the agent's start if never
        self._known_us = np.zeros(context.partitions, np.int64)
        # Agents turn to equally fresh partitions from different places.
        self._first_partition = context.index * context.partitions // context.agents
        self._epoch = -1  # the master's epoch that this view is of; -1: never synced

    @property
    def is_synced(self) -> bool:
        return self._epoch >= 0

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """The machines that the agent may not use, bool[M]."""
        partition = np.repeat(np.arange(len(self.order)), np.diff(self._offsets))
        return ~np.isin(partition, self._visible)

    def start(self, now_us: int) -> list[Effect]:
        """Ask for everything: nothing is known before the agent's start."""
        self._known_us[:] = now_us
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
        if reply.epoch != self._epoch:
            # The master was restarted, or this view is new: other epochs' versions mean nothing.
            resync = self.is_synced
            self._epoch = reply.epoch
            if resync:
                np.maximum(self._known_us, self._synced_us, out=self._known_us)
                self.cell.reset()
                return self.request_all()
        latest = -1
        for delta in reply.deltas:
            if delta.from_version > self._versions[delta.partition]:
                continue  # meant for a view that has since been reset; the full sync is on its way
            rows = len(delta.row)
            log.sync(now_us, delta.partition, self._age_us(delta), rows)
            schedule.on_refreshed(delta.partition, rows)
            self.changed = self.changed or rows > 0
            self.cell.apply(delta)
            latest = delta.partition
        if latest >= 0:
            if len(reply.deltas) == len(self._visible):  # everything is equally fresh
                turn = (self._first_partition + rounds) % len(self._visible)
                latest = int(self._visible[turn])
            self.order = freshness_order(self._synced_us, latest)
        return []

    def staleness_us(self, now_us: int) -> int:
        """The mean age of the partitions that the agent may see."""
        known_us = np.maximum(self._synced_us, self._known_us)[self._visible]
        return average_staleness_us(known_us, now_us)

    def used_permille(self) -> Int64:
        """How much of the first resource is in use in each partition, in thousandths, int64[P]:
        machines that are down, or were never synchronised, count as empty and without capacity."""
        up, starts = self.cell.up, self._offsets[:-1]
        limit = np.where(up, self._limit, 0)
        used = np.where(up, limit - np.clip(self.cell.free[:, 0], 0, limit), 0)
        total = np.add.reduceat(limit, starts)
        return np.add.reduceat(used, starts) * 1000 // np.maximum(total, 1)

    def _age_us(self, delta: PartitionDelta) -> int:
        """The age of the state that the delta is about to refresh."""
        held_us = int(self._synced_us[delta.partition])
        if held_us < 0:
            held_us = int(self._known_us[delta.partition])
        return max(0, delta.at_us - held_us)
