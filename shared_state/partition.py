"""Partitions of a cell: contiguous blocks of machine rows, cut along the topology."""

from __future__ import annotations

import numpy as np

from shared_state.errors import AgoraError
from shared_state.tasks import CellSpec, Int32, Int64


class Partitioning:
    """Partition p is the machine rows [offsets[p], offsets[p + 1]).

    Args:
        offsets: int64[P+1], strictly ascending from 0 to the number of machines.

    Raises:
        AgoraError: The offsets are not of that form.
    """

    def __init__(self, offsets: Int64) -> None:
        offsets = np.array(offsets, np.int64)
        if (
            offsets.ndim != 1
            or len(offsets) < 2
            or offsets[0] != 0
            or (np.diff(offsets) <= 0).any()
        ):
            raise AgoraError("partition offsets: expected bounds ascending strictly from 0")
        offsets.flags.writeable = False
        self.offsets: Int64 = offsets

    @property
    def count(self) -> int:
        """P."""
        return len(self.offsets) - 1

    @property
    def machines(self) -> int:
        """M."""
        return int(self.offsets[-1])

    def of(self, machine: Int32) -> Int32:
        """The partition of each of these machine rows, int32[n]."""
        return (np.searchsorted(self.offsets, machine, side="right") - 1).astype(np.int32)

    def of_each(self) -> Int32:
        """The partition of every machine row, int32[M]."""
        return np.repeat(np.arange(self.count, dtype=np.int32), np.diff(self.offsets))

    def rows(self, partition: int) -> slice:
        """The machine rows of one partition."""
        return slice(int(self.offsets[partition]), int(self.offsets[partition + 1]))

    @classmethod
    def by_topology(cls, cell: CellSpec, partitions: int) -> Partitioning:
        """`partitions` blocks of nearly equal size, cut at rack boundaries where there are racks
        enough, else within racks.

        Bound p of equal blocks is p * M // P. With at least P racks each bound moves to a rack
        boundary: the nearest (the lower on a tie) that leaves every partition at least one rack.
        AgoraError unless 1 <= partitions <= machines.
        """
        machines = cell.machines
        if not 1 <= partitions <= machines:
            raise AgoraError(
                f"partitions: expected 1 to {machines} (the number of machines), got {partitions}"
            )
        bounds = np.arange(partitions + 1, dtype=np.int64) * machines // partitions
        starts = np.flatnonzero(np.diff(cell.rack, prepend=cell.rack[0] - 1))
        # every rack boundary, 0 and M included
        edges = np.append(starts, machines).astype(np.int64)
        racks = len(edges) - 1
        if racks < partitions:
            return cls(bounds)
        right = np.searchsorted(edges, bounds)  # edges[right] >= bound
        left = np.maximum(right - 1, 0)
        edge = np.where(bounds - edges[left] <= edges[right] - bounds, left, right)
        # Bounds must differ: push them up from the front, then down from the back so that enough
        # racks remain.
        step = np.arange(partitions + 1)
        edge = np.maximum.accumulate(edge - step) + step
        edge = np.minimum(edge, racks - partitions + step)
        edge[0], edge[-1] = 0, racks
        return cls(edges[edge])
