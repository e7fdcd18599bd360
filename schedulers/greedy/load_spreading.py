"""The row that fits with the most room, summed over dimensions as shares of the largest machine:
also among preferred machines of equal cost, where the other kinds draw.

Ties are broken at random, anew in each plan, so that schedulers that share a view do not all choose
the same rows.
"""

from __future__ import annotations

from schedulers.greedy.kinds import greedy_spec
from schedulers.greedy.scheduler import PlacementKind

SPEC = greedy_spec("load_spreading", PlacementKind.LOAD_SPREADING)
