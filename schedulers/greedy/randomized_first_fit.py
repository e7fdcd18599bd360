"""Omega's randomised first fit (Schwarzkopf et al., EuroSys 2013; its simulator's placement loop).

Draw among the remaining candidates: a machine that fits is taken and stays a candidate, another is
set aside for the rest of the attempt. An attempt is a run of tasks of one request, as the tasks of
an Omega job are.
"""

from __future__ import annotations

from schedulers.greedy.base import DECISION, NoOptions, PlacementKind, builder
from schedulers.registry import SchedulerSpec

SPEC = SchedulerSpec(
    "randomized_first_fit",
    NoOptions,
    builder(PlacementKind.RANDOMIZED_FIRST_FIT),
    default_decision=DECISION,
)
