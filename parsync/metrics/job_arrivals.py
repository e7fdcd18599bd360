"""When each job of a run was submitted, and to whom."""

from __future__ import annotations

import numpy as np

from parsync.metrics.job_index import JobIndex
from parsync.metrics.table_fold import Rows

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

    def add_up(self, rows: Rows) -> None:
        """Declare what is kept of the table `submissions`."""
        place = (rows["job"].place_among(self._index.ids),)
        beside = (self.agent, rows["agent"]), (self.slot, rows.slot("submit_us"))
        rows.store_earliest(self.submit_us, place, rows["submit_us"], beside)

    def merge(self, other: JobArrivals) -> None:
        """Take over what another object saw of the same run."""
        earlier = other.submit_us < self.submit_us
        for mine, theirs in (
            (self.submit_us, other.submit_us),
            (self.agent, other.agent),
            (self.slot, other.slot),
        ):
            mine[earlier] = theirs[earlier]
