"""What participants beside the master do alike. A protocol's allocator builds on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from parsync.metrics.record import Record
from parsync.protocols.cell_watcher import CellWatcher
from parsync.protocols.spec import Environment
from shared_state.cell import Cell


class BaseCellSide(CellWatcher):
    """A participant beside the master. A subclass says what it does with the events of its
    protocol (on_event). It is notified of starts, ends and machine changes if the protocol declares
    ProtocolCapability.WATCHES_CELL; the cell shows them already then.

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

    def finish(self, now_us: int) -> list[Record]:
        """Hand out the measurements that it still holds: none."""
        return []

    def checkpoint(self) -> Any:
        """The whole state."""
        return self.state

    def restore(self, state: Any) -> None:
        """Take the state that checkpoint() returned. Arrays become writable."""
        self.state = _writable(state)


def _writable(state: Any) -> Any:
    """The same state, with copies of its arrays."""
    if isinstance(state, tuple):
        return tuple(map(_writable, state))
    return state.copy() if isinstance(state, np.ndarray) else state
