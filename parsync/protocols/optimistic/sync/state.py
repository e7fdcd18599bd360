"""StateSync: every agent refreshes the whole state every G (ParSync section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parsync.protocols.optimistic.sync.limits import check_gap
from parsync.protocols.optimistic.sync.policy import PeriodicSync, SyncContext
from parsync.protocols.optimistic.sync.registry import NoOptions, SyncPolicySpec
from shared_state.tasks import Int32


@dataclass(frozen=True, slots=True)
class StateSync(PeriodicSync):
    """The whole state every G: all agents at multiples of G, or agent i at k G + i G / N when
    staggered."""

    context: SyncContext
    staggered: bool

    def due_us(self, k: int) -> int:
        return k * self.context.gap_us + self._offset_us

    def latest(self, now_us: int) -> int:
        return (now_us - self._offset_us) // self.context.gap_us

    @property
    def _offset_us(self) -> int:
        of = self.context
        return of.index * of.gap_us // of.agents if self.staggered else 0

    def partitions(self, k: int) -> Int32:
        return np.arange(self.context.partitions, dtype=np.int32)


def _aligned(options: NoOptions, context: SyncContext) -> StateSync:
    check_gap(context)
    return StateSync(context, staggered=False)


def _staggered(options: NoOptions, context: SyncContext) -> StateSync:
    check_gap(context)
    return StateSync(context, staggered=True)


ALIGNED = SyncPolicySpec("state_aligned", _aligned)
STAGGERED = SyncPolicySpec("state_staggered", _staggered)
