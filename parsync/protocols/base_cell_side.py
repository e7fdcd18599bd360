"""What participants beside the master do alike. A protocol's allocator builds on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import Started
from parsync.metrics.record import Record
from parsync.protocols.spec import Environment
from shared_state.cell import Cell


class BaseCellSide(ABC):
    """A participant beside the master. A subclass says what it does with the events of its
    protocol (on_event).

    Args:
        environment: The protocol's groups, the workload's tasks, the seed.
        cell: The master's cell, to read and not to change.

    Attributes:
        state: Everything that it remembers: numbers, arrays, and tuples of them. It is part of the
            cell's checkpoints, and comes back when a killed cell is restarted.
    """

    def __init__(self, environment: Environment, cell: Cell) -> None:
        self.environment = environment
        self.cell = cell
        self.state: Any = 0

    @abstractmethod
    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        """Handle an event of the protocol, or a timer that it set."""

    def on_started(self, now_us: int) -> list[Effect]:
        """Set timers, at the start of the run and after each restart of the cell."""
        return []

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Started():
                return self.on_started(now_us)
        return self.on_event(now_us, event)

    def finish(self, now_us: int) -> list[Record]:
        """Hand out the measurements that it still holds: none."""
        return []

    def checkpoint(self) -> Any:
        """The whole state."""
        return self.state

    def restore(self, state: Any) -> None:
        """Take the state that checkpoint() returned."""
        self.state = state
