"""DiffSyn one partition at a time (ParSync supplement A.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parsync.protocols.optimistic.sync.limits import check_gap, check_partitions
from parsync.protocols.optimistic.sync.policy import PeriodicSync, SyncContext
from parsync.protocols.optimistic.sync.registry import NoOptions, SyncPolicySpec
from shared_state.tasks import Int32


@dataclass(frozen=True, slots=True)
class SinglePartitionSync(PeriodicSync):
    """One partition every G/P; agents start evenly spread over the partitions."""

    context: SyncContext

    def due_us(self, k: int) -> int:
        return k * self.context.gap_us // self.context.partitions

    def latest(self, now_us: int) -> int:
        of = self.context
        return ((now_us + 1) * of.partitions - 1) // of.gap_us

    def partitions(self, k: int) -> Int32:
        of = self.context
        start = of.index * of.partitions // of.agents
        return np.array([(start + k) % of.partitions], dtype=np.int32)


def _make(options: NoOptions, context: SyncContext) -> SinglePartitionSync:
    check_gap(context)
    check_partitions("diff_single", context)
    return SinglePartitionSync(context)


SPEC = SyncPolicySpec("diff_single", _make)
