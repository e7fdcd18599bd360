"""Uniformly random among the rows that fit."""

from __future__ import annotations

from schedulers.greedy.base import DECISION, NoOptions, PlacementKind, builder
from schedulers.registry import SchedulerSpec

SPEC = SchedulerSpec(
    "random",
    NoOptions,
    builder(PlacementKind.RANDOM),
    default_decision=DECISION,
)
