"""The places of a run's jobs, 0..jobs-1 in the order of their ids: what sums by job are kept by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import Int64


class JobIndex:
    """The jobs of a run.

    Args:
        job_of: int64[tasks], the job of each task id; negative for tasks in no job.

    Attributes:
        ids: int64[jobs], ascending. A job of which all tasks ran before the run began has none.
    """

    def __init__(self, job_of: Int64) -> None:
        self.ids = np.unique(job_of[job_of >= 0])
        self._dense = len(self.ids) == 0 or int(self.ids[-1]) == len(self.ids) - 1

    def __len__(self) -> int:
        return len(self.ids)

    def having(self, chosen: NDArray[np.bool_], job_of: Int64) -> NDArray[np.bool_]:
        """Which jobs have a chosen task: bool[jobs], by their places.

        Args:
            chosen: bool[tasks].
            job_of: int64[tasks], as given to the index.
        """
        found = np.zeros(len(self), np.bool_)
        found[self.places(job_of[chosen & (job_of >= 0)])] = True
        return found

    def places(self, job: Int64) -> NDArray[np.intp]:
        """The place of each of these jobs, which the run has."""
        if self._dense:
            return job.astype(np.intp, copy=False)
        return np.searchsorted(self.ids, job)
