"""The coordinator: it follows the load phases, and computes the shares of quota groups."""

from __future__ import annotations

from parsync.core.effects import Effect, SetTimer
from parsync.core.event import Event
from parsync.core.events import PhaseDue, QuotaReport, QuotaRoundDue, Started
from parsync.core.quota_rounds import QuotaRounds
from parsync.metrics.record import Record


class Coordinator:
    """Follows the load phases of the workload, and divides the cell among quota groups if the arm
    has some.

    In a live run its actor shows the phase to people. In virtual time nobody asks for it. There it
    is a participant all the same: both runtimes drive the same participants, and its events are
    part of the digest that a run is known by.

    Args:
        start_us: When each phase begins, ascending.
        quotas: Its rounds; None: the arm has no quota groups.

    Attributes:
        phase: The present one, -1 before the first.
    """

    def __init__(self, start_us: tuple[int, ...], quotas: QuotaRounds | None = None) -> None:
        self._start_us = start_us
        self._quotas = quotas
        self.phase = -1

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Started():
                first = [] if self._quotas is None else self._quotas.begin(now_us, 0)
                return self._arm(0) + first
            case PhaseDue(phase):
                self.phase = phase
                return self._arm(phase + 1)
            case QuotaReport() if self._quotas is not None:
                return self._quotas.on_report(now_us, event)
            case QuotaRoundDue(number) if self._quotas is not None:
                return self._quotas.begin(now_us, number)
        raise TypeError(f"coordinator cannot handle {type(event).__name__}")

    def finish(self, now_us: int) -> list[Record]:
        """Hand out no measurements: the coordinator makes none."""
        return []

    def _arm(self, phase: int) -> list[Effect]:
        if phase >= len(self._start_us):
            return []
        return [SetTimer(self._start_us[phase], PhaseDue(phase))]
