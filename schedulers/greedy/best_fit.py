"""The row that fits with the least room left, summed over dimensions as shares of the largest
machine; ties to the lowest row."""

from __future__ import annotations

from schedulers.greedy.base import DECISION, NoOptions, PlacementKind, builder
from schedulers.registry import SchedulerSpec

SPEC = SchedulerSpec(
    "best_fit",
    NoOptions,
    builder(PlacementKind.BEST_FIT),
    default_decision=DECISION,
)
