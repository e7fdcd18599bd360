"""Arrival times of generated batches: offered load as a clock that counts work.

A cell that holds S tasks at once is offered S * load_percent units of work per microsecond; a unit
is a hundredth of a task-microsecond. A batch brings 100 * tasks * mean duration units, so batch b
is due when the clock has counted b times that. The offered load of every phase is therefore exact
up to one batch, whatever the loads and lengths of the phases. All numbers are integers.
"""

from __future__ import annotations

import numpy as np

from parsync.workload.workload import Phase
from shared_state.random import Stream
from shared_state.tasks import Int64


class WorkClock:
    """Cumulative offered work over phases, and its inverse.

    Args:
        phases: one after the other, from time 0.
        slots: how many tasks the cell holds at once.

    Raises:
        ValueError: the work overflows an int64.
    """

    def __init__(self, phases: tuple[Phase, ...], slots: int) -> None:
        work = [(phase.end_us - phase.start_us) * phase.load_percent * slots for phase in phases]
        if sum(work) >= 1 << 62:
            raise ValueError(
                "phases: tasks x load x time exceeds 2^62 task-microseconds; "
                "shorten the phases or shrink the cell"
            )
        self._start_us = np.array([phase.start_us for phase in phases], np.int64)
        self._rate = np.array([phase.load_percent * slots for phase in phases], np.int64)
        self._work_end = np.cumsum(np.array(work, np.int64))
        self._work_start = self._work_end - np.array(work, np.int64)
        self.total = int(self._work_end[-1])

    def time_us(self, work: Int64) -> Int64:
        """The times at which the clock reaches `work`: int64[n] of int64[n] in [0, total)."""
        phase = np.searchsorted(self._work_end, work, side="right")
        time: Int64 = self._start_us[phase] + (work - self._work_start[phase]) // self._rate[phase]
        return time


def even_arrivals(
    clock: WorkClock, work_per_batch: int, jitter_percent: int, stream: Stream
) -> Int64:
    """The arrival times of evenly spaced batches: int64[batches], ascending. Batch b is due at
    b * work_per_batch plus a uniform jitter of up to jitter_percent of the spacing."""
    batches = clock.total // work_per_batch
    due = np.arange(batches, dtype=np.int64) * work_per_batch
    jitter = work_per_batch * jitter_percent // 100
    if jitter > 0:
        due += stream.integers(batches, jitter)
    return clock.time_us(due)


def poisson_arrivals(clock: WorkClock, work_per_batch: int, stream: Stream) -> Int64:
    """The arrival times of a Poisson process in each phase: int64[batches], ascending. The gaps on
    the work clock are exponential with mean work_per_batch."""
    due = np.zeros(0, np.int64)
    reached = 0
    while reached < clock.total:
        missing = (clock.total - reached) // work_per_batch + 64
        gaps = (stream.exponential(missing) * work_per_batch).astype(np.int64)
        more = reached + np.cumsum(gaps)
        due = np.concatenate([due, more])
        reached = int(more[-1])
    return clock.time_us(due[due < clock.total])
