"""What a slot is where tasks and machines have several resources: room for a typical request."""

from __future__ import annotations

import numpy as np

from schedulers import _native
from schedulers.units import TypicalRequest, units_in
from shared_state.tasks import CellSpec, Int64
from shared_state.view import ClusterView

MAX_SLOTS: int = _native.PRICE_LEVELS  # of one machine: prices have a column for each


class Slots:
    """How many slots machines have, and how many of all are busy.

    A slot is what a task of typical size asks for: the median of the requests offered, dimension by
    dimension, with hysteresis. Where more than MAX_SLOTS of these fit a machine, a slot is a
    multiple of it.

    Attributes:
        unit: int64[R], a slot; 0 in every dimension while that is not known, or if tasks of typical
            size ask for nothing.
        slots: int64[M], how many slots fit each machine when it is empty.
    """

    def __init__(self, cell: CellSpec) -> None:
        self._limit = cell.limit
        self._typical = TypicalRequest(cell.capacity.shape[1])
        self.unit = self._typical.unit
        self.slots = np.zeros(cell.machines, np.int64)

    def update(self, request: Int64) -> bool:
        """Look at the requests offered last, int64[n, R]; True if the slot changed."""
        if not self._typical.update(request):
            return False
        unit = self._typical.unit.copy()
        if unit.any():
            most = int(units_in(self._limit, unit).max(initial=0))
            unit *= -(-most // MAX_SLOTS) or 1
        if np.array_equal(unit, self.unit):
            return False
        self.unit = unit
        self.slots = units_in(self._limit, unit) if unit.any() else np.zeros_like(self.slots)
        return True

    def busy(self, view: ClusterView) -> int:
        """The busy slots of all machines that the view knows to be up."""
        busy = self.slots - units_in(view.free, self.unit)
        return int(np.maximum(busy, 0).sum(where=view.up))
