"""The coordinator: it follows the load phases."""

from __future__ import annotations

from parsync.core.effects import Effect, SetTimer
from parsync.core.event import Event
from parsync.core.events import PhaseDue, Started
from parsync.metrics.record import Record


class Coordinator:
    """Follows the load phases of the workload.

    In a live run its actor shows the phase to people. In virtual time nobody asks for it. There it
    is a participant all the same: both runtimes drive the same participants, and its events are
    part of the digest that a run is known by.

    Args:
        start_us: When each phase begins, ascending.

    Attributes:
        phase: The present one, -1 before the first.
    """

    def __init__(self, start_us: tuple[int, ...]) -> None:
        self._start_us = start_us
        self.phase = -1

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Started():
                return self._arm(0)
            case PhaseDue(phase):
                self.phase = phase
                return self._arm(phase + 1)
        raise TypeError(f"coordinator cannot handle {type(event).__name__}")

    def finish(self, now_us: int) -> list[Record]:
        """Hand out no measurements: the coordinator makes none."""
        return []

    def _arm(self, phase: int) -> list[Effect]:
        if phase >= len(self._start_us):
            return []
        return [SetTimer(self._start_us[phase], PhaseDue(phase))]
