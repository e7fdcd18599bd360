"""Omega's randomised first fit (Schwarzkopf et al., EuroSys 2013; its simulator's placement loop).

Draw among the remaining candidates: a machine that fits is taken and stays a candidate, another is
set aside for the rest of the attempt. An attempt is a run of tasks of one request, as the tasks of
an Omega job are.
"""

from __future__ import annotations

from schedulers.greedy.kinds import greedy_spec
from schedulers.greedy.scheduler import PlacementKind

SPEC = greedy_spec("randomized_first_fit", PlacementKind.RANDOMIZED_FIRST_FIT)
