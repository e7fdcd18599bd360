"""How many tasks wait in the schedulers' queues."""

from __future__ import annotations

from typing import ClassVar

from parsync.metrics.figures import Figures, Number
from parsync.metrics.metric import Metric, Scope, TableColumns
from parsync.metrics.quantity import Better, Unit, quantity


class BacklogFigures(Figures):
    """Tasks submitted and not committed, at the samples in the windows: sums over the schedulers,
    and the longest queue of any of them."""

    backlog_mean: Number | None = quantity(
        "Backlog",
        Unit.COUNT,
        Better.LOWER,
        "Tasks submitted and not committed, averaged over samples.",
        per_scheduler=True,
    )
    backlog_end: Number | None = quantity(
        "Backlog at the end",
        Unit.COUNT,
        Better.LOWER,
        "At the last sample of the counted time.",
    )
    backlog_max_per_scheduler: Number | None


class BacklogMetric(Metric):
    """Lengths of the schedulers' queues."""

    kind = "backlog"
    description = "How many tasks wait in the schedulers' queues."
    figures_model = BacklogFigures
    keeps: ClassVar[TableColumns] = {"agents": ("at_us", "agent", "queued")}

    def figures(self, scope: Scope) -> BacklogFigures:
        rows, inside = scope.rows("agents")
        if not inside.any():
            return BacklogFigures(
                backlog_mean=None, backlog_end=None, backlog_max_per_scheduler=None
            )
        mean = end = largest = 0.0
        for agent in scope.agents:
            queued = rows["queued"][inside & (rows["agent"] == agent)]
            if len(queued):
                mean += float(queued.mean())
                end += int(queued[-1])
                largest = max(largest, int(queued.max()))
        return BacklogFigures(backlog_mean=mean, backlog_end=end, backlog_max_per_scheduler=largest)
