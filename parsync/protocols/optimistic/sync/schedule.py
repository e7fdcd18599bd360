"""When an agent synchronises next, and what it has seen since the last time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parsync.core.effects import Effect, SetTimer
from parsync.protocols.optimistic.events import SyncDue
from parsync.protocols.optimistic.sync.checked import CheckedSyncPolicy
from parsync.protocols.optimistic.sync.policy import PeriodicSync, SyncFeedback, SyncPolicy
from shared_state.tasks import Int32, Int64

MOST_TOGETHER = 256  # synchronisations that are asked for one by one


class SyncSchedule:
    """Sets the timers of an agent's periodic synchronisations as its policy says.

    A runtime may deliver a timer late. Synchronisations that have become due meanwhile are done
    together. Of more than MOST_TOGETHER, which a runtime leaves out where nothing happens for long,
    the policy is not asked for each if it can tell the last: every partition is refreshed then.

    Attributes:
        rows_changed: int64[partitions], the machines that had changed in the partitions refreshed
            since the policy was last given feedback. Whoever refreshes one adds to it.
    """

    def __init__(self, policy: SyncPolicy, partitions: int) -> None:
        self.policy = policy
        self.next_us: int | None = None  # when the next one is due
        self._claims = np.zeros(partitions, np.int64)
        self._conflicts = np.zeros(partitions, np.int64)
        self.rows_changed = np.zeros(partitions, np.int64)

    def start(self, now_us: int) -> list[Effect]:
        """Set the timer of the first one that is still to come."""
        return self._arm(now_us, 1)

    def on_due(
        self, now_us: int, k: int, delay_us: int, queued: int, load: Callable[[], Int64]
    ) -> tuple[Int32, list[Effect]]:
        """The partitions to refresh at the k-th synchronisation and at all later ones that are due,
        and the timer of the next.

        Args:
            delay_us, queued, load: Values for SyncFeedback; load() is asked for used_permille only
                if the policy wants feedback.
        """
        policy = self.policy
        if policy.wants_feedback:
            policy.observe(self._take_feedback(now_us, delay_us, queued, load()))
        partitions = policy.partitions(k)
        following = k + 1
        if isinstance(policy, PeriodicSync | CheckedSyncPolicy):
            latest = policy.latest(now_us)
            if latest is not None and latest - k > MOST_TOGETHER:
                partitions = np.arange(len(self._claims), dtype=np.int32)
                following = latest + 1
        due_us = policy.due_us(following)
        while due_us is not None and due_us <= now_us:
            partitions = np.concatenate([partitions, policy.partitions(following)])
            following += 1
            due_us = policy.due_us(following)
        if following > k + 1:
            partitions = np.unique(partitions).astype(np.int32)
        return partitions, self._set_timer(due_us, following)

    def on_committed(self, partition: Int32, conflict: np.ndarray) -> None:
        """Note a transaction's outcome: partition int32[n] and conflict bool[n] of its claims."""
        if self.policy.wants_feedback:
            count = len(self._claims)
            self._claims += np.bincount(partition, minlength=count)
            self._conflicts += np.bincount(partition[conflict], minlength=count)

    def _arm(self, now_us: int, k: int) -> list[Effect]:
        due_us = self.policy.due_us(k)
        while due_us is not None and due_us <= now_us:
            k += 1
            due_us = self.policy.due_us(k)
        return self._set_timer(due_us, k)

    def _set_timer(self, due_us: int | None, k: int) -> list[Effect]:
        self.next_us = due_us
        return [] if due_us is None else [SetTimer(due_us, SyncDue(k))]

    def _take_feedback(
        self, now_us: int, delay_us: int, queued: int, used_permille: Int64
    ) -> SyncFeedback:
        counts = self._claims, self._conflicts, self.rows_changed
        claims, conflicts, rows_changed = (count.copy() for count in counts)
        feedback = SyncFeedback(
            now_us, claims, conflicts, rows_changed, delay_us, queued, used_permille
        )
        for count in counts:
            count.fill(0)
        return feedback
