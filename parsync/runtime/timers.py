"""The timers of the participants of one process, in the order in which they fire."""

from __future__ import annotations

import heapq
from typing import Any

from parsync.core.event import Event


class TimerQueue:
    """Timers by time; at one time by the priority of their events, then in the order of setting."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, int, Event]] = []
        self._sequence = 0

    @property
    def next_us(self) -> int | None:
        """When the earliest timer fires; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def set(self, at_us: int, address: int, event: Event) -> None:
        """Add a timer of the participant at `address`."""
        self._sequence += 1
        heapq.heappush(self._heap, (at_us, int(event.priority), self._sequence, address, event))

    def take_due(self, now_us: int) -> tuple[int, int, Event] | None:
        """Take the earliest timer off, as (at_us, address, event), if it fires by now_us."""
        if not self._heap or self._heap[0][0] > now_us:
            return None
        at_us, _, _, address, event = heapq.heappop(self._heap)
        return at_us, address, event

    def clear(self) -> None:
        """Forget every timer."""
        self._heap.clear()

    def checkpoint(self) -> Any:
        """The state, in a form that a codec takes."""
        return self._sequence, tuple(sorted(self._heap))

    def restore(self, state: Any) -> None:
        """Take the state that checkpoint() returned."""
        self._sequence, timers = state
        self._heap = list(timers)  # sorted, and so a heap
