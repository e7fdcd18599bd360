"""Each row that fits with probability proportional to its slot score: exact weighted sampling
without replacement (ParSync section 4.3)."""

from __future__ import annotations

from schedulers.greedy.base import PlacementKind
from schedulers.greedy.spec import greedy_spec

SPEC = greedy_spec("weighted_sampling", PlacementKind.WEIGHTED_SAMPLING)
