"""The row that fits with the most room, summed over dimensions as shares of the largest machine:
also among preferred machines of equal cost, where the other kinds draw.

Ties are broken in a random order drawn anew for each plan, so that schedulers that share a view do
not all choose the same rows.
"""

from __future__ import annotations

from schedulers.greedy.base import DECISION, NoOptions, PlacementKind, builder
from schedulers.registry import SchedulerSpec

SPEC = SchedulerSpec(
    "load_spreading",
    NoOptions,
    builder(PlacementKind.LOAD_SPREADING),
    default_decision=DECISION,
)
