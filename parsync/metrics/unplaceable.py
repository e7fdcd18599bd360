"""Tasks that can never be placed, and tasks that were given up."""

from __future__ import annotations

from typing import ClassVar

from parsync.metrics.counters import Counters
from parsync.metrics.figures import Count, Figures
from parsync.metrics.metric import NativeMetric, Scope, TableColumns
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.table_fold import Rows
from schedulers.unplaceable import Unplaceable


class UnplaceableFigures(Figures):
    """The tasks that left the queue unplaced; they are among the censored tasks.

    Attributes:
        unplaceable: Tasks that their schedulers could never place.
        abandoned: Tasks given up after too many attempts.
    """

    unplaceable: Count
    abandoned: Count


class UnplaceableMetric(NativeMetric):
    """Tasks that leave the queue unplaced."""

    kind = "unplaceable"
    description = "Tasks that can never be placed, and tasks that were given up."
    figures_model = UnplaceableFigures
    reads: ClassVar[TableColumns] = {"unplaceable": ("agent", "at_us", "abandoned")}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters(("unplaceable", "abandoned"), run)

    def add_up(self, rows: Rows) -> None:
        place = rows["agent"], rows.slot("at_us")
        abandoned = rows["abandoned"] == Unplaceable.ABANDONED
        rows.where(abandoned).add(self.count["abandoned"], place)
        rows.where(~abandoned).add(self.count["unplaceable"], place)

    def merge(self, other: UnplaceableMetric) -> None:
        self.count.merge(other.count)

    def figures(self, scope: Scope) -> UnplaceableFigures:
        return UnplaceableFigures(**{name: scope.sum(self.count[name]) for name in self.count})
