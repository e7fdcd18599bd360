"""Omega's synchronisation: the whole state before every decision round (ParSync section 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parsync.protocols.optimistic.sync.limits import seconds
from parsync.protocols.optimistic.sync.policy import PeriodicSync, SyncContext
from parsync.protocols.optimistic.sync.registry import NoOptions, SyncPolicySpec
from shared_state.errors import AgoraError
from shared_state.tasks import Int32


@dataclass(frozen=True, slots=True)
class EveryAttemptSync(PeriodicSync):
    """The whole state before every decision round, and never otherwise.

    Nothing tells the agent of what changes in between: if it found no room, it tries again after
    the gap, or when it gets a new task.
    """

    context: SyncContext

    @property
    def at_every_attempt(self) -> bool:
        return True

    @property
    def retry_us(self) -> int:
        return self.context.gap_us

    def due_us(self, k: int) -> None:
        return None

    def partitions(self, k: int) -> Int32:
        return np.arange(self.context.partitions, dtype=np.int32)


def _make(options: NoOptions, context: SyncContext) -> EveryAttemptSync:
    if context.gap_us < 1:
        raise AgoraError(
            f"gap_s: expected at least {seconds(1)} with every_attempt, got "
            f"{seconds(context.gap_us)}"
        )
    return EveryAttemptSync(context)


SPEC = SyncPolicySpec("every_attempt", _make)
