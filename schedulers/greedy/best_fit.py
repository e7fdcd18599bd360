"""The row that fits with the least room left, summed over dimensions as shares of the largest
machine; ties to the lowest row."""

from __future__ import annotations

from schedulers.greedy.kinds import greedy_spec
from schedulers.greedy.scheduler import PlacementKind

SPEC = greedy_spec("best_fit", PlacementKind.BEST_FIT)
