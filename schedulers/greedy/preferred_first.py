"""Preferred machines first, over the whole queue: in each round every task that can have one of its
preferred machines gets one, in the order of the queue. Then the others get any, uniform among the
rows that fit."""

from __future__ import annotations

from schedulers.greedy.base import PlacementKind
from schedulers.greedy.spec import greedy_spec

SPEC = greedy_spec("preferred_first", PlacementKind.RANDOM, preferred_first=True)
