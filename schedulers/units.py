"""Flow units are tasks; machines have several resources. This is the exchange rate.

A flow network has one commodity, so a machine's capacity must be a number of tasks. It is how many
tasks of a typical request (the median, dimension by dimension, of what waits) fit what is free.
That is exact when requests are alike (slots). When they are not, the flow may send a machine tasks
that do not fit together, and leave small tasks waiting where a typical one would not fit. So every
placement is checked against the resources, oversubscribed ones are counted apart, and some of the
tasks left over are placed one at a time (extraction.place_singly).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import Int64

MAX_UNITS = 1 << 20  # of one machine; bounds tasks that ask for nothing


def units_in(resources: Int64, unit: Int64) -> Int64:
    """How many of `unit` (int64[R]) fit each row of `resources` (int64[M, R]): int64[M]; 0 where
    some resource is negative."""
    count = np.full(len(resources), MAX_UNITS, np.int64)
    for r in range(len(unit)):
        column = resources[:, r]
        if unit[r] > 1:
            column = column // unit[r]
        elif unit[r] == 0:
            column = np.where(column < 0, -1, MAX_UNITS)
        np.minimum(count, column, out=count)
    return np.maximum(count, 0, out=count)


def fits_somewhere(request: Int64, free: Int64) -> NDArray[np.bool_]:
    """Whether some row of free (int64[M, R]) holds each request (int64[n, R]): bool[n]."""
    if len(request) == 0 or np.any(np.all(free >= request.max(axis=0), axis=1)):
        return np.ones(len(request), bool)
    distinct, which = np.unique(request, axis=0, return_inverse=True)
    fits = np.array([np.any(np.all(free >= one, axis=1)) for one in distinct])
    return fits[which.reshape(-1)]


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
        middle = len(request) // 2
        median: Int64 = np.partition(request, middle, axis=0)[middle]
        changed = not self._known or bool(np.any(4 * np.abs(median - self.unit) > self.unit))
        if changed:
            self._known = True
            self.unit = median
        self.exact = bool(np.all(request == self.unit))
        return changed
