"""Flow units are tasks; machines have several resources. This is the exchange rate.

A flow network has one commodity, so a machine's capacity must be a number of tasks. It is how many
tasks of a typical request (the median, dimension by dimension, of what waits) fit what is free.
That is exact when requests are alike (slots). When they are not, the flow may send a machine tasks
that do not fit together, and leave small tasks waiting where a typical one would not fit. So every
placement is checked against the resources, oversubscribed ones are counted apart, and some of the
tasks left over are placed one at a time (extraction.place_singly). A resource that some of the
waiting tasks do not want at all does not count, or these would never reach machines without it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedulers import _native
from shared_state.tasks import Int64, fits

MAX_UNITS = 1 << 20  # of one machine; bounds tasks that ask for nothing


def units_in(resources: Int64, unit: Int64) -> Int64:
    """How many of `unit` (int64[R]) fit each row of `resources` (int64[M, R]): int64[M]. A resource
    of which the unit is 0 does not count; if it is 0 in all, rows with room in some resource hold
    MAX_UNITS, and others none."""
    count: Int64 = _native.units_in(resources, unit, MAX_UNITS)
    return count


def fits_somewhere(request: Int64, free: Int64) -> NDArray[np.bool_]:
    """Whether some row of free (int64[M, R]) holds each request (int64[n, R]): bool[n]."""
    if len(request) == 0 or np.any(fits(request.max(axis=0), free)):
        return np.ones(len(request), bool)
    distinct, which = np.unique(request, axis=0, return_inverse=True)
    fit = np.array([np.any(fits(one, free)) for one in distinct])
    return fit[which.reshape(-1)]


class TypicalRequest:
    """The unit, with hysteresis: a new median replaces it only when some dimension is off by more
    than a quarter, since every change of the unit changes the capacity of every machine."""

    def __init__(self, dimensions: int) -> None:
        self.unit = np.zeros(dimensions, np.int64)
        self.exact = True  # all that waits asks for one unit
        self._known = False

    def update(self, request: Int64) -> bool:
        """Look at the waiting requests (int64[n, R]); True when the unit changed."""
        if len(request) == 0:
            return False
        if self._known and bool((request == self.unit).all()):
            self.exact = True
            return False
        typical = self.typical(request)
        changed = not self._known or bool(np.any(4 * np.abs(typical - self.unit) > self.unit))
        if changed:
            self._known = True
            self.unit = typical
        self.exact = bool(np.all(request == self.unit))
        return changed

    def typical(self, request: Int64) -> Int64:
        """The median of the requests, int64[R]."""
        middle = len(request) // 2
        median: Int64 = np.partition(request, middle, axis=0)[middle]
        return median


class FlowUnit(TypicalRequest):
    """The unit of a flow: 0 in a resource that some tasks do not want, unless that is so of all."""

    def typical(self, request: Int64) -> Int64:
        median = super().typical(request)
        wanted_by_all = request.min(axis=0) > 0
        return np.where(wanted_by_all, median, 0) if wanted_by_all.any() else median
