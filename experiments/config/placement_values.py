"""What placements are worth beyond the workload's cost: the scores of their machines, and whatever
the kind of workload adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from experiments.config.run_config import RunConfig
from parsync.metrics.quantity import Better, Quantity, Unit
from parsync.metrics.run_frame import PlacementValue
from parsync.workload.workload import Workload
from shared_state.tasks import CellSpec, Int32, Int64

_LARGEST_SCORE = 1 << 38  # sums over a run's tasks stay within int64

SLOT_SCORE = Quantity(
    key="slot_score_mean",
    label="Mean slot score",
    unit=Unit.PLAIN,
    description="Mean score of the slots used, divided by the mean score of all slots; 1 is what "
    "random placement gives.",
    better=Better.HIGHER,
    headline=True,
    per_scheduler=True,
)


@dataclass(frozen=True, slots=True)
class SlotScore:
    """Score of the machines that were chosen over that of the cell's slots on average: 1 is what
    chance would choose."""

    score: Int64
    mean: int

    quantity: ClassVar[Quantity] = SLOT_SCORE

    @staticmethod
    def of_cell(cell: CellSpec) -> SlotScore:
        slots = cell.capacity[:, 0]
        score = np.minimum(cell.slot_score, _LARGEST_SCORE)
        return SlotScore(score, sum((slots * score).tolist()) // max(1, int(slots.sum())))

    def of(self, task: Int64, machine: Int32) -> tuple[Int64, Int64]:
        return self.score[machine], np.full(len(task), self.mean, np.int64)


def placement_values(config: RunConfig, workload: Workload) -> list[PlacementValue]:
    """The figures that this workload has something to rest on for."""
    values: list[PlacementValue] = []
    if workload.cell.slot_score.any():
        values.append(SlotScore.of_cell(workload.cell))
    return [*values, *config.workload.values(workload)]
