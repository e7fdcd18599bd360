"""The coordinator: load phases now; liveness of hosts and quota groups hang off it later."""

from __future__ import annotations

from parsync.core.events import (
    Effect,
    Event,
    PhaseBegan,
    Send,
    SetTimer,
    Started,
    Timer,
    TimerFired,
)


class Coordinator:
    """Tells `listeners` when each load phase begins. start_us: ascending times of the phases."""

    def __init__(self, start_us: tuple[int, ...], listeners: tuple[int, ...]) -> None:
        self._start_us = start_us
        self._listeners = listeners
        self.phase = -1

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Started():
                return self._arm(0)
            case TimerFired(timer=Timer.PHASE, key=key):
                self.phase = key
                announced: list[Effect] = [
                    Send(listener, PhaseBegan(key)) for listener in self._listeners
                ]
                return announced + self._arm(key + 1)
        raise TypeError(f"coordinator cannot handle {type(event).__name__}")

    def _arm(self, phase: int) -> list[Effect]:
        return (
            [SetTimer(self._start_us[phase], Timer.PHASE, phase)]
            if phase < len(self._start_us)
            else []
        )
