"""Uniformly random among the rows that fit."""

from __future__ import annotations

from schedulers.greedy.base import PlacementKind
from schedulers.greedy.spec import greedy_spec

SPEC = greedy_spec("random", PlacementKind.RANDOM)
