"""The row that fits with the least room left, summed over dimensions as shares of the largest
machine; ties to the lowest row."""

from __future__ import annotations

from schedulers.greedy.base import PlacementKind
from schedulers.greedy.spec import greedy_spec

SPEC = greedy_spec("best_fit", PlacementKind.BEST_FIT)
