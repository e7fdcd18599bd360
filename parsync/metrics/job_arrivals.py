"""When each job of a run was submitted, and to whom."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.job_index import JobIndex
from parsync.metrics.record_batch import RecordBatch

UNKNOWN = -1


class JobArrivals:
    """The submissions of jobs: columns by the places of a JobIndex.

    Attributes:
        submit_us: int64[jobs], of the first batch; the largest number for jobs never submitted.
        agent: int32[jobs], to whom, or UNKNOWN.
        slot: int32[jobs], the slot of submit_us.
    """

    def __init__(self, index: JobIndex) -> None:
        jobs = len(index)
        self._index = index
        self.submit_us = np.full(jobs, np.iinfo(np.int64).max, np.int64)
        self.agent = np.full(jobs, UNKNOWN, np.int32)
        self.slot = np.zeros(jobs, np.int32)

    def add(self, rows: RecordBatch, slot: NDArray[np.intp]) -> None:
        """Take in rows of the table `submissions`, with the slots of their times."""
        job = self._index.places(rows["job"])
        np.minimum.at(self.submit_us, job, rows["submit_us"])
        first = rows["submit_us"] == self.submit_us[job]
        self.agent[job[first]] = rows["agent"][first]
        self.slot[job[first]] = slot[first]

    def merge(self, other: JobArrivals) -> None:
        """Take over what another object saw of the same run."""
        earlier = other.submit_us < self.submit_us
        for mine, theirs in (
            (self.submit_us, other.submit_us),
            (self.agent, other.agent),
            (self.slot, other.slot),
        ):
            mine[earlier] = theirs[earlier]
