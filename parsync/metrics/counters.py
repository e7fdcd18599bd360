"""Counts by agent and slot, and by agent and time: what most metrics add up in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.run_frame import RunFrame
from shared_state.tasks import Int64


def add_at(
    matrix: NDArray[Any], row: NDArray[Any], column: NDArray[Any], weight: NDArray[Any] | int
) -> None:
    """Add a weight at each place (row, column) of a contiguous matrix; places may repeat.

    numpy adds at places that one number names five times as fast as at those that two name.
    """
    place = row * np.int64(matrix.shape[1]) + column
    np.add.at(matrix.reshape(-1), place, weight)


class Counters:
    """Named sums, int64[agents, slots] each: counters["claims"]."""

    def __init__(self, names: Sequence[str], run: RunFrame) -> None:
        self._counts = {name: np.zeros((run.agents, run.slots), np.int64) for name in names}

    def __getitem__(self, name: str) -> Int64:
        return self._counts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def add(
        self,
        name: str,
        agent: NDArray[Any],
        slot: Int64,
        weight: NDArray[Any] | int = 1,
    ) -> None:
        """Add one, or a weight per row, to the counts of agents and slots."""
        add_at(self._counts[name], agent, slot, weight)

    def merge(self, other: Counters) -> None:
        for name, counts in self._counts.items():
            counts += other._counts[name]


class TimeSeries:
    """Named counts by agent and time bucket, int64[agents, buckets] each; grows with time."""

    def __init__(self, names: Sequence[str], rows: int, bucket_us: int) -> None:
        self.names = tuple(names)
        self.bucket_us = bucket_us
        self.counts = np.zeros((len(names), rows, 64), np.int64)

    def add(
        self, name: str, row: NDArray[Any], at_us: Int64, weight: NDArray[Any] | None = None
    ) -> None:
        """Add one, or a weight per row, to the counts of agents at their times."""
        if not len(row):
            return
        bucket = np.maximum(at_us, 0) // self.bucket_us
        self.reach(int(bucket.max()) + 1)
        counts = self.counts[self.names.index(name)]
        add_at(counts, row, bucket, 1 if weight is None else weight)

    def merge(self, other: TimeSeries) -> None:
        self.reach(other.counts.shape[2])
        self.counts[:, :, : other.counts.shape[2]] += other.counts

    def by_name(self) -> dict[str, Int64]:
        """The counts of each name."""
        return dict(zip(self.names, self.counts, strict=True))

    def reach(self, buckets: int) -> None:
        """Make room for so many buckets, in another array than before."""
        missing = buckets - self.counts.shape[2]
        if missing > 0:
            grown = max(missing, self.counts.shape[2])
            self.counts = np.concatenate(
                [self.counts, np.zeros((*self.counts.shape[:2], grown), np.int64)], axis=2
            )
