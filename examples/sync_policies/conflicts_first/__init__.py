"""Refreshes the partitions in turn, and with each of them those where most claims were rejected."""

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from parsync.protocols.optimistic.sync import PeriodicSync, SyncPolicySpec, check_gap


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    extra: int = Field(1, ge=0)  # partitions with conflicts, beside the one whose turn it is


class ConflictsFirst(PeriodicSync):
    wants_feedback = True

    def __init__(self, options, context):
        check_gap(context)
        self.context = context
        self.extra = options.extra
        self.conflicts = np.zeros(context.partitions, np.int64)

    def due_us(self, k):
        return k * self.context.gap_us // self.context.partitions

    def observe(self, feedback):
        self.conflicts = self.conflicts // 2 + feedback.conflicts  # old conflicts fade

    def partitions(self, k):
        of = self.context
        turn = (of.index * of.partitions // of.agents + k) % of.partitions
        worst = np.argsort(-self.conflicts, kind="stable")[: self.extra]
        worst = worst[(self.conflicts[worst] > 0) & (worst != turn)]
        return np.array([*worst, turn], dtype=np.int32)


SPEC = SyncPolicySpec("conflicts_first", ConflictsFirst, Options)
