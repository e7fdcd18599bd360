"""Uniformly random among the rows that fit."""

from __future__ import annotations

from schedulers.greedy.kinds import greedy_spec
from schedulers.greedy.scheduler import PlacementKind

SPEC = greedy_spec("random", PlacementKind.RANDOM)
