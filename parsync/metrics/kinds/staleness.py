"""How old partitions are in the schedulers' views."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from parsync.metrics.metric import Merges, NativeMetric, Rows, Scope, TableColumns, ratio
from parsync.metrics.quantity import Count, Figures, Number
from parsync.metrics.run_frame import RunFrame


class StalenessFigures(Figures):
    """No figures: ages are kept by partition, not by scope (PartitionStaleness)."""


class PartitionStaleness(Figures):
    """The age of each partition, over all agents and windows: averaged over time (it grows from 0
    to its age at the next sync), average and largest just before a sync; the rows that a sync
    carried, and the number of syncs."""

    mean_us: list[Number | None]
    at_sync_us: list[Number | None]
    max_us: list[Count]
    rows_mean: list[Number | None]
    syncs: list[Count]


class StalenessMetric(NativeMetric):
    """Ages of partitions at their syncs."""

    kind = "staleness"
    description = "How old partitions are in the schedulers' views."
    figures_model = StalenessFigures
    reads: ClassVar[TableColumns] = {"syncs": ("agent", "partition", "at_us", "age_us", "rows")}
    merges: ClassVar[Merges] = {
        "_syncs": np.add,
        "_rows": np.add,
        "_age_us": np.add,
        "_age_squared": np.add,
        "_age_max_us": np.maximum,
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        shape = (run.agents, run.partitions)
        self._syncs, self._rows, self._age_us, self._age_max_us = np.zeros((4, *shape), np.int64)
        # us^2 overflows int64 within minutes
        self._age_squared = np.zeros(shape, np.float64)

    def add_up(self, rows: Rows) -> None:
        counted = rows.where(rows.slot("at_us") < self.run.outside)
        place, age_us = (rows["agent"], rows["partition"]), rows["age_us"]
        counted.add(self._syncs, place)
        counted.add(self._rows, place, rows["rows"])
        counted.add(self._age_us, place, age_us)
        counted.add_squares(self._age_squared, place, age_us)
        counted.largest(self._age_max_us, place, age_us)

    def figures(self, scope: Scope) -> StalenessFigures:
        return StalenessFigures()

    def by_partition(self) -> PartitionStaleness:
        """The figures of each partition."""
        count, age_us = self._syncs.sum(axis=0), self._age_us.sum(axis=0)
        squared, rows = self._age_squared.sum(axis=0), self._rows.sum(axis=0)
        pairs = zip(squared, age_us, strict=True)
        return PartitionStaleness(
            mean_us=[ratio(float(s), 2 * int(a)) for s, a in pairs],
            at_sync_us=[ratio(int(a), int(c)) for a, c in zip(age_us, count, strict=True)],
            max_us=self._age_max_us.max(axis=0).tolist(),
            rows_mean=[ratio(int(r), int(c)) for r, c in zip(rows, count, strict=True)],
            syncs=count.tolist(),
        )
