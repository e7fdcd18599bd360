"""Synchronisation by blocks of partitions: DiffSyn, and SameSyn for comparison (ParSync sections
5.1 and 5.2).

How stale views are on average under each policy: parsync/model/staleness.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parsync.protocols.optimistic.sync.limits import check_gap, check_partitions
from parsync.protocols.optimistic.sync.policy import PeriodicSync, SyncContext
from parsync.protocols.optimistic.sync.registry import NoOptions, SyncPolicySpec
from shared_state.tasks import Int32


@dataclass(frozen=True, slots=True)
class BlockSync(PeriodicSync):
    """P/N partitions every G/N: in round r agent i refreshes block (i + r) mod N (DiffSyn, section
    5.1), or everybody block r mod N (SameSyn, section 5.2)."""

    context: SyncContext
    same_block: bool

    def due_us(self, k: int) -> int:
        return k * self.context.gap_us // self.context.agents

    def latest(self, now_us: int) -> int:
        of = self.context
        return ((now_us + 1) * of.agents - 1) // of.gap_us

    def partitions(self, k: int) -> Int32:
        of = self.context
        block = (k if self.same_block else of.index + k) % of.agents
        first = block * of.partitions // of.agents
        end = (block + 1) * of.partitions // of.agents
        return np.arange(first, end, dtype=np.int32)


def _diff_block(options: NoOptions, context: SyncContext) -> BlockSync:
    check_gap(context)
    check_partitions("diff_block", context)
    return BlockSync(context, same_block=False)


def _same_block(options: NoOptions, context: SyncContext) -> BlockSync:
    check_gap(context)
    check_partitions("same_block", context)
    return BlockSync(context, same_block=True)


DIFF_BLOCK = SyncPolicySpec("diff_block", _diff_block)
SAME_BLOCK = SyncPolicySpec("same_block", _same_block)
