"""The lowest row that fits.

Schedulers that share a view all choose the same rows: the extreme of contention.
"""

from __future__ import annotations

from schedulers.greedy.kinds import greedy_spec
from schedulers.greedy.scheduler import PlacementKind

SPEC = greedy_spec("first_fit", PlacementKind.FIRST_FIT)
