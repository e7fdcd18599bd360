"""How fresh each partition of an agent's view is."""

from __future__ import annotations

import numpy as np

from parsync.protocols.optimistic.sync.staleness import average_staleness_us, freshness_order
from shared_state.tasks import Int32, Int64
from shared_state.transaction import PartitionDelta


class ViewFreshness:
    """Follows the ages of a view's partitions and ranks them.

    Args:
        synced_us: The view's own column: the cell's time of the state held, int64[P], -1 = never.
        first_partition: Where this agent's order of equally fresh partitions begins.
    """

    def __init__(self, synced_us: Int64, first_partition: int) -> None:
        self._synced_us = synced_us
        # as of when a partition that is not synced was known last; the agent's start if never
        self._known_us = np.zeros(len(synced_us), np.int64)
        self._first_partition = first_partition
        self.order: Int32 = np.zeros(len(synced_us), np.int32)  # freshest first

    def start(self, now_us: int) -> None:
        """Nothing is known before the agent's start."""
        self._known_us[:] = now_us

    def on_view_reset(self) -> None:
        """Remember how fresh the view was that is about to be dropped."""
        np.maximum(self._known_us, self._synced_us, out=self._known_us)

    def age_us(self, delta: PartitionDelta) -> int:
        """The age of the state that the delta is about to refresh."""
        held_us = int(self._synced_us[delta.partition])
        if held_us < 0:
            held_us = int(self._known_us[delta.partition])
        return max(0, delta.at_us - held_us)

    def rank(self, refreshed: int, latest: int, rounds: int) -> None:
        """Rank the partitions anew after a synchronisation.

        Args:
            refreshed: How many partitions it refreshed.
            latest: The last of them.
            rounds: Rounds of the agent so far.
        """
        if refreshed == len(self.order):
            # Everything is equally fresh: agents turn to the partitions from different places.
            latest = (self._first_partition + rounds) % len(self.order)
        self.order = freshness_order(self._synced_us, latest)

    def staleness_us(self, now_us: int) -> int:
        """The mean age of the partitions."""
        return average_staleness_us(np.maximum(self._synced_us, self._known_us), now_us)
