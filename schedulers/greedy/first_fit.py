"""The lowest row that fits.

Schedulers that share a view all choose the same rows: the extreme of contention.
"""

from __future__ import annotations

from schedulers.greedy.base import DECISION, NoOptions, PlacementKind, builder
from schedulers.registry import SchedulerSpec

SPEC = SchedulerSpec(
    "first_fit",
    NoOptions,
    builder(PlacementKind.FIRST_FIT),
    default_decision=DECISION,
)
