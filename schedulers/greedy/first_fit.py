"""The lowest row that fits.

Schedulers that share a view all choose the same rows: the extreme of contention.
"""

from __future__ import annotations

from schedulers.greedy.base import PlacementKind
from schedulers.greedy.spec import greedy_spec

SPEC = greedy_spec("first_fit", PlacementKind.FIRST_FIT)
