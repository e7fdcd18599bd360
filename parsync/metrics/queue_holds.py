"""What waited behind tasks and gangs that held the queue of their scheduler."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from parsync.metrics.figures import Count, Figures
from parsync.metrics.metric import NativeMetric, Scope, TableColumns
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.table_fold import Rows


class QueueHoldFigures(Figures):
    """The holds of queues, by the window in which each ended. Both are 0 where no unit held up
    others: such as where all tasks are alike, and where schedulers keep the tasks that wait."""

    held_up_max: Count = quantity(
        "Most tasks held up",
        Unit.COUNT,
        Better.LOWER,
        "The most tasks that waited behind one task or gang that found no room and held the queue "
        "of its scheduler (head_of_line_s).",
        per_scheduler=True,
    )
    hold_max_us: Count = quantity(
        "Longest hold of a queue",
        Unit.DURATION,
        Better.LOWER,
        "The longest time that one task or gang held the queue while others waited behind it.",
        per_scheduler=True,
    )


class QueueHoldMetric(NativeMetric):
    """Holds of queues."""

    kind = "queue_holds"
    description = "What waited behind tasks and gangs that held the queue of their scheduler."
    figures_model = QueueHoldFigures
    reads: ClassVar[TableColumns] = {"holds": ("agent", "from_us", "until_us", "behind")}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        shape = (run.agents, run.slots)
        self._behind, self._length_us = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    def add_up(self, rows: Rows) -> None:
        place = rows["agent"], rows.slot("until_us")
        rows.largest(self._behind, place, rows["behind"])
        rows.largest(self._length_us, place, rows["until_us"] - rows["from_us"])

    def merge(self, other: QueueHoldMetric) -> None:
        np.maximum(self._behind, other._behind, out=self._behind)
        np.maximum(self._length_us, other._length_us, out=self._length_us)

    def figures(self, scope: Scope) -> QueueHoldFigures:
        inside = np.ix_(scope.agents, scope.slots)
        return QueueHoldFigures(
            held_up_max=int(self._behind[inside].max(initial=0)),
            hold_max_us=int(self._length_us[inside].max(initial=0)),
        )
