"""The mean of columns over time, of which the past is forgotten exponentially; in integers."""

from __future__ import annotations

import numpy as np

from schedulers.prices.offered_demand import KEEP_ALL, kept
from shared_state.tasks import Int64

FRACTION_BITS = 8  # of means
_WEIGHT_BITS = 20


class RunningMean:
    """The mean of a column, right from the first value on.

    Args:
        rows: n.
        forget_us: After this time a value counts 1/e.
    """

    def __init__(self, rows: int, forget_us: int) -> None:
        self._mean = np.zeros(rows, np.int64)
        self._forget_us = forget_us
        self._covered_us = 0  # the time that the mean covers, less what is forgotten

    def add(self, value: Int64, elapsed_us: int) -> None:
        """Forget for a time, in which the column had the value given.

        Args:
            value: int64[n], in units of 1 / 2^FRACTION_BITS, 0 to 2^40.
            elapsed_us: The time.
        """
        keep = kept(elapsed_us, self._forget_us)
        new_us = max(1, self._forget_us * (KEEP_ALL - keep) // KEEP_ALL)
        self._covered_us = self._covered_us * keep // KEEP_ALL + new_us
        part = (new_us << _WEIGHT_BITS) // self._covered_us
        self._mean += (value - self._mean) * part >> _WEIGHT_BITS

    def rounded(self) -> Int64:
        """The mean, to the nearest integer: int64[n]; 0 before the first value."""
        mean: Int64 = (self._mean + (1 << FRACTION_BITS - 1)) >> FRACTION_BITS
        return mean
