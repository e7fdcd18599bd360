"""Each row that fits with probability proportional to its slot score: exact weighted sampling
without replacement (ParSync section 4.3)."""

from __future__ import annotations

from schedulers.greedy.base import DECISION, NoOptions, PlacementKind, builder
from schedulers.registry import SchedulerSpec

SPEC = SchedulerSpec(
    "weighted_sampling",
    NoOptions,
    builder(PlacementKind.WEIGHTED_SAMPLING),
    default_decision=DECISION,
)
