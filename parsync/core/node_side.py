"""The queues at the machines that some protocols have."""

from __future__ import annotations

from typing import Protocol

from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.metrics.record import Record
from shared_state.tasks import Int32


class NodeSide(Protocol):
    """A protocol's queues at the machines. The worker pool calls them; they are part of it."""

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        """Handle an event of the protocol that was sent to the worker pool, a timer that it set, or
        the CommitReply to a transaction that it sent."""
        ...

    def on_ended(self, now_us: int, machine: Int32) -> list[Effect]:
        """Learn of machines on which tasks have just ended, int32[n], once for each task."""
        ...

    def finish(self, now_us: int) -> list[Record]:
        """Hand out the measurements that it still holds."""
        ...
