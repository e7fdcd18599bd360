"""What placements cost by the workload's own costs."""

from __future__ import annotations

from typing import ClassVar

from parsync.metrics.counters import Counters
from parsync.metrics.figures import Figures, Number
from parsync.metrics.metric import NativeMetric, Scope, TableColumns, ratio
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.table_fold import Rows


class CostFigures(Figures):
    """The cost of first commits, by the window of the submission."""

    cost_mean: Number | None = quantity(
        "Mean placement cost",
        Unit.PLAIN,
        Better.LOWER,
        "The workload's own cost of where a task was placed.",
        headline=True,
    )


class CostMetric(NativeMetric):
    """The mean cost of first commits."""

    kind = "cost"
    description = "What placements cost by the workload's own costs."
    figures_model = CostFigures
    reads: ClassVar[TableColumns] = {"tasks": ("agent", "submit_us", "first", "cost")}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters(("priced_tasks", "cost"), run)

    def add_up(self, rows: Rows) -> None:
        firsts = rows.first_commits
        place = firsts["agent"], firsts.slot("submit_us")
        firsts.add(self.count["priced_tasks"], place)
        firsts.add(self.count["cost"], place, firsts["cost"])

    def merge(self, other: CostMetric) -> None:
        self.count.merge(other.count)

    def figures(self, scope: Scope) -> CostFigures:
        tasks = scope.sum(self.count["priced_tasks"])
        return CostFigures(cost_mean=ratio(scope.sum(self.count["cost"]), tasks))
