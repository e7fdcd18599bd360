"""The days of a run, for figures of which Omega gives the median of the daily values (Schwarzkopf
et al., EuroSys 2013, section 4)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.run_frame import RunFrame
from shared_state.tasks import Int64

DAY_US = 86_400_000_000
# Runs of less than two days are divided into so many parts, which stand for days.
PARTS = 10


class Days:
    """The days of a run, or its tenths if it is shorter than two days.

    Attributes:
        length_us: Of a day.
        count: How many there are; the last one may be shorter.
    """

    def __init__(self, run: RunFrame) -> None:
        self._run = run
        end_us = max(end for _, end, _ in run.phases)
        self.length_us = DAY_US if end_us >= 2 * DAY_US else max(1, end_us // PARTS)
        self.count = -(-end_us // self.length_us)

    def of(self, at_us: Int64) -> Int64:
        """The day of each time; times after the last day count on the last day."""
        day: Int64 = np.clip(at_us // self.length_us, 0, self.count - 1)
        return day

    def is_whole(self, counted_us: NDArray[np.number]) -> NDArray[np.bool_]:
        """Whether enough of each day counts, float or int64[days]: at least half of it. Days of
        which the windows hold little say little."""
        whole: NDArray[np.bool_] = counted_us >= self.length_us / 2
        return whole

    def counted_us(self, slots: Iterable[int]) -> Int64:
        """How much of each day the windows of some phases hold: int64[days]."""
        counted = np.zeros(self.count, np.int64)
        begin_us = np.arange(self.count, dtype=np.int64) * self.length_us
        for slot in slots:
            start_us, end_us, _ = self._run.phases[slot]
            from_us = np.maximum(begin_us, start_us + self._run.settle_us)
            to_us = np.minimum(begin_us + self.length_us, end_us)
            counted += np.maximum(to_us - from_us, 0)
        return counted
