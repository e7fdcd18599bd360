"""Preferred machines first, over the whole queue: in each round every task that can have one of its
preferred machines gets one, in the order of the queue. Then the others get any. Of equally good
machines a task gets the one with the most room, as of load_spreading."""

from __future__ import annotations

from schedulers.greedy.kinds import greedy_spec
from schedulers.greedy.scheduler import PlacementKind

SPEC = greedy_spec("preferred_first", PlacementKind.LOAD_SPREADING, preferred_first=True)
