"""What placements got of the values that the workload brings, e.g. scores of machines."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import ConfigDict

from parsync.metrics.counters import add_at
from parsync.metrics.figures import Figures
from parsync.metrics.metric import Metric, Scope, TableColumns, ratio
from parsync.metrics.quantity import Quantity
from parsync.metrics.record_batch import RecordBatch
from parsync.metrics.run_frame import RunFrame


class PlacementValueFigures(Figures):
    """What first commits got over what there was to get, by the key of each value's quantity; a
    workload brings its own values."""

    model_config = ConfigDict(extra="allow")


class PlacementValueMetric(Metric):
    """The values that RunFrame was given."""

    kind = "placement_values"
    description = "What placements got of the values that the workload brings."
    figures_model = PlacementValueFigures
    reads: ClassVar[TableColumns] = {"tasks": ("task", "agent", "machine", "submit_us", "first")}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        shape = (2, run.agents, run.slots)
        self._quantities = [
            value.quantity.model_copy(update={"metric": self.kind}) for value in run.values
        ]
        self._sums = {value.quantity.key: np.zeros(shape, np.int64) for value in run.values}

    def folds(self, table: str) -> bool:
        return bool(self.run.values) and super().folds(table)

    def fold(self, batch: RecordBatch) -> None:
        firsts = batch.first_commits
        agent, slot = firsts["agent"], firsts.slot("submit_us")
        for value in self.run.values:
            parts = value.of(firsts["task"], firsts["machine"])
            for sums, part in zip(self._sums[value.quantity.key], parts, strict=True):
                add_at(sums, agent, slot, part)

    def merge(self, other: PlacementValueMetric) -> None:
        for name, sums in self._sums.items():
            sums += other._sums[name]

    def figures(self, scope: Scope) -> PlacementValueFigures:
        shares = {
            key: ratio(scope.sum(got), scope.sum(whole)) for key, (got, whole) in self._sums.items()
        }
        return PlacementValueFigures(**shares)

    def run_quantities(self) -> list[Quantity]:
        return self._quantities
